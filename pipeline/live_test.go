package pipeline

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/pipeline/lanes"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source/sourcetest"
)

var liveSeeds = flag.Int("live-seeds", 2, "seeds of the tests of killed loads of live sources and of parts")

// fromKeyed returns a load of the rows of a keyed origin.
func (w *world) fromKeyed(k *sourcetest.Keyed) trial {
	cfg := w.config(k.Name)
	cfg.Read.Sources = k
	cfg.Target.Key[0].Type = table.Integer
	return cfg
}

// holding returns the expected content of the table for these rows.
func holding(rows map[int64]string) contents {
	want := contents{}
	for id, text := range rows {
		want[fmt.Sprint(id)] = map[string]string{"text": text}
	}
	return want
}

// changing is a live origin whose rows change while they are read, and the state of its repeatedly killed load.
type changing struct {
	t       *testing.T
	rnd     *rand.Rand
	origin  *sourcetest.Keyed
	grows   bool // rows also appear and vanish
	mu      sync.Mutex
	version int
	was     map[int64][]string // all texts that a row has had
	stays   map[int64]bool     // rows that exist all the time
	sent    map[int64]string   // the last text sent of each row
	by      map[int64]int      // the attempt that sent this text
	attempt int
	begun   int // number of attempts that found no checkpoint
}

func (c *changing) change(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		ids := slices.Sorted(func(yield func(int64) bool) {
			for id := range c.origin.Rows() {
				if !yield(id) {
					return
				}
			}
		})
		id := ids[c.rnd.IntN(len(ids))]
		if c.grows && c.rnd.IntN(3) == 0 {
			if c.rnd.IntN(2) == 0 {
				c.origin.Delete(id)
				delete(c.stays, id)
				continue
			}
			id += int64(c.rnd.IntN(9))
		}
		c.version++
		text := "version " + strconv.Itoa(c.version)
		c.was[id] = append(c.was[id], text)
		c.origin.Put(id, text)
	}
}

// Loads of live sources are killed at checkpoints, and requests are applied late. The table must have the last version
// sent of each row, no version that never existed, and all rows that existed all the time.
func TestLiveSourceRowsAreEachFromOneMoment(t *testing.T) {
	for seed := range uint64(few(*liveSeeds)) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { loadChanging(t, seed+1) })
		})
	}
}

func loadChanging(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 71))
	w := newWorld(t)
	w.simulate(t, server.Simulation{Config: sim.Config{Latency: 2 * time.Millisecond, Jitter: 0.9, Seed: seed}})
	const rows = 1500
	k := sourcetest.NewKeyed("live", rows)
	k.Live, k.Parts, k.Page = true, 1+rnd.IntN(6), 5+rnd.IntN(60)
	c := &changing{t: t, rnd: rnd, origin: k, grows: seed%2 == 0, was: map[int64][]string{}, stays: map[int64]bool{},
		sent: map[int64]string{}, by: map[int64]int{}}
	for id, text := range k.Rows() {
		c.was[id], c.stays[id] = []string{text}, true
	}
	k.OnPage = func(int, int64) error {
		c.change(1)
		return nil
	}
	cfg := w.fromKeyed(k)
	cfg.Write.Order = plan.Order(rnd.IntN(2))
	inOrder := rnd.IntN(3) == 0
	if inOrder { // a key expression may repeat values, so sources are read one after the other
		cfg.Target.Key = []table.KeyColumn{{Name: "k", Type: table.String}}
		cfg.Columns.Keys = slices.Grow(cfg.Columns.Keys, 1)[:1]
		cfg.Columns.Keys[0].Name, cfg.Columns.Keys[0].Expr = "k", "text(id)"
	}
	cfg.Lanes.Concurrency, cfg.Lanes.BatchRows = 1+rnd.IntN(8), 1+rnd.IntN(60)
	cfg.Read.Parsers, cfg.Limits.Memory, cfg.Limits.TempDir = 1+rnd.IntN(4), int64(1+rnd.IntN(1<<20)), w.dir
	cfg.Checkpoint.Every, cfg.Allowance, cfg.Resume.Look = time.Millisecond, int64(20+rnd.IntN(300)), true
	cfg.Pacer = func() lanes.Pacer { return restless{} }
	others := randomFaults(rnd)
	w.plan.Decide = func(r faults.Request) faults.Fault {
		if r.Operation == "BatchWriteRow" && rnd64(&c.mu, rnd)%4 == 0 {
			return faults.Fault{Action: faults.ApplyLate, Delay: settle / 3}
		}
		return others(r)
	}
	var r *Report
	for kills := 1 + rnd.IntN(6); ; kills-- {
		c.attempt++
		if !checkpoint.Exists(cfg.RunDir) {
			c.begun++
		}
		c.change(20)
		if r = c.run(cfg, kills > 0); r.State == StateFinished || t.Failed() {
			break
		}
		time.Sleep(restart)
	}
	w.plan.Change(w.plan.Only, nil)

	got := w.rows()
	column := "text"
	for id, text := range c.sent {
		if c.by[id] < c.attempt && !c.stays[id] {
			continue // the attempt was killed, and the row has vanished
		}
		row := got[fmt.Sprint(id)]
		conformance.True(t, row != nil && row[column] == text, "row %d is %v, and %q was sent last", id, row, text)
	}
	for key, row := range got {
		id, err := strconv.ParseInt(key, 10, 64)
		conformance.True(t, err == nil && slices.Contains(c.was[id], row[column]),
			"row %s is %v, which it never was: %q", key, row, c.was[id])
	}
	for id := range c.stays {
		conformance.True(t, got[fmt.Sprint(id)] != nil, "row %d is missing", id)
	}
	conformance.True(t, c.grows || r.Read-r.ReadAgain == rows, "%d read, %d again; want %d", r.Read, r.ReadAgain, rows)
	conformance.True(t, r.Written == r.Read && r.Replayed == 0 && k.Divided() == c.begun,
		"%d read, %d written, %d sent again, %d times divided", r.Read, r.Written, r.Replayed, k.Divided())
	conformance.True(t, r.ReadFrom != nil && r.ReadTo != nil && !r.ReadFrom.Before(r.FirstStarted.Add(-time.Second)) &&
		len(r.Moments) != 0, "read from %v to %v, %v", r.ReadFrom, r.ReadTo, r.Moments)
	t.Logf("%d parts, %v, one key a part %t, %d attempts, %d read again of %d, %d changes", k.Parts, cfg.Write.Order,
		!inOrder, c.attempt, r.ReadAgain, r.Read, c.version)
	if t.Failed() {
		t.Logf("repeat with -run %s", t.Name())
	}
}

