package pipeline

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/ratelimit"
)

// partitions is the source of a table's partition bounds.
type partitions interface {
	// Read returns the first key value of every partition but the first; exact means that the service named them.
	Read(now time.Time) (bounds []table.Value, exact bool, err error)
}

// tablePartitions returns the source of the table's partitions: one partition in a dry run or with several tables.
func (a *attempt) tablePartitions() partitions {
	if !a.online() || plan.IsTemplate(a.cfg.Target.Table) {
		return onePartition{}
	}
	p := scan.NewPartitions(a.service.watcher, a.service.sdk, a.cfg.Target.Table)
	p.Created, p.See = a.counts.Created, func(at int64) error { return a.from.IDs.See(a.cfg.Target.Table, at) }
	return p
}

type onePartition struct{}

func (onePartition) Read(time.Time) ([]table.Value, bool, error) { return nil, false, nil }

// Times between readings of the partition map. A reading is free, but shares a quota with all table operations.
const (
	surveyFirst  = time.Second // then doubled each time
	surveyEvery  = 30 * time.Second
	surveyAtMost = 250 * time.Millisecond
	// stoppedWithin is how long a reading may take to end after its request was stopped.
	stoppedWithin = 5 * time.Second
)

// partitionPoller keeps the partition map up to date.
type partitionPoller struct {
	from    partitions
	tables  *tables                         // used instead of from if there are several tables
	current atomic.Pointer[partitioner.Map] // the last map handed to the dispatcher
	asked   chan struct{}                   // capacity 1; has a token when a reading is requested
	maps    chan *partitioner.Map
	reads   atomic.Int64
	exact   atomic.Bool
	failed  atomic.Pointer[string] // why the last reading failed; nil if it did not
	fatal   chan error             // capacity 1: why the load cannot continue
	every   time.Duration
	reading chan struct{} // capacity 1: held by the reading in progress
}

func newPartitionPoller(from partitions, every time.Duration) *partitionPoller {
	s := &partitionPoller{from: from, every: cmp.Or(every, surveyEvery), asked: make(chan struct{}, 1),
		maps: make(chan *partitioner.Map), fatal: make(chan error, 1), reading: make(chan struct{}, 1)}
	s.current.Store(partitioner.NewMap(nil))
	return s
}

// read reads the map. If it cannot be read, the last map remains valid: bounds are hints.
func (s *partitionPoller) read(now time.Time) *partitioner.Map {
	s.reads.Add(1)
	if s.tables != nil {
		m, exact, err := s.tables.read(now) // even after an error, other tables may be known
		s.note(exact, err)
		return m
	}
	bounds, exact, err := s.from.Read(now)
	s.note(exact, err)
	if err != nil {
		return s.current.Load()
	}
	return partitioner.NewMap(bounds)
}

func (s *partitionPoller) note(exact bool, err error) {
	if err != nil {
		if errors.As(err, new(*keep.ReplacedError)) {
			s.stop(err)
		}
		text := err.Error()
		s.failed.Store(&text)
		return
	}
	s.failed.Store(nil)
	s.exact.Store(exact)
}

// stop stops the load; the first error counts.
func (s *partitionPoller) stop(err error) { offer(s.fatal, err) }

func offer[T any](to chan<- T, v T) {
	select {
	case to <- v:
	default:
	}
}

// askTable requests a reading soon, only of the named table if there are several.
func (s *partitionPoller) askTable(name string) {
	if s.tables != nil {
		s.tables.change(name)
	}
	s.ask()
}

func (s *partitionPoller) want(name string) {
	s.tables.want(name)
	s.ask()
}

// readWithin is read, but returns nil if ctx ends first. The reading then continues, and the next one waits for it.
func (s *partitionPoller) readWithin(ctx context.Context) *partitioner.Map {
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	done := make(chan *partitioner.Map, 1)
	go func() {
		m := s.read(time.Now())
		<-s.reading
		done <- m
	}()
	select {
	case m := <-done:
		return m
	case <-ctx.Done():
		return nil
	}
}

// end waits for the stopped reading and lets no other begin: readings must not create tables or count after the load.
func (s *partitionPoller) end() {
	select {
	case s.reading <- struct{}{}:
	case <-time.After(stoppedWithin):
	}
}

func (s *partitionPoller) ask() { offer(s.asked, struct{}{}) }

// run reads the map, at intervals and on request, until ctx ends. It soon reads again, as first rows may split tables.
func (s *partitionPoller) run(ctx context.Context) error {
	every := min(s.every, surveyFirst)
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-s.asked:
		}
		m := s.readWithin(ctx)
		if m == nil {
			return nil
		}
		if !m.Equal(s.current.Load()) {
			select {
			case s.maps <- m:
			case <-ctx.Done():
				return nil
			}
		}
		if ratelimit.Wait(ctx, min(s.every, surveyAtMost)) != nil {
			return nil
		}
		every = min(2*every, s.every)
		timer.Reset(every)
	}
}
