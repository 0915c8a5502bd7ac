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

	"example.com/tsimport/pipeline/lanes"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/tablestore/client"
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
func linkShare(t *testing.T, l *virtualLink, row int, seconds float64, timeout time.Duration, law func() lanes.Pacer) (share float64, r *Report) {
	l.up, l.down, l.longest = time.Time{}, time.Time{}, 0
	possible := l.bandwidth
	if l.trip > 0 {
		possible = min(possible, float64(cmp.Or(l.workers, DefaultConcurrency))*200*float64(row+61)/l.trip.Seconds())
	}
	rnd, filler := rand.New(rand.NewPCG(1, 1)), strings.Repeat("x", row-10)
	text := rowsOf("id,n\n", int(possible*seconds/float64(row+61)), func(int) string {
		return fmt.Sprintf("k%08d,%s\n", rnd.IntN(1e8), filler)
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var bounds []string
		lanes := cmp.Or(l.lanes, 8)
		for i := 1; i < lanes; i++ {
			bounds = append(bounds, fmt.Sprintf("k%08d", i*1e8/lanes))
		}
		w.partitioned(server.Simulation{Config: l.service}, bounds...)
		l.base = w.server.Transport()
		cfg := w.config(w.file("in.csv", text))
		cfg.Target.Client.Transport, cfg.Target.Client.RequestTimeout, cfg.Pacer = l, timeout, law
		cfg.Write.Compress, cfg.Lanes.Concurrency = l.compress, cmp.Or(l.workers, DefaultConcurrency)
		r = w.load(cfg)
		share = float64(r.BytesSent) / r.Seconds / possible
	})
	return share, r
}

func TestALoadFillsASlowLink(t *testing.T) {
	slow, long := 3.2e6/8, 200*time.Millisecond
	for name, tt := range map[string]struct {
		link    *virtualLink
		row     int           // bytes; 0 is 20,000
		seconds float64       // of data
		timeout time.Duration // 0 is the default
		free    bool          // no lane is held back: what is in flight is up to the load alone
		share   float64       // at least
		longest time.Duration // 0 is not judged
		rows    int64         // of a request, at least
	}{
		"slow and long": {link: &virtualLink{bandwidth: slow, trip: long}, seconds: 20, free: true, share: 0.9,
			longest: client.DefaultRequestTimeout / 3},
		"it stalls": {link: &virtualLink{bandwidth: 10e6 / 8, stalls: 0.01, stall: 2 * long}, seconds: 10, free: true,
			share: 0.9, longest: client.DefaultRequestTimeout / 3},
		"short time-outs": {link: &virtualLink{bandwidth: 2e6 / 8}, seconds: 10, timeout: 3 * time.Second, free: true,
			share: 0.9, longest: 2 * time.Second},
		// With one connection each lane is answered rarely. Lanes that each find out by these answers alone how much they
		// may send fill .56 of a long way, requests of five rows.
		"one connection of a long way": {link: &virtualLink{bandwidth: 10e6 / 8, trip: long, workers: 1}, seconds: 10,
			share: 0.7, rows: 31},
		"one connection, short rows": {link: &virtualLink{bandwidth: 50e6 / 8, trip: long, workers: 1}, row: 100,
			seconds: 15, share: 0.8},
		// A request that the link is busy with for longer than earlier ones together is not silent.
		"a large request": {link: &virtualLink{bandwidth: slow, workers: 1, lanes: 2}, seconds: 10, share: 0.9,
			longest: client.DefaultRequestTimeout / 6},
		// Requests of few short rows would be mostly heads and answers: lanes that take the link for a queue of their
		// partitions send 15 at a time.
		"short rows": {link: &virtualLink{bandwidth: 1.6e6 / 8}, row: 100, seconds: 30, rows: 50},
		// On a long way lanes that once took it for a queue must not take it for shorter and shorter, and its answers for
		// later and later.
		"short rows, a long way that stalls": {row: 100, seconds: 8, share: 0.35,
			link: &virtualLink{bandwidth: 10e6 / 8, trip: long, stalls: 0.01, stall: 2 * long}},
	} {
		var law func() lanes.Pacer
		if tt.free {
			law = func() lanes.Pacer { return restless{} }
		}
		l, timeout := tt.link, cmp.Or(tt.timeout, client.DefaultRequestTimeout)
		share, r := linkShare(t, l, cmp.Or(tt.row, 20_000), tt.seconds, timeout, law)
		if share < tt.share || r.Retried > 0 || tt.longest > 0 && l.longest > tt.longest || r.Written/r.Requests < tt.rows {
			t.Errorf("%s: %.3f of what the link carries, %d rows sent again, a request took %v, %d rows in %d requests",
				name, share, r.Retried, l.longest, r.Written, r.Requests)
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
