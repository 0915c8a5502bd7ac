package pipeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"tsimport/internal/exitcode"

	"tsimport/internal/table"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
)

// refused runs a load that must not begin, and returns why.
func (w *world) refused(cfg trial) string {
	w.t.Helper()
	cfg.onSend = func([]table.Ref) { w.t.Error("rows were sent") }
	r, err := cfg.run(context.Background())
	if err == nil || r != nil {
		w.t.Fatalf("report %v, error %v; want an error and none", r, err)
	}
	return err.Error()
}

// What cannot be continued is refused, with what to do about it, and begins again with --fresh.
func TestARunThatCannotBeResumedIsRefusedAndStartedOver(t *testing.T) {
	file := func(name, text string) func(*world, string) {
		return func(w *world, dir string) { must(w.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) }
	}
	for says, harm := range map[string]func(w *world, dir string){
		"table t was dropped, ":                 func(w *world, _ string) { must(w.t, w.admin().Drop("t")) },
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
			if text := w.refused(cfg); !strings.Contains(text, says) || !strings.Contains(text, "--fresh") {
				t.Errorf("error %s", text)
			}
			cfg.Resume.Look = false
			if r := w.load(cfg); r.State != StateFinished || r.Attempts != 1 || r.Written != 3 || len(w.rows()) != 3 {
				t.Errorf("started over: %+v", r)
			}
		})
	}
}

// A load may be killed when it has written the header of the returned keys, or a part of it, and no checkpoint yet.
func TestReturnedKeysWithoutAKeyAreWrittenAgain(t *testing.T) {
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

// When the newest checkpoint cannot be read, rows have been sent that the older one neither knew nor allowed.
func TestALoadResumesFromTheOlderCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := users(rand.New(rand.NewPCG(9, 9)), 400, 200)
	cfg := w.numbered(w.file("in.csv", text))
	cfg.Write.Concurrency, cfg.Write.BatchRows, cfg.allowance = 1, 5, 5
	cfg.pacer = func() pacer { return restless{} }
	cfg.Checkpoint.Every, cfg.Resume.Look = time.Millisecond, true
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	first := cfg
	var older []byte // this and the others are of the one that writes checkpoints
	knows := int64(0)
	dead := false
	first.onSave = func(s *checkpoint.Snapshot) (err error) {
		written := s.Counters["written"]
		if older == nil && written > 50 {
			older, err = s.Encode()
			knows = written
		}
		if dead = dead || older != nil && written > knows+50; dead {
			stop(&Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
			return errKilled
		}
		return err
	}
	if r, err := first.run(ctx); err != nil || r.State != StateInterrupted {
		t.Fatalf("%v, %v", r, err)
	}
	for name, content := range map[string][]byte{checkpoint.File: []byte("torn"), checkpoint.PrevFile: older} {
		must(t, os.WriteFile(filepath.Join(cfg.RunDir, name), content, 0o644))
	}
	r := w.load(cfg)
	w.wantNumbered(text, cfg)
	if !r.Resumed || r.Found < 50 {
		t.Errorf("%d rows were found, want those that were written behind the older checkpoint", r.Found)
	}
}

func TestTheMarkColumnStaysWhenALoadResumes(t *testing.T) {
	w := newWorld(t)
	cfg := w.numbered(w.file("in.csv", "user,what\na,b\nc\nd,e\n"))
	cfg = stopped(w, cfg)
	other := cfg
	other.Write.Marks.Column = "other"
	if text := w.refused(other); !strings.Contains(text, "--mark-column was _tsimport and is other now") {
		t.Errorf("error %s", text)
	}
	without := cfg
	without.Write.Marks.AtLeastOnce = true
	if text := w.refused(without); !strings.Contains(text, "--mark-column was _tsimport and is not given now") {
		t.Errorf("error %s", text)
	}
	w.load(cfg)
	if rows := w.rows(); len(rows) != 2 {
		t.Errorf("%v", rows)
	}
}

// What is to be done after a load can be interrupted too: the load is not begun again then.
func TestALoadThatFinishedCanBeRunAgainWhileItsCheckpointIsKept(t *testing.T) {
	for _, order := range []plan.Order{plan.LastWins, plan.OrderNone} {
		w := newWorld(t)
		cfg := w.config(w.file("in.csv", badCSV))
		cfg.Write.Condition, cfg.Write.Order = table.ExpectNotExist, order // whose rows would all be rejected
		cfg.Checkpoint.Keep, cfg.Resume.Look = true, true
		if r := w.load(cfg); r.State != StateFinished || r.Written != 3 || !checkpoint.Exists(cfg.RunDir) {
			t.Fatalf("%+v", r)
		}
		again := cfg
		again.Checkpoint.Keep = false
		again.onSend = func([]table.Ref) { t.Error("rows were sent again") }
		r := w.load(again)
		if r.State != StateFinished || !r.Resumed || r.Read != 4 || r.Written != 3 || r.Rejected != 1 || checkpoint.Exists(cfg.RunDir) {
			t.Errorf("%v: run again: %+v", order, r)
		}
		if kept := lines(t, filepath.Join(cfg.RunDir, rundir.ReasonsFile)); len(kept) != 1 {
			t.Errorf("rejects %q", kept)
		}
	}
}

// A run folder that cannot be looked for is not one that is not there.
func TestRunsThatCannotBeLookedForAreAnError(t *testing.T) {
	w := newWorld(t)
	t.Chdir(w.dir)
	must(t, os.WriteFile(rundir.Root, nil, 0o644))
	cfg := w.config(w.file("in.csv", badCSV))
	cfg.RunDir, cfg.Resume.Look = "", true
	if text := w.refused(cfg); !strings.Contains(text, "find an unfinished run") {
		t.Errorf("error %s", text)
	}
	if _, err := os.Stat(rundir.Root); errors.Is(err, os.ErrNotExist) {
		t.Error("the file is gone")
	}
}
