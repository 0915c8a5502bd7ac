package pipeline

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source/sourcetest"
	"example.com/tsimport/shuffle/readorder"
)

func TestAGapMaySendNothing(t *testing.T) {
	s := restlessLanes(5)
	s.all[1].gap = true
	s.options.checkpointer.Ordered, s.options.tuning.allowance = true, 7
	got := s.ranges(true)
	if len(got) != 2 || len(got[0].Lower) != 0 || got[0].Allowance != 7 || !bytes.Equal(got[1].Lower, s.partitions.Lower(1)) || got[1].Allowance != 0 {
		t.Errorf("%+v", got)
	}
}

func TestAMonitorShowsEachLane(t *testing.T) {
	s, now := restlessLanes(5), time.Unix(1e9, 0)
	s.fill(now, 1, 2)
	s.all[0].stuck, s.all[0].lastError, s.all[1].lastError = true, "busy", "is over"
	got := s.state()
	if len(got) != 2 || got[0].Partition != 0 || got[0].From != "" || got[0].Queued != 0 || got[0].Trouble != "busy" ||
		got[1].Partition != 1 || got[1].From != "k5" || got[1].Queued != 2 || got[1].Trouble != "" {
		t.Errorf("%+v", got)
	}
}

// A load is resumed in the middle of a split: rows of its second half wait, and the first half was final before.
func TestWhatWasFinalStaysFinalWhileRowsAfterItInTheirSplitWait(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		base := new(checkpoint.Snapshot)
		base.State = checkpoint.State{Read: checkpoint.Set{{From: checkpoint.At(0, 0), To: checkpoint.At(0, 2)}}, Pieces: []checkpoint.Piece{{}}}
		k := keep.NewReadProgress(new(plan.Plan), ordered, base)
		s, now := restlessLanes(), time.Unix(1e9, 0)
		b := blockOf(new(table.Split), "k0", "k1", "k2", "k3")
		keys := [][]byte{}
		for i := range b.Rows {
			keys = append(keys, table.Ref{Block: b, Index: int32(i)}.Key())
		}
		b.Keep(func(i int32) bool { return i >= 2 })
		k.Counted(&intake.Parsed{Split: b.Split, Records: 4, Inside: true, Blocks: []intake.LaneBlock{{Block: b}}}, 0)
		s.put(0, b, s.partitions, now)
		for left := range 3 {
			for at := range 3 {
				got := new(checkpoint.Snapshot)
				s.options.checkpointer.Ordered, s.options.tuning.allowance = ordered, 1
				k.DescribeRows(got, s.out(), s.ranges(ordered), s.waiting(ordered, k.Again.End()), true)
				for i, key := range keys {
					if final := got.Final(checkpoint.At(0, int64(i)), key); final != (i < 2+left) {
						t.Errorf("ordered %v, %d rows were written, checkpoint %d: record %d is final: %v", ordered, left, at+1, i, final)
					}
				}
			}
			if left < 2 {
				s.queues.Lane(0).Advance()
			}
		}
		if k.Base != nil {
			t.Errorf("ordered %v: all rows are written, and the checkpoint of the attempt before is still needed", ordered)
		}
	}
}

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
