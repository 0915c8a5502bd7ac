package pipeline

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tsimport/engine/server"
	"tsimport/engine/sim"
	"tsimport/internal/tablestore/client"
)

// virtualLink is a slow link in virtual time: all requests share its line, one after the other, each way.
type virtualLink struct {
	base      http.RoundTripper
	bandwidth float64       // bytes a second each way
	trip      time.Duration // there and back
	stalls    float64       // share of the writes of 16 KiB that are held back for stall
	stall     time.Duration
	compress  string // --compress of the load
	workers   int    // of the load: as many connections as there are; 0 is the default
	lanes     int    // 0 is 8
	service   sim.Config

	mu       sync.Mutex
	up, down time.Time // when the line is free
	longest  time.Duration
}

const virtualPiece = 16 << 10

// pass waits until so many bytes are through.
func (l *virtualLink) pass(ctx context.Context, free *time.Time, bytes int64) error {
	l.mu.Lock()
	now := time.Now()
	if free.Before(now) {
		*free = now
	}
	*free = free.Add(time.Duration(float64(bytes) / l.bandwidth * float64(time.Second)))
	wait := free.Sub(now) + l.trip/2
	for n := bytes; n > 0; n -= virtualPiece {
		if l.stalls > 0 && rand.Float64() < l.stalls {
			wait += l.stall
		}
	}
	l.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *virtualLink) RoundTrip(r *http.Request) (*http.Response, error) {
	begun := time.Now()
	if err := l.pass(r.Context(), &l.up, r.ContentLength+600); err != nil {
		return nil, err
	}
	res, err := l.base.RoundTrip(r)
	if err == nil {
		err = l.pass(r.Context(), &l.down, res.ContentLength+400)
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, time.Since(begun))
	return res, nil
}

// linkShare loads rows of about that many bytes into the link's lanes, for so many seconds if the link were filled. It returns what share
// of that the load reached: of the bytes that the link carries, or of 200 rows a round trip and worker.
func linkShare(t *testing.T, l *virtualLink, row int, seconds float64, timeout time.Duration, law func() pacer) (share float64, r *Report) {
	l.up, l.down, l.longest = time.Time{}, time.Time{}, 0
	possible := l.bandwidth
	if l.trip > 0 {
		possible = min(possible, float64(cmp.Or(l.workers, DefaultConcurrency))*200*float64(row+61)/l.trip.Seconds())
	}
	var b strings.Builder
	b.WriteString("id,n\n")
	rnd := rand.New(rand.NewPCG(1, 1))
	filler := strings.Repeat("x", row-10)
	for range int(possible * seconds / float64(row+61)) {
		fmt.Fprintf(&b, "k%08d,%s\n", rnd.IntN(1e8), filler)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var bounds []string
		lanes := cmp.Or(l.lanes, 8)
		for i := 1; i < lanes; i++ {
			bounds = append(bounds, fmt.Sprintf("k%08d", i*1e8/lanes))
		}
		w.partitioned(server.Simulation{Config: l.service}, bounds...)
		l.base = w.server.Transport()
		cfg := w.config(w.file("in.csv", b.String()))
		cfg.Target.Client.Transport, cfg.Target.Client.RequestTimeout, cfg.pacer = l, timeout, law
		cfg.Write.Compress, cfg.Write.Concurrency = l.compress, cmp.Or(l.workers, DefaultConcurrency)
		r = w.load(cfg)
		share = float64(r.BytesSent) / r.Seconds / possible
	})
	return share, r
}

// TestALoadFillsASlowLink holds no lane back: what is in flight is up to the load alone.
func TestALoadFillsASlowLink(t *testing.T) {
	for name, tt := range map[string]struct {
		link    *virtualLink
		timeout time.Duration
		seconds float64 // of data
		longest time.Duration
	}{
		"slow and long":   {&virtualLink{bandwidth: 3.2e6 / 8, trip: 200 * time.Millisecond}, client.DefaultRequestTimeout, 40, client.DefaultRequestTimeout / 3},
		"it stalls":       {&virtualLink{bandwidth: 10e6 / 8, stalls: 0.01, stall: 400 * time.Millisecond}, client.DefaultRequestTimeout, 20, client.DefaultRequestTimeout / 3},
		"short time-outs": {&virtualLink{bandwidth: 2e6 / 8}, 3 * time.Second, 10, 2 * time.Second},
	} {
		l := tt.link
		share, r := linkShare(t, l, 20_000, tt.seconds, tt.timeout, func() pacer { return restless{} })
		if share < 0.9 || r.Retried > 0 || l.longest > tt.longest {
			t.Errorf("%s: %.3f of what the link carries, %d rows sent again, a request took %v", name, share, r.Retried, l.longest)
		}
	}
}

func TestCompressedRequestsCarryMoreOverASlowLink(t *testing.T) {
	seconds := map[string]float64{}
	for _, mode := range []string{client.CompressOff, client.CompressOn} {
		_, r := linkShare(t, &virtualLink{bandwidth: 1.6e6 / 8, compress: mode}, 20_000, 40, client.DefaultRequestTimeout, nil)
		seconds[mode] = r.Seconds
	}
	if off := seconds[client.CompressOff]; seconds[client.CompressOn] > off/4 || off < 40 {
		t.Errorf("seconds: %v", seconds)
	}
}

