package filter

import (
	"bytes"
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/engine/wire"
)

// judged is a condition twice: as its bytes, and as a function over plain values that knows nothing of cells.
type judged struct {
	bytes []byte
	nodes int
	holds func(row map[string][]any) bool
}

var (
	columnNames = rapid.SampledFrom([]string{"a", "b", "c"})
	values      = rapid.SampledFrom([]any{-1, 0, 1, 0.0, 1.5, -2.5, false, true, "", "a", "b", "ab", []byte{}, []byte("a"), []byte{255}})
)

func orderOf(a, b any) (order int, comparable bool) {
	switch x := a.(type) {
	case int:
		y, ok := b.(int)
		return cmp.Compare(x, y), ok
	case float64:
		y, ok := b.(float64)
		return cmp.Compare(x, y), ok
	case string:
		y, ok := b.(string)
		return cmp.Compare(x, y), ok
	case []byte:
		y, ok := b.([]byte)
		return bytes.Compare(x, y), ok
	}
	x, y := a == true, b == true
	_, ok := b.(bool)
	return int(flag(x) - flag(y)), ok
}

func drawLeaf(t *rapid.T) judged {
	l := leaf{
		op: comparator(rapid.IntRange(1, 6).Draw(t, "comparator")), column: columnNames.Draw(t, "column"), value: values.Draw(t, "value"),
		filterIfMissing: rapid.Bool().Draw(t, "filter if missing"), latest: rapid.Bool().Draw(t, "latest"),
	}
	return judged{l.bytes(), 1, func(row map[string][]any) bool {
		versions := row[l.column]
		if len(versions) == 0 {
			return !l.filterIfMissing
		}
		if l.latest {
			versions = versions[:1]
		}
		return slices.ContainsFunc(versions, func(v any) bool {
			order, ok := orderOf(v, l.value)
			return ok && map[comparator]bool{equal: order == 0, notEqual: order != 0, greater: order > 0, greaterEqual: order >= 0, less: order < 0, lessEqual: order <= 0}[l.op]
		})
	}}
}

// drawTree is a condition of at most 2^(depth+1) - 1 nodes.
func drawTree(t *rapid.T, depth int) judged {
	kind := 0
	if depth > 0 {
		kind = rapid.IntRange(0, 3).Draw(t, "kind")
	}
	switch kind {
	case combineNot:
		of := drawTree(t, depth-1)
		return judged{composite(combineNot, of.bytes), of.nodes + 1, func(row map[string][]any) bool { return !of.holds(row) }}
	case combineAnd, combineOr:
		a, b := drawTree(t, depth-1), drawTree(t, depth-1)
		return judged{composite(int64(kind), a.bytes, b.bytes), a.nodes + b.nodes + 1, func(row map[string][]any) bool {
			if kind == combineAnd {
				return a.holds(row) && b.holds(row)
			}
			return a.holds(row) || b.holds(row)
		}}
	}
	return drawLeaf(t)
}

// drawRow is a row of some of the columns, with up to three versions each, and the same as plain values.
func drawRow(t *rapid.T) ([]wire.Cell, map[string][]any) {
	plain := map[string][]any{}
	var flat []any
	for _, name := range []string{"a", "b", "c", "d"} {
		for _, v := range rapid.SliceOfN(values, 0, 3).Draw(t, name) {
			plain[name] = append(plain[name], v)
			flat = append(flat, name, v)
		}
	}
	return cells(flat...), plain
}

func TestAnyConditionHoldsAsItReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawTree(t, 4)
		row, plain := drawRow(t)
		f, err := Decode(x.bytes)
		if err != nil {
			t.Fatalf("%d nodes: %v", x.nodes, err)
		}
		if got := f.Match(nil, row); got != x.holds(plain) {
			t.Fatalf("%x of %v: %t", x.bytes, plain, got)
		}
	})
}

func TestPagesOfColumnsAddUpToTheRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row, plain := drawRow(t)
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		var got []wire.Cell
		for offset := 0; offset <= len(plain); offset += limit {
			f, err := Decode(pagination(int64(offset), int64(limit)))
			if err != nil {
				t.Fatal(err)
			}
			page := f.Page(row)
			columns := map[string]bool{}
			for i := range page {
				columns[string(page[i].Name)] = true
			}
			if want := min(limit, len(plain)-offset); len(columns) != want {
				t.Fatalf("%d columns from %d on: %d", limit, offset, len(columns))
			}
			got = append(got, page...)
		}
		if names(got) != names(row) {
			t.Fatalf("%s, want %s", names(got), names(row))
		}
	})
}
