package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
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

// The first process has looked for a run and found none, but has not yet created its own folder.
func TestSameLoadIsLockedDuringPlanning(t *testing.T) {
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
			r := w.load(first)
			conformance.True(t, r.Written == 3 && asked, "%+v", r)
			conformance.Equal(t, w.load(second).Written, 3, "later")
			left, err := os.ReadDir(first.Resume.LocksDir)
			conformance.True(t, os.IsNotExist(err), "left: %v, %v", left, err)
		})
	}
}

func TestLoadThatCannotBeginLeavesNoFolders(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.dir)
	cfg := w.config(w.file("in.csv", badCSV))
	cfg.Resume.Look = true
	cfg.Target.Create = false
	for _, cfg.RunDir = range []string{"", "a/b"} {
		_, err := cfg.run(context.Background())
		conformance.MustTrue(t, err != nil, "a missing table is loaded into")
	}
	left, err := os.ReadDir(".")
	conformance.True(t, err == nil && len(left) == 1, "left: %v, %v", left, err)
}

// madeRun creates the folder of a run that loads in.csv into table t of the target test.
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

// The clock may have been set back after a run began.
func TestUnfinishedRunIsFoundDespiteClockChanges(t *testing.T) {
	t.Chdir(t.TempDir())
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	identity := progress.Identify("test", "t", "in.csv")
	madeRun(t, "finished", noon, false)
	want := madeRun(t, "unfinished", noon.Add(-time.Hour), true)
	got, err := keep.Unfinished(identity)
	conformance.True(t, err == nil && got == want, "%q, %v", got, err)
	other := madeRun(t, "other", noon.Add(-time.Minute), true)
	var usage *plan.UsageError
	if got, err := keep.Unfinished(identity); !errors.As(err, &usage) || !strings.Contains(usage.Message, want) ||
		!strings.Contains(usage.Message, other) {
		t.Errorf("of two: %q, %v", got, err)
	}
	got, err = keep.Unfinished("of another load")
	conformance.True(t, err == nil && got == "", "%q, %v", got, err)
}

func TestReplacedRunIsNotResumed(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.dir)
	cfg := w.config(w.file("in.csv", badCSV))
	cfg.RunDir = ""
	cfg.Resume.Look = true
	cfg.Limits.MaxErrors = ledger.MaxErrors{Rows: 0}
	first := w.load(cfg)
	conformance.MustEqual(t, first.State, StateErrorLimit, "%+v", first)
	cfg.Resume.Look = false
	second := w.load(cfg)
	job, err := checkpoint.ReadJob(first.RunDir)
	conformance.True(t, err == nil && job.ReplacedBy == second.RunDir, "%+v, %v", job, err)
	cfg.Resume.Look = true
	cfg.Limits.MaxErrors = ledger.MaxErrors{Rows: -1}
	if third := w.load(cfg); !third.Resumed || third.RunDir != second.RunDir || third.State != StateFinished {
		t.Errorf("resumed %s, want %s: %+v", third.RunDir, second.RunDir, third)
	}
	if fourth := w.load(cfg); fourth.Resumed || slices.Contains([]string{first.RunDir, second.RunDir}, fourth.RunDir) {
		t.Errorf("another load of the same: %+v", fourth)
	}
}

