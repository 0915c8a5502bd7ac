package scan

import (
	"context"
	"sync"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/ratelimit"
)

// Gate limits the rate at which scans consume read capacity units. Answers state a page's cost, so requests reserve the
// average, and the difference delays later ones. It is safe for concurrent use; a nil Gate never waits.
type Gate struct {
	rate float64 // units a second

	mu      sync.Mutex
	average float64   // units of a page
	free    time.Time // when the next request may be sent
}

// NewGate makes a Gate of that many units per second; nil for 0, no limit.
func NewGate(unitsPerSecond float64) *Gate {
	if unitsPerSecond <= 0 {
		return nil
	}
	return &Gate{rate: unitsPerSecond, average: 1}
}

// wait waits until a request may be sent, and returns the units reserved for it.
func (g *Gate) wait(ctx context.Context) (reserved float64, err error) {
	if g == nil {
		return 0, nil
	}
	g.mu.Lock()
	now := time.Now()
	if g.free.Before(now) {
		g.free = now // nothing is saved up
	}
	at := g.free
	reserved = g.average
	g.free = at.Add(g.lasts(reserved))
	g.mu.Unlock()
	return reserved, ratelimit.Wait(ctx, at.Sub(now))
}

// charge accounts for a page's cost, given its reservation.
func (g *Gate) charge(c *tablestore.ConsumedCapacityUnit, reserved float64) {
	if g == nil || c == nil {
		return
	}
	cost := float64(max(c.Read, 1))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free = g.free.Add(g.lasts(cost - reserved))
	g.average += (cost - g.average) / 4
}

func (g *Gate) lasts(units float64) time.Duration {
	return time.Duration(units / g.rate * float64(time.Second))
}

// Manner is how a command reads, in all of its scans together.
type Manner struct {
	Gate  *Gate  // bounds the rate of reading; nil does not
	Waits *Waits // is told of pages that the service refuses; may be nil
	// OnRows is called by sources with the number of rows read. It must be safe for concurrent use; may be nil.
	OnRows func(n int)
}

// Waits reports waits for a refusing or silent service. It is safe for concurrent use; nil reports nothing.
type Waits struct {
	tell func(why string, most time.Duration)

	mu   sync.Mutex
	told time.Time
}

// NewWaits makes a Waits. tell takes the reason, and the longest time for which the page is retried.
func NewWaits(tell func(why string, most time.Duration)) *Waits { return &Waits{tell: tell} }

// A short refusal is not reported, nor each range's.
const (
	worthTelling = 2 * time.Second
	tellEvery    = 30 * time.Second
)

// note reports a request that has failed since a moment.
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
