package plan

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tsimport/internal/table"
)

func text(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }

// The service takes bounds of at most 64 bytes, none that is empty, and no integer at an end of all of them.
func TestBoundsAreThoseThatTheServiceTakes(t *testing.T) {
	long := strings.Repeat("x", 62)
	whole := func(n int64) table.Value { return table.Value{Type: table.Integer, Int: n} }
	for name, v := range map[string]struct {
		values []table.Value
		want   []table.Value
	}{
		"long texts":                    {[]table.Value{text("a"), text("b"), text(long + "yyy"), text(long + "zzz")}, []table.Value{text("b"), text(long + "yy"), text(long + "zz")}},
		"a letter is not cut":           {[]table.Value{text("a"), text(long + "x姓")}, []table.Value{text(long + "x")}},
		"long texts that begin alike":   {[]table.Value{text(long + "xx1"), text(long + "xx2")}, nil},
		"an empty text":                 {[]table.Value{text(""), text("b")}, []table.Value{text("b")}},
		"the greatest and least number": {[]table.Value{whole(math.MinInt64), whole(7), whole(math.MaxInt64)}, []table.Value{whole(7)}},
	} {
		got := rangeBounds(slices.Clone(v.values), len(v.values))
		if !slices.EqualFunc(got, v.want, func(a, b table.Value) bool { return compareKeyValues(a, b) == 0 }) {
			t.Errorf("%s: %v, want %v", name, got, v.want)
		}
	}
}
