package pipeline

import (
	"context"
	"slices"
	"testing"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source/sourcetest"
	"example.com/tsimport/shuffle/readorder"
)

// Marks in the table have the place of a record in its input; a load that follows a schedule counts along the schedule.
func TestRowsOfAnEarlierAttemptAreLookedForByTheirPlaceInTheInput(t *testing.T) {
	s := new(checkpoint.Snapshot)
	s.Read = checkpoint.Set{{From: checkpoint.At(0, 0), To: checkpoint.At(0, 10)}}
	s.Pieces = []checkpoint.Piece{{Waiting: checkpoint.Set{{From: checkpoint.At(0, 5), To: checkpoint.At(0, 10)}}}}
	for name, tt := range map[string]struct {
		order []*readorder.Schedule
		waits func(record int64) bool
	}{
		"in the order of the input": {nil, func(record int64) bool { return record >= 5 }},
		"by a schedule": {
			[]*readorder.Schedule{{Sources: 1, Sections: []readorder.Section{{Record: 5, Records: 5}, {Record: 0, Records: 5}}}},
			func(record int64) bool { return record < 5 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &attempt{from: &keep.Point{Snapshot: s, Order: tt.order}}
			open := a.earlier().Open
			for record := range int64(10) {
				if got := open(0, record); got != tt.waits(record) {
					t.Errorf("record %d may have been sent by the attempt before and not be final: %v", record, got)
				}
			}
		})
	}
}

// Thousands of parts take bounded memory while their rows wait, and next to none when these are final.
func TestThePlacesOfThousandsOfPartsAreBounded(t *testing.T) {
	const parts, splits = 10_000, 20
	planned := &plan.Plan{Parallel: true}
	sources, err := sourcetest.NewKeyed("keyed", 0).Open(context.Background(), []byte("[0,1]"))
	must(t, err)
	for i := range parts {
		planned.Sources = append(planned.Sources, &plan.Source{Source: sources[0], Ordinal: i})
	}
	k := keep.NewReadProgress(planned, false, nil)
	most := 0
	for i := range parts {
		for j := range int64(splits) {
			k.Counted(&intake.Parsed{Split: &table.Split{Ordinal: i, FirstRecord: 10 * j, Position: table.Position{Source: i, Record: 10 * j}}, Records: 10, Key: make([]byte, 100)}, 0)
			most = max(most, k.Held)
		}
		k.Ended(&intake.Ended{Source: i})
	}
	if most > 2*keep.MaxStartBytes {
		t.Errorf("%d bytes of places", most)
	}
	// The last record of every part waits.
	s := &checkpoint.Snapshot{State: checkpoint.State{Read: slices.Clone(k.Read), Pieces: []checkpoint.Piece{{}}}}
	for i := range parts {
		last := checkpoint.At(i, 10*splits-1)
		s.Pieces[0].Waiting = s.Pieces[0].Waiting.Add(last, last+1)
	}
	k.DescribeSources(s)
	if len(s.Starts) != parts {
		t.Errorf("%d places, want one of each part", len(s.Starts))
	}
	s = &checkpoint.Snapshot{State: checkpoint.State{Read: slices.Clone(k.Read), Pieces: []checkpoint.Piece{{}}}}
	k.DescribeSources(s)
	if len(s.Starts) > 0 || k.Held != 0 || len(k.Starts) > 0 || len(s.Read) != 1 {
		t.Errorf("all is final: %d places, %d bytes, %d intervals", len(s.Starts), k.Held, len(s.Read))
	}
	for _, i := range []int{0, parts / 2, parts - 1} {
		if !s.Complete(i, false) {
			t.Errorf("part %d is not complete", i)
		}
	}
}
