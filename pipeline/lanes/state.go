package lanes

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/shuffle"
)

// State describes a lane, for observers.
type State struct {
	Partition   int     `json:"partition"`
	Table       string  `json:"table,omitempty"` // if there are several; "" for rows that wait for their table
	From        string  `json:"from"`            // first key value; "" for the first partition
	Rate        float64 `json:"rate"`            // capacity units per second that it seems to accept; 0 means unknown
	Pace        string  `json:"pace"`            // start, measure, cruise or known
	Queued      int     `json:"rows_queued"`     // rows in memory that may be sent
	Spilled     bool    `json:"spilled"`         // more rows are on disk
	Retrying    int     `json:"rows_to_retry"`   // including rows that wait for another row of their key
	InFlight    int     `json:"in_flight"`       // requests
	Final       int64   `json:"rows_final"`
	Throttled   int64   `json:"rows_throttled"`
	Unavailable int64   `json:"rows_unavailable"`
	Down        bool    `json:"down"` // the partition does not serve
	Trouble     string  `json:"trouble,omitempty"`
}

// States returns the states of all lanes.
func (s *Set) States() []State {
	all := make([]State, 0, len(s.all))
	for i, l := range s.all {
		lane := State{
			Partition: i, Table: l.table, From: FirstKey(s.Partitions, i), Rate: l.pacer.Rate(), Pace: l.pacer.State(),
			Queued: l.queue.Ready(), Spilled: l.queue.More(), Retrying: s.Cutter.Held(i), InFlight: l.away.requests,
			Final: l.tally.written, Throttled: l.tally.throttled, Unavailable: l.tally.unavailable, Down: l.health.down,
		}
		if l.trouble.stuck {
			lane.Trouble = l.trouble.lastError
		}
		all = append(all, lane)
	}
	return all
}

// Out returns the rows that have left their queue and are not final.
func (s *Set) Out() (all []checkpoint.Position) {
	s.Cutter.Out(func(r table.Ref) { all = append(all, keep.PositionOf(r)) })
	return all
}

// Ranges returns the lanes' key ranges. With allowances, it includes how many rows each may send, 0 for a gap.
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

// Waiting returns the lanes' queued rows. If ordered, all records of a key range from the first of them to end wait.
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
