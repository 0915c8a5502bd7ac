package condition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

func shown(f tablestore.ColumnFilter) string {
	switch f := f.(type) {
	case *tablestore.CompositeColumnValueFilter:
		var parts []string
		for _, p := range f.Filters {
			parts = append(parts, shown(p))
		}
		return "(" + strings.Join(parts, map[tablestore.LogicalOperator]string{tablestore.LO_AND: " and ",
			tablestore.LO_OR: " or "}[f.Operator]) + ")"
	case *tablestore.SingleColumnCondition:
		missing := map[bool]string{true: "!"}[f.FilterIfMissing]
		for text, op := range comparators {
			if op == *f.Comparator {
				return fmt.Sprintf("%s%s %s %T %v", *f.ColumnName, missing, text, f.ColumnValue, f.ColumnValue)
			}
		}
	}
	return "?"
}

// TestConditionsAreParsed has conditions and filters with their forms for the service, or their errors. A column that
// fails the comparison if it is missing has an exclamation mark.
func TestConditionsAreParsed(t *testing.T) {
	value := func(column string) table.Value {
		return table.Value{Type: table.String, Bytes: []byte("new " + column)}
	}
	conformance.Golden(t, "conditions.golden", func(input string) string {
		kind, text, _ := strings.Cut(input, " ")
		if kind == "filter" {
			f, columns, err := ParseFilter(text)
			return fmt.Sprintf("%s %q %v", shown(f), columns, err)
		}
		w, err := ParseWhen(text)
		if err != nil {
			return err.Error()
		}
		f := w.Filter(value)
		conformance.True(t, len(f.Serialize()) != 0 && w.String() == text, "%s has no bytes", text)
		return fmt.Sprintf("%s, stored %q, new %q, rising: %t, matches: %t", shown(f), w.Stored(), w.New(), w.Rising(),
			w.Matches())
	})
}
