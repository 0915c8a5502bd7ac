package scan

import (
	"context"
	"sync"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/ratelimit"
)

// Gate limits the rate at which scans consume read capacity units. A request reserves the average cost; the answer has
// the true one, and the difference delays later requests. It is safe for concurrent use. A nil Gate never waits.
type Gate struct {
	rate float64 // units per second

	mu      sync.Mutex
	average float64   // average units per page
	free    time.Time // when the next request may be sent
}

// NewGate makes a Gate, or returns nil, which is no limit, for 0.
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
		g.free = now // unused units are not saved
	}
	at := g.free
	reserved = g.average
	g.free = at.Add(g.lasts(reserved))
	g.mu.Unlock()
	return reserved, ratelimit.Wait(ctx, at.Sub(now))
}

// charge replaces a page's reservation by its cost.
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

// Manner says how all scans of a command read together.
type Manner struct {
	Gate  *Gate  // limits the rate of reading; nil for no limit
	Waits *Waits // reports pages that the service refuses; may be nil
	// OnRows is called by sources with the number of rows read. It must be safe for concurrent use; may be nil.
	OnRows func(n int)
}

// Waits reports waits for a service that refuses or does not answer. It is safe for concurrent use; nil reports none.
type Waits struct {
	tell func(why string, most time.Duration)

	mu   sync.Mutex
	told time.Time
}

// NewWaits makes a Waits. It calls tell with the reason and the limit of the retries.
func NewWaits(tell func(why string, most time.Duration)) *Waits { return &Waits{tell: tell} }

// Short refusals are not reported, nor those of every range.
const (
	worthTelling = 2 * time.Second
	tellEvery    = 30 * time.Second
)

// note records that a request has been failing since a moment, and may report it.
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
