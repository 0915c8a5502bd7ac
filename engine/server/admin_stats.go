package server

import (
	"context"
	"time"

	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/wire"
)

type statsJSON struct {
	NowMS    float64              `json:"now_ms"`
	Tables   map[string]tableJSON `json:"tables"`
	Instance *sim.InstanceCount   `json:"instance,omitempty"` // nil without Options.InstanceUnits
}

type tableJSON struct {
	Requests int64 `json:"requests"`
	sim.Count
	Partitions []partitionJSON `json:"partitions"`
}

// partitionJSON is a partition. It omits the counts if only the bounds were requested.
type partitionJSON struct {
	ID         int          `json:"id"`
	Partition  *int         `json:"partition"` // position in key order; null if it has ended
	Start      any          `json:"start"`     // null means below all keys
	End        any          `json:"end"`       // null means above all keys
	Capacity   *float64     `json:"capacity"`  // null means no limit
	SinceMS    float64      `json:"since_ms"`  // Unix
	UntilMS    *float64     `json:"unavailable_until_ms,omitempty"`
	DownMS     float64      `json:"down_ms"`
	EndedMS    *float64     `json:"ended_ms,omitempty"`
	FirstMS    *float64     `json:"first_ms,omitempty"` // time of the first accepted row
	LastMS     *float64     `json:"last_ms,omitempty"`
	*sim.Count              // nil omits the counts
	Seconds    []secondJSON `json:"seconds,omitempty"`
}

type secondJSON struct {
	Unix        int64 `json:"t"`
	Rows        int64 `json:"rows"`
	Units       int64 `json:"units"`
	Throttled   int64 `json:"throttled"`
	Unavailable int64 `json:"unavailable"`
}

func (s *Server) adminStats(context.Context, string, []byte) (any, error) {
	stats := statsJSON{NowMS: unixMillis(s.o.Now()), Tables: map[string]tableJSON{}}
	for _, st := range s.sim.all() {
		from := st.Stats(s.o.Now())
		t := tableJSON{Requests: from.Requests, Count: from.Count}
		for i := range from.Partitions {
			t.Partitions = append(t.Partitions, partition(st.key, &from.Partitions[i], true))
		}
		stats.Tables[st.name] = t
	}
	if s.instance != nil {
		c := s.instance.Count()
		stats.Instance = &c
	}
	return stats, nil
}

func (s *Server) adminResetStats(context.Context, string, []byte) (any, error) {
	s.sim.ResetStats()
	if s.instance != nil {
		s.instance.Reset(s.o.Now())
	}
	return struct{}{}, nil
}

// partitionsJSON returns a table's current partitions with their bounds.
func (s *Server) partitionsJSON(st *simTable) any {
	var list struct {
		Partitions []partitionJSON `json:"partitions"`
	}
	from := st.Stats(s.o.Now())
	for i := range from.Partitions {
		if p := &from.Partitions[i]; p.Position >= 0 {
			list.Partitions = append(list.Partitions, partition(st.key, p, false))
		}
	}
	return list
}

func partition(key wire.KeyColumn, p *sim.PartitionStats, counts bool) partitionJSON {
	j := partitionJSON{
		ID: p.Number, SinceMS: unixMillis(p.Since), DownMS: float64(p.Down) / 1e6,
		EndedMS: optionalMillis(p.Ended), FirstMS: optionalMillis(p.FirstRow), LastMS: optionalMillis(p.LastRow),
	}
	if p.Position >= 0 {
		j.Partition = &p.Position
	}
	if p.Start != "" {
		j.Start = keyJSON(key, p.Start)
	}
	if !p.Last {
		j.End = keyJSON(key, p.End)
	}
	if p.Capacity > 0 {
		j.Capacity = &p.Capacity
	}
	if p.Until.After(p.Since) {
		j.UntilMS = optionalMillis(p.Until)
	}
	if !counts {
		return j
	}
	j.Count = &p.Count
	j.Seconds = make([]secondJSON, len(p.Seconds))
	for i, s := range p.Seconds {
		j.Seconds[i] = secondJSON{s.Unix, s.Rows, s.Units, s.Throttled, s.Unavailable}
	}
	return j
}

func unixMillis(t time.Time) float64 { return float64(t.UnixMicro()) / 1e3 }

func optionalMillis(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	return new(unixMillis(t))
}
