package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func randomFaults(rnd *rand.Rand) func(faults.Request) faults.Fault {
	share := rnd.Float64() * 0.6
	source := rand.New(rand.NewPCG(rnd.Uint64(), 1))
	var mu sync.Mutex
	return func(faults.Request) faults.Fault {
		mu.Lock()
		defer mu.Unlock()
		if source.Float64() >= share {
			return faults.Fault{}
		}
		return passingFaults[source.IntN(len(passingFaults))]
	}
}

// passingFaults are temporary: a later attempt may succeed.
var passingFaults = []faults.Fault{{Action: faults.Refuse, Code: "OTSServerBusy"},
	{Action: faults.Refuse, Code: "OTSNotEnoughCapacityUnit"}, {Action: faults.Refuse, Code: "OTSPartitionUnavailable"},
	{Action: faults.Refuse, Code: "OTSTimeout"}, {Action: faults.DropBefore}, {Action: faults.DropAfter},
	{Action: faults.AnswerErrorAfter, Code: "OTSInternalServerError"},
	{Action: faults.AnswerErrorAfter, Code: "OTSServerUnavailable"}, {Action: faults.ApplyLate, Delay: lateness},
	{Action: faults.ApplyLate, Delay: lateness / 4, Code: "OTSTimeout"}, {Action: faults.BadBody},
	{Action: faults.BadBody, Code: "404"}, {Action: faults.PageAfter, Code: "429"},
	{Action: faults.PageAfter, Code: "403"}, {Action: faults.Redirect}, {Action: faults.FlipBit, Bit: 77},
	{Action: faults.FlipBit, Bit: 1001}, {Action: faults.AnswerErrorAfter, Code: "Throttling.User"},
	{Action: faults.TruncateBody},
	{Action: faults.RefuseRows, RowCode: func(i int) string { return everyThird(i, "OTSNotEnoughCapacityUnit") }},
	{Action: faults.RefuseRows, RowCode: func(i int) string { return everyThird(i+1, "OTSRowOperationConflict") }},
	{Action: faults.RefuseRows, RowCode: func(i int) string { return everyThird(i+2, "OTSTimeout") }},
	{Action: faults.RefuseRows, RowCode: func(int) string { return "OTSCapacityUnitExhausted" }}}

func everyThird(i int, code string) string {
	if i%3 == 0 {
		return code
	}
	return ""
}

// Request 0 of a load fails in every temporary way, then request 1 of another load, and so on.
func TestLoadSurvivesAnyFailedRequest(t *testing.T) {
	text := repeated(60, 12)
	want := lastOf(t, text)
	for f := range passingFaults {
		fault := passingFaults[f]
		t.Run(fmt.Sprintf("fault %d, action %d %s", f, fault.Action, fault.Code), func(t *testing.T) {
			t.Parallel()
			for n, past := 0, false; !past; n++ {
				synctest.Test(t, func(t *testing.T) { past = failsAt(t, text, want, fault, n) })
			}
		})
	}
}

// failsAt runs a load whose request n fails. past reports that the load had no request n.
func failsAt(t *testing.T, text string, want contents, fault faults.Fault, n int) (past bool) {
	w := newWorld(t)
	hit := false
	w.fail(fault, func(r faults.Request) bool {
		hit = hit || r.N == n
		return r.N == n
	})
	cfg := w.config(w.file("in.csv", text))
	cfg.Lanes.Concurrency, cfg.Lanes.BatchRows = 1, 8 // one request at a time: hit needs no lock
	r := w.load(cfg)
	w.wantRows(want)
	conformance.Equal(t, r.Rejected, 1, "request %d: rejected", n)
	conformance.MustEqual(t, t.Failed(), false, "with request %d failing", n)
	return !hit
}

