package contract

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

func TestRangesAreInKeyOrderInBothDirections(t *testing.T) {
	s := proving(t, "3.1.3", "3.11.7", "3.11.8")
	tb := s.newTable(t, tableOptions{})
	// These keys are in order: strings compare bytewise, prefixes first, and integers compare as signed numbers.
	n := func(text string, n int64) []any { return []any{text, n} }
	keys := [][]any{
		n("", math.MinInt64), n("", 0), n("\x00", 0), n("\x00\x00", 0), n("\x00a", 0), n("\x01", 0), n("B", 5),
		n("a", math.MinInt64), n("a", -2), n("a", -1), n("a", 0), n("a", 1), n("a", 256), n("a", math.MaxInt64),
		n("a\x00", 0), n("a\x00b", 0), n("aa", 0), n("b", 0), n("é", 0), n("表", 0), n("\uffff", 0), n("😀", 0),
	}
	tb.load(t, several(len(keys), func(i int) change { return tb.put(tb.key(keys[len(keys)-1-i]...)) })...)
	reversed := slices.Clone(keys)
	slices.Reverse(reversed)
	for name, x := range map[string]struct {
		direction  tablestore.Direction
		start, end *tablestore.PrimaryKey
		want       [][]any
	}{
		"everything forward":             {tablestore.FORWARD, tb.key(minKey, minKey), tb.key(maxKey, maxKey), keys},
		"all of it backward":             {tablestore.BACKWARD, tb.key(maxKey, maxKey), tb.key(minKey, minKey), reversed},
		"forward without its end":        {tablestore.FORWARD, tb.key("a", -1), tb.key("a", 1), keys[9:11]},
		"backward without its end":       {tablestore.BACKWARD, tb.key("a", 1), tb.key("a", -1), reversed[10:12]},
		"one partition key forward":      {tablestore.FORWARD, tb.key("a", minKey), tb.key("a", maxKey), keys[7:14]},
		"one partition key backward":     {tablestore.BACKWARD, tb.key("a", maxKey), tb.key("a", minKey), reversed[8:15]},
		"bounds that are no rows":        {tablestore.FORWARD, tb.key("a", 2), tb.key("ab", 0), keys[12:17]},
		"the least key to the first row": {tablestore.FORWARD, tb.key(minKey, minKey), tb.key("", math.MinInt64), nil},
		"from the last row to itself":    {tablestore.BACKWARD, tb.key("😀", 0), tb.key("\uffff", 0), reversed[:1]},
		"an infinity decides":            {tablestore.FORWARD, tb.key("a", maxKey), tb.key("a\x00", minKey), nil},
	} {
		for _, limit := range []int32{0, 1, 3, 1000} {
			t.Run(fmt.Sprintf("%s, limit %d", name, limit), func(t *testing.T) {
				rows, pages := tb.scan(t, x.direction, x.start, x.end, limit)
				diff(t, keysOf(rows), x.want)
				for i, n := range pages {
					conformance.True(t, limit <= 0 || n <= int(limit) && (n >= int(limit) || i >= len(pages)-1), "page %d: %d", i, n)
				}
			})
		}
	}
}

func TestBinaryKeysAreOrderedByUnsignedBytes(t *testing.T) {
	s := proving(t, "3.1.3")
	tb := s.newTable(t, tableOptions{keys: []tablestore.PrimaryKeyType{tablestore.PrimaryKeyType_BINARY}})
	keys := [][]any{{[]byte{}}, {[]byte{0}}, {[]byte{0, 0}}, {[]byte{0, 255}}, {[]byte{1}}, {[]byte{127}}, {[]byte{128}},
		{[]byte{255}}, {[]byte{255, 0}}, {[]byte{255, 255}}}
	tb.load(t, several(len(keys), func(i int) change { return tb.put(tb.key(keys[len(keys)-1-i]...)) })...)
	rows, _ := tb.scan(t, tablestore.FORWARD, tb.key(minKey), tb.key(maxKey), 3)
	diff(t, keysOf(rows), keys)
	slices.Reverse(keys)
	rows, _ = tb.scan(t, tablestore.BACKWARD, tb.key(maxKey), tb.key(minKey), 3)
	diff(t, keysOf(rows), keys)
}

