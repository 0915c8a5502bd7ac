package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

// sortedFile is a file of records sorted by key; some are refused, two of each ten by the service.
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

// sections makes a load follow a schedule of small sections.
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

// A run cannot be resumed with another schedule than its own: its records have other places.
func TestAResumedLoadNeedsItsSchedule(t *testing.T) {
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
		// A resumed load must not depend on its own choice.
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
