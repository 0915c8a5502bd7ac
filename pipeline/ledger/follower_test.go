package ledger

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
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
		if n == 2 {
			s.Passed(reference(3), 300)
		}
		if n < 5 { // the process is killed before the last checkpoint counts
			conformance.Must(t, s.Forget())
		}
		if n == 4 {
			s.Passed(reference(4), 400)
			s.Passed(reference(5), 499)
		}
	}
	conformance.Must(t, os.WriteFile(filepath.Join(dir, "note"), nil, 0o600)) // not one of the files
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
		text[n] ^= 0x10
		conformance.True(t, len(appendStamps(nil, text)) < whole, "byte %d is damaged, which is not noticed", n)
		text[n] ^= 0x10
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
		Returned: &returnedKeys{journal: open("bb")}, Blocks: open("ccc"), RejectIndex: open("dddd"), Known: blocks{},
		Stamps: &stamps{from: 7}}
	own := len(f.Folder.Files())
	s := &checkpoint.Snapshot{About: checkpoint.About{Counters: map[string]int64{}}}
	conformance.Must(t, f.Keep(s))
	conformance.Equal(t, fmt.Sprint(s.Counters), "map[block_bytes:4 doubt_bytes:1 index_bytes:4 returned_bytes:2 "+
		"stamp_files:7]", "kept")
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
	s.Ordered, s.Starts = true, []checkpoint.Start{{Bytes: 99}, {Bytes: 100}}
	resumed.Resume(s)
	conformance.Equal(t, resumed.BytesRead, 99, "bytes read, of which the later ones are read again")
	planned := &plan.Plan{Sources: []*plan.Source{{}, {}, {}}, Request: new(plan.Request)}
	again := NewAsides(MaxErrors{}, false, c, planned, s, intake.New(planned, partitioner.NewMap(nil)))
	conformance.Same(t, again.counts, a.counts, "counts by source")
	for _, p := range []*plan.Plan{{Parallel: true}, {Live: true},
		{Sources: []*plan.Source{{}, {Chain: func() source.Chain { return source.Chain{} }}}}} {
		none := NewAsides(MaxErrors{}, false, c, p, nil, intake.New(planned, partitioner.NewMap(nil)))
		conformance.True(t, none == nil, "inputs of %+v are set aside, and what was read ahead would be lost", p)
	}
}

func TestInputSetAsideEarlierIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in.csv")
	conformance.Must(t, os.WriteFile(path, []byte("id\na\n"), 0o600))
	r := &plan.Request{Inputs: []string{path}, Memory: 1 << 30, Target: plan.Target{Table: "t", Create: true, Absent: true,
		Key: []table.KeyColumn{{Name: "id"}}}}
	planned := conformance.Try(plan.Make(t.Context(), r, nil)).Must(t)
	defer planned.Close()
	for source, want := range map[int]int{-1: 1, 0: 0} {
		flow, records := intake.New(planned, partitioner.NewMap(nil)), 0
		from := &checkpoint.Snapshot{About: checkpoint.About{Bad: []checkpoint.BadInput{{Source: source}}}}
		NewAsides(MaxErrors{}, false, new(Counted), planned, from, flow)
		_, err := flow.Each(t.Context(), -1, func(p *intake.Parsed) error {
			records += p.Records
			return nil
		})
		conformance.True(t, err == nil && records == want, "source %d is bad: %d records, %v", source, records, err)
		conformance.Must(t, planned.Sources[0].Suspend())
	}
}

// made says which tables an attempt created. The class of a table is the length of its name.
type made map[string]bool

func (m made) WasMade(name string) bool { return m[name] }
func (m made) Class(name string) int    { return len(name) }

// The second attempt creates table a, and the third one creates none.
func TestTablesContinueToCount(t *testing.T) {
	all := []ReportTable{{"a", 1, false, 1, 2, 3, 4, 5, 0}, {"bb", 2, false, 6, 7, 8, 9, 10, 0}, {Name: "new", Class: 3}}
	counters := map[string]int64{"written": 99, "table a": 99, "column a written": 99}
	for attempt, created := range []made{{}, {"a": true}, {}} {
		l, r := NewTables(len(all)), new(Counted)
		l.Resume(&checkpoint.Snapshot{About: checkpoint.About{Counters: counters}})
		for i, name := range []string{"new", "a", "bb", "a"} {
			isNew, err := l.Add(name)
			conformance.True(t, err == nil && isNew == (i < len(all)), "%s: is new %v, %v", name, isNew, err)
		}
		conformance.Refused(t, conformance.ErrorOf(l.Add("c")), "table c would exceed --max-tables 3", "a fourth table")
		if attempt == 0 {
			*l.named("a"), *l.named("bb") = all[0], all[1]
		}
		all[0].Created = attempt > 0
		l.Complete(r, created)
		conformance.Same(t, r.Tables, all, "attempt %d: tables", attempt)
		conformance.Equal(t, r.Created, attempt > 0, "attempt %d: a table was created", attempt)
		l.Keep(counters, created)
	}
}