// With one connection each lane is answered rarely. Lanes that each find out by these answers alone how much they may send fill .56 of a
// long way, requests of five rows.
func TestOneConnectionOfALongWayCarriesLargeRequests(t *testing.T) {
	l := &virtualLink{bandwidth: 10e6 / 8, trip: 200 * time.Millisecond, workers: 1}
	if share, r := linkShare(t, l, 20_000, 10, client.DefaultRequestTimeout, nil); share < 0.7 || r.Requests > 20 || r.Retried > 0 {
		t.Errorf("rows of 20 KB: %.3f of what the link carries, %d requests, %d rows sent again", share, r.Requests, r.Retried)
	}
	l = &virtualLink{bandwidth: 50e6 / 8, trip: 200 * time.Millisecond, workers: 1}
	if share, r := linkShare(t, l, 100, 15, client.DefaultRequestTimeout, nil); share < 0.8 || r.Retried > 0 {
		t.Errorf("rows of 100 bytes: %.3f of 200 rows a trip, %d requests, %d rows sent again", share, r.Requests, r.Retried)
	}
}

// Partitions that refuse what is above their capacity are not mistaken for the way: what a lane did not send while it waited for a connection, and no
// more, it sends at once.
func TestOneConnectionOfALongWayKeepsToTheCapacityOfPartitions(t *testing.T) {
	l := &virtualLink{bandwidth: 50e6 / 8, trip: 200 * time.Millisecond, workers: 1, service: sim.Config{PartitionUnits: 100}}
	const seconds = 30 // of 1,000 rows
	share, r := linkShare(t, l, 100, seconds, client.DefaultRequestTimeout, nil)
	if r.Seconds > 2*seconds*1000/800 || r.Throttled > r.Written/10 {
		t.Errorf("%d rows in %.1f s, %.3f of 200 rows a trip, %d refused", r.Written, r.Seconds, share, r.Throttled)
	}
}

// A request that the link is busy with for longer than earlier ones together is not silent.
func TestALargeRequestOnASlowLinkIsNotSilent(t *testing.T) {
	l := &virtualLink{bandwidth: 3.2e6 / 8, workers: 1, lanes: 2}
	if share, r := linkShare(t, l, 20_000, 15, client.DefaultRequestTimeout, nil); share < 0.9 || l.longest > client.DefaultRequestTimeout/6 {
		t.Errorf("%.3f of what the link carries, %d requests, the longest %v", share, r.Requests, l.longest)
	}
}

// Requests of few short rows would be mostly heads and answers: lanes that take the link for a queue of their partitions send 15 at a time.
func TestRequestsOnASlowLinkHoldManyShortRows(t *testing.T) {
	l := &virtualLink{bandwidth: 1.6e6 / 8}
	share, r := linkShare(t, l, 100, 30, client.DefaultRequestTimeout, nil)
	if mean := r.Written / r.Requests; mean < lateRows/2 || r.Retried > 0 {
		t.Errorf("%d rows a request, %.3f of what the link carries, %d rows sent again", mean, share, r.Retried)
	}
}

// On a long way lanes that once took it for a queue must not take it for shorter and shorter, and its answers for later and later.
func TestLanesOfALongWayKeepTheirRates(t *testing.T) {
	l := &virtualLink{bandwidth: 20e6 / 8, trip: 200 * time.Millisecond, stalls: 0.01, stall: 400 * time.Millisecond}
	if share, r := linkShare(t, l, 100, 8, client.DefaultRequestTimeout, nil); share < 0.35 || r.Retried > 0 {
		t.Errorf("%.3f of what the link carries, %d requests, %d rows sent again", share, r.Requests, r.Retried)
	}
}

var linkTable = flag.Bool("link-table", false, "print what share of slow links in virtual time loads fill (make links)")

// TestLinksInVirtualTime shows what a load with the rates of its lanes reaches, on any machine.
func TestLinksInVirtualTime(t *testing.T) {
	if !*linkTable {
		t.Skip("set -link-table (make links)")
	}
	fmt.Println("link                          row  share  requests  retried  longest request")
	for _, bandwidth := range []float64{3.2e6 / 8, 10e6 / 8, 50e6 / 8} {
		for _, trip := range []time.Duration{0, 200 * time.Millisecond} {
			for _, stalls := range []float64{0, 0.01} {
				if stalls > 0 && trip > 0 && bandwidth < 6e6 {
					continue // three at once
				}
				for _, row := range []int{20_000, 100} {
					l := &virtualLink{bandwidth: bandwidth, trip: trip, stalls: stalls, stall: 400 * time.Millisecond}
					share, r := linkShare(t, l, row, 40, client.DefaultRequestTimeout, nil)
					fmt.Printf("%4.1f Mbit/s, %5v, stalls %4.2f %5d  %.3f %8d %8d  %v\n", bandwidth*8/1e6, trip, stalls, row, share, r.Requests, r.Retried, l.longest.Round(time.Millisecond))
				}
			}
		}
	}
}
