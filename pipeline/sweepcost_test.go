package pipeline

import (
	"sync/atomic"
	"testing"

	"tsimport/engine/faults"
)

// The last look for surplus copies costs no more than it must: a row that was found where the answer was lost has one copy and
// is left out, and a table of many keys is read once.
func TestTheSweepReadsNoMoreThanItMust(t *testing.T) {
	for name, tt := range map[string]struct {
		keys  int
		fault faults.Action
		most  int64 // requests after the last row is written, or found
	}{
		"rows that were found are left out": {20, faults.DropAfter, 0},
		"many keys are read at once":        {60, faults.DropBefore, 8},
	} {
		t.Run(name, virtual(func(t *testing.T, w *world) {
			const each = 20
			w.load(w.oldRows(tt.keys, tt.keys*each))
			cfg := w.newRows(tt.keys)
			var reads, before atomic.Int64
			w.plan.Only = func(op string) bool {
				switch op {
				case "GetRange":
					reads.Add(1)
				case "BatchWriteRow":
					before.Store(reads.Load())
					return true
				}
				return false
			}
			w.failNext(faults.Fault{Action: tt.fault})
			r := w.load(cfg)
			after := reads.Load() - before.Load()
			if tt.fault == faults.DropAfter {
				after -= r.Found
			}
			if rows := len(w.rows()); rows != tt.keys*(each+1) || r.Written != int64(tt.keys) || after > tt.most {
				t.Errorf("%d rows, %d written, %d requests to sweep", rows, r.Written, after)
			}
		}))
	}
}
