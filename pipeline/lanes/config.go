package lanes

import (
	"sync/atomic"
	"time"

	"example.com/tsimport/ratelimit"
)

// Config configures how much is sent at once.
type Config struct {
	Concurrency  int // maximum requests in flight; 0 means pipeline.DefaultConcurrency
	BatchRows    int // maximum rows in a request; 0 means the service's limit
	BatchBytes   int // maximum body of a request, unless a single row is larger; 0 means the service's limit
	Rates        Rates
	Shared       *SharedLimits // limits shared with other loads of the process; nil means none
	FlushRequest *FlushRequest // lets batches be sent before they are full; may be nil
	// RetryFor is the time without progress of a partition after which the load fails; 0 means pipeline.DefaultRetryFor.
	RetryFor time.Duration
	Backoff  ratelimit.Backoff // waits between attempts of a row; zero means 50 ms growing to 5 s
}

// Rates are limits over all partitions, per second; 0 means none.
type Rates struct {
	MaxWCU   float64 // write capacity units
	MaxRows  float64
	MaxBytes float64 // bytes of rows as the service counts them
}

// FlushRequest makes a load send all rows read so far while someone waits. Any goroutine may call it.
type FlushRequest struct {
	waiting atomic.Int64
	begun   chan struct{} // capacity 1
}

// NewFlushRequest returns a FlushRequest for one load.
func NewFlushRequest() *FlushRequest { return &FlushRequest{begun: make(chan struct{}, 1)} }

// Begin makes the load send rows at once, until End is called.
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
