package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
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

// passingFaults are faults that a later attempt need not meet.
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

// TestEveryRequestMayFailInEveryWay fails request 0, then 1, … in every transient way.
func TestEveryRequestMayFailInEveryWay(t *testing.T) {
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

// failsAt loads with request n failing. past means that the load had no request n.
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

// A row that the service neither accepts nor refuses is rejected, regardless of its batch, and the others are written.
func TestARowThatAlwaysFailsIsRejected(t *testing.T) {
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
				cfg.Lanes.Concurrency = 1 // a request is decided about right after its rows were seen
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

// While nothing at all is written, the service is down: that rejects no row, however often it fails.
func TestAnOutageRejectsNothing(t *testing.T) {
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

// A run that cannot be continued is refused with advice, and begins again with --fresh.
func TestARunThatCannotBeResumedIsRefusedAndStartedOver(t *testing.T) {
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

// A load may be killed after writing all or part of the header of the returned keys, before a checkpoint.
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

// If the newest checkpoint cannot be read, rows may have been sent that the older one neither knew nor allowed.
func TestALoadResumesFromTheOlderCheckpoint(t *testing.T) {
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
	var older []byte // this and the others are of the one that writes checkpoints
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

func TestTheMarkColumnStaysWhenALoadResumes(t *testing.T) {
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

// The work after a load can be interrupted too: the load is then not begun again.
func TestALoadThatFinishedCanBeRunAgainWhileItsCheckpointIsKept(t *testing.T) {
	for _, order := range []plan.Order{plan.LastWins, plan.OrderNone} {
		w := newWorld(t)
		cfg := w.config(w.file("in.csv", badCSV))
		cfg.Write.Condition, cfg.Write.Order = table.ExpectNotExist, order // whose rows would all be rejected
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

// A runs folder that cannot be searched does not count as missing.
func TestUnreadableRunsFolderIsAnError(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.dir)
	must(t, os.WriteFile(rundir.Root, nil, 0o644))
	cfg := w.config(w.file("in.csv", badCSV))
	cfg.RunDir, cfg.Resume.Look = "", true
	conformance.Contains(t, w.refused(cfg), "find an unfinished run", "error")
	_, err := os.Stat(rundir.Root)
	conformance.True(t, !errors.Is(err, os.ErrNotExist), "the file is gone")
}

// TestUnusableRunFileLosesNoRow replaces each file of a run with a folder, before the first attempt or after a kill.
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
					_, _ = killed.run(ctx) // it ends as it may
					done()
				}
				cfg.Checkpoint.Every = time.Second // it is tried again for a minute
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
