package pipeline

import (
	"testing"

	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
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