// A row that the service neither accepts nor refuses is rejected, whatever batch it is in. The other rows are written.
func TestRowThatAlwaysFailsIsRejected(t *testing.T) {
	poisoned := func(r table.Ref) bool { return bytes.Contains(r.Body(), []byte("poison")) }
	for name, fault := range map[string]func(sent []table.Ref) faults.Fault{
		"of its own": func(sent []table.Ref) faults.Fault {
			return faults.Fault{Action: faults.RefuseRows, RowCode: func(row int) string {
				if poisoned(sent[row]) {
					return "OTSInternalServerError"
				}
				return ""
			}}
		},
		"with its request": func(sent []table.Ref) faults.Fault {
			if slices.ContainsFunc(sent, poisoned) {
				return faults.Fault{Action: faults.Refuse, Code: "OTSInternalServerError"}
			}
			return faults.Fault{}
		},
		"applied": func(sent []table.Ref) faults.Fault {
			if slices.ContainsFunc(sent, poisoned) {
				return faults.Fault{Action: faults.AnswerErrorAfter, Code: "OTSInternalServerError"}
			}
			return faults.Fault{}
		},
	} {
		for _, order := range []plan.Order{plan.LastWins, plan.OrderNone} {
			t.Run(fmt.Sprint(name, " ", order), virtual(func(t *testing.T, w *world) {
				text := "id,a\n"
				for i := range 500 {
					value := "good"
					if i == 0 || i == 250 {
						value = "poison"
					}
					text += fmt.Sprintf("key%03d,%s\n", i, value)
				}
				cfg := w.config(w.file("in.csv", text))
				cfg.Write.Order, cfg.Lanes.RetryFor = order, 3*time.Second
				w.plan.Only = func(op string) bool { return op == "BatchWriteRow" }
				cfg.Lanes.Concurrency = 1 // onSend sees a request's rows right before the request
				var sent []table.Ref
				cfg.onSend = func(rows []table.Ref) { sent = slices.Clone(rows) }
				w.plan.Decide = func(faults.Request) faults.Fault { return fault(sent) }
				r := w.load(cfg)
				conformance.True(t, r.Written == 498 && r.Rejected == 2 && r.MaybeApplied == 2 && r.ExitCode == exitcode.Rejects,
					"%d written, %d rejected, %d of them maybe applied, exit code %d: %s", r.Written, r.Rejected, r.MaybeApplied,
					r.ExitCode, r.Error)
				for _, line := range lines(t, filepath.Join(cfg.RunDir, rundir.ReasonsFile)) {
					var reason rundir.Reason
					err := json.Unmarshal([]byte(line), &reason)
					conformance.True(t, err == nil && reason.MaybeApplied && reason.Code == "OTSInternalServerError" &&
						strings.Contains(reason.Message, "of them alone, while other rows were written"), "%s, %v", line, err)
				}
			}))
		}
	}
}

// While nothing at all is written, the service is down, and no row is rejected however often it fails.
func TestOutageRejectsNoRow(t *testing.T) {
	for _, code := range []string{"OTSInternalServerError", "OTSServerUnavailable", "OTSTimeout", ""} {
		t.Run(code, virtual(func(t *testing.T, w *world) {
			text, want := plainCSV(80)
			cfg := w.config(w.file("in.csv", text))
			cfg.Pacer = func() lanes.Pacer { return restless{} }
			cfg.Lanes.BatchRows = 1
			var mu sync.Mutex
			sent := map[string]int{}
			w.plan.Only = func(op string) bool { return op == "BatchWriteRow" }
			outage := 0
			w.plan.Decide = func(r faults.Request) faults.Fault {
				mu.Lock()
				defer mu.Unlock()
				if outage++; outage < 20 || outage > 3000 {
					return faults.Fault{}
				}
				if code == "" {
					return faults.Fault{Action: faults.DropBefore}
				}
				return faults.Fault{Action: faults.Refuse, Code: code}
			}
			cfg.onSend = func(rows []table.Ref) {
				mu.Lock()
				defer mu.Unlock()
				for _, r := range rows {
					sent[string(r.Key())]++
				}
			}
			r := w.load(cfg)
			w.wantRows(want)
			most := 0
			for _, n := range sent {
				most = max(most, n)
			}
			conformance.True(t, r.Rejected == 0 && most >= 30, "%d rejected; a row was sent %d times", r.Rejected, most)
		}))
	}
}

func (w *world) refused(cfg trial) string {
	w.t.Helper()
	cfg.onSend = func([]table.Ref) { w.t.Error("rows were sent") }
	r, err := cfg.run(context.Background())
	conformance.MustTrue(w.t, err != nil && r == nil, "report %v, error %v; want an error and none", r, err)
	return err.Error()
}

