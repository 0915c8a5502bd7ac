package keep

import (
	"context"
	"slices"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source/sourcetest"
)

// Thousands of parts take bounded memory while their rows wait, and next to none when these are final.
func TestThePlacesOfThousandsOfPartsAreBounded(t *testing.T) {
	const parts, splits = 10_000, 20
	planned := &plan.Plan{Parallel: true}
	sources, err := sourcetest.NewKeyed("keyed", 0).Open(context.Background(), []byte("[0,1]"))
	conformance.Must(t, err)
	for i := range parts {
		planned.Sources = append(planned.Sources, &plan.Source{Source: sources[0], Ordinal: i})
	}
	k := NewReadProgress(planned, false, nil)
	most := 0
	for i := range parts {
		for j := range int64(splits) {
			k.Counted(&intake.Parsed{Split: &table.Split{Ordinal: i, FirstRecord: 10 * j, Position: table.Position{Source: i, Record: 10 * j}}, Records: 10, Key: make([]byte, 100)}, 0)
			most = max(most, k.held)
		}
		k.Ended(&intake.Ended{Source: i})
	}
	if most > 2*maxStartBytes {
		t.Errorf("%d bytes of places", most)
	}
	// The last record of every part waits.
	s := &checkpoint.Snapshot{State: checkpoint.State{Read: slices.Clone(k.read), Pieces: []checkpoint.Piece{{}}}}
	for i := range parts {
		last := checkpoint.At(i, 10*splits-1)
		s.Pieces[0].Waiting = s.Pieces[0].Waiting.Add(last, last+1)
	}
	k.DescribeSources(s)
	conformance.Equal(t, len(s.Starts), parts, "places of each part")
	s = &checkpoint.Snapshot{State: checkpoint.State{Read: slices.Clone(k.read), Pieces: []checkpoint.Piece{{}}}}
	k.DescribeSources(s)
	if len(s.Starts) > 0 || k.held != 0 || len(k.starts) > 0 || len(s.Read) != 1 {
		t.Errorf("all is final: %d places, %d bytes, %d intervals", len(s.Starts), k.held, len(s.Read))
	}
	for _, i := range []int{0, parts / 2, parts - 1} {
		if !s.Complete(i, false) {
			t.Errorf("part %d is not complete", i)
		}
	}
}
