package filter

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// order says how two values compare: -1, 0, 1; 2 is not at all.
var order = []struct {
	stored, constant any
	want             int
}{
	{1, 1, 0}, {1, 2, -1}, {2, 1, 1}, {math.MinInt64, math.MaxInt64, -1}, {-1, 0, -1},
	{1.5, 1.5, 0}, {-1.5, 1.5, -1}, {1e300, 1.5, 1}, {0.0, math.Copysign(0, -1), 0},
	{true, true, 0}, {false, true, -1}, {true, false, 1},
	{"b", "b", 0}, {"a", "b", -1}, {"b", "a", 1}, {"a", "ab", -1}, {"", "", 0}, {"", "a", -1}, {"Z", "a", -1}, {"é", "z", 1},
	{[]byte{1}, []byte{1}, 0}, {[]byte{0x7f}, []byte{0xff}, -1}, {[]byte{0xff}, []byte{0x7f}, 1}, {[]byte{}, []byte{0}, -1},
	{1, 1.0, 2}, {1.0, 1, 2}, {1, "1", 2}, {"1", 1, 2}, {"a", []byte("a"), 2}, {[]byte("a"), "a", 2}, {true, 1, 2}, {1, true, 2}, {1.0, true, 2},
}

func TestEveryComparatorComparesEveryType(t *testing.T) {
	for _, v := range order {
		for op, want := range map[comparator]bool{
			equal: v.want == 0, notEqual: v.want == -1 || v.want == 1, greater: v.want == 1, greaterEqual: v.want == 0 || v.want == 1,
			less: v.want == -1, lessEqual: v.want == 0 || v.want == -1, exists: true, existsNot: false,
		} {
			f := decode(t, leaf{op: op, column: "c", value: v.constant}.bytes())
			if got := f.Match(nil, cells("b", 9, "c", v.stored, "d", 9)); got != want {
				t.Errorf("%v (%T), comparator %d, %v (%T): %t", v.stored, v.stored, op, v.constant, v.constant, got)
			}
		}
	}
}

func TestAMissingColumnPassesUnlessItIsToBeFiltered(t *testing.T) {
	for op := equal; op <= existsNot; op++ {
		for _, filtered := range []bool{false, true} {
			l := leaf{op: op, column: "c", value: 1, filterIfMissing: filtered}
			for _, row := range [][]any{{}, {"b", 1}, {"d", 1}, {"b", 1, "cc", 1}} {
				if got := decode(t, l.bytes()).Match(nil, cells(row...)); got == filtered {
					t.Errorf("comparator %d, filter_if_missing %t, row %v: %t", op, filtered, row, got)
				}
				if got := decode(t, composite(combineNot, l.bytes())).Match(nil, cells(row...)); got != filtered {
					t.Errorf("NOT comparator %d, filter_if_missing %t, row %v: %t", op, filtered, row, got)
				}
			}
		}
	}
}

func TestOnlyTheNewestVersionCountsWhenAskedFor(t *testing.T) {
	versions := cells("a", 1, "c", 3, "c", "text", "c", 1, "d", 2)
	for _, v := range []struct {
		op          comparator
		value       any
		newest, any bool
	}{
		{equal, 3, true, true}, {equal, 1, false, true}, {equal, 2, false, false}, {equal, "text", false, true},
		{notEqual, 3, false, true}, {notEqual, 1, true, true}, {less, 2, false, true}, {greater, 3, false, false},
	} {
		for _, latest := range []bool{false, true} {
			want := v.any
			if latest {
				want = v.newest
			}
			if got := decode(t, leaf{op: v.op, column: "c", value: v.value, latest: latest}.bytes()).Match(nil, versions); got != want {
				t.Errorf("comparator %d with %v, latest_version_only %t: %t", v.op, v.value, latest, got)
			}
		}
	}
}

