package pipeline

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

// meanwhile calls do once, when the first request is sent.
type meanwhile struct {
	http.RoundTripper
	do func()
}

func (m *meanwhile) RoundTrip(r *http.Request) (*http.Response, error) {
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return m.RoundTripper.RoundTrip(r)
}

// The first process has looked for a run and found none; it has not made its folder yet.
func TestTheSameLoadIsNotBegunWhileAnotherProcessLooksAtItsInputs(t *testing.T) {
	for name, change := range map[string]func(first, second *trial){
		"same folder":        func(first, second *trial) {},
		"with --run-dir":     func(first, second *trial) { first.RunDir, second.RunDir = "run", "run" },
		"with --fresh":       func(first, second *trial) { second.Resume.Look = false },
		"another folder":     func(first, second *trial) { second.RunDir = "elsewhere" },
		"when it is planned": func(first, second *trial) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			t.Chdir(w.dir)
			first := w.config(w.file("in.csv", badCSV))
			first.RunDir, first.Resume.Look, first.Resume.LocksDir = "", true, filepath.Join(w.dir, "locks")
			second := first
			change(&first, &second)
			asked := false
			ask := func() {
				asked = true
				r, err := second.run(context.Background())
				if held := new(rundir.HeldError); !errors.As(err, &held) || r != nil || held.By.PID != os.Getpid() {
					t.Errorf("report %v, error %v; want one that names this process", r, err)
				}
			}
			if first.Target.Client.Transport = (&meanwhile{w.server.Transport(), ask}); name == "when it is planned" {
				first.Target.Client.Transport, first.Watch.OnPlan = w.server.Transport(), func(*plan.Plan) { ask() }
			}
			if r := w.load(first); r.Written != 3 || !asked {
				t.Errorf("%+v", r)
			}
			conformance.Equal(t, w.load(second).Written, 3, "later")
			if left, err := os.ReadDir(first.Resume.LocksDir); !os.IsNotExist(err) {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func TestALoadThatCannotBeginLeavesNoFolders(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.dir)
	cfg := w.config(w.file("in.csv", badCSV))
	cfg.Resume.Look = true
	cfg.Target.Create = false
	for _, cfg.RunDir = range []string{"", "a/b"} {
		if _, err := cfg.run(context.Background()); err == nil {
			t.Fatal("a missing table is loaded into")
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// madeRun makes a run of in.csv into table t of the target test.
func madeRun(t *testing.T, name string, started time.Time, unfinished bool) string {
	t.Helper()
	folder := filepath.Join(rundir.Root, name)
	must(t, os.MkdirAll(folder, 0o755))
	j := &checkpoint.Job{Identity: progress.Identify("test", "t", "in.csv"), Started: started}
	must(t, j.Write(folder))
	if unfinished {
		encoded, err := (&checkpoint.Snapshot{State: checkpoint.State{Pieces: []checkpoint.Piece{{}}}}).Encode()
		must(t, err)
		must(t, checkpoint.Write(folder, encoded))
	}
	return folder
}

// The clock was set back between the two.
func TestTheUnfinishedRunIsFoundForAnyClock(t *testing.T) {
	t.Chdir(t.TempDir())
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	identity := progress.Identify("test", "t", "in.csv")
	madeRun(t, "finished", noon, false)
	want := madeRun(t, "unfinished", noon.Add(-time.Hour), true)
	if got, err := keep.Unfinished(identity); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	other := madeRun(t, "other", noon.Add(-time.Minute), true)
	var usage *plan.UsageError
	if got, err := keep.Unfinished(identity); !errors.As(err, &usage) || !strings.Contains(usage.Message, want) || !strings.Contains(usage.Message, other) {
		t.Errorf("of two: %q, %v", got, err)
	}
	if got, err := keep.Unfinished("of another load"); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestARunThatIsStartedOverIsNotResumedLater(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.dir)
	cfg := w.config(w.file("in.csv", badCSV))
	cfg.RunDir = ""
	cfg.Resume.Look = true
	cfg.Limits.MaxErrors = ledger.MaxErrors{Rows: 0}
	first := w.load(cfg)
	if first.State != StateErrorLimit {
		t.Fatalf("%+v", first)
	}
	cfg.Resume.Look = false
	second := w.load(cfg)
	if job, err := checkpoint.ReadJob(first.RunDir); err != nil || job.ReplacedBy != second.RunDir {
		t.Errorf("%+v, %v", job, err)
	}
	cfg.Resume.Look = true
	cfg.Limits.MaxErrors = ledger.MaxErrors{Rows: -1}
	if third := w.load(cfg); !third.Resumed || third.RunDir != second.RunDir || third.State != StateFinished {
		t.Errorf("resumed %s, want %s: %+v", third.RunDir, second.RunDir, third)
	}
	if fourth := w.load(cfg); fourth.Resumed || slices.Contains([]string{first.RunDir, second.RunDir}, fourth.RunDir) {
		t.Errorf("another load of the same: %+v", fourth)
	}
}

// TestOnlyWhatAPredecessorMayHaveSentIsWaitedFor takes loads over from processes that were killed, with the time-outs of a user who gives none.
func TestOnlyWhatAPredecessorMayHaveSentIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent, fresh bool // by the predecessor; the successor starts over
		first, end  time.Duration
	}{
		"no checkpoint":                 {false, false, 0, 0},
		"no checkpoint, and --fresh":    {false, true, 0, 0},
		"a checkpoint":                  {true, false, 0, 330 * time.Second},
		"a checkpoint, and given back":  {true, false, 0, 30 * time.Second},
		"a checkpoint, and --fresh":     {true, true, 330 * time.Second, 330 * time.Second},
		"an end, and then --fresh":      {true, true, 0, 0},
		"an end, and then another load": {true, false, 0, 0},
	} {
		t.Run(name, virtual(func(t *testing.T, w *world) {
			store, err := jobdir.Open(t.Context(), t.TempDir(), jobdir.Options{})
			must(t, err)
			booted, in := time.Now(), w.file("in.csv", "id,a\nx,1\ny,2\n")
			ends := c.sent && c.end == 0
			hold := func() (*jobdir.Lease, Config) {
				l, err := jobdir.Acquire(t.Context(), store, jobdir.LeaseOptions{Wait: 2 * jobdir.Term, Clock: func() time.Duration { return time.Since(booted) }})
				must(t, err)
				cfg := w.config(in)
				cfg.Write.Settle, cfg.Resume.Look = 0, true
				cfg.Checkpoint.State, cfg.Watch.Progress, cfg.Watch.Monitor = jobdir.NewMirror(store, l), new(ledger.Progress), NewMonitor()
				return l, cfg.Config
			}
			killed, cfg := hold()
			if c.sent {
				ctx, kill := context.WithCancel(t.Context())
				h := hooks{processors: idle, onSend: func([]table.Ref) {
					if !ends {
						kill()
					}
				}}
				if _, err := run(ctx, cfg, &h); (err == nil) != ends {
					t.Fatalf("the predecessor: %v", err)
				}
				kill()
			}
			if strings.HasSuffix(name, "given back") {
				must(t, killed.Release())
			}
			killed.Abandon()
			l, cfg := hold()
			defer l.Abandon()
			cfg.Resume.Look = !c.fresh
			began := time.Now()
			var first time.Duration
			h := hooks{processors: idle, onSend: func([]table.Ref) { first = time.Since(began) }}
			said := make(chan *ledger.Wait, 1)
			time.AfterFunc(100*time.Second, func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				s, err := cfg.Watch.Monitor.State(ctx)
				if err != nil {
					close(said)
					return
				}
				said <- s.Waiting
			})
			if _, err := run(t.Context(), cfg, &h); err != nil {
				t.Fatal(err)
			}
			end := time.Since(began)
			if near := func(got, want time.Duration) bool { return got >= want && got < want+10*time.Second }; !near(first, c.first) || !near(end, c.end) {
				t.Errorf("the first row was sent after %v, and the load has ended after %v; want %v and %v", first, end, c.first, c.end)
			}
			if s := <-said; (s != nil) != (c.end > 100*time.Second) || s != nil && (s.Why == "" || s.Until.Sub(began).Round(time.Second) != c.end) {
				t.Errorf("the state says that it waits: %+v", s)
			}
			if l.Unsettled {
				t.Error("who holds the lease next is told to wait")
			}
			conformance.Equal(t, l.Release(), nil, "error")
			w.wantRows(contents{"x": {"a": "1"}, "y": {"a": "2"}})
		}))
	}
}
