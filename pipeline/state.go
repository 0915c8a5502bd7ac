package pipeline

import (
	"context"
	"time"

	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
)

// Monitor shows the state of a load while it runs. It is safe for concurrent use.
type Monitor struct{ asks chan chan<- *State }

func NewMonitor() *Monitor { return &Monitor{asks: make(chan chan<- *State)} }

// State returns the load's state. It waits until the load writes or ctx ends; a load that has ended never answers.
func (m *Monitor) State(ctx context.Context) (*State, error) {
	answer := make(chan *State, 1)
	select {
	case m.asks <- answer:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return <-answer, nil
}

// State is the state of a load at one moment. Some of its parts are embedded, as in a Report.
type State struct {
	Table   string  `json:"table"`
	Order   string  `json:"order"`
	Seconds float64 `json:"seconds"` // since the start

	StateCounts
	StateWork

	Memory StateMemory   `json:"memory"`
	Spill  lanes.Spill   `json:"spill"`
	Map    StateMap      `json:"partition_map"`
	Marks  StateMarks    `json:"marks"`
	Lanes  []lanes.State `json:"lanes"`
}

// StateCounts holds the counts so far, as in the Report.
type StateCounts struct {
	Read       int64 `json:"read"`
	Written    int64 `json:"written"`
	Rejected   int64 `json:"rejected"`
	Superseded int64 `json:"superseded"`
	// ConditionFailed counts rows not written because the stored row did not meet --when, or differs (--if-unchanged).
	ConditionFailed int64 `json:"condition_failed,omitempty"`
	Archived        int64 `json:"archived"`
	Retried         int64 `json:"retried"`
	Throttled       int64 `json:"throttled"`
	Requests        int64 `json:"requests"`
	WriteCU         int64 `json:"write_cu"`
}

// StateWork is the work in progress.
type StateWork struct {
	Reading  bool  `json:"reading"`   // the input has not been read to its end
	InFlight int   `json:"in_flight"` // requests
	Workers  int   `json:"workers"`   // maximum requests in flight
	RowsOut  int   `json:"rows_in_flight"`
	Retrying int   `json:"rows_to_retry"` // rows waiting for a retry or a batch
	Queued   int64 `json:"rows_queued"`   // rows in memory and on disk
	// LimitedBy is the current limit of the load's speed, a word of docs/tuning.md.
	LimitedBy string       `json:"limited_by,omitempty"`
	Waiting   *ledger.Wait `json:"waiting,omitempty"`
}

// StateMemory tells how much memory rows take, in bytes.
type StateMemory struct {
	Limit  int64 `json:"limit"`  // --memory
	Lanes  int64 `json:"lanes"`  // blocks that are queued, in flight, to be retried or read back
	Budget int64 `json:"budget"` // maximum of Lanes
	Full   bool  `json:"full"`   // reading waits
}

// StateMap describes the known partitions of the table.
type StateMap struct {
	Partitions int    `json:"partitions"`
	Exact      bool   `json:"exact"` // the service named them
	Reads      int64  `json:"reads"`
	Recuts     int64  `json:"recuts"`
	Error      string `json:"error,omitempty"` // why the last reading failed
}

// StateMarks is the load's progress in its input.
type StateMarks struct {
	BytesRead  int64 `json:"bytes_read"`
	BytesTotal int64 `json:"bytes_total"` // -1 means unknown
	Final      int64 `json:"records_final"`
}

func (d *dispatcher) state(now time.Time) *State {
	s := countedState(d.counts)
	s.Table, s.Order, s.Seconds = d.cfg.Target.Table, d.cfg.Write.Order.String(), now.Sub(d.record.started).Seconds()
	s.StateWork = StateWork{
		Reading: !d.input.ended(), InFlight: d.lanes.InFlight(), Workers: d.cfg.Lanes.Concurrency,
		RowsOut: d.lanes.Cutter.InFlight(), Retrying: d.lanes.Cutter.Retrying(), Queued: d.lanes.Queues.Rows(),
		LimitedBy: d.record.meter.Now().String(), Waiting: d.cfg.Watch.Progress.Wait(),
	}
	s.Memory = StateMemory{Limit: d.cfg.Limits.Memory, Lanes: d.lanes.Queues.Bytes(),
		Budget: plan.DivideMemory(d.cfg.Limits.Memory).Lanes, Full: d.lanes.Queues.Full()}
	s.Spill = d.lanes.Spilled()
	s.Map = d.survey.state()
	s.Map.Partitions, s.Map.Recuts = d.lanes.Partitions.Len(), d.counts.Recuts
	s.Marks.BytesRead, s.Marks.BytesTotal = d.cfg.Watch.Progress.BytesRead.Load(), d.cfg.Watch.Progress.BytesTotal.Load()
	s.Lanes = d.lanes.States()
	return s
}

func countedState(r *ledger.Counted) *State {
	return &State{
		StateCounts: StateCounts{
			Read: r.Read, Written: r.Written, Rejected: r.Rejected, Superseded: r.Superseded, ConditionFailed: r.ConditionFailed,
			Archived: r.Archived, Retried: r.Retried, Throttled: r.Throttled, Requests: r.Requests, WriteCU: r.WriteCU,
		},
		Marks: StateMarks{BytesRead: r.BytesRead, Final: r.Final()},
	}
}

func (s *partitionPoller) state() StateMap {
	m := StateMap{Exact: s.exact.Load(), Reads: s.reads.Load()}
	if text := s.failed.Load(); text != nil {
		m.Error = *text
	}
	return m
}
