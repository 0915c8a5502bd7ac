package ledger

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/writer"
)

func TestSettledReturnsLogPlaceOfLastSettledSplit(t *testing.T) {
	var f Follower
	at := func(n uint64) source.Followed { return source.Followed{Last: &source.Resume{Position: n}} }
	f.Read(checkpoint.At(0, 10), at(1))
	f.Read(checkpoint.At(0, 20), source.Followed{}) // a split without a place in the log
	f.Read(checkpoint.At(0, 30), at(3))
	f.Read(checkpoint.At(1, 5), at(4))
	for _, c := range []struct {
		before checkpoint.Position
		want   uint64 // 0 means none
	}{{0, 0}, {checkpoint.At(0, 9), 0}, {checkpoint.At(0, 29), 1}, {checkpoint.At(0, 29), 0}, {checkpoint.At(1, 5), 4},
		{checkpoint.At(9, 0), 0}} {
		last, any := f.Settled(c.before)
		conformance.True(t, any == (c.want > 0) && (!any || last.Last.Position == c.want),
			"all before %d is settled: %+v, %v, want %d", c.before, last.Last, any, c.want)
	}
	conformance.Equal(t, len(f.marks), 0, "marks")
}

// A row that is missing in the file may be in the table twice.
func TestDamagedFileOfRepeatedRowsIsAnError(t *testing.T) {
	folder := t.TempDir()
	row := writer.Doubt{Ordering: []byte("key"), Row: []byte("row"), Mark: "mark", Number: 7, From: 5}
	text := row.Append(row.Append(nil))
	for n := range len(text) + 1 {
		conformance.Must(t, os.WriteFile(filepath.Join(folder, rundir.DoubtsFile), text[:n], 0o600))
		d := conformance.Try(OpenRepeatedRows(folder, int64(n), nil)).Must(t)
		read := 0
		err := d.Each(10, func(byKey [][]writer.Doubt) error {
			for _, doubts := range byKey {
				read += len(doubts)
			}
			return nil
		})
		whole := n%(len(text)/2) == 0
		conformance.True(t, (err == nil) == whole && (!whole || read == n/(len(text)/2)), "%d: %d rows, %v", n, read, err)
		conformance.Must(t, d.journal.File().Close())
	}
}

// reference returns the row of record number n of the first source.
func reference(n int64) table.Ref {
	b := &table.Block{Split: &table.Split{Position: table.Position{Record: n}}, Data: []byte{byte(n)}}
	b.Append(0, 1, 1, table.Span{}, nil)
	return table.Ref{Block: b}
}

func TestStampsAreKeptSinceNeededCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "stamps")
	s := conformance.Try(OpenStamps(dir, 0, nil)).Must(t)
	conformance.Must(t, s.write([]stamp{{1, 1}})) // without a checkpoint nothing is kept
	var needed []int64
	for n := int64(1); n <= 5; n++ { // nothing is left of earlier attempts at checkpoint 3
		conformance.Must(t, s.Begin(new(partitioner.Cutter), n == 3))
		conformance.Must(t, s.write([]stamp{{checkpoint.Position(n), 100 * n}, {9, n}}))
		needed = append(needed, s.from)
		if n < 5 { // the process is killed before the last checkpoint counts
			conformance.Must(t, s.Forget())
		}
		if n == 4 {
			s.Passed(reference(4), 400)
			s.Passed(reference(5), 499)
		}
	}
	conformance.Same(t, needed, []int64{1, 1, 3, 3, 3}, "first needed files")
	conformance.Same(t, conformance.Try(s.files()).Must(t), []int64{3, 4, 5}, "files")
	conformance.Must(t, s.Close())
	for need, want := range map[int64][]stamp{3: {{3, 300}, {4, 400}, {5, 500}, {9, 5}}, 5: {{5, 500}, {9, 5}}, 6: nil,
		0: nil} {
		again := conformance.Try(OpenStamps(dir, need, nil)).Must(t)
		conformance.Same(t, again.earlier, want, "needed from %d on: stamps", need)
		conformance.Equal(t, again.number, max(5, need), "needed from %d on: the last file", need)
		if need == 3 { // the cells of row 4 may be hidden
			for n, want := range map[int64]int64{3: 300, 4: 0, 5: 500, 6: 0} {
				conformance.Equal(t, again.Kept(reference(n)), want, "stamp of row %d", n)
			}
		}
	}
	text := conformance.Try(os.ReadFile(s.path(5))).Must(t)
	whole := len(appendStamps(nil, text))
	for n := range text {
		conformance.True(t, len(appendStamps(nil, text[:n])) < whole, "a file cut to %d bytes is taken for whole", n)
	}
	conformance.Must(t, os.Mkdir(s.path(7), 0o700))
	conformance.Refused(t, conformance.ErrorOf(OpenStamps(dir, 3, nil)), "read timestamps of updates: ", "a folder")
	conformance.Refused(t, conformance.ErrorOf(OpenStamps(s.path(5), 3, nil)), "keep timestamps of updates: ", "a file")
	conformance.Must(t, s.Remove())
	conformance.Refused(t, conformance.ErrorOf(os.Stat(dir)), "", "stamps of a finished load")
}

