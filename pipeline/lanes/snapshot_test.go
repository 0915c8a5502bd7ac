package lanes

import (
	"bytes"
	"testing"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
)

func TestAGapMaySendNothing(t *testing.T) {
	s := restlessLanes(5)
	s.all[1].gap = true
	s.options.Checkpointer.Ordered, s.options.Tuning.Allowance = true, 7
	got := s.Ranges(true)
	if len(got) != 2 || len(got[0].Lower) != 0 || got[0].Allowance != 7 || !bytes.Equal(got[1].Lower, s.Partitions.Lower(1)) || got[1].Allowance != 0 {
		t.Errorf("%+v", got)
	}
}

func TestAMonitorShowsEachLane(t *testing.T) {
	s, now := restlessLanes(5), time.Unix(1e9, 0)
	s.fill(now, 1, 2)
	s.all[0].trouble.stuck, s.all[0].trouble.lastError, s.all[1].trouble.lastError = true, "busy", "is over"
	got := s.States()
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
		s.Put(0, b, s.Partitions, now)
		for left := range 3 {
			for at := range 3 {
				got := new(checkpoint.Snapshot)
				s.options.Checkpointer.Ordered, s.options.Tuning.Allowance = ordered, 1
				k.DescribeRows(got, s.Out(), s.Ranges(ordered), s.Waiting(ordered, k.ReadTo()), true)
				for i, key := range keys {
					if final := got.Final(checkpoint.At(0, int64(i)), key); final != (i < 2+left) {
						t.Errorf("ordered %v, %d rows were written, checkpoint %d: record %d is final: %v", ordered, left, at+1, i, final)
					}
				}
			}
			if left < 2 {
				s.Queues.Lane(0).Advance()
			}
		}
		if k.Resumes() {
			t.Errorf("ordered %v: all rows are written, and the checkpoint of the attempt before is still needed", ordered)
		}
	}
}
