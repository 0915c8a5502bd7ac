package pipeline

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"tsimport/engine/faults"
	"tsimport/internal/table"
)

// TestAPermissionThatIsMissingShowsBeforeTheFirstRow denies each operation that a mode needs beside writing.
func TestAPermissionThatIsMissingShowsBeforeTheFirstRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		numbered := func(cfg *trial) {
			cfg.Target.Key = append(cfg.Target.Key, table.KeyColumn{Name: "no", Type: table.Integer, Auto: true})
		}
		for _, tt := range []struct {
			operation string
			set       func(*trial)
			template  string
		}{
			{"GetRow", func(cfg *trial) { cfg.Write.Condition = table.ExpectNotExist }, ""},
			{"GetRow", func(cfg *trial) { cfg.Write.Condition = table.ExpectNotExist }, "t_{n}"},
			{"GetRange", numbered, ""},
			{"DeleteRow", numbered, ""},
			{"BatchGetRow", func(cfg *trial) { cfg.Write.Mode = table.Increment }, ""},
		} {
			for _, denied := range []bool{true, false} {
				w := newWorld(t)
				w.template = tt.template
				written := 0
				w.plan.Only = func(op string) bool {
					if op == "BatchWriteRow" {
						written++
					}
					return op == tt.operation
				}
				if denied {
					w.plan.Decide = func(faults.Request) faults.Fault {
						return faults.Fault{Action: faults.Refuse, Code: "OTSNoPermissionAccess"}
					}
				}
				cfg := w.config(w.file("in.csv", "id,n\na,1\nb,2\n"))
				cfg.Write.Concurrency = 1
				tt.set(&cfg)
				r, err := cfg.run(context.Background())
				switch {
				case !denied && (err != nil || r.Written != 2):
					t.Errorf("%s%s: %v", tt.operation, tt.template, err)
				case denied && (err == nil || !strings.Contains(err.Error(), "ots:"+tt.operation) || written > 0):
					t.Errorf("%s%s denied: %d requests to write, %v", tt.operation, tt.template, written, err)
				}
			}
		}
	})
}

// A rotation of keys may have one request of many refused.
func TestAStrayRefusalDoesNotEndALoad(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.fail(faults.Fault{Action: faults.Refuse, Code: "OTSAuthFailed"}, func(r faults.Request) bool { return r.N == 2 })
		cfg := w.config(w.file("in.csv", "id,n\na,1\nb,2\nc,3\nd,4\ne,5\n"))
		cfg.Write.BatchRows, cfg.Write.Concurrency = 1, 1
		if r := w.load(cfg); r.Written != 5 || len(w.rows()) != 5 {
			t.Errorf("%+v", r.ReportCounts)
		}
	})
}
