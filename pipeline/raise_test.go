package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tsimport/engine/faults"
	"tsimport/engine/server"
	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/reserve"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
)

// raisable is a world in a working folder of its own, whose table t reserves 100 write units that may be changed at any time.
func raisable(t *testing.T) (*world, *client.Admin) {
	t.Helper()
	t.Chdir(t.TempDir())
	w := newWorld(t)
	s, err := server.Open("", server.Options{InMemory: true, Faults: w.plan, ThroughputInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w.server = s
	sdk, err := client.New(context.Background(), w.target(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &client.Admin{Client: sdk, Context: context.Background()}
	if err := a.Create("t", []table.KeyColumn{{Name: "id", Type: table.String}}, table.Definition{TimeToLive: -1, MaxVersions: 1, ReservedWrite: 100}); err != nil {
		t.Fatal(err)
	}
	return w, a
}

func unitsOf(t *testing.T, a *client.Admin) int {
	t.Helper()
	d, err := a.Describe("t")
	if err != nil {
		t.Fatal(err)
	}
	return d.ReservedWrite
}

// nothingLeft checks that no note of a raise is left.
func nothingLeft(t *testing.T, runs ...string) {
	t.Helper()
	for _, run := range runs {
		if ReadRaised(run) != nil {
			t.Errorf("run %s has something to restore", run)
		}
	}
	left, err := filepath.Glob(filepath.Join(rundir.Root, ".raised", "*", noteName))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestThroughputIsRaisedWhileRowsAreSentAndRestoredAfterwards(t *testing.T) {
	w, a := raisable(t)
	cfg := w.config(w.file("in.csv", "id,v\na,1\nb,2\n"))
	cfg.Write.Rates.RaiseWrite = 500
	during := 0
	cfg.onSend = func([]table.Ref) {
		if during = unitsOf(t, a); ReadRaised(cfg.RunDir) == nil {
			t.Error("nothing says what is to be restored")
		}
	}
	r := w.load(cfg)
	if during != 500 || unitsOf(t, a) != 100 || r.RaisedWrite == nil || *r.RaisedWrite != (ReportRaise{From: 100, To: 500, Restored: true}) {
		t.Errorf("%d units during the load, %d after it; %+v", during, unitsOf(t, a), r.RaisedWrite)
	}
	nothingLeft(t, cfg.RunDir)
	text, err := os.ReadFile(filepath.Join(cfg.RunDir, rundir.SummaryFile))
	if err != nil || !strings.Contains(string(text), `"raised_write"`) {
		t.Errorf("%v, %s", err, text)
	}
}

func TestThroughputIsRestoredAfterALoadThatEndsEarly(t *testing.T) {
	for what, spoil := range map[string]func(w *world, cfg *trial){
		"an error limit": func(_ *world, cfg *trial) {
			cfg.Limits.MaxErrors = MaxErrors{}
			cfg.Columns.Types["v"] = plan.Type{Type: table.Integer}
		},
		"a refused key": func(w *world, _ *trial) {
			w.plan.Decide = func(r faults.Request) faults.Fault {
				return faults.Fault{Action: faults.Refuse, Code: "OTSNoPermissionAccess"}
			}
		},
		"an interruption": func(_ *world, cfg *trial) {
			drain, stop := context.WithCancelCause(context.Background())
			cfg.Drain = drain
			cfg.onSend = func([]table.Ref) { stop(&Interrupted{Signal: "SIGTERM", ExitCode: 143}) }
		},
	} {
		t.Run(what, func(t *testing.T) {
			w, a := raisable(t)
			cfg := w.config(w.file("in.csv", "id,v\na,x\nb,2\n"))
			cfg.Write.Rates.RaiseWrite = 500
			spoil(w, &cfg)
			r, err := cfg.run(context.Background())
			if r == nil || r.RaisedWrite == nil || !r.RaisedWrite.Restored || unitsOf(t, a) != 100 {
				t.Errorf("%v, %+v, %d units", err, r, unitsOf(t, a))
			}
			if r.State == StateFinished && what != "an interruption" {
				t.Errorf("it has finished")
			}
			nothingLeft(t, cfg.RunDir)
		})
	}
}

// A process that is killed while the throughput is raised leaves it to the next attempt.
func TestAResumedLoadRestoresWhatTheKilledOneHasRaised(t *testing.T) {
	for _, units := range []int{500, 0} { // --raise-write again, or not
		w, a := raisable(t)
		cfg := w.config(w.file("in.csv", "id,v\na,1\nb,2\n"))
		cfg.Write.Rates.RaiseWrite, cfg.Resume.Look = 500, true
		killed, kill := context.WithCancelCause(context.Background())
		death := errors.New("killed")
		cfg.onSend = func([]table.Ref) { kill(death) }
		r, err := cfg.run(killed)
		var left *reserve.NotRestored
		if !errors.As(err, &left) || r.RaisedWrite == nil || r.RaisedWrite.Restored || unitsOf(t, a) != 500 {
			t.Fatalf("%v, %+v, %d units", err, r.RaisedWrite, unitsOf(t, a))
		}
		if n := ReadRaised(cfg.RunDir); n == nil || n.Was != 100 {
			t.Fatalf("%+v", n)
		}
		cfg.onSend, cfg.Write.Rates.RaiseWrite = nil, units
		var said []string
		cfg.Watch.OnRaise = func(line string) { said = append(said, line) }
		if r = w.load(cfg); r.State != StateFinished || unitsOf(t, a) != 100 {
			t.Errorf("%s, %d units, said %q", r.State, unitsOf(t, a), said)
		}
		if !strings.Contains(strings.Join(said, "\n"), "an earlier run has raised its reserved write throughput from 100 to 500") {
			t.Errorf("%q", said)
		}
		nothingLeft(t, cfg.RunDir)
	}
}

func TestASecondLoadThatRaisesIsRefusedAndOneThatDoesNotIsLoaded(t *testing.T) {
	w, a := raisable(t)
	first := w.config(w.file("first.csv", "id,v\na,1\n"))
	first.Write.Rates.RaiseWrite, first.RunDir = 500, filepath.Join(w.dir, "first")
	second := w.config(w.file("second.csv", "id,v\nb,2\n"))
	second.RunDir = filepath.Join(w.dir, "second")
	var once sync.Once
	first.onSend = func([]table.Ref) {
		once.Do(func() {
			again := second
			again.Write.Rates.RaiseWrite = 700
			if _, err := again.run(context.Background()); err == nil || !strings.Contains(err.Error(), "--raise-write: one load at a time raises the throughput of table t: ") {
				t.Errorf("%v", err)
			}
			if _, err := second.run(context.Background()); err != nil || unitsOf(t, a) != 500 {
				t.Errorf("%v, %d units", err, unitsOf(t, a))
			}
		})
	}
	w.load(first)
	if unitsOf(t, a) != 100 {
		t.Errorf("%d units", unitsOf(t, a))
	}
	nothingLeft(t, first.RunDir, second.RunDir)
}

// Loads of a job share a raise, and the last one restores.
func TestLoadsOfAJobShareARaise(t *testing.T) {
	w, a := raisable(t)
	shared := NewSharedLimits(Rates{}, 8)
	outer := w.config(w.file("first.csv", "id,v\na,1\n"))
	outer.Write.Rates.RaiseWrite, outer.RunDir, outer.Shared = 500, filepath.Join(w.dir, "first"), shared
	inner := w.config(w.file("second.csv", "id,v\nb,2\n"))
	inner.Write.Rates.RaiseWrite, inner.RunDir, inner.Shared = 500, filepath.Join(w.dir, "second"), shared
	var once sync.Once
	outer.onSend = func([]table.Ref) {
		once.Do(func() {
			if _, err := inner.run(context.Background()); err != nil || unitsOf(t, a) != 500 {
				t.Errorf("%v, %d units after the first of two loads", err, unitsOf(t, a))
			}
		})
	}
	w.load(outer)
	if unitsOf(t, a) != 100 {
		t.Errorf("%d units after the last", unitsOf(t, a))
	}
	nothingLeft(t, outer.RunDir, inner.RunDir)
}

// A load of a job does not rely on what another one was to raise and could not.
func TestALoadOfAJobRaisesItselfWhatAnotherOneCouldNot(t *testing.T) {
	for what, refusals := range map[string]int{"the first could not": 1, "none can": 1000} {
		t.Run(what, func(t *testing.T) {
			w, a := raisable(t)
			shared := NewSharedLimits(Rates{}, 8)
			left := refusals
			w.plan.Only = func(op string) bool { return op == "UpdateTable" }
			w.plan.Decide = func(faults.Request) faults.Fault {
				if left--; left >= 0 {
					return faults.Fault{Action: faults.Refuse, Code: "OTSNoPermissionAccess"}
				}
				return faults.Fault{}
			}
			config := func(name string) *Config {
				cfg := w.config()
				cfg.Write.Rates.RaiseWrite, cfg.Shared = 500, shared
				cfg.setDefaults()
				return &cfg.Config
			}
			first, err := RaiseWrite(t.Context(), config("first"), "")
			if err == nil || !strings.Contains(err.Error(), "OTSNoPermissionAccess") {
				t.Fatalf("%v", err)
			}
			second, err := RaiseWrite(t.Context(), config("second"), "")
			if refused := refusals > 1; (err != nil) != refused || !refused && unitsOf(t, a) != 500 {
				t.Errorf("%v, %d units", err, unitsOf(t, a))
			}
			for _, r := range []*RaisedWrite{first, second} {
				if _, err := r.Restore(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if unitsOf(t, a) != 100 {
				t.Errorf("%d units in the end", unitsOf(t, a))
			}
			nothingLeft(t)
		})
	}
}

func TestLoadsOfAJobRaiseToTheHighestThatOneAsksFor(t *testing.T) {
	w, a := raisable(t)
	shared := NewSharedLimits(Rates{}, 8)
	var raised []*RaisedWrite
	var said []string
	for _, step := range []struct{ ask, have int }{{0, 100}, {500, 500}, {300, 500}, {0, 500}, {700, 700}, {700, 700}} {
		cfg := w.config()
		cfg.Write.Rates.RaiseWrite, cfg.Shared = step.ask, shared
		cfg.Watch.OnRaise = func(line string) { said = append(said, line) }
		cfg.setDefaults()
		r, err := RaiseWrite(t.Context(), &cfg.Config, "")
		if err != nil || unitsOf(t, a) != step.have {
			t.Errorf("--raise-write %d: %v, %d units, want %d", step.ask, err, unitsOf(t, a), step.have)
		}
		raised = append(raised, r)
	}
	for i, r := range raised {
		if unitsOf(t, a) != 700 {
			t.Errorf("%d units before load %d of %d has ended", unitsOf(t, a), i, len(raised))
		}
		if _, err := r.Restore(t.Context()); err != nil {
			t.Error(err)
		}
	}
	text := strings.Join(said, "\n")
	if unitsOf(t, a) != 100 || strings.Count(text, "so --raise-write 300 raises nothing") != 1 || strings.Contains(text, "an earlier run") {
		t.Errorf("%d units; %s", unitsOf(t, a), text)
	}
	nothingLeft(t)
}

// Loads in several working folders of a machine see each other.
func TestASecondLoadThatRaisesInAnotherFolderIsRefused(t *testing.T) {
	w, a := raisable(t)
	locks := t.TempDir()
	config := func(units int) *Config {
		cfg := w.config()
		cfg.Write.Rates.RaiseWrite, cfg.Resume.LocksDir = units, locks
		cfg.setDefaults()
		return &cfg.Config
	}
	first, err := RaiseWrite(t.Context(), config(500), "")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	second, err := RaiseWrite(t.Context(), config(700), "")
	if err == nil || !strings.Contains(err.Error(), "--raise-write: one load at a time raises the throughput of table t: ") {
		t.Errorf("%v", err)
	}
	if _, err := second.Restore(t.Context()); err != nil || unitsOf(t, a) != 500 {
		t.Errorf("%v, %d units", err, unitsOf(t, a))
	}
	t.Chdir(here)
	if _, err := first.Restore(t.Context()); err != nil || unitsOf(t, a) != 100 {
		t.Errorf("%v, %d units", err, unitsOf(t, a))
	}
	third, err := RaiseWrite(t.Context(), config(700), "")
	if err != nil || unitsOf(t, a) != 700 {
		t.Errorf("%v, %d units", err, unitsOf(t, a))
	}
	if _, err := third.Restore(t.Context()); err != nil || unitsOf(t, a) != 100 {
		t.Errorf("%v, %d units", err, unitsOf(t, a))
	}
}

func TestALoadIntoSeveralTablesIsNotRaised(t *testing.T) {
	w, _ := raisable(t)
	cfg := w.config(w.file("in.csv", "id,v\na,1\n"))
	cfg.Target.Table, cfg.Write.Rates.RaiseWrite = "t_{v}", 500
	if _, err := cfg.run(context.Background()); err == nil || !strings.Contains(err.Error(), "rows go to several tables") {
		t.Errorf("%v", err)
	}
}