func TestRangePageEndsAt5000Rows(t *testing.T) {
	s := proving(t, "3.11.8")
	tb := s.newTable(t, tableOptions{keys: []tablestore.PrimaryKeyType{tablestore.PrimaryKeyType_INTEGER}})
	const rows = 10_100
	tb.load(t, several(rows, func(i int) change { return tb.put(tb.key(i), c("c", i)) })...)
	for name, x := range map[string]struct {
		direction   tablestore.Direction
		start, end  infinity
		first, step int64
	}{
		"forward":  {tablestore.FORWARD, minKey, maxKey, 0, 1},
		"backward": {tablestore.BACKWARD, maxKey, minKey, rows - 1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			r := tb.page(t, x.direction, tb.key(x.end), 0, tb.key(x.start))
			diff(t, len(r.Rows), 5000)
			diff(t, keyValues(r.NextStartPrimaryKey), []any{x.first + 5000*x.step})
			got, pages := tb.scan(t, x.direction, tb.key(x.start), tb.key(x.end), 0)
			diff(t, pages, []int{5000, 5000, 100})
			for i, r := range got {
				want := x.first + int64(i)*x.step
				conformance.MustTrue(t, r.Key[0] == want && r.Cells[0].Value == want, "row %d is %v", i, r)
			}
		})
	}
	t.Run("a limit above 5000 has no effect", func(t *testing.T) {
		_, pages := tb.scan(t, tablestore.FORWARD, tb.key(minKey), tb.key(maxKey), 8000)
		diff(t, pages, []int{5000, 5000, 100})
	})
	t.Run("scanned rows that are not returned count", func(t *testing.T) {
		must(t, s.do(tb.put(tb.key(rows-1), c("rare", 1))))
		got, pages := tb.scan(t, tablestore.FORWARD, tb.key(minKey), tb.key(maxKey), 10, columns("rare"))
		diff(t, pages, []int{0, 0, 1})
		diff(t, keysOf(got), [][]any{{int64(rows - 1)}})
	})
}

func TestInvalidRangesAreRefused(t *testing.T) {
	s := proving(t, "3.11.7", "3.11.8", "3.1.4")
	tb := s.newTable(t, tableOptions{})
	must(t, s.do(tb.put(tb.key("a", 1))))
	forward := invalid("Begin key must less than end key in FORWARD")
	backward := invalid("Begin key must more than end key in BACKWARD")
	for name, x := range map[string]struct {
		direction  tablestore.Direction
		start, end *tablestore.PrimaryKey
		limit      int32
		want       refusal
	}{
		"forward after the end":   {tablestore.FORWARD, tb.key("b", 1), tb.key("a", 1), 0, forward},
		"forward from the end":    {tablestore.FORWARD, tb.key("a", 1), tb.key("a", 1), 0, forward},
		"forward over nothing":    {tablestore.FORWARD, tb.key(minKey, minKey), tb.key(minKey, minKey), 0, forward},
		"backward before the end": {tablestore.BACKWARD, tb.key("a", 1), tb.key("b", 1), 0, backward},
		"backward from the end":   {tablestore.BACKWARD, tb.key("a", 1), tb.key("a", 1), 0, backward},
		"a limit below 0":         {tablestore.FORWARD, tb.key("a", 1), tb.key("b", 1), -1, invalid("")},
		"an end of one column": {tablestore.FORWARD, tb.key("a", 1), tb.key("b"), 0,
			invalidPK("Validate PK size fail. Input: 1, Meta: 2.")},
		"an end of a wrong type": {tablestore.FORWARD, tb.key("a", 1), tb.key("b", "1"), 0,
			invalidPK("Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER.")},
		"a start of a wrong type": {tablestore.FORWARD, tb.key(1, 1), tb.key("b", 1), 0,
			invalidPK("Validate PK type fail. Input: VT_INTEGER, Meta: VT_STRING.")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.GetRange(ranged(tb.criteria(x.start), x.direction, x.end, x.limit))
			check(t, err, x.want)
		})
	}
	body := message{}.text(1, tb.name).bytes(7, tb.key("a", 1).Build(false)).bytes(8, tb.key("b", 1).Build(false)).int(5,
		1)
	t.Run("a limit of 0", func(t *testing.T) { s.ask(t, "GetRange", body.int(2, 0).int(6, 0)).check(t, invalid("")) })
	t.Run("no direction", func(t *testing.T) { s.ask(t, "GetRange", body).check(t, invalid("")) })
}

