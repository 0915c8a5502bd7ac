package ledger

import (
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/reader/source"
)

func TestLogPlaceIsThatOfLastSettledSplit(t *testing.T) {
	var f Follower
	at := func(n uint64) source.Followed { return source.Followed{Last: &source.Resume{Position: n}} }
	f.Read(checkpoint.At(0, 10), at(1))
	f.Read(checkpoint.At(0, 20), source.Followed{}) // of other records
	f.Read(checkpoint.At(0, 30), at(3))
	f.Read(checkpoint.At(1, 5), at(4))
	for _, c := range []struct {
		before checkpoint.Position
		want   uint64 // 0 is none
	}{{0, 0}, {checkpoint.At(0, 9), 0}, {checkpoint.At(0, 29), 1}, {checkpoint.At(0, 29), 0}, {checkpoint.At(1, 5), 4}, {checkpoint.At(9, 0), 0}} {
		last, any := f.Settled(c.before)
		conformance.True(t, any == (c.want > 0) && (!any || last.Last.Position == c.want),
			"all before %d is settled: %+v, %v, want %d", c.before, last.Last, any, c.want)
	}
	conformance.Equal(t, len(f.marks), 0, "marks")
}