type blocks struct{ keep.Known }

func (blocks) Blocks() []byte { return []byte("!") }

func TestCheckpointHasLengthsOfAllFiles(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *rundir.Journal {
		j := conformance.Try(rundir.OpenJournal(filepath.Join(dir, name), 0)).Must(t)
		conformance.Must(t, j.Append([]byte(name)))
		return j
	}
	f := Files{Folder: conformance.Try(rundir.Create(dir, nil)).Must(t), RepeatedRows: &repeatedRows{journal: open("a")},
		Returned: &returnedKeys{journal: open("bb")}, Blocks: open("ccc"), RejectIndex: open("dddd"), Known: blocks{}}
	own := len(f.Folder.Files())
	s := &checkpoint.Snapshot{About: checkpoint.About{Counters: map[string]int64{}}}
	conformance.Must(t, f.Keep(s))
	conformance.Equal(t, fmt.Sprint(s.Counters), "map[block_bytes:4 doubt_bytes:1 index_bytes:4 returned_bytes:2]", "kept")
	conformance.Equal(t, len(f.Open()), own+4, "files to sync")
	conformance.Must(t, f.Close(new(Counted)))
	for name, want := range map[string]string{"a": "a", "bb": "bb", "ccc": "ccc!", "dddd": "dddd"} {
		conformance.Equal(t, string(conformance.Try(os.ReadFile(filepath.Join(dir, name))).Must(t)), want, "%s", name)
	}
	conformance.Refused(t, f.Keep(s), "file already closed", "after a close")
}

// A resumed load continues to count where its checkpoint was made.
func TestCountsContinueAfterCheckpoint(t *testing.T) {
	c, n := new(Counted), int64(0)
	for _, name := range slices.Sorted(maps.Keys(c.lasting())) {
		n++
		*c.lasting()[name] = n
	}
	s := &checkpoint.Snapshot{About: checkpoint.About{Counters: c.Counters(), Attempt: 2, Begun: time.Unix(5, 0)}}
	a := &asides{counts: []bySource{{5, 0}, {0, 0}, {7, 2}}}
	a.Keep(s.Counters)
	var resumed Counted
	resumed.Resume(s)
	conformance.Equal(t, fmt.Sprint(resumed.Counters()), fmt.Sprint(c.Counters()), "counts")
	conformance.True(t, resumed.Attempts == 3 && resumed.Resumed && resumed.Since.Equal(s.Begun) &&
		resumed.WrittenBefore == c.Written && resumed.Balance() == nil, "%+v", resumed)
	planned := &plan.Plan{Sources: []*plan.Source{{}, {}, {}}, Request: new(plan.Request)}
	again := NewAsides(MaxErrors{}, false, c, planned, s, intake.New(planned, partitioner.NewMap(nil)))
	conformance.Same(t, again.counts, a.counts, "counts by source")
}
