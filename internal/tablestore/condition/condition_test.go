package condition

import (
	"reflect"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

// shown formats a filter as text.
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
		for text, op := range comparators {
			if op == *f.Comparator {
				missing := ""
				if f.FilterIfMissing {
					missing = "!"
				}
				return *f.ColumnName + missing + text + strings.TrimSpace(
					strings.Trim(strings.ReplaceAll(strings.TrimSpace(reflect.ValueOf(f.ColumnValue).String()), "<int64 Value>", "n"),
						"\n"))
			}
		}
	}
	return "?"
}

func TestWhenComparesStoredWithNewValues(t *testing.T) {
	value := func(column string) table.Value {
		return table.Value{Type: table.String, Bytes: []byte("new " + column)}
	}
	for text, want := range map[string]string{
		`stored.at < new.at`:                               "at<new at",
		`new.at > stored.at`:                               "at<new at",
		`not (stored.at >= new.at)`:                        "at<new at",
		`stored.at < new.at or stored.v == new.v`:          "(at<new at or v==new v)",
		`not (stored.at < new.at or stored.v == new.v)`:    "(at>=new at and v!=new v)",
		`stored["a b"] <= new["c d"] && stored.x == "lit"`: "(a b<=new c d and x==lit)",
	} {
		w := conformance.Try(ParseWhen(text)).Must(t)
		conformance.Equal(t, shown(w.Filter(value)), want, "%s", text)
		conformance.True(t, len(w.Filter(value).Serialize()) != 0 && w.String() == text, "%s has no bytes", text)
	}
	w, err := ParseWhen(`stored.a < new.b and (stored.a > new.c or stored.d == new.b)`)
	conformance.True(t, err == nil && reflect.DeepEqual(w.Stored(), []string{"a", "d"}) &&
		reflect.DeepEqual(w.New(), []string{"b", "c"}),
		"%v, %v: %v", w.Stored(), w.New(), err)
}

func TestRisingConditionOnlyRaisesColumns(t *testing.T) {
	for text, want := range map[string]bool{
		`stored.at < new.at`: true, `stored.at >= new.at`: true, `stored.a <= new.a and new.b > stored.b`: true,
		`not (stored.a < new.a or stored.b < new.b)`: true, `stored.a == new.a`: false, `stored.a != new.a`: false,
		`stored.a < new.b`: false, `stored.a < new.a or stored.b < new.b`: false,
		`stored.a < new.a and stored.s == "x"`: false,
	} {
		w, err := ParseWhen(text)
		conformance.True(t, err == nil && w.Rising() == want, "%s rises: %v, %v", text, !want, err)
	}
}

func TestFilterComparesColumnsWithValues(t *testing.T) {
	for text, want := range map[string]string{
		`city == "Hangzhou"`:                      "city!==Hangzhou",
		`not (city == "x" and col("b c") != "y")`: "(city!!=x or b c!==y)",
		`-5 < age`: "age!>n",
	} {
		f, columns, err := ParseFilter(text)
		conformance.MustTrue(t, err == nil && len(columns) > 0, "%s: %v", text, err)
		conformance.Equal(t, shown(f), want, "%s", text)
	}
}

func TestUncheckableConditionsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`at < new.at`:            "stored.at or new.at",
		`stored.a < stored.b`:    "cannot check",
		`new.a < new.b`:          "cannot check",
		`new.a < 5`:              "cannot check",
		`stored.a + 1 < new.a`:   "cannot check",
		`stored.a < new.a + 1`:   "cannot check",
		`stored.a matches new.a`: "cannot check",
		`stored.a`:               "cannot check",
		`stored.a <`:             "unexpected",
		`md5(stored.a) == new.a`: "cannot check",
		`stored.a in [new.a]`:    "cannot check",
		`stored.a == nil`:        "cannot check",
		strings.Repeat("stored.a < new.a or ", 17) + "stored.a < new.a": "limit is 32",
	} {
		conformance.InALine(t, conformance.ErrorOf(ParseWhen(text)), want, "%s", text)
	}
	_, _, err := ParseFilter(`stored.a < 5`)
	conformance.True(t, err != nil, "a filter has no stored row")
}
