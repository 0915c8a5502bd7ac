package scan

import (
	"context"
	"sync"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/ratelimit"
)

// Gate limits the rate at which scans consume read capacity units. A request reserves the average cost; the response
// has the true cost, and the difference delays later requests. It is safe for concurrent use. A nil Gate never waits.
type Gate struct {
	rate float64 // units per second

	mu      sync.Mutex
	average float64   // average units per page
	free    time.Time // when the next request may be sent
}

// NewGate makes a Gate. For 0 it returns nil, which means no limit.
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
		g.free = now // units do not accumulate while no request is sent
	}
	at := g.free
	reserved = g.average
	g.free = at.Add(g.lasts(reserved))
	g.mu.Unlock()
	return reserved, ratelimit.Wait(ctx, at.Sub(now))
}

// charge replaces the units reserved for a page with its cost.
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

// Manner holds the settings that all scans of a command share.
type Manner struct {
	Gate  *Gate  // limits the rate of reading; nil means no limit
	Waits *Waits // reports pages that the service refuses; may be nil
	// OnRows, if not nil, is called by sources with the number of rows read. It must be safe for concurrent use.
	OnRows func(n int)
}

// Waits, unless nil, reports waits for a service that refuses or does not respond. It is safe for concurrent use.
type Waits struct {
	tell func(why string, most time.Duration)

	mu   sync.Mutex
	told time.Time
}

// NewWaits makes a Waits. It calls tell with the reason and the limit of the retries.
func NewWaits(tell func(why string, most time.Duration)) *Waits { return &Waits{tell: tell} }

// Limits of reports: short waits are not reported, and several ranges that wait are reported once.
const (
	worthTelling = 2 * time.Second
	tellEvery    = 30 * time.Second
)

// note records that a request has been failing since the given time, and may report it.
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
