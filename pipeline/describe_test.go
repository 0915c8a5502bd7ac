package pipeline

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tsimport/engine/faults"
)

// TestANetworkThatFailsWhileTheTableIsLookedAtFailsNoLoad lets each look at a table fail twice.
func TestANetworkThatFailsWhileTheTableIsLookedAtFailsNoLoad(t *testing.T) {
	for _, template := range []string{"", "t_{what}"} {
		for _, fault := range []faults.Fault{{Action: faults.DropBefore}, {Action: faults.FlipBit, Bit: 99}, {Action: faults.BadBody}} {
			t.Run(fmt.Sprintf("table %s, action %d", template, fault.Action), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					for n := 0; lookFailsAt(t, template, fault, n); n++ {
					}
				})
			})
		}
	}
}

// lookFailsAt loads with the nth look at a table failing. It reports whether there was one.
func lookFailsAt(t *testing.T, template string, fault faults.Fault, n int) bool {
	w := newWorld(t)
	w.template = template
	w.plan.Only = func(operation string) bool { return operation == "DescribeTable" }
	var failed atomic.Bool
	w.fail(fault, func(r faults.Request) bool {
		hit := r.N == n || r.N == n+1
		failed.Store(hit || failed.Load())
		return hit
	})
	cfg := w.config(w.file("in.csv", fortyRows()))
	cfg.surveyEvery = time.Hour // these readings come when they like; they are repeated anyway
	r, err := cfg.run(context.Background())
	if err != nil || r.Written != 40 {
		t.Fatalf("look %d: %v", n, err)
	}
	return failed.Load()
}
