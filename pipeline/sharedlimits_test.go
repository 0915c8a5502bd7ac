package pipeline

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tsimport/engine/faults"
	"tsimport/engine/server"
)

// crowdedLink counts the writes that are on their way at a time. An answer takes its time.
type crowdedLink struct {
	http.RoundTripper
	mu             sync.Mutex
	inFlight, most int
}

func (c *crowdedLink) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/BatchWriteRow" {
		return c.RoundTripper.RoundTrip(r)
	}
	c.mu.Lock()
	c.inFlight++
	c.most = max(c.most, c.inFlight)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inFlight--
	}()
	time.Sleep(10 * time.Millisecond) // of virtual time
	return c.RoundTripper.RoundTrip(r)
}

func TestLoadsTogetherKeepACeilingInEverySecond(t *testing.T) {
	const loads, rows, rate = 5, 900, 1000.0
	for name, limits := range map[string]Rates{"rows": {MaxRows: rate}, "units": {MaxWCU: rate}} { // a row is a unit
		t.Run(name, virtual(func(t *testing.T, w *world) {
			w.partitioned(server.Simulation{}, "k00400", "k00800", "k01200")
			var met sends
			w.plan.Decide = func(r faults.Request) faults.Fault {
				met.add(time.Now(), float64(r.Rows))
				return faults.Fault{}
			}
			shared := NewSharedLimits(limits, 0)
			began := time.Now()
			together(t, w, loads, rows, func(cfg *trial) { cfg.Shared = shared })
			if most := met.most(time.Second); most > rate {
				t.Errorf("%.0f rows arrived within a second, of which %v may", most, rate)
			}
			// Virtual time: the ceiling is used, too.
			if took, least := time.Since(began).Seconds(), loads*rows/rate; took > 1.25*least {
				t.Errorf("%v rows took %.2f s, of which %.2f are needed", loads*rows, took, least)
			}
		}))
	}
}

func TestLoadsTogetherKeepTheirRequestsInFlight(t *testing.T) {
	const loads, rows, most = 5, 600, 7
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.partitioned(server.Simulation{}, "k00400", "k00800", "k01200")
		link := &crowdedLink{RoundTripper: w.transport()}
		shared := NewSharedLimits(Rates{}, most)
		together(t, w, loads, rows, func(cfg *trial) {
			cfg.Shared, cfg.Write.BatchRows, cfg.Target.Client.Transport = shared, 5, link
			cfg.pacer = func() pacer { return restless{} }
		})
		if link.most != most {
			t.Errorf("%d requests were in flight at most, want %d", link.most, most)
		}
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.inFlight != 0 || len(shared.loads) != 0 {
			t.Errorf("%d requests and %d loads are left", shared.inFlight, len(shared.loads))
		}
	})
}

func TestNoLoadStarvesBesideOthers(t *testing.T) {
	l := NewSharedLimits(Rates{}, 2)
	greedy, late := l.join(), l.join()
	now := time.Unix(1000, 0)
	for range 2 {
		if greedy.begin(now) != 0 {
			t.Fatal("refused although requests are free")
		}
		greedy.sent(now, 1, 1, 1)
	}
	if late.begin(now) == 0 {
		t.Fatal("three requests of two")
	}
	greedy.landed()
	select {
	case <-late.woken():
	default:
		t.Error("the load that waits was not woken")
	}
	if greedy.begin(now) == 0 {
		t.Error("the load with more requests comes before the one that waits")
	}
	if late.begin(now) != 0 {
		t.Error("the load that waits is refused the free request")
	}
	late.sent(now, 1, 1, 1)
	greedy.leave()
	if l.inFlight != 1 {
		t.Errorf("%d in flight after a load with one more has left", l.inFlight)
	}
}

// together runs loads of a file each into one table, with keys of their own.
func together(t *testing.T, w *world, loads, rows int, set func(*trial)) {
	t.Helper()
	var group sync.WaitGroup
	for i := range loads {
		cfg := w.config(w.file(fmt.Sprintf("in%d.csv", i), shuffled(rows)))
		cfg.RunDir = fmt.Sprintf("%s/run-%d", w.dir, i)
		set(&cfg)
		group.Go(func() {
			if r := w.load(cfg); r.Written+r.Superseded != int64(rows) {
				t.Errorf("load %d: %d of %d rows", i, r.Written+r.Superseded, rows)
			}
		})
	}
	group.Wait()
}
