package scaleout

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/pipeline/lanes"
)

// Budget divides a load's ceilings among up to Slots writing processes. A process that loses its share soon stops.
type Budget struct {
	Slots    int     `json:"slots"`
	MaxWCU   float64 `json:"max_wcu,omitempty"` // per process, like the other limits
	MaxRows  float64 `json:"max_rows_per_second,omitempty"`
	MaxBytes float64 `json:"max_bytes_per_second,omitempty"`
}

// budgetOf divides ceilings among workers. It returns nil if there are none.
func budgetOf(r *lanes.Rates, workers int) *Budget {
	if r.MaxWCU == 0 && r.MaxRows == 0 && r.MaxBytes == 0 {
		return nil
	}
	n := float64(workers)
	return &Budget{Slots: workers, MaxWCU: r.MaxWCU / n, MaxRows: r.MaxRows / n, MaxBytes: r.MaxBytes / n}
}

// slot is the right to write with a share of the ceilings. The zero slot is for jobs without ceilings.
type slot struct {
	taking chan struct{} // full while taking a share; tests in virtual time cannot wait for a mutex
	lease  atomic.Pointer[jobdir.Lease]
}

// Check returns an error if the process has lost its share.
func (s *slot) Check() error {
	l := s.lease.Load()
	if l == nil {
		return nil
	}
	if err := l.Check(); errors.Is(err, jobdir.ErrLost) {
		return fmt.Errorf("share of the job's limits: %w", err)
	}
	return nil
}

func (s *slot) release() error { return s.lease.Swap(nil).Release() }

// takeSlot takes a share of the ceilings, if the job has any, for the life of the process, or returns errNoSlot.
func (j *Job) takeSlot(ctx context.Context) error {
	b := j.Plan.Budget
	if b == nil {
		return nil
	}
	select {
	case j.slot.taking <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-j.slot.taking }()
	if l := j.slot.lease.Load(); l != nil {
		if j.slot.Check() == nil {
			return nil
		}
		l.Abandon()
		j.slot.lease.Store(nil)
	}
	for i := range b.Slots {
		l, err := j.lease(ctx, fmt.Sprintf("budget/%04d", i))
		if !errors.As(err, new(*jobdir.HeldError)) {
			j.slot.lease.Store(l) // nil after an error
			return err
		}
	}
	return errNoSlot
}

// pause waits for most, or until a part of the process has done a task or the process is ending.
func (j *Job) pause(ctx context.Context, most time.Duration) error {
	timer, drain := time.NewTimer(most), j.draining()
	defer timer.Stop()
	var worked <-chan struct{}
	if j.part == 0 { // only the initial part looks for tasks when another part has done one
		worked = j.worked
	}
	select {
	case <-timer.C:
		return nil
	case <-worked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-drain.Done():
		return context.Cause(drain)
	}
}

// share sets a load's limits to its share of the ceilings.
func (j *Job) share(r *lanes.Rates) {
	if b := j.Plan.Budget; b != nil {
		r.MaxWCU, r.MaxRows, r.MaxBytes = b.MaxWCU, b.MaxRows, b.MaxBytes
	}
}
