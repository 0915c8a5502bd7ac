package scan

import (
	"sync"
	"time"

	"example.com/tsimport/internal/tablestore/client"
)

// Manner is how a command reads, in all of its scans together.
type Manner struct {
	Gate  *Gate  // bounds the rate of reading; nil does not
	Waits *Waits // is told of pages that the service refuses; may be nil
}

// Waits tells somebody that reading waits, because the service refuses it or does not answer. It is safe for concurrent use; a nil Waits tells
// nobody.
type Waits struct {
	tell func(why string, most time.Duration)

	mu   sync.Mutex
	told time.Time
}

// NewWaits makes a Waits. Tell is told why a page waits, and for how long at most it is tried.
func NewWaits(tell func(why string, most time.Duration)) *Waits { return &Waits{tell: tell} }

// A refusal that passes is not worth a line, and neither is each of the ranges that are read at a time.
const (
	worthTelling = 2 * time.Second
	tellEvery    = 30 * time.Second
)

// note tells of a request that has failed since a moment.
func (w *Waits) note(since, now time.Time, err error, most time.Duration) {
	if w == nil || now.Sub(since) < worthTelling {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.told.IsZero() && now.Sub(w.told) < tellEvery {
		return
	}
	w.told = now
	w.tell(client.Describe(err), most)
}