func TestAKeyColumnIsComparedByItsValue(t *testing.T) {
	key := cells("id", "m", "seq", 7)
	for _, v := range []struct {
		column string
		op     comparator
		value  any
		want   bool
	}{
		{"id", equal, "m", true}, {"id", less, "m", false}, {"seq", greaterEqual, 7, true}, {"seq", greater, 7, false}, {"seq", equal, "7", false},
	} {
		f := decode(t, leaf{op: v.op, column: v.column, value: v.value, filterIfMissing: true, latest: true}.bytes())
		if got := f.Match(key, nil); got != v.want {
			t.Errorf("%s, comparator %d, %v: %t", v.column, v.op, v.value, got)
		}
		if f.Match(nil, nil) {
			t.Errorf("%s of a row that does not exist passes", v.column)
		}
	}
}

func TestConditionsAreCombined(t *testing.T) {
	yes := leaf{op: equal, column: "c", value: 1}.bytes()
	no := leaf{op: equal, column: "c", value: 2}.bytes()
	for name, v := range map[string]struct {
		filter []byte
		want   bool
	}{
		"NOT yes": {composite(combineNot, yes), false}, "NOT no": {composite(combineNot, no), true},
		"yes AND yes": {composite(combineAnd, yes, yes), true}, "yes AND no": {composite(combineAnd, yes, no), false},
		"yes AND yes AND no": {composite(combineAnd, yes, yes, no), false},
		"no OR yes":          {composite(combineOr, no, yes), true}, "no OR no": {composite(combineOr, no, no), false},
		"no OR no OR yes": {composite(combineOr, no, no, yes), true},
		"yes AND NOT (no OR (yes AND no))": {composite(combineAnd, yes, composite(combineNot,
			composite(combineOr, no, composite(combineAnd, yes, no)))), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decode(t, v.filter).Match(nil, cells("c", 1)); got != v.want {
				t.Error(got)
			}
		})
	}
}

func TestAPageIsSomeColumnsWithAllTheirVersions(t *testing.T) {
	list := cells("a", 1, "b", 2, "b", 1, "c", 3, "d", 5, "d", 4)
	for _, v := range []struct {
		offset, limit int64
		want          string
	}{
		{0, 1, "a"}, {0, 2, "a b b"}, {1, 1, "b b"}, {1, 2, "b b c"}, {2, 5, "c d d"}, {3, 1, "d d"}, {0, 4, "a b b c d d"}, {4, 1, ""},
		{math.MaxInt32, math.MaxInt32, ""}, {0, math.MaxInt32, "a b b c d d"},
	} {
		f := decode(t, pagination(v.offset, v.limit))
		if got := names(f.Page(list)); got != v.want || !f.Match(nil, list) {
			t.Errorf("offset %d, limit %d: %q", v.offset, v.limit, got)
		}
	}
	if f := decode(t, leaf{op: equal, column: "a", value: 1}.bytes()); len(f.Page(list)) != len(list) {
		t.Error("a condition pages")
	}
	if got := decode(t, pagination(0, 3)).Page(nil); len(got) != 0 {
		t.Error(got)
	}
}

// The documented byte vectors.
func TestTheDocumentedFiltersDecode(t *testing.T) {
	adult := unhex(t, "08011216080412036167651a0900120000000000000020012801")
	for _, v := range []struct {
		row  []any
		want bool
	}{
		{[]any{"age", 18}, true}, {[]any{"age", 17}, false}, {nil, false}, {[]any{"age", 17, "age", 18}, false},
	} {
		if got := decode(t, adult).Match(nil, cells(v.row...)); got != v.want {
			t.Errorf("age >= 18 of %v: %t", v.row, got)
		}
	}
	bob := unhex(t, "0802123a0802121a08011216080412036167651a0900120000000000000020012801121a08011216080112046e616d651a080303000000626f6220002800")
	for _, v := range []struct {
		row  []any
		want bool
	}{
		{[]any{"age", 18, "name", "bob"}, true}, {[]any{"age", 18}, true}, {[]any{"age", 18, "name", "eve"}, false}, {[]any{"name", "bob"}, false},
	} {
		if got := decode(t, bob).Match(nil, cells(v.row...)); got != v.want {
			t.Errorf("age >= 18 and name = bob of %v: %t", v.row, got)
		}
	}
	if f := decode(t, unhex(t, "0803120408021003")); f.page == nil || *f.page != (page{2, 3}) {
		t.Errorf("%+v", f)
	}
	version, err := DecodeCondition(unhex(t, "08011216080112037665721a0900030000000000000020012801"))
	if err != nil || !version.Match(nil, cells("ver", 3)) || version.Match(nil, cells("ver", 4)) || version.Match(nil, nil) {
		t.Error(err)
	}
}