// A load of a killed process is taken over, with default time-outs. Only if that process sent rows is there a wait.
func TestOnlyRequestsOfPredecessorAreWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent, fresh bool // the predecessor sent rows; the successor starts over
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
			store := conformance.Try(jobdir.Open(t.Context(), t.TempDir(), jobdir.Options{})).Must(t)
			booted, in := time.Now(), w.file("in.csv", "id,a\nx,1\ny,2\n")
			ends := c.sent && c.end == 0
			hold := func() (*jobdir.Lease, Config) {
				l := conformance.Try(jobdir.Acquire(t.Context(), store, jobdir.LeaseOptions{Wait: 2 * jobdir.Term,
					Clock: func() time.Duration { return time.Since(booted) }})).Must(t)
				cfg := w.config(in)
				cfg.Write.Settle, cfg.Resume.Look = 0, true
				cfg.Checkpoint.State, cfg.Watch.Progress, cfg.Watch.Monitor = jobdir.NewMirror(store, l), new(ledger.Progress),
					NewMonitor()
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
				_, err := run(ctx, cfg, &h)
				conformance.MustEqual(t, (err == nil), ends, "the predecessor: %v", err)
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
			conformance.Must(t, conformance.ErrorOf(run(t.Context(), cfg, &h)))
			end := time.Since(began)
			near := func(got, want time.Duration) bool { return got >= want && got < want+10*time.Second }
			conformance.True(t, near(first, c.first) && near(end, c.end),
				"the first row was sent after %v, and the load has ended after %v; want %v and %v", first, end, c.first, c.end)
			s := <-said
			conformance.True(t, (s != nil) == (c.end > 100*time.Second) &&
				(s == nil || s.Why != "" && s.Until.Sub(began).Round(time.Second) == c.end), "the state says that it waits: %+v", s)
			conformance.Equal(t, l.Unsettled, false, "who holds the lease next is told to wait")
			conformance.Equal(t, l.Release(), nil, "error")
			w.wantRows(contents{"x": {"a": "1"}, "y": {"a": "2"}})
		}))
	}
}

func attemptAt(cfg Config, before *checkpoint.Snapshot) *attempt {
	cfg.setDefaults()
	key := []table.KeyColumn{{Name: "id", Type: table.String}, {Name: "n", Type: table.Integer}}
	return &attempt{cfg: &cfg, hooks: new(hooks), started: time.Unix(2e9, 0),
		service: service{traffic: new(client.Traffic)}, counts: new(ledger.Counted),
		from:    &keep.Point{Load: cfg.kept(), Job: &checkpoint.Job{Run: "run"}, Snapshot: before},
		planned: &plan.Plan{Schema: &table.Schema{Table: "t", Key: key}, Bytes: 77, Mark: "m", Request: cfg.Request()}}
}

func TestResumeIsReportedBeforePlan(t *testing.T) {
	before := &checkpoint.Snapshot{About: checkpoint.About{Attempt: 2, Begun: time.Unix(1e9, 0),
		Counters: map[string]int64{"read": 10, "written": 4, "rejected": 1, "superseded": 2, "archived": 1,
			"bytes_read": 9, "bytes_sent": 7}}}
	for name, snapshot := range map[string]*checkpoint.Snapshot{"first": nil, "resumed": before} {
		t.Run(name, func(t *testing.T) {
			var told []string
			var resumed keep.Resumed
			cfg := Config{RunDir: "run"}
			cfg.Resume.OnResume = func(r keep.Resumed) { told, resumed = append(told, "resume"), r }
			cfg.Watch.OnPlan = func(*plan.Plan) { told = append(told, "plan") }
			a := attemptAt(cfg, snapshot)
			a.beginCounts()
			a.announce()
			conformance.Equal(t, a.makeTable(), nil, "error")
			want, steps, attempts := keep.Resumed{}, []string{"plan"}, 1
			if snapshot != nil {
				want = keep.Resumed{RunDir: "run", Attempt: 3, Final: 8, Read: 10, Written: 4, BytesRead: 9, Since: before.Begun}
				steps, attempts = []string{"resume", "plan"}, 3
			}
			conformance.True(t, slices.Equal(told, steps) && reflect.DeepEqual(resumed, want) && a.counts.Attempts == attempts &&
				a.cfg.Watch.Progress.BytesTotal.Load() == 77 && a.service.traffic.BytesSent.Load() == a.counts.BytesSent &&
				(a.counts.BytesSent == 7) == (snapshot != nil),
				"told %q, %+v; %d attempts of %d bytes", told, resumed, a.counts.Attempts, a.cfg.Watch.Progress.BytesTotal.Load())
		})
	}
}