// A run that cannot be resumed is refused with advice, and --fresh starts over.
func TestUnresumableRunIsRefusedUnlessFresh(t *testing.T) {
	file := func(name, text string) func(*world, string) {
		return func(w *world, dir string) { must(w.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) }
	}
	for says, harm := range map[string]func(w *world, dir string){
		"table t was dropped with ":             func(w *world, _ string) { must(w.t, w.admin().Drop("t")) },
		"table t was dropped and created again": func(w *world, _ string) { w.remake("t") },
		"read job":                              file(checkpoint.JobFile, "{"),
		"checkpoint":                            file(checkpoint.File, "damaged"),
	} {
		t.Run(says, func(t *testing.T) {
			w := newWorld(t)
			cfg := stopped(w, w.config(w.file("in.csv", badCSV)))
			if harm(w, cfg.RunDir); says == "checkpoint" {
				file(checkpoint.PrevFile, "damaged")(w, cfg.RunDir)
			}
			text := w.refused(cfg)
			conformance.True(t, strings.Contains(text, says) && strings.Contains(text, "--fresh"), "error %s", text)
			cfg.Resume.Look = false
			if r := w.load(cfg); r.State != StateFinished || r.Attempts != 1 || r.Written != 3 || len(w.rows()) != 3 {
				t.Errorf("started over: %+v", r)
			}
		})
	}
}

func TestChangedInputIsResumedIfAccepted(t *testing.T) {
	w := newWorld(t)
	cfg := stopped(w, w.config(w.file("in.csv", badCSV)))
	w.file("in.csv", strings.Replace(badCSV, "key3", "key3,3", 1))
	if text := w.refused(cfg); !strings.Contains(text, "in.csv was") || !strings.Contains(text, "--accept-changed-input") {
		t.Errorf("error %s", text)
	}
	cfg.Resume.AcceptChanged = true
	r := w.load(cfg)
	conformance.True(t, r.State == StateFinished && r.Resumed && len(w.rows()) >= 3, "%+v", r)
}

// A load may be killed before its first checkpoint, after it has written part or all of the file's header.
func TestReturnedKeysFileWithOnlyHeaderIsRewritten(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "a part": "file,re", "the header": "file,record,user,seq\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			input := users(rand.New(rand.NewPCG(8, 8)), 20, 3)
			cfg := w.numbered(w.file("in.csv", input))
			w.file("keys.csv", text)
			w.load(cfg)
			w.wantNumbered(input, cfg)
		})
	}
}

// If the newest checkpoint is unreadable, rows may have been sent that the older one does not know of or allow.
func TestLoadResumesFromOlderCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := users(rand.New(rand.NewPCG(9, 9)), 400, 200)
	cfg := w.numbered(w.file("in.csv", text))
	cfg.Lanes.Concurrency, cfg.Lanes.BatchRows, cfg.Allowance = 1, 5, 5
	cfg.Pacer = func() lanes.Pacer { return restless{} }
	cfg.Checkpoint.Every, cfg.Resume.Look = time.Millisecond, true
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	first := cfg
	var older []byte // like knows, used only by the goroutine that writes checkpoints
	knows := int64(0)
	dead := false
	first.keeping.OnSave = func(s *checkpoint.Snapshot) (err error) {
		written := s.Counters["written"]
		if older == nil && written > 50 {
			conformance.True(t, s.Counters["bytes_sent"] > 50*10, "%v", s.Counters)
			older, err = s.Encode()
			knows = written
		}
		if dead = dead || older != nil && written > knows+50; dead {
			stop(&Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
			return errKilled
		}
		return err
	}
	r, err := first.run(ctx)
	conformance.MustTrue(t, err == nil && r.State == StateInterrupted, "%v, %v", r, err)
	for name, content := range map[string][]byte{checkpoint.File: []byte("torn"), checkpoint.PrevFile: older} {
		must(t, os.WriteFile(filepath.Join(cfg.RunDir, name), content, 0o644))
	}
	r = w.load(cfg)
	w.wantNumbered(text, cfg)
	conformance.True(t, r.Resumed && r.Found >= 50, "%d rows were found, want those after the older checkpoint", r.Found)
}

