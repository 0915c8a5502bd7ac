package tablesync

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/reader/tablescan"
)

// settling is a sync of a table with another one. It calls do before it reads rows of the table again.
func settling(t *testing.T, w *world, do func()) (cfg Config, put func(table, id string, n int)) {
	t.Helper()
	at := time.Now().UnixMilli()
	must(t, w.Admin.Create("s", []table.KeyColumn{stringID}, tabletest.Plain))
	of := conformance.Try(w.Admin.Describe("s")).Must(t)
	cfg = w.config("s")
	cfg.Load.Read.Sources = tablescan.New(tablescan.Config{Client: w.SDK, Table: of})
	cfg.SettleFor = 20 * time.Millisecond
	busy := false
	w.faults.Only = func(op string) bool { return op == "BatchGetRow" }
	w.faults.Decide = func(faults.Request) faults.Fault {
		if !busy {
			busy = true
			do()
			busy = false
		}
		return faults.Fault{}
	}
	return cfg, func(table, id string, n int) {
		must(t, tabletest.Do(w.SDK, tabletest.Put(table, tabletest.Key("id", id), tabletest.Cells{"n": int64(n)}, at)))
	}
}

func TestSettledRowsAreNotWritten(t *testing.T) {
	for name, plan := range map[string]bool{"plan": true, "sync": false} {
		t.Run(name, func(t *testing.T) {
			w := filled(t)
			var put func(table, id string, n int)
			cfg, put := settling(t, w, func() {
				put("t", "late", 1)
				w.remove("gone")
				put("s", "wrong", 5) // nobody sees it: the source was read
			})
			for _, id := range []string{"equal", "late", "wrong", "lacking"} {
				put("s", id, 1)
			}
			put("t", "equal", 1)
			put("t", "gone", 1)
			put("t", "wrong", 2)
			put("t", "surplus", 1)
			if plan {
				s := conformance.Try(Look(context.Background(), cfg)).Must(t)
				wantCounts(t, s, "equal 2, missing 1, different 1, surplus 1")
				conformance.True(t, s.Puts == 2 && s.Deletes == 1 && s.Costs.PutCU == 2 && s.Costs.DeleteCU == 1, "%+v", s)
				return
			}
			s := w.sync(cfg)
			wantCounts(t, s, "equal 2, missing 1, different 1, surplus 1, written 2, deleted 1")
			of := s.Settled
			conformance.True(t, of != nil && of.Differed == 5 && of.Settled == 2 && of.Remain == 3 && of.Rounds == 1, "%+v", of)
			w.wantRows("equal n=1", "lacking n=1", "late n=1", "wrong n=1")
		})
	}
}

func TestFullySettledSyncWritesNothing(t *testing.T) {
	w := filled(t)
	var put func(table, id string, n int)
	cfg, put := settling(t, w, func() { put("t", "late", 1) })
	put("s", "late", 1)
	wantCounts(t, w.sync(cfg), "equal 1")
	w.wantRows("late n=1")
}

func TestConditionUsesTheRowReadAgain(t *testing.T) {
	w := filled(t)
	var put func(table, id string, n int)
	cfg, put := settling(t, w, func() { put("t", "a", 3) })
	cfg.Delete, cfg.IfUnchanged = false, true
	put("s", "a", 1)
	put("t", "a", 2)
	s := w.sync(cfg)
	conformance.Equal(t, s.ConditionFailed, 0, "%+v", s)
	w.wantRows("a n=1")
}

// TestSyncInterruptedWhileSettlingComparesAgain: the files of its first comparison are not written.
func TestSyncInterruptedWhileSettlingComparesAgain(t *testing.T) {
	w := filled(t)
	drain, stop := context.WithCancelCause(context.Background())
	why := &pipeline.Interrupted{Signal: "test", ExitCode: exitcode.Interrupted}
	cfg, put := settling(t, w, func() {})
	put("s", "a", 1)
	put("t", "surplus", 1)
	first := cfg
	first.Load.Drain, first.SettleFor = drain, time.Hour
	time.AfterFunc(100*time.Millisecond, func() { stop(why) })
	s, err := Run(context.Background(), first)
	conformance.MustTrue(t, s == nil && errors.Is(err, why), "%+v, %v", s, err)
	w.wantRows("surplus n=1")
	put("t", "a", 1)
	s = w.sync(cfg)
	wantCounts(t, s, "equal 1, surplus 1, deleted 1")
	conformance.True(t, !s.Resumed && strings.Contains(strings.Join(w.said, "\n"), "its comparison did not end"),
		"%+v, said %q", s, w.said)
	w.wantRows("a n=1")
}