func TestRangeContinuesPastFilteredRows(t *testing.T) {
	s := proving(t, "3.11.5", "3.11.8")
	tb := s.newTable(t, tableOptions{})
	const rows = 5005
	tb.load(t, several(rows, func(i int) change { return tb.put(tb.key("k", i), c("n", i), c("even", i%2 == 0)) })...)
	start, end := tb.key("k", minKey), tb.key("k", maxKey)
	t.Run("5000 rows that do not pass make an empty page with a next key", func(t *testing.T) {
		r := tb.page(t, tablestore.FORWARD, end, 0, start, filtered(compare("n", ge, 5000)))
		diff(t, len(r.Rows), 0)
		diff(t, keyValues(r.NextStartPrimaryKey), []any{"k", int64(5000)})
		found, pages := tb.scan(t, tablestore.FORWARD, start, end, 0, filtered(compare("n", ge, 5000)))
		diff(t, keysOf(found), [][]any{{"k", int64(5000)}, {"k", int64(5001)}, {"k", int64(5002)}, {"k", int64(5003)},
			{"k", int64(5004)}})
		diff(t, pages, []int{0, 5})
		found, pages = tb.scan(t, tablestore.BACKWARD, end, start, 0, filtered(compare("n", lt, 2)))
		diff(t, keysOf(found), [][]any{{"k", int64(1)}, {"k", int64(0)}})
		diff(t, pages, []int{0, 2})
	})
	t.Run("a limit counts rows that pass", func(t *testing.T) {
		r := tb.page(t, tablestore.FORWARD, end, 3, start, filtered(compare("even", eq, true)))
		var got []any
		for _, x := range r.Rows {
			got = append(got, x.PrimaryKey.PrimaryKeys[1].Value)
		}
		diff(t, got, []any{int64(0), int64(2), int64(4)})
	})
	t.Run("filters do not make a range cheaper", func(t *testing.T) {
		plain := tb.page(t, tablestore.FORWARD, end, 0, start)
		some := tb.page(t, tablestore.FORWARD, end, 0, start, filtered(compare("n", lt, 0)))
		diff(t, unitsOf(some.ConsumedCapacityUnit), unitsOf(plain.ConsumedCapacityUnit))
		page := tb.page(t, tablestore.FORWARD, end, 0, start, filtered(pageOf(0, 1)))
		diff(t, unitsOf(page.ConsumedCapacityUnit), unitsOf(plain.ConsumedCapacityUnit))
	})
}

func TestRangeReturnsRequestedKeyColumns(t *testing.T) {
	s := proving(t, "3.11.9")
	tb := s.newTable(t, tableOptions{})
	tb.load(t, tb.put(tb.key("a", 1), c("c", 1)), tb.put(tb.key("a", 2), c("d", 2)), tb.put(tb.key("a", 3), c("c", 3)))
	read := func(t *testing.T, limit int32, names ...string) (*tablestore.GetRangeResponse, []*row) {
		r := ranged(tb.criteria(tb.key("a", minKey), columns(names...)), tablestore.FORWARD, tb.key("a", maxKey), limit)
		r.RangeRowQueryCriteria.ReturnSpecifiedPkOnly = true
		got := conformance.Try(s.GetRange(r)).Must(t)
		var rows []*row
		for _, x := range got.Rows {
			rows = append(rows, (&row{keyValues(x.PrimaryKey), cellsOf(x.Columns)}).untimed())
		}
		return got, rows
	}
	one, three := c("c", int64(1)), c("c", int64(3))
	t.Run("a named key column returns every row", func(t *testing.T) {
		_, rows := read(t, 0, "pk2", "c")
		diff(t, rows, []*row{{[]any{int64(1)}, []cell{one}}, {[]any{int64(2)}, nil}, {[]any{int64(3)}, []cell{three}}})
	})
	t.Run("key columns are in the order of the schema", func(t *testing.T) {
		_, rows := read(t, 1, "pk2", "pk1")
		diff(t, rows, []*row{{[]any{"a", int64(1)}, nil}})
	})
	t.Run("no names mean the whole row", func(t *testing.T) {
		_, rows := read(t, 1)
		diff(t, rows, []*row{{[]any{"a", int64(1)}, []cell{one}}})
	})
	t.Run("the next key is complete", func(t *testing.T) {
		r, _ := read(t, 1, "pk2")
		diff(t, keyValues(r.NextStartPrimaryKey), []any{"a", int64(2)})
	})
	t.Run("no key column", func(t *testing.T) {
		skipReal(t, s) // a real instance's answer is unknown
		_, rows := read(t, 0, "c")
		diff(t, rows, []*row{{nil, []cell{one}}, {nil, []cell{three}}})
	})
	t.Run("a filter still sees the key", func(t *testing.T) {
		skipReal(t, s)
		r := ranged(tb.criteria(tb.key("a", minKey), columns("pk2"),
			filtered(allOf(compare("pk1", eq, "a"), compare("pk2", gt, 1)))), tablestore.FORWARD, tb.key("a", maxKey), 0)
		r.RangeRowQueryCriteria.ReturnSpecifiedPkOnly = true
		got := conformance.Try(s.GetRange(r)).Must(t)
		diff(t, len(got.Rows), 2)
	})
}

