package pipeline

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
)

// grid is the power of an embedded store on a disk in memory. When it fails, what was not synced is gone, with the store's
// memory and all requests that were in flight.
type grid struct {
	t       *testing.T
	plan    *faults.Plan
	options server.Options

	mu       sync.RWMutex
	fs       *vfs.MemFS
	server   *server.Server
	losses   int                // so far
	away     int                // requests that still find nobody
	simulate *server.Simulation // how tables behave; nil is without a simulation
	alone    bool               // the power may fail while the load continues
	ending   sync.WaitGroup
}

var errPower = errors.New("the power has failed")

// newPoweredWorld is a world whose store syncs what it acknowledges.
func newPoweredWorld(t *testing.T) *world { return powered(t, false) }

// newLazyWorld is one whose store acknowledges what it has not synced: as one in the process of a load, which does not
// outlive it.
func newLazyWorld(t *testing.T) *world { return powered(t, true) }

func powered(t *testing.T, noSync bool) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), plan: &faults.Plan{Within: settle / 2}}
	g := &grid{t: t, plan: w.plan, fs: vfs.NewCrashableMem(), alone: !noSync}
	g.options = server.Options{NoSync: noSync, Faults: w.plan}
	w.grid = g
	g.open(g.fs)
	t.Cleanup(func() {
		g.ending.Wait()
		conformance.Equal(t, g.server.Close(), nil, "error")
	})
	return w
}

// open starts a store on what is left of the disk.
func (g *grid) open(fs *vfs.MemFS) {
	g.options.FS = fs
	s, err := server.Open("store", g.options)
	if err != nil {
		g.t.Errorf("open the store after %d losses of power: %v", g.losses, err)
		return
	}
	if g.simulate != nil {
		if err := s.Sim().Simulate("", *g.simulate); err != nil {
			g.t.Error(err)
		}
	}
	g.fs, g.server = fs, s
}

func (g *grid) now() (*server.Server, int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.server, g.losses
}

// RoundTrip lets a request through to the store as it runs. No answer comes of a store whose power has failed: once an
// acknowledgement is out, what it says is on the disk that is left.
func (g *grid) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.refuses() {
		return nil, fmt.Errorf("connect: %w", errPower)
	}
	s, before := g.now()
	answer, err := s.Transport().RoundTrip(r)
	if _, after := g.now(); after != before {
		if err == nil {
			answer.Body.Close()
		}
		return nil, errPower
	}
	return answer, err
}

// refuses counts a request that comes while nobody is there.
func (g *grid) refuses() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.away == 0 {
		return false
	}
	g.away--
	return true
}

// lose takes the power away: the disk is left with what was synced and a random part of the rest.
func (g *grid) lose(rnd *rand.Rand) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.server
	left := g.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(4) * 33, RNG: rnd})
	g.losses++
	g.away = rnd.IntN(6)
	g.open(left)
	g.ending.Go(func() { // it may be one of its requests that asks for this
		if err := old.Close(); err != nil {
			g.t.Errorf("close the store that is gone: %v", err)
		}
	})
}

// endanger lets the power fail at some of the requests, if that may happen to a load that continues.
func (g *grid) endanger(rnd *rand.Rand, cfg *trial) {
	if g == nil {
		return
	}
	if !g.alone {
		cfg.Checkpoint.Sync = func() error { s, _ := g.now(); return s.Sync() }
		return
	}
	own := rand.New(rand.NewPCG(rnd.Uint64(), 5))
	next := own.IntN(60)
	decide := g.plan.Decide
	var mu sync.Mutex
	g.plan.Decide = func(r faults.Request) faults.Fault {
		mu.Lock()
		if r.N >= next {
			next = r.N + 1 + own.IntN(150)
			g.lose(own)
		}
		mu.Unlock()
		return decide(r)
	}
}

// diesWith lets the power fail as the process of the load ends, which it must where the store is in that process.
func (g *grid) diesWith(rnd *rand.Rand) {
	if g != nil && (!g.alone || rnd.IntN(2) == 0) {
		g.lose(rnd)
	}
}

// serve lets every request through: a load that begins without a store gives up.
func (g *grid) serve() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away = 0
}

// end waits until the stores that are gone have ended.
func (g *grid) end() {
	if g != nil {
		g.serve()
		g.ending.Wait()
	}
}

func (g *grid) lost() int {
	if g == nil {
		return 0
	}
	_, n := g.now()
	return n
}
