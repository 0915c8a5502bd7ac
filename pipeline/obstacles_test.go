package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/rundir"
)

// TestAFileOfTheRunThatCannotBeUsedCostsNoRow has a folder in the place of each file of a run, which can be neither read nor written nor
// replaced, before the first attempt or when one was killed. The attempt may fail; if it ends well, and when the next one has, nothing is lost.
func TestAFileOfTheRunThatCannotBeUsedCostsNoRow(t *testing.T) {
	for _, name := range []string{
		rundir.SummaryFile, rundir.ReasonsFile, rundir.PageFile, rundir.DoubtsFile, rundir.BlocksFile, rundir.RejectIndexFile, rundir.LockFile,
		rundir.RejectsFile(0, ""), checkpoint.File, checkpoint.PrevFile, checkpoint.JobFile, checkpoint.OrderFile,
	} {
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
				cfg.Write.BatchRows, cfg.Write.Rates.MaxRows = 20, 2000
				if begun {
					killAtSave(cfg, 3)
				}
				cfg.Checkpoint.Every = time.Second // it is tried again for a minute
				path := filepath.Join(cfg.RunDir, name)
				before, missing := os.ReadFile(path)
				must(t, os.RemoveAll(path))
				must(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o755))
				r, err := cfg.run(context.Background())
				if r != nil && r.balance() != nil {
					t.Error(r.balance())
				}
				if err != nil {
					must(t, os.RemoveAll(path))
					if missing == nil {
						must(t, os.WriteFile(path, before, 0o600))
					}
					r = w.load(cfg)
				}
				w.wantRows(want)
				if r.State != StateFinished || r.Read != 400 || r.Rejected != int64(rejected) || r.Written+r.Superseded != int64(len(want)) {
					t.Errorf("%s: %d read, %d rejected, %d written", r.State, r.Read, r.Rejected, r.Written)
				}
				for file, want := range map[string]int{rundir.ReasonsFile: rejected, rundir.RejectsFile(0, ""): 1 + rejected} {
					if kept := lines(t, filepath.Join(cfg.RunDir, file)); len(kept) != want {
						t.Errorf("%s has %d lines of %d", file, len(kept), want)
					}
				}
			}))
		}
	}
}

// killAtSave runs an attempt that is killed at a checkpoint, unless the load ends before.
func killAtSave(cfg trial, at int64) {
	ctx, kill := context.WithCancelCause(context.Background())
	defer kill(nil)
	var saves atomic.Int64
	cfg.onSave = func(*checkpoint.Snapshot) error {
		if saves.Add(1) >= at {
			kill(errKilled)
			return errKilled
		}
		return nil
	}
	_, _ = cfg.run(ctx) // it ends as it may
}
