package pipeline

import (
	"fmt"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

func TestAKeyRisesIfItsNumbersOrDatesDo(t *testing.T) {
	for name, c := range map[string]struct {
		of   table.Type
		key  func(i int) table.Value
		want bool
	}{
		"numbers in turn":    {table.Integer, func(i int) table.Value { return table.Value{Type: table.Integer, Int: int64(i - 20)} }, true},
		"numbers in a mixup": {table.Integer, func(i int) table.Value { return table.Value{Type: table.Integer, Int: int64(i * 37 % 41)} }, false},
		"one number":         {table.Integer, func(int) table.Value { return table.Value{Type: table.Integer, Int: 7} }, false},
		"times": {table.String, func(i int) table.Value {
			return table.Value{Type: table.String, Bytes: fmt.Appendf(nil, "2026-01-02 10:%02d", i)}
		}, true},
		"sorted texts": {table.String, func(i int) table.Value {
			return table.Value{Type: table.String, Bytes: fmt.Appendf(nil, "card-%05d", i)}
		}, false},
	} {
		r := rising{of: c.of}
		for i := range 40 {
			r.add(table.AppendKey(nil, c.key(i)))
		}
		conformance.Equal(t, r.is(), c.want, "%s: %d of %d rose", name, r.rose, r.rows)
	}
	few := rising{of: table.Integer}
	few.add(table.AppendKey(nil, table.Value{Type: table.Integer, Int: 1}))
	if few.is() {
		t.Error("one row rises")
	}
}
