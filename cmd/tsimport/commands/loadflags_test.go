package commands

import (
	"math"
	"runtime/debug"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
)

func TestTheMemoryLimitIsSetUnlessTheUserSetIt(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "9GiB")
	limitMemory(100<<20, false)
	conformance.Equal(t, debug.SetMemoryLimit(-1), before, "the limit, with GOMEMLIMIT set")
	t.Setenv("GOMEMLIMIT", "")
	for embedded, want := range map[bool]int64{false: plan.MemoryLimit(100 << 20), true: plan.MemoryLimit(100<<20) + 512<<20} {
		debug.SetMemoryLimit(math.MaxInt64)
		limitMemory(100<<20, embedded)
		conformance.Equal(t, debug.SetMemoryLimit(-1), want, "embedded %v: the limit", embedded)
	}
}

func TestWithoutAnOrderTheUserIsWarnedWhereItMatters(t *testing.T) {
	for _, tt := range []struct {
		write pipeline.Write
		warns bool
	}{
		{pipeline.Write{Order: plan.LastWins, Mode: table.Update, Conditions: pipeline.Conditions{Condition: table.ExpectExist}}, false},
		{pipeline.Write{Order: plan.OrderNone}, false},
		{pipeline.Write{Order: plan.OrderNone, Mode: table.Delete}, false},
		{pipeline.Write{Order: plan.OrderNone, Mode: table.Update}, true},
		{pipeline.Write{Order: plan.OrderNone, Conditions: pipeline.Conditions{Condition: table.ExpectNotExist}}, true},
	} {
		text := orderWarning(&tt.write)
		if got := strings.Contains(text, "rows of the same key are written in any order"); got != tt.warns {
			t.Errorf("%+v: %q", tt.write, text)
		}
	}
}
