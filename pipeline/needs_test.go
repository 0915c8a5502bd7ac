package pipeline

import (
	"context"
	"strings"
	"testing"

	"tsimport/engine/faults"
	"tsimport/table"
)

// TestAPermissionThatIsMissingShowsBeforeTheFirstRow denies each operation that a mode needs beside writing.
func TestAPermissionThatIsMissingShowsBeforeTheFirstRow(t *testing.T) {
	numbered := func(cfg *Config) {
		cfg.Target.Key = append(cfg.Target.Key, table.KeyColumn{Name: "no", Type: table.Integer, Auto: true})
	}
	for _, tt := range []struct {
		operation string
		set       func(*Config)
		template  string
	}{
		{"GetRow", func(cfg *Config) { cfg.Write.Condition = table.ExpectNotExist }, ""},
		{"GetRow", func(cfg *Config) { cfg.Write.Condition = table.ExpectNotExist }, "t_{n}"},
		{"GetRange", numbered, ""},
		{"DeleteRow", numbered, ""},
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
			r, err := Run(context.Background(), cfg)
			switch {
			case !denied && (err != nil || r.Written != 2):
				t.Errorf("%s%s: %v", tt.operation, tt.template, err)
			case denied && (err == nil || !strings.Contains(err.Error(), "ots:"+tt.operation) || written > 0):
				t.Errorf("%s%s denied: %d requests to write, %v", tt.operation, tt.template, written, err)
			}
		}
	}
}
