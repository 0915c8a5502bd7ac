package lanes

// State is one partition's queue.
type State struct {
	Partition   int     `json:"partition"`
	Table       string  `json:"table,omitempty"` // among several; empty for rows that wait for theirs
	From        string  `json:"from"`            // first key value, empty for the first partition
	Rate        float64 `json:"rate"`            // capacity units a second that it is taken to accept; 0 unknown
	Pace        string  `json:"pace"`            // start, measure, cruise or known
	Queued      int     `json:"rows_queued"`     // in memory, ready to go
	Spilled     bool    `json:"spilled"`         // more are on disk
	Retrying    int     `json:"rows_to_retry"`   // and rows that wait for one of their key
	InFlight    int     `json:"in_flight"`       // requests
	Final       int64   `json:"rows_final"`
	Throttled   int64   `json:"rows_throttled"`
	Unavailable int64   `json:"rows_unavailable"`
	Down        bool    `json:"down"` // the partition does not serve
	Trouble     string  `json:"trouble,omitempty"`
}

// States describes each lane.
func (s *Set) States() []State {
	all := make([]State, 0, len(s.all))
	for i, l := range s.all {
		lane := State{
			Partition: i, Table: l.table, From: FirstKey(s.Partitions, i), Rate: l.pacer.Rate(), Pace: l.pacer.State(), Queued: l.queue.Ready(), Spilled: l.queue.More(),
			Retrying: s.Cutter.Held(i), InFlight: l.away.requests, Final: l.tally.written, Throttled: l.tally.throttled, Unavailable: l.tally.unavailable,
			Down: l.health.down,
		}
		if l.trouble.stuck {
			lane.Trouble = l.trouble.lastError
		}
		all = append(all, lane)
	}
	return all
}