func rnd64(mu *sync.Mutex, rnd *rand.Rand) uint64 {
	mu.Lock()
	defer mu.Unlock()
	return rnd.Uint64()
}

func (c *changing) run(cfg trial, kill bool) *Report {
	at := moment{}
	if kill {
		at = moment{save: 1 + c.rnd.IntN(8), gently: c.rnd.IntN(4) == 0}
	}
	cfg.onSnapshot = func(d *dispatcher, s *checkpoint.Snapshot) {
		r := d.counts
		if open := r.Read - r.Written - r.Rejected - r.Superseded; open < int64(d.lanes.Cutter.Remaining()) {
			c.t.Errorf("%d rows are not final, %d are under way", open, d.lanes.Cutter.Remaining())
		}
		again := *s
		again.Counters = nil
		again.State.Pieces = slices.Clone(s.Pieces)
		open := r.Read - r.Written - r.Rejected - r.Superseded
		n, err := again.ReadAgain(r.OfInputs)
		conformance.True(c.t, err == nil && n >= open, "%d records would be read again, %d are not final: %v", n, open, err)
	}
	cfg.onSend = func(rows []table.Ref) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, r := range rows {
			row, err := plainbuffer.Decode(r.Body())
			if err != nil {
				c.t.Error(err)
				continue
			}
			id := row.Key[0].Value.Int
			if row.Key[0].Value.Type == table.String {
				id, _ = strconv.ParseInt(string(row.Key[0].Value.Bytes), 10, 64)
			}
			c.by[id], c.sent[id] = c.attempt, string(row.Cells[len(row.Cells)-1].Value.Bytes)
		}
	}
	ctx, done := at.kills(&cfg, nil)
	defer done()
	r := conformance.Try(cfg.run(ctx)).Must(c.t)
	conformance.Must(c.t, r.Balance())
	return r
}

// Options that are unsafe for live sources are refused. The message names the option, and nothing is written.
func TestUnsafeOptionsForLiveSourcesAreRefused(t *testing.T) {
	for want, change := range map[string]func(*trial){
		"--mode increment": func(cfg *trial) { cfg.Write.Mode = table.Increment },
		"--condition":      func(cfg *trial) { cfg.Write.Condition = table.ExpectNotExist },
		"--on-null delete": func(cfg *trial) { cfg.Write.Mode = table.Update },
		"keeps several versions": func(cfg *trial) {
			cfg.Write.Mode, cfg.Write.DeleteNull, cfg.Target.Define.MaxVersions = table.Update, true, 3
		},
		"uses column text": func(cfg *trial) { cfg.Target.Key = []table.KeyColumn{{Name: "text", Type: table.String}} },
		"--table t_{text}": func(cfg *trial) { cfg.Target.Table = "t_{text}" },
		"auto-increment": func(cfg *trial) {
			cfg.Target.Key = append(cfg.Target.Key, table.KeyColumn{Name: "n", Type: table.Integer, Auto: true})
		},
	} {
		t.Run(want, virtual(func(t *testing.T, w *world) {
			k := sourcetest.NewKeyed("live", 30)
			k.Live = true
			cfg := w.fromKeyed(k)
			change(&cfg)
			_, err := cfg.run(context.Background())
			conformance.True(t, errors.As(err, new(*plan.UsageError)) && strings.Contains(err.Error(), want), "error %v", err)
			names := w.tableNames()
			conformance.True(t, len(names) == 0, "tables were made: %v", names)
		}))
	}
}

