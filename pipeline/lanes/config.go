package lanes

import (
	"sync/atomic"
	"time"

	"example.com/tsimport/ratelimit"
)

// Config configures how much is sent at a time.
type Config struct {
	Concurrency  int // requests in flight; 0 takes pipeline.DefaultConcurrency
	BatchRows    int // rows in a request; 0 takes the service's limit
	BatchBytes   int // maximum body of a request, unless one row is larger; 0 takes the service's limit
	Rates        Rates
	Shared       *SharedLimits // limits shared with other loads of the process; nil means none
	FlushRequest *FlushRequest // requests that batches leave before they are full; nil never does
	// RetryFor is the time without progress of a partition before the load gives up; 0 means pipeline.DefaultRetryFor.
	RetryFor time.Duration
	Backoff  ratelimit.Backoff // between attempts of a row; zero means 50 ms growing to 5 s
}

// Rates are limits over all partitions, per second; 0 means none.
type Rates struct {
	MaxWCU   float64 // write capacity units
	MaxRows  float64
	MaxBytes float64 // bytes of rows as the service counts them
}

// FlushRequest makes a load send all rows read while someone waits. Any goroutine may call it; nil never does.
type FlushRequest struct {
	waiting atomic.Int64
	begun   chan struct{} // capacity 1
}

// NewFlushRequest returns a FlushRequest for one load.
func NewFlushRequest() *FlushRequest { return &FlushRequest{begun: make(chan struct{}, 1)} }

// Begin makes the load send at once until End.
func (h *FlushRequest) Begin() {
	h.waiting.Add(1)
	select {
	case h.begun <- struct{}{}:
	default:
	}
}

func (h *FlushRequest) End() { h.waiting.Add(-1) }

func (h *FlushRequest) wanted() bool { return h != nil && h.waiting.Load() > 0 }

// Begins delivers when someone begins to wait.
func (h *FlushRequest) Begins() <-chan struct{} {
	if h == nil {
		return nil
	}
	return h.begun
}