func TestOnlyUnrepeatableRowsAreAnnotated(t *testing.T) {
	mark := markBytes("m")
	for name, tt := range map[string]struct {
		set              func(*Config, *plan.Plan)
		stamps, numbered bool
		rowBytes         int
		column           string
	}{
		"rows with keys of the input": {},
		"a dry run": {set: func(c *Config,
			p *plan.Plan) {
			c.DryRun, p.Restamp, p.Schema.Numbered = true, true, 1
		}},
		"updates": {set: func(_ *Config, p *plan.Plan) { p.Restamp = true }, stamps: true},
		"numbered rows": {set: func(_ *Config, p *plan.Plan) { p.Schema.Numbered = 1 }, numbered: true,
			rowBytes: mark, column: "m"},
		"numbered, without marks": {set: func(_ *Config, p *plan.Plan) { p.Schema.Numbered, p.Mark = 1, "" },
			numbered: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := attemptAt(Config{}, nil)
			if tt.set != nil {
				tt.set(a.cfg, a.planned)
			}
			x := a.newAnnotations()
			conformance.True(t, x.Size != nil && (x.Stamps != nil) == tt.stamps && (x.rowExtra != nil) == tt.stamps &&
				x.Increments == nil && (x.AutoIncrement != nil) == tt.numbered, "%+v", x)
			conformance.Equal(t, x.rowBytes, tt.rowBytes, "row bytes")
			conformance.Equal(t, a.counts.MarkColumn, tt.column, "mark column")
		})
	}
	a := attemptAt(Config{Write: Write{Mode: table.Increment}}, nil)
	x := a.newAnnotations()
	conformance.True(t, x.Increments != nil && x.AutoIncrement == nil &&
		x.rowBytes == mark+x.Increments.ConditionBytes() && a.counts.MarkColumn == "m",
		"increments: %+v, mark column %q", x, a.counts.MarkColumn)
}

// A search for rows ends at the first row older than the load, so if that time were too late, rows would be missed.
func TestMarksAreNotOlderThanLoad(t *testing.T) {
	now := time.Now()
	begun := now.Add(-24 * time.Hour)
	for name, tt := range map[string]struct {
		before *checkpoint.Snapshot
		want   time.Time
	}{
		"a first attempt at an unknown time of the service": {nil, now.Add(-clockUnknown)},
		"the first attempt has kept it": {&checkpoint.Snapshot{About: checkpoint.About{Begun: now,
			Counters: map[string]int64{marksBegunAt: begun.UnixMilli()}}}, begun},
		"the first attempt was of an earlier version": {&checkpoint.Snapshot{About: checkpoint.About{Begun: begun}},
			begun.Add(-clockUnknown)},
	} {
		a := attemptAt(Config{}, tt.before)
		ms := marksBegun(a.service.clock(), a.from)
		conformance.True(t, ms >= tt.want.UnixMilli() && ms <= tt.want.Add(time.Minute).UnixMilli(),
			"%s: %v, want %v", name, time.UnixMilli(ms), tt.want)
	}
}

// TestEndOfLoadSetsStateAndError has, in each line, the kind of a load, its limit, its error and, as JSON, its counts.
func TestEndOfLoadSetsStateAndError(t *testing.T) {
	stopped := errors.New("the disk is full")
	errs := map[string]error{"limit": errors.Join(ledger.ErrLimit, stopped), "full": stopped,
		"stopped": &Interrupted{Signal: "SIGTERM", ExitCode: exitcode.Terminated}}
	conformance.Golden(t, "ends.golden", func(input string) string {
		parts, r := strings.Fields(input), new(Report)
		must(t, json.Unmarshal([]byte(parts[3]), &r.Counted))
		limits := Limits{MaxErrors: conformance.Try(ledger.ParseMaxErrors(parts[1])).Must(t), SetAside: parts[0] == "aside"}
		err := r.conclude(&Config{DryRun: parts[0] == "dry", Limits: limits}, errs[parts[2]])
		return fmt.Sprintf("%s, exit %d, %v", r.State, r.ExitCode, err)
	})
}