// TestBadInputsDetermineExitCode has in each line the numbers of inputs bad now, of all, and of inputs bad before.
func TestBadInputsDetermineExitCode(t *testing.T) {
	conformance.Golden(t, "bad.golden", func(input string) string {
		var bad, before int
		r := new(ReportBad)
		conformance.Try(fmt.Sscanf(input, "%d of %d, %d before", &bad, &r.OfInputs, &before)).Must(t)
		for i := range bad {
			r.BadInputs = append(r.BadInputs, keep.BadInput{Name: fmt.Sprint("input ", i), Reason: "too short",
				Source: i - 1, Nights: max(0, before-i)})
		}
		return fmt.Sprintf("exit %d, %d left out; %s", r.BadCode(7), len(LeftOut(r.BadInputs)), BadText(r.BadInputs))
	})
}

func TestMomentsOfAllAttemptsAreReported(t *testing.T) {
	planned := &plan.Plan{Live: true, Request: new(plan.Request),
		Sources: []*plan.Source{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	at := func(from, to int64) intake.Moment {
		return intake.Moment{From: time.UnixMicro(from), To: time.UnixMicro(to)}
	}
	var first, next ReportLive
	first.BeginMoments(planned, nil)
	first.ReadMoment(0, at(6000, 6500))
	first.ReadMoment(0, at(6000, 7000))
	first.ReadMoment(1, at(5000, 6000))
	first.ReadMoment(1, at(5000, 8001))
	first.ReadMoment(1, at(5000, 7000))
	kept := first.KeepMoments()
	conformance.Same(t, kept, []checkpoint.Moment{{Source: 0, From: 6, To: 7}, {Source: 1, From: 5, To: 9}}, "kept")
	next.BeginMoments(planned, &checkpoint.Snapshot{About: checkpoint.About{
		Moments: append(kept, checkpoint.Moment{Source: 3, From: 1, To: 99})}})
	next.ReadMoment(2, at(4000, 5000))
	next.CompleteMoments()
	text := fmt.Sprint(next.ReadFrom.UnixMilli(), next.ReadTo.UnixMilli())
	for _, m := range next.Moments {
		text += fmt.Sprintf(" %s %d-%d", m.Source, m.From.UnixMilli(), m.To.UnixMilli())
	}
	conformance.Equal(t, text, "4 9 a 6-7 b 5-9 c 4-5", "moments")
}

func TestProgressShowsCounts(t *testing.T) {
	p, c := new(Progress), new(Counted)
	for i, name := range strings.Fields("written rejected superseded condition_failed archived retried throttled " +
		"bytes_read read") {
		*c.lasting()[name] = int64(10 << i)
	}
	for _, total := range []int64{-1, 0, 1279, 1281} {
		p.BytesTotal.Store(total)
		p.Show(c)
		conformance.Equal(t, p.BytesRead.Load() == 1280, total != 1279, "bytes read of %d", total)
	}
	e := &p.Ended
	var got []int64
	for _, n := range []*atomic.Int64{&e.Written, &e.Rejected, &e.Superseded, &e.ConditionFailed, &e.Archived, &p.Retried,
		&p.Throttled, &p.BytesRead, &e.Read} {
		got = append(got, n.Load())
	}
	conformance.Same(t, got, []int64{10, 20, 40, 80, 160, 320, 640, 1280, 2560}, "shown")
	changes, _, known := p.Lag()
	conformance.True(t, changes == 2560-10-20-40 && !known, "%d changes, known %v", changes, known)
	for after, want := range map[time.Duration]bool{time.Hour: true, -time.Second: false} {
		p.Waiting.Store(&Wait{Until: time.Now().Add(after)})
		conformance.Equal(t, p.Wait() != nil, want, "waits until %v from now", after)
	}
}

// The row has a key of all types, of which the service numbers the second column. Its record has an old key.
func TestReturnedKeysOfAllTypesAreWritten(t *testing.T) {
	path, names := filepath.Join(t.TempDir(), "keys.csv"), plainbuffer.Names{}
	k := &returnedKeys{journal: conformance.Try(rundir.OpenJournal(path, 0)).Must(t), column: 1, columns: 2,
		old: jsonl.NewParser(jsonl.Options{Columns: []string{"n", "b"}, Wide: true})}
	text, number, bin := table.Value{Type: table.String, Bytes: []byte("a,b")}, table.Value{Type: table.Integer, Int: -12},
		table.Value{Type: table.Binary, Bytes: []byte{0, 255}}
	var row plainbuffer.Row
	row.Begin([]byte("k"))
	for i, v := range []table.Value{text, number, number, bin} {
		row.Key(names.Of(fmt.Sprint("k", i)), v)
	}
	add := func(number int64, key ...table.Value) error {
		rec := new(record.Record)
		for _, v := range key {
			rec.Fields = append(rec.Fields, record.Of(v))
		}
		b := &table.Block{Split: &table.Split{Source: "in.csv"}, Data: row.End()}
		b.Append(0, 1, 1, table.Span{Record: 4}, jsonl.AppendWide(nil, []string{"n", "b"}[:len(key)], rec))
		return k.add(table.Ref{Block: b}, table.Outcome{Number: number})
	}
	conformance.Must(t, errors.Join(add(34, number, bin), add(0, text, bin)))
	conformance.Refused(t, add(1, number, table.Value{}), "record 5 of in.csv lacks part of its old key", "a null")
	conformance.Must(t, k.journal.Close())
	conformance.Equal(t, string(conformance.Try(os.ReadFile(path)).Must(t)), `in.csv,5,"a,b",34,-12,AP8=,-12,AP8=`+"\n"+
		`in.csv,5,"a,b",,-12,AP8=,"a,b",AP8=`+"\n", "returned keys")
}
