package ledger

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/pipeline/checkpoint"
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
