package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/pipeline/lanes"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source/sourcetest"
)

// fromRows makes a load take its rows from a source that is not a file, and returns what the table must hold then.
func (w *world) fromRows(rows *sourcetest.Rows) (trial, contents) {
	cfg := w.config(rows.Name)
	cfg.Read.Sources = rows
	cfg.Target.Key[0].Type = table.Integer
	want := contents{}
	for i, d := range rows.Data {
		if rows.Bad[int64(i)] != nil || rows.Fail > 0 && i >= rows.Fail {
			continue
		}
		cells := map[string]string{
			"double": fmt.Sprint(d[2].Double), "flag": fmt.Sprint(d[3].Int != 0), "bytes": fmt.Sprint(d[4].Bytes),
		}
		if d[1].Kind != record.Null {
			cells["text"] = string(d[1].Bytes)
		}
		want[fmt.Sprint(i)] = cells
	}
	return cfg, want
}

func TestALoadTakesRowsThatNeverWereText(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order plan.Order) {
		rows := sourcetest.NewRows("rows", 1500)
		rows.Bad = map[int64]*table.Reason{17: {Code: table.CodeRagged, Message: "broken"}}
		cfg, want := w.fromRows(rows)
		cfg.Write.Order = order
		r := w.load(cfg)
		w.wantRows(want)
		w.verifies(cfg, r)
		if r.Read != 1500 || r.Written != 1499 || r.Rejected != 1 {
			t.Errorf("%d read, %d written, %d rejected", r.Read, r.Written, r.Rejected)
		}
		kept, err := filepath.Glob(filepath.Join(cfg.RunDir, "rejects*.ndjson"))
		if err != nil || len(kept) != 1 {
			t.Fatalf("rejects: %v, %v", kept, err)
		}
		if text, err := os.ReadFile(kept[0]); err != nil || !strings.HasPrefix(string(text), `{"id":17,"text":"row 17",`) {
			t.Errorf("rejects: %s, %v", text, err)
		}
	})
}

// A source that breaks off has given what came before.
func TestASourceThatBreaksOffEndsTheLoadAfterItsRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows := sourcetest.NewRows("rows", 500)
	rows.Fail = 123
	cfg, want := w.fromRows(rows)
	r, err := cfg.run(context.Background())
	conformance.Refused(t, err, "read rows: it broke off after 123 rows", "the error")
	w.wantRows(want)
	if r.Read != 123 || r.Written != 123 || r.ExitCode != exitcode.Failed {
		t.Errorf("%d read, %d written, exit code %d", r.Read, r.Written, r.ExitCode)
	}
}

func TestALoadOfAnySourceIsResumed(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order plan.Order) {
		cfg, want := w.fromRows(sourcetest.NewRows("rows", 3000))
		cfg.Write.Order, cfg.Pacer = order, func() lanes.Pacer { return restless{} }
		cfg.Checkpoint.Every, cfg.Allowance, cfg.Resume.Look = 20*time.Millisecond, 100, true
		cfg.Lanes.BatchRows, cfg.Lanes.Concurrency = 50, 1 // onSend needs no lock
		base := w.killedAfter(cfg, 500)
		again := cfg.countFinal(base)
		r := w.load(cfg)
		w.wantRows(want)
		if *again > 0 || r.Read != 3000 || r.Written != 3000 || !r.Resumed {
			t.Errorf("%d final rows were sent again; %d read, %d written, resumed %t", *again, r.Read, r.Written, r.Resumed)
		}
	})
}

// A run is resumed with the source that it was begun with, not with another of the same name.
func TestASourceWithOtherContentIsNotResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows := sourcetest.NewRows("rows", 500)
	rows.Fail = 100
	cfg, _ := w.fromRows(rows)
	cfg.Resume.Look = true
	if _, err := cfg.run(context.Background()); err == nil {
		t.Fatal("the source did not break off")
	}
	other := sourcetest.NewRows("rows", 500)
	other.Data[3][2].Double = 5
	cfg.Read.Sources = other
	_, err := cfg.run(context.Background())
	conformance.Refused(t, err, "content of rows", "resumed with other content")
}