func TestResumedLoadKeepsMarkColumn(t *testing.T) {
	w := newWorld(t)
	cfg := w.numbered(w.file("in.csv", "user,what\na,b\nc\nd,e\n"))
	cfg = stopped(w, cfg)
	other := cfg
	other.Write.Marks.Column = "other"
	conformance.Contains(t, w.refused(other), "--mark-column was _tsimport and is other now", "error")
	without := cfg
	without.Write.Marks.AtLeastOnce = true
	conformance.Contains(t, w.refused(without), "--mark-column was _tsimport and is not given now", "error")
	keys := conformance.Try(os.ReadFile(cfg.Write.Marks.ReturnedKeys)).Must(t)
	w.file("keys.csv", string(keys[:3]))
	conformance.Refused(t, conformance.ErrorOf(cfg.run(t.Context())), "changed meanwhile", "returned keys cut short")
	w.file("keys.csv", string(keys))
	w.load(cfg)
	conformance.Equal(t, len(w.rows()), 2, "rows")
}

// If only the work after a load is interrupted, the load does not start again.
func TestFinishedLoadWithKeptCheckpointSendsNothingAgain(t *testing.T) {
	for _, order := range []plan.Order{plan.LastWins, plan.OrderNone} {
		w := newWorld(t)
		cfg := w.config(w.file("in.csv", badCSV))
		cfg.Write.Condition, cfg.Write.Order = table.ExpectNotExist, order // a second load would reject all rows
		cfg.Checkpoint.Keep, cfg.Resume.Look = true, true
		r := w.load(cfg)
		conformance.MustTrue(t, r.State == StateFinished && r.Written == 3 && checkpoint.Exists(cfg.RunDir), "%+v", r)
		again := cfg
		again.Checkpoint.Keep = false
		again.onSend = func([]table.Ref) { t.Error("rows were sent again") }
		r = w.load(again)
		conformance.True(t, r.State == StateFinished && r.Resumed && r.Read == 4 && r.Written == 3 && r.Rejected == 1 &&
			!checkpoint.Exists(cfg.RunDir), "%v: run again: %+v", order, r)
		conformance.Equal(t, len(lines(t, filepath.Join(cfg.RunDir, rundir.ReasonsFile))), 1, "rejects")
	}
}

// A runs folder that cannot be searched does not count as a missing one.
func TestUnreadableRunsFolderIsAnError(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.dir)
	must(t, os.WriteFile(rundir.Root, nil, 0o644))
	cfg := w.config(w.file("in.csv", badCSV))
	cfg.RunDir, cfg.Resume.Look = "", true
	conformance.Contains(t, w.refused(cfg), "begin the load: ", "error")
	_, err := os.Stat(rundir.Root)
	conformance.True(t, !errors.Is(err, os.ErrNotExist), "the file is gone")
}

