package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
)

func plainCSV(n int) (text string, want contents) {
	text = rowsOf("id,a\n", n, func(i int) string { return fmt.Sprintf("key%d,a%d\n", i, i) })
	want = contents{}
	for i := range n {
		want[fmt.Sprintf("key%d", i)] = map[string]string{"a": fmt.Sprintf("a%d", i)}
	}
	return text, want
}

func TestNothingIsSentWhileCheckpointsCannotBeWritten(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		text, want := plainCSV(5000)
		cfg := w.config(w.file("in.csv", text))
		cfg.Pacer = func() lanes.Pacer { return restless{} }
		cfg.Checkpoint.Every, cfg.keeping.KeptFor, cfg.Allowance = time.Millisecond, 20*time.Millisecond, 100
		var failing atomic.Bool
		var failures, saves, whileFailing atomic.Int64
		cfg.onSend = func([]table.Ref) {
			if failures.Load() > 30 && failing.Load() {
				whileFailing.Add(1)
			}
		}
		cfg.keeping.OnSave = func(*checkpoint.Snapshot) error {
			if saves.Add(1) == 4 {
				failing.Store(true)
			}
			if failing.Load() {
				if failures.Add(1) == 60 {
					failing.Store(false)
				}
				return errors.New("the disk is full")
			}
			return nil
		}
		r := w.load(cfg)
		w.wantRows(want)
		conformance.Equal(t, failures.Load(), 60, "failures")
		conformance.Equal(t, r.CheckpointError, "", "checkpoint error")
		// After the last good one a lane may send only its allowance: 30 failures later all of it has been sent.
		n := whileFailing.Load()
		conformance.True(t, n == 0, "%d requests were sent long after the last checkpoint", n)
	})
}

func TestALoadThatCannotSaveCheckpointsFails(t *testing.T) {
	for name, spoil := range map[string]func(*trial){
		"checkpoint": func(cfg *trial) {
			cfg.keeping.OnSave = func(*checkpoint.Snapshot) error { return errors.New("the disk is full") }
		},
		"store": func(cfg *trial) { cfg.Checkpoint.Sync = func() error { return errors.New("the disk is full") } },
	} {
		t.Run(name, virtual(func(t *testing.T, w *world) {
			text, _ := plainCSV(5000)
			cfg := w.config(w.file("in.csv", text))
			cfg.Checkpoint.Every, cfg.keeping.Patience = time.Millisecond, 50*time.Millisecond
			cfg.onSend = func([]table.Ref) { t.Error("rows were sent without a checkpoint") }
			spoil(&cfg)
			r, err := cfg.run(context.Background())
			conformance.MustTrue(t, err != nil && strings.Contains(err.Error(), "no checkpoint could be written for 50ms: ") &&
				strings.Contains(err.Error(), "the disk is full"), "error %v", err)
			conformance.True(t, r.State == StateFailed && r.CheckpointError != "", "%+v", r)
		}))
	}
}

// stopped loads until the error limit stops it, and returns the configuration for resuming.
func stopped(w *world, cfg trial) trial {
	w.t.Helper()
	cfg.Resume.Look = true
	cfg.Limits.MaxErrors = ledger.MaxErrors{Rows: 0}
	r := w.load(cfg)
	conformance.MustTrue(w.t, r.State == StateErrorLimit && checkpoint.Exists(cfg.RunDir), "%s, or no checkpoint", r.State)
	cfg.Limits.MaxErrors = ledger.MaxErrors{Rows: -1}
	return cfg
}

const badCSV = "id,a\nkey1,1\nkey2,2\nkey3\nkey4,4\n"

// killedAfter kills a load at its first checkpoint beyond that many rows, and returns the one before, which is valid.
func (w *world) killedAfter(cfg trial, written int64) *checkpoint.Snapshot {
	w.t.Helper()
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	cfg.Lanes.Rates.MaxRows = 2_000
	cfg.keeping.OnSave = func(s *checkpoint.Snapshot) error {
		if s.Counters["written"] > written {
			stop(&Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
			return errKilled
		}
		return nil
	}
	r, err := cfg.run(ctx)
	conformance.MustTrue(w.t, err == nil && r.State == StateInterrupted, "%v, %v", r, err)
	return conformance.Try(checkpoint.Read(cfg.RunDir)).Must(w.t)
}

// countFinal makes a load of one worker count the rows it sends that the checkpoint calls final.
func (c *trial) countFinal(base *checkpoint.Snapshot) (again *int) {
	again = new(int)
	c.onSend = func(rows []table.Ref) {
		for _, r := range rows {
			if base.Final(keep.PositionOf(r), r.Key()) {
				*again++
			}
		}
	}
	return again
}

// grid powers an embedded store. A failure loses unsynced data, the store's memory and all requests in flight.
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

// newPoweredWorld is a world whose store syncs acknowledged rows.
func newPoweredWorld(t *testing.T) *world { return powered(t, false) }

// newLazyWorld is a world whose store acknowledges unsynced rows, like one in the process of a load.
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

func (g *grid) open(fs *vfs.MemFS) {
	g.options.FS = fs
	s, err := server.Open("store", g.options)
	if err != nil {
		g.t.Errorf("open the store after %d losses of power: %v", g.losses, err)
		return
	}
	if g.simulate != nil {
		conformance.Must(g.t, s.Sim().Simulate("", *g.simulate))
	}
	g.fs, g.server = fs, s
}

func (g *grid) now() (*server.Server, int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.server, g.losses
}

// RoundTrip passes a request to the running store. Once an answer is out, its rows are on the remaining disk.
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

// refuses counts a request that arrives without a store.
func (g *grid) refuses() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.away == 0 {
		return false
	}
	g.away--
	return true
}

// lose turns the power off: the disk keeps synced data and a random part of the rest.
func (g *grid) lose(rnd *rand.Rand) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.server
	left := g.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(4) * 33, RNG: rnd})
	g.losses++
	g.away = rnd.IntN(6)
	g.open(left)
	g.ending.Go(func() { // it may be one of its requests that asks for this
		conformance.Equal(g.t, old.Close(), nil, "close the store that is gone")
	})
}

// endanger lets the power fail at some requests, if the load may survive that.
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

// diesWith turns the power off when the process of the load ends, as it must if the store is in that process.
func (g *grid) diesWith(rnd *rand.Rand) {
	if g != nil && (!g.alone || rnd.IntN(2) == 0) {
		g.lose(rnd)
	}
}

// serve passes every request: a load that begins without a store gives up.
func (g *grid) serve() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away = 0
}

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