func TestLiveSourceAllowsUpdatesThatDeleteNulls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := sourcetest.NewKeyed("live", 300)
	k.Live = true
	cfg := w.fromKeyed(k)
	cfg.Write.Mode, cfg.Write.DeleteNull = table.Update, true
	w.load(cfg)
	w.wantRows(holding(k.Rows()))
}

// A comparison reads a live source again, so it finds changes since the load.
func TestLiveSourceIsComparedInItsCurrentState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := sourcetest.NewKeyed("live", 300)
	k.Live, k.Parts = true, 5
	cfg := w.fromKeyed(k)
	r := w.load(cfg)
	w.verifies(cfg, r)
	k.Put(50, "changed")
	k.Put(55, "added")
	k.Delete(1000)
	if found := w.compare(cfg, r); found.OK || found.Different != 1 || found.Missing != 1 || found.Extra != 1 {
		t.Errorf("one row changed, one was added and one is gone: %+v", found)
	}
}

// A frozen origin is divided once. Its parts are read concurrently, and a resumed run reads the rest of each.
func TestPartsAreReadInParallelAndResumed(t *testing.T) {
	for seed := range uint64(few(max(1, *liveSeeds/2))) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 5))
				w := newWorld(t)
				k := sourcetest.NewKeyed("parts", 3000)
				k.Parts, k.Page = 2+rnd.IntN(30), 1+rnd.IntN(60)
				cfg := w.fromKeyed(k)
				cfg.Pacer = func() lanes.Pacer { return restless{} }
				cfg.Checkpoint.Every, cfg.Resume.Look = 20*time.Millisecond, true
				cfg.Lanes.BatchRows, cfg.Lanes.Concurrency = 50, 1 // onSend needs no lock
				base := w.killedAfter(cfg, 500)
				again := cfg.countFinal(base)
				skipped := true
				k.OnPage = func(part int, from int64) error {
					for _, s := range base.Starts {
						if s.Source == part && s.Key != nil && from < 0 {
							skipped = false
						}
					}
					return nil
				}
				r := w.load(cfg)
				w.wantRows(holding(k.Rows()))
				conformance.True(t, *again == 0 && r.Read == 3000 && r.Written == 3000 && r.Resumed && k.Divided() == 1 && skipped,
					"%d final rows were sent again; %d read, %d written, resumed %t, divided %d times, begun at keys %t", *again,
					r.Read, r.Written, r.Resumed, k.Divided(), skipped)
			})
		})
	}
}

// A late request of a killed attempt must not replace rows that the next attempt has read since.
func TestLateRequestOfLiveSourceReplacesNothingNewer(t *testing.T) {
	const late = 500 * time.Millisecond
	inEachOrder(t, func(t *testing.T, w *world, order plan.Order) {
		w.plan.Within = 2 * late
		k := sourcetest.NewKeyed("live", 20)
		k.Live = true
		cfg := w.fromKeyed(k)
		cfg.Write.Order, cfg.Write.Settle, cfg.Resume.Look = order, 3*late, true
		ctx, stop := context.WithCancelCause(context.Background())
		defer stop(nil)
		var dead atomic.Bool
		w.plan.Decide = func(r faults.Request) faults.Fault {
			if r.Operation != "BatchWriteRow" || dead.Swap(true) {
				return faults.Fault{}
			}
			stop(&Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
			return faults.Fault{Action: faults.ApplyLate, Delay: late}
		}
		killed := cfg
		killed.keeping.OnSave = func(*checkpoint.Snapshot) error {
			if dead.Load() {
				return errKilled
			}
			return nil
		}
		r, err := killed.run(ctx)
		conformance.MustTrue(t, err == nil && r.State == StateInterrupted && dead.Load(), "%v, %v", r, err)
		for id := range k.Rows() {
			k.Put(id, "newer")
		}
		if r := w.load(cfg); !r.Resumed || r.Read != 20 || r.Written != 20 {
			t.Errorf("resumed %t, %d read, %d written", r.Resumed, r.Read, r.Written)
		}
		w.wantRows(holding(k.Rows()))
	})
}