func TestNoBytesMeanNoFilter(t *testing.T) {
	if f, err := Decode(nil); f != nil || err != nil {
		t.Error(f, err)
	}
	if f, err := DecodeCondition([]byte{}); f != nil || err != nil {
		t.Error(f, err)
	}
}

func TestAFilterHasAtMost32Nodes(t *testing.T) {
	one := leaf{op: equal, column: "c", value: 1}.bytes()
	many := func(n int) (list [][]byte) {
		for range n {
			list = append(list, one)
		}
		return list
	}
	nested := func(depth int) []byte {
		b := one
		for range depth {
			b = composite(combineNot, b)
		}
		return b
	}
	const tooMany = "The count of filter exceeds the max: 32."
	for name, v := range map[string]struct {
		filter []byte
		want   string
	}{
		"OR of 31":              {composite(combineOr, many(31)...), ""},
		"OR of 32":              {composite(combineOr, many(32)...), tooMany},
		"AND of 31":             {composite(combineAnd, many(31)...), ""},
		"AND of 32":             {composite(combineAnd, many(32)...), tooMany},
		"AND of 15 OR of 15":    {composite(combineOr, composite(combineAnd, many(15)...), composite(combineAnd, many(14)...)), ""},
		"one more of them":      {composite(combineOr, composite(combineAnd, many(15)...), composite(combineAnd, many(15)...)), tooMany},
		"NOT 31 deep":           {nested(31), ""},
		"NOT 32 deep":           {nested(32), tooMany},
		"NOT 10,000 deep":       {nested(10_000), tooMany},
		"OR of 100,000":         {composite(combineOr, many(100_000)...), tooMany},
		"NOT of 33 is too many": {composite(combineNot, many(33)...), tooMany},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(v.filter)
			if v.want == "" && err != nil || v.want != "" && (err == nil || err.Message != v.want) {
				t.Error(err)
			}
		})
	}
}

