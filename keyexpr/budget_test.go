package keyexpr

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"tsimport/internal/table"
)

// TestExpressionsHaveABudget computes what would take hours or all memory.
func TestExpressionsHaveABudget(t *testing.T) {
	for _, source := range []string{
		"reduce(1..40, #acc + #acc, s)",
		"reduce(1..40, replace(#acc, 'a', 'aa'), s)",
		"reduce(1..40, join([#acc, #acc]), s)",
		"reduce(1..40, upper(#acc + #acc), s)",
		"toJSON(reduce(1..40, [#acc, #acc], [s]))",
		"len(flatten(reduce(1..40, [#acc, #acc], [s])))",
		"any([1], reduce(1..40, [#acc, #acc], [s]) == reduce(1..40, [#acc, #acc], [s]))",
		"len(repeat(s, 1000000))",
		"len(repeat(repeat(s, 1000000), 1000000))",
		"len(replace(repeat(s, 3000), '', repeat(s, 3000)))",
		"count(1..100000, count(1..100000, # > 0) > 0)",
		"len(map(1..900000, map(1..900000, #)))",
		"len(uniq(1..900000))",
		"len(join(map(1..100000, s), repeat(s, 1000)))",
		"let a = s + s + s + s + s + s + s + s; let b = a + a + a + a + a + a + a + a; let c = b + b + b + b + b + b + b + b; let d = c + c + c + c + c + c + c + c; let e = d + d + d + d + d + d + d + d; let f = e + e + e + e + e + e + e + e; len(f + f + f + f + f + f + f + f)",
	} {
		p, err := Compile(source, Env{Name: "k", Columns: []Input{{Name: "s", Type: table.String}}})
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		_, why := p.NewEvaluator().Eval([]table.Value{{Type: table.String, Bytes: []byte(strings.Repeat("a", 100))}})
		runtime.ReadMemStats(&after)
		if why == nil || why.Code != CodeExpression {
			t.Errorf("%s: refused with %v", source, why)
		}
		if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 256 {
			t.Errorf("%s: %d MiB were allocated", source, n)
		}
		t.Logf("%v %d MiB %v: %v", time.Since(begun), (after.TotalAlloc-before.TotalAlloc)>>20, source, why)
	}
}

func TestTextsThatAreJoinedHaveABudget(t *testing.T) {
	p, err := Compile("s"+strings.Repeat(" + s", 200), Env{Name: "k", Columns: []Input{{Name: "s", Type: table.String}}})
	must(t, err)
	row := []table.Value{{Type: table.String, Bytes: make([]byte, 1<<20)}}
	e := p.NewEvaluator()
	if _, why := e.Eval(row); why == nil || why.Code != CodeExpression || cap(e.buf) > 4*workBudget {
		t.Errorf("refused with %v, %d bytes are kept", why, cap(e.buf))
	}
	row[0].Bytes = []byte("x")
	if v, why := e.Eval(row); why != nil || len(v.Bytes) != 201 {
		t.Errorf("%d bytes, %v", len(v.Bytes), why)
	}
}

func TestTheBudgetChangesNoResult(t *testing.T) {
	for source, want := range map[string]string{
		"reduce(1..3, #acc + #acc, s)":                                "abababababababab",
		"replace(upper(s), 'A', 'x')":                                 "xB",
		"join(map(split(s, ''), # + '-'), ',')":                       "a-,b-",
		"repeat(s, 2) + toJSON([1, s])":                               "abab[\n  1,\n  \"ab\"\n]",
		"text(count(1..10, # % 2 == 0)) + text(1 + 2)":                "53",
		"s contains 'b' and len(s) == 2 ? fromJSON('[1]')[0] + 1 : 0": "2",
		"join(uniq(split(s + s, '')), '')":                            "ab",
	} {
		p, err := Compile(source, Env{Name: "k", Columns: []Input{{Name: "s", Type: table.String}}})
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		v, why := p.NewEvaluator().Eval([]table.Value{{Type: table.String, Bytes: []byte("ab")}})
		if why != nil || string(appendText(nil, v)) != want {
			t.Errorf("%s: %q, %v, want %q", source, appendText(nil, v), why, want)
		}
	}
}