// Each file of a run is replaced by a folder, before the first attempt or after a kill.
func TestUnusableRunFileLosesNoRow(t *testing.T) {
	for _, name := range []string{rundir.SummaryFile, rundir.ReasonsFile, rundir.PageFile, rundir.DoubtsFile,
		rundir.BlocksFile, rundir.RejectIndexFile, rundir.LockFile, rundir.RejectsFile(0, ""), checkpoint.File,
		checkpoint.PrevFile, checkpoint.JobFile, checkpoint.OrderFile} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, begun %v", name, begun), virtual(func(t *testing.T, w *world) {
				want, rejected := contents{}, 0
				text := rowsOf("id,a\n", 400, func(i int) string {
					if i%10 == 3 {
						rejected++
						return fmt.Sprintf("k%d\n", i)
					}
					want[fmt.Sprint("k", i)] = map[string]string{"a": fmt.Sprint(i)}
					return fmt.Sprintf("k%d,%d\n", i, i)
				})
				cfg := w.config(w.file("in.csv", text))
				cfg.Resume.Look, cfg.Checkpoint.Every, cfg.Read.SplitBytes = true, time.Millisecond, 100
				cfg.Lanes.BatchRows, cfg.Lanes.Rates.MaxRows = 20, 2000
				if begun {
					killed := cfg
					ctx, done := moment{save: 3}.kills(&killed, nil)
					_, _ = killed.run(ctx) // it may end in any way
					done()
				}
				cfg.Checkpoint.Every = time.Second // writing is retried for a minute
				path := filepath.Join(cfg.RunDir, name)
				before, missing := os.ReadFile(path)
				must(t, os.RemoveAll(path))
				must(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o755))
				r, err := cfg.run(context.Background())
				if r != nil && r.Balance() != nil {
					t.Error(r.Balance())
				}
				if err != nil {
					must(t, os.RemoveAll(path))
					if missing == nil {
						must(t, os.WriteFile(path, before, 0o600))
					}
					r = w.load(cfg)
				}
				w.wantRows(want)
				conformance.True(t, r.State == StateFinished && r.Read == 400 && r.Rejected == int64(rejected) &&
					r.Written+r.Superseded == int64(len(want)),
					"%s: %d read, %d rejected, %d written", r.State, r.Read, r.Rejected, r.Written)
				for file, want := range map[string]int{rundir.ReasonsFile: rejected, rundir.RejectsFile(0, ""): 1 + rejected} {
					conformance.Equal(t, len(lines(t, filepath.Join(cfg.RunDir, file))), want, "%s: lines", file)
				}
			}))
		}
	}
}

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
		// After the last good checkpoint a lane may send only its allowance, which is used up 30 failures later.
		n := whileFailing.Load()
		conformance.True(t, n == 0, "%d requests were sent long after the last checkpoint", n)
	})
}

func TestLoadFailsIfCheckpointsCannotBeSaved(t *testing.T) {
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

// stopped runs a load until the error limit stops it, and returns the configuration to resume it with.
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

// killedAfter kills a load at its first checkpoint with more than written rows, and returns the previous checkpoint.
func (w *world) killedAfter(cfg trial, written int64) *checkpoint.Snapshot {
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

// countFinal makes a load with one worker count the sent rows that are final by the checkpoint.
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

// grid is the power supply of an embedded store. A power failure loses unsynced data, memory and requests in flight.
type grid struct {
	t       *testing.T
	plan    *faults.Plan
	options server.Options

	mu       sync.RWMutex
	fs       *vfs.MemFS
	server   *server.Server
	losses   int                // number of power failures so far
	away     int                // requests that will still find no store
	simulate *server.Simulation // how tables behave; nil means no simulation
	alone    bool               // power may fail while the load continues
	ending   sync.WaitGroup
}

var errPower = errors.New("the power has failed")

// newPoweredWorld returns a world whose store syncs acknowledged rows.
func newPoweredWorld(t *testing.T) *world { return powered(t, false) }

// newLazyWorld returns a world whose store acknowledges unsynced rows, as a store in the load's process does.
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

// RoundTrip passes a request to the running store.
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

// refuses reports whether a request finds no store, and counts it.
func (g *grid) refuses() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.away == 0 {
		return false
	}
	g.away--
	return true
}

// lose turns the power off. The disk keeps synced data and a random part of the rest.
func (g *grid) lose(rnd *rand.Rand) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.server
	left := g.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(4) * 33, RNG: rnd})
	g.losses++
	g.away = rnd.IntN(6)
	g.open(left)
	g.ending.Go(func() { // not here, as one of the store's own requests may have called lose
		conformance.Equal(g.t, old.Close(), nil, "close the store that is gone")
	})
}

// endanger makes the power fail at some requests, if the load can survive that.
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

// diesWith turns the power off when the load's process ends, if the store is in that process; otherwise at random.
func (g *grid) diesWith(rnd *rand.Rand) {
	if g != nil && (!g.alone || rnd.IntN(2) == 0) {
		g.lose(rnd)
	}
}

// serve lets every request pass, because a load that begins without a store gives up.
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

// sortedFile returns records sorted by key. Two of every fifty are rejected.
func sortedFile(records int) string {
	return rowsOf("id,n\n", records, func(i int) string {
		switch i % 50 {
		case 7:
			return fmt.Sprintf("k%05d,bad\n", i)
		case 9:
			return fmt.Sprintf(",%d\n", i)
		}
		return fmt.Sprintf("k%05d,%d\n", i, i)
	})
}