func TestInvalidFiltersAreRefused(t *testing.T) {
	good := leaf{op: equal, column: "c", value: 1}
	with := func(value []byte) []byte { // of two fields of one number the last one counts
		return envelope(typeSingle, append(good.body(), raw(3, value)...))
	}
	without := func(skip int64) []byte {
		all := map[int64][]byte{1: number(1, 1), 2: raw(2, []byte("c")), 3: raw(3, variant(1)), 4: number(4, 0), 5: number(5, 0)}
		var b []byte
		for i := int64(1); i <= 5; i++ {
			if i != skip {
				b = append(b, all[i]...)
			}
		}
		return envelope(typeSingle, b)
	}
	const broken = "Deserialize filter failed."
	cases := map[string]struct {
		filter []byte
		want   string // "" is accepted; else the message, or its beginning when it ends in …
	}{
		"all fields":                      {without(0), ""},
		"garbage":                         {[]byte{0xff}, broken},
		"a field that is cut":             {[]byte{0x0a, 0x05, 'a'}, broken},
		"no type":                         {raw(2, good.body()), broken},
		"no body":                         {number(1, 1), broken},
		"a type of another wire type":     {append(raw(1, nil), raw(2, nil)...), broken},
		"a body of another wire type":     {append(number(1, 1), number(2, 1)...), broken},
		"an unknown type":                 {envelope(4, good.body()), broken},
		"type 0":                          {envelope(0, good.body()), broken},
		"an unknown field":                {append(good.bytes(), number(9, 9)...), ""},
		"comparator 0":                    {leaf{op: 0, column: "c", value: 1}.bytes(), broken},
		"comparator 9":                    {leaf{op: 9, column: "c", value: 1}.bytes(), broken},
		"no column name":                  {leaf{op: 1, column: "", value: 1}.bytes(), "Invalid column name: ''."},
		"a column name of 255":            {leaf{op: 1, column: strings.Repeat("c", 255), value: 1}.bytes(), ""},
		"a column name of 256":            {leaf{op: 1, column: strings.Repeat("c", 256), value: 1}.bytes(), "Invalid column name: …"},
		"no value at all":                 {with(nil), broken},
		"a value that is cut":             {with([]byte{0, 1}), broken},
		"a value and more":                {with(append(variant(1), 0)), broken},
		"an unknown type of value":        {with([]byte{5}), broken},
		"the infinity of a key":           {with([]byte{9}), "VT_INF_MIN is an invalid type…"},
		"a placeholder":                   {with([]byte{11}), "VT_AUTO_INCREMENT is an invalid type…"},
		"null":                            {with([]byte{6}), "VT_NULL is an invalid type…"},
		"NaN":                             {leaf{op: 1, column: "c", value: math.NaN()}.bytes(), "NaN can't be set to double value."},
		"infinity":                        {leaf{op: 1, column: "c", value: math.Inf(1)}.bytes(), "Infinity can't be set to double value."},
		"text that is none":               {leaf{op: 1, column: "c", value: "\xff"}.bytes(), "Value of column c must be UTF8 encoding."},
		"combinator 0":                    {composite(0, good.bytes(), good.bytes()), broken},
		"combinator 4":                    {composite(4, good.bytes(), good.bytes()), broken},
		"NOT of none":                     {composite(combineNot), "Invalid NOT operator: the number of sub-filters must be 1."},
		"NOT of two":                      {composite(combineNot, good.bytes(), good.bytes()), "Invalid NOT operator: the number of sub-filters must be 1."},
		"AND of none":                     {composite(combineAnd), "Invalid AND/OR operator: the number of sub-filters must be more than 1."},
		"AND of one":                      {composite(combineAnd, good.bytes()), "Invalid AND/OR operator: the number of sub-filters must be more than 1."},
		"OR of one":                       {composite(combineOr, good.bytes()), "Invalid AND/OR operator: the number of sub-filters must be more than 1."},
		"a sub-filter that is none":       {composite(combineOr, good.bytes(), []byte{0xff}), broken},
		"a sub-filter of another type":    {envelope(typeComposite, append(number(1, 3), number(2, 1)...)), broken},
		"a page inside":                   {composite(combineAnd, good.bytes(), pagination(0, 1)), "ColumnPaginationFilter cannot be given inside CompositeColumnValueFilter."},
		"a page from column -1":           {pagination(-1, 1), "Offset in ColumnPaginationFilter must be greater than or equal to 0."},
		"a page of no column":             {pagination(0, 0), "Limit in ColumnPaginationFilter must be greater than 0."},
		"a page of -1 columns":            {pagination(0, -1), "Limit in ColumnPaginationFilter must be greater than 0."},
		"a page without an offset":        {envelope(typePagination, number(2, 1)), broken},
		"a page without a limit":          {envelope(typePagination, number(1, 1)), broken},
		"a regular expression of no type": {leaf{op: 1, column: "c", value: 1, rule: number(2, 0)}.bytes(), broken},
	}
	for i := int64(1); i <= 5; i++ {
		c := cases["garbage"]
		c.filter = without(i)
		cases[fmt.Sprintf("no field %d", i)] = c
	}
	for name, v := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := Decode(v.filter)
			switch begin, any := strings.CutSuffix(v.want, "…"); {
			case v.want == "" && err != nil:
				t.Error(err)
			case v.want != "" && (err == nil || f != nil):
				t.Error("accepted")
			case v.want != "" && (err.Status != 400 || !any && err.Message != begin || !strings.HasPrefix(err.Message, begin)):
				t.Errorf("%+v", err)
			}
		})
	}
}

func TestAConditionDoesNotPage(t *testing.T) {
	if _, err := DecodeCondition(pagination(0, 1)); err == nil || !strings.HasPrefix(err.Message, "Invalid condition: ") {
		t.Error(err)
	}
	if _, err := DecodeCondition([]byte{0xff}); err == nil || err.Message != "Deserialize filter failed." {
		t.Error(err)
	}
}