func TestMatrixIsReturnedIfItCanHoldRows(t *testing.T) {
	s := proving(t, "2.6.1")
	tb := s.newTable(t, tableOptions{versions: 2})
	values := []cell{c("b", []byte{0, 255}), c("c", int64(1)), c("d", 0.5), c("s", "é"), c("t", true)}
	must(t, s.do(tb.put(tb.key("a", 1), values...)))
	must(t, s.do(tb.put(tb.key("a", 2), values[1])))
	must(t, s.do(tb.put(tb.key("a", 3))))
	for name, v := range map[string]struct {
		ask  func(*tablestore.RangeRowQueryCriteria)
		want tablestore.DataBlockType
	}{
		"the newest versions": {func(*tablestore.RangeRowQueryCriteria) {}, tablestore.SimpleRowMatrix},
		"two versions":        {func(r *tablestore.RangeRowQueryCriteria) { r.MaxVersion = 2 }, tablestore.PlainBuffer},
		"a part of the key": {func(r *tablestore.RangeRowQueryCriteria) {
			r.ReturnSpecifiedPkOnly, r.ColumnsToGet = true, []string{"pk2", "b", "c", "d", "s", "t"}
		}, tablestore.PlainBuffer},
	} {
		for _, limit := range []int32{0, 2} {
			q := tb.criteria(tb.key("a", minKey))
			r := ranged(q, tablestore.FORWARD, tb.key("a", maxKey), limit)
			r.RangeRowQueryCriteria.DataBlockType = tablestore.SimpleRowMatrix
			v.ask(r.RangeRowQueryCriteria)
			got := conformance.Try(s.GetRange(r)).Must(t)
			conformance.Equal(t, got.DataBlockType, v.want, "%s: a block of type", name)
			want := [][]cell{values, values[1:2], nil}
			if limit > 0 {
				want = want[:limit]
				diff(t, keyValues(got.NextStartPrimaryKey), []any{"a", int64(3)})
			}
			diff(t, len(got.Rows), len(want))
			for i, row := range got.Rows {
				var cells []cell
				for _, c := range row.Columns {
					cells = append(cells, cell{Name: c.ColumnName, Value: c.Value})
				}
				diff(t, cells, want[i])
				if n := len(row.PrimaryKey.PrimaryKeys); name != "a part of the key" {
					diff(t, keyValues(row.PrimaryKey), []any{"a", int64(i + 1)})
				} else {
					diff(t, n, 1)
				}
			}
		}
	}
}

func TestEmptyNameDoesNotLimitColumns(t *testing.T) {
	s := proving(t, "3.11.4")
	skipReal(t, s)
	tb := s.newTable(t, tableOptions{})
	must(t, s.do(tb.put(tb.key("a", 1), c("c", 1))))
	empty := func(q *tablestore.SingleRowQueryCriteria) { q.StartColumn, q.EndColumn = ptr(""), ptr("") }
	diff(t, tb.get(t, tb.key("a", 1), empty).untimed().Cells, []cell{c("c", int64(1))})
}