// sections makes a load read its inputs by a schedule, in sections of the given number of rows.
func (c *trial) sections(rows int) {
	c.order, c.sectionRows = orderAlways, rows
	c.Pacer = func() lanes.Pacer { return restless{} }
}

func TestRejectsOfScheduleAreSortedByInput(t *testing.T) {
	t.Parallel()
	t.Run("a load", func(t *testing.T) { rejectsInOrder(t, plan.LastWins, false) })
	t.Run("a load whose checkpoint is kept", func(t *testing.T) { rejectsInOrder(t, plan.LastWins, true) })
	t.Run("a load in any order", func(t *testing.T) { rejectsInOrder(t, plan.OrderNone, false) })
}

func rejectsInOrder(t *testing.T, order plan.Order, keep bool) {
	w := newWorld(t)
	cfg := w.config(w.file("a.csv", sortedFile(2000)), w.file("b.csv", sortedFile(1000)))
	cfg.Columns.Types["n"] = plan.Type{Type: table.Integer}
	cfg.Read.SplitBytes = 4 << 10
	cfg.sections(40)
	cfg.Write.Order, cfg.Checkpoint.Keep = order, keep
	r := w.load(cfg)
	if keep {
		must(t, r.RemoveCheckpoint())
	}
	conformance.MustTrue(t, r.Sections >= 50 && r.Rejected == 120 && r.Written+r.Superseded == 2880, "%+v", r)
	type reason struct {
		File   string
		Record int64
	}
	var got []reason
	for _, l := range lines(t, filepath.Join(r.RunDir, rundir.ReasonsFile)) {
		var one reason
		must(t, json.Unmarshal([]byte(l), &one))
		got = append(got, one)
	}
	if !slices.IsSortedFunc(got, func(a, b reason) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return int(a.Record - b.Record)
	}) || len(got) != 120 {
		t.Errorf("reasons of %v", got)
	}
	raw := lines(t, filepath.Join(r.RunDir, "rejects.csv"))
	conformance.True(t, len(raw) == 121 && raw[1] == "k00007,bad" && raw[2] == ",9" && raw[3] == "k00057,bad" &&
		raw[81] == "k00007,bad", "rejects.csv begins %q", raw[:5])
	_, err := os.Stat(filepath.Join(r.RunDir, checkpoint.OrderFile))
	conformance.True(t, os.IsNotExist(err), "a finished run has %s: %v", checkpoint.OrderFile, err)
}

// A run can be resumed only with its own schedule, as its records would have different places in another one.
func TestResumedLoadNeedsItsSchedule(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(path string) error{
		"damaged": func(path string) error { return os.WriteFile(path, []byte("tsimport reading order 1\n\x00"), 0o600) },
		"removed": os.Remove,
		"whole":   func(string) error { return nil },
	} {
		w := newWorld(t)
		cfg := w.config(w.file("a.csv", numbered("k", 3000)))
		cfg.Read.SplitBytes, cfg.Resume.Look, cfg.Checkpoint.Every = 4<<10, true, time.Millisecond
		cfg.sections(40)
		first := cfg
		ctx, stop := context.WithCancelCause(context.Background())
		sent := 0
		first.onSend = func([]table.Ref) {
			if sent++; sent == 3 {
				stop(&Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
			}
		}
		first.Lanes.Concurrency = 1
		conformance.Must(t, conformance.ErrorOf(first.run(ctx)))
		must(t, harm(filepath.Join(cfg.RunDir, checkpoint.OrderFile)))
		// A resumed load must not make a schedule of its own.
		cfg.order, cfg.sectionRows = orderNever, 7
		r, err := cfg.run(context.Background())
		if name == "whole" {
			conformance.True(t, err == nil && r.Sections != 0 && len(w.rows()) == 3000, "%v, %d rows", err, len(w.rows()))
		} else if err == nil || !strings.Contains(err.Error(), checkpoint.OrderFile) ||
			!strings.Contains(err.Error(), "start over with --fresh") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
