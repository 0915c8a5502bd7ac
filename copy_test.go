package tsimport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/engine/faults"
)

// copyOf is a copy of table s into table t of the world.
func (w *world) copyOf(t *testing.T) CopyRequest {
	return CopyRequest{
		Source: w.target(), From: "s", Target: w.target(), Table: "t",
		NewTable: NewTable{Create: true}, Rates: Rates{Settle: settle}, Running: Running{RunDir: filepath.Join(t.TempDir(), "run")},
	}
}

// source makes the table s of so many rows.
func (w *world) source(t *testing.T, rows int) {
	t.Helper()
	text := "id,n\n"
	for i := range rows {
		text += fmt.Sprintf("%d,%d\n", i, i)
	}
	file, run := input(t, text)
	_, err := w.load(Request{Table: "s", Mapping: Mapping{PK: []string{"id:integer"}}, NewTable: NewTable{Create: true}, Running: Running{RunDir: run}}, file)
	must(t, err)
}

func TestACopyThatCannotBeIsRefused(t *testing.T) {
	w := newWorld(t)
	r := w.copyOf(t)
	if s, err := Copy(t.Context(), r); s != nil || !errors.Is(err, ErrTableMissing) || !strings.Contains(err.Error(), "the source, table s,") {
		t.Errorf("no source: %v, %+v", err, s)
	}
	w.source(t, 10)
	r.Create = false
	if s, err := Copy(t.Context(), r); s != nil || !errors.Is(err, ErrTableMissing) || !strings.Contains(err.Error(), "table t ") {
		t.Errorf("no target: %v, %+v", err, s)
	}
	for text, change := range map[string]func(*CopyRequest){
		"source and target are the same table": func(r *CopyRequest) { r.Table = "s" },
		"From: table name":                     func(r *CopyRequest) { r.From = "{s}" },
		"Table: table name":                    func(r *CopyRequest) { r.Table = "" },
		"the source of the copy: no instance":  func(r *CopyRequest) { r.Source.Instance = "" },
		"Mode: Copy does not have":             func(r *CopyRequest) { r.Mode = "update" },
		"Type: Copy does not have":             func(r *CopyRequest) { r.Type = map[string]string{"n": "string"} },
		"Verify: Copy does not have":           func(r *CopyRequest) { r.Verify = true },
		"Where: ":                              func(r *CopyRequest) { r.Where = "n >" },
		"Filter n >: ":                         func(r *CopyRequest) { r.Filter = "n >" },
		`Versions "0"`:                         func(r *CopyRequest) { r.Versions = "0" },
		`Since "then"`:                         func(r *CopyRequest) { r.Since = "then" },
		"Exclude with Since":                   func(r *CopyRequest) { r.Since, r.Exclude = "2026-01-31T08:00:00Z", []string{"n"} },
		"MaxRCU -1":                            func(r *CopyRequest) { r.MaxRCU = -1 },
		"FromKey: ":                            func(r *CopyRequest) { r.FromKey = "x" },
		"FromKey 5 ToKey 5":                    func(r *CopyRequest) { r.FromKey, r.ToKey = "5", "5" },
		"Columns: a name is empty":             func(r *CopyRequest) { r.Columns = []string{""} },
		"Concurrency 5000: want":               func(r *CopyRequest) { r.Concurrency = 5000 },
	} {
		r := w.copyOf(t)
		t.Setenv("TABLESTORE_INSTANCE", "")
		change(&r)
		if s, err := Copy(t.Context(), r); s != nil || !errors.As(err, new(*UsageError)) || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%s: %v, %+v", text, err, s)
		}
		if _, err := os.Stat(r.RunDir); err == nil {
			t.Errorf("%s: it has a run folder", text)
		}
	}
}

func TestACopyThatIsInterruptedIsResumed(t *testing.T) {
	const rows = 3000
	w := newWorld(t)
	w.source(t, rows)
	ctx, stop := context.WithCancel(context.Background())
	r := w.copyOf(t)
	r.Concurrency = 1
	requests := 0
	w.plan.Change(func(operation string) bool { return operation == "BatchWriteRow" }, func(faults.Request) faults.Fault {
		if requests++; requests <= 20 {
			return faults.Fault{}
		}
		stop()
		return faults.Fault{Action: faults.Refuse, Code: "OTSServerBusy"}
	})
	s, err := Copy(ctx, r)
	if !errors.Is(err, ErrInterrupted) || !errors.Is(err, context.Canceled) || s.Written == 0 || s.Unfinished == 0 {
		t.Fatalf("interrupted: %v, %+v", err, s)
	}
	w.plan.Change(nil, nil)
	s, err = Copy(t.Context(), r)
	got, want := w.rows(1), map[string]string{}
	for i := range rows {
		want[fmt.Sprint(i)] = fmt.Sprintf("n=int64 %d", i)
	}
	if err != nil || s.Written < rows || s.Read != s.Written || s.Unfinished != 0 || !maps.Equal(got, want) {
		t.Errorf("resumed: %v, %+v, %d rows", err, s, len(got))
	}
	if text, err := os.ReadFile(filepath.Join(r.RunDir, "summary.json")); err != nil || !strings.Contains(string(text), `"attempts": 2`) {
		t.Errorf("resumed: %v\n%s", err, text)
	}
}