// The error limit counts the rejects of all attempts, but not seams.
func TestErrorLimitCountsRejectsOfAllAttempts(t *testing.T) {
	before := new(checkpoint.Snapshot)
	before.Counters = map[string]int64{"read": 100, "written": 90, "rejected": 10, "seams": 3}
	r := new(Report)
	r.Resume(before)
	r.Read, r.Rejected, r.Seams = r.Read+11, r.Rejected+3, r.Seams+2
	for over := range int64(2) { // 8 of 111
		conformance.Equal(t, r.OverLimit(ledger.MaxErrors{Rows: 8 - over}, false), over == 1, "%d rows: too many", 8-over)
		conformance.Equal(t, r.OverLimit(ledger.MaxErrors{Share: true, Percent: float64(8 - over)}, true), (over == 1),
			"%d %%: over the limit", 8-over)
	}
}

// A resumed load does not infer types again from another sample.
func TestResumedLoadKeepsInferredTypes(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.file("a.jsonl", strings.Repeat(`{"id":"a","mix":1,"f":1.5}`+"\n", 50)+`{"id":"b","mix":"x","f":1}`+
		"\n"), w.file("b.csv", "id,mix,f\nc,2,2.50\n,3,1.5\n"))
	cfg = stopped(w, cfg)
	job := conformance.Try(checkpoint.ReadJob(cfg.RunDir)).Must(t)
	var r plan.Request
	(&keep.Point{Job: new(checkpoint.Job)}).Settings(&r, job)
	want := map[string]plan.Inferred{"id": {Type: table.String, Own: table.String, Asked: true},
		"mix": {Type: table.Any, Own: table.Integer}, "f": {Type: table.Double, Own: table.Double, Zeros: true}}
	conformance.Equal(t, gocmp.Diff(want, r.Inferred), "", "(-want +got)")
}

// Without the wait, a late request with old content could overwrite new content.
func TestStartedOverLoadWaitsForPreviousAttempt(t *testing.T) {
	now := time.Now()
	before := &attempt{cfg: &Config{}, from: &keep.Point{Hold: now.Add(time.Second), SuspectUntil: now.Add(time.Minute)}}
	cfg := before.again(Config{Resume: keep.Resume{Look: true}}, errKilled)
	after := &attempt{cfg: &cfg, started: now}
	cfg.DryRun = true
	must(t, after.findResumePoint(t.Context()))
	got := after.from.Hold
	conformance.True(t, got.Equal(now.Add(time.Minute)) && !cfg.Resume.Look, "held until %v, now %v", got, now)
}

func TestRisingKeyIsDetectedInNumbersAndDates(t *testing.T) {
	for name, c := range map[string]struct {
		of   table.Type
		key  func(i int) table.Value
		want bool
	}{
		"numbers in turn": {table.Integer,
			func(i int) table.Value { return table.Value{Type: table.Integer, Int: int64(i - 20)} }, true},
		"numbers in a mixup": {table.Integer,
			func(i int) table.Value { return table.Value{Type: table.Integer, Int: int64(i * 37 % 41)} }, false},
		"one number": {table.Integer, func(int) table.Value { return table.Value{Type: table.Integer} }, false},
		"times": {table.String, func(i int) table.Value {
			return table.Value{Type: table.String, Bytes: fmt.Appendf(nil, "2026-01-02 10:%02d", i)}
		}, true},
		"sorted texts": {table.String, func(i int) table.Value {
			return table.Value{Type: table.String, Bytes: fmt.Appendf(nil, "card-%05d", i)}
		}, false},
	} {
		r := rising{of: c.of}
		for i := range 40 {
			r.add(table.AppendKey(nil, c.key(i)))
		}
		conformance.Equal(t, r.is(), c.want, "%s: %d of %d rose", name, r.rose, r.rows)
	}
	few := rising{of: table.Integer}
	few.add(table.AppendKey(nil, table.Value{Type: table.Integer, Int: 1}))
	conformance.Equal(t, few.is(), false, "one row rises")
}
