package lanes

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/shuffle"
)

// Out returns the rows that have left their queue and are not final.
func (s *Set) Out() (all []checkpoint.Position) {
	s.Cutter.Out(func(r table.Ref) { all = append(all, keep.PositionOf(r)) })
	return all
}

// Ranges returns the lanes, and with allowances how many rows each may send. A gap sends none.
func (s *Set) Ranges(allowances bool) []checkpoint.LaneRange {
	lanes := make([]checkpoint.LaneRange, len(s.all))
	for i, l := range s.all {
		lanes[i].Lower = s.Partitions.Lower(i)
		if allowances && !l.gap {
			lanes[i].Allowance = s.allowanceOf(l)
		}
	}
	return lanes
}

// Waiting returns what the lanes hold. In source order the rows of a key wait from the first one on to end, which is that of
// all that was read.
func (s *Set) Waiting(ordered bool, end checkpoint.Position) (all []checkpoint.Queued) {
	s.Queues.Describe(func(p shuffle.Part) {
		keys := s.Partitions.Range(p.Lane)
		if p.Keys != nil {
			within, any := p.Keys.Within(keys)
			if !any {
				return
			}
			keys = within
		}
		from, to := keep.PositionAfter(p.Split.Position, int64(p.From)), end
		if !ordered {
			to = keep.PositionAfter(p.Split.Position, int64(p.To))
		}
		all = append(all, checkpoint.Queued{Keys: keys, Interval: checkpoint.Interval{From: from, To: to}})
	})
	return all
}
