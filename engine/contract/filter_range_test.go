package contract

import (
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

func TestARangeContinuesPastFilteredRows(t *testing.T) {
	s := proving(t, "3.11.5", "3.11.8")
	tb := s.newTable(t, tableOptions{})
	const rows = 5005
	tb.load(t, several(rows, func(i int) change { return tb.put(tb.key("k", i), c("n", i), c("even", i%2 == 0)) })...)
	start, end := tb.key("k", minKey), tb.key("k", maxKey)
	t.Run("5000 rows that do not pass are an empty page that has a next", func(t *testing.T) {
		r := tb.page(t, tablestore.FORWARD, end, 0, start, filtered(compare("n", ge, 5000)))
		diff(t, len(r.Rows), 0)
		diff(t, keyValues(r.NextStartPrimaryKey), []any{"k", int64(5000)})
		found, pages := tb.scan(t, tablestore.FORWARD, start, end, 0, filtered(compare("n", ge, 5000)))
		diff(t, keysOf(found), [][]any{{"k", int64(5000)}, {"k", int64(5001)}, {"k", int64(5002)}, {"k", int64(5003)}, {"k", int64(5004)}})
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

func TestARangeAnswersPartOfTheKeyWhenAskedTo(t *testing.T) {
	s := proving(t, "3.11.9")
	tb := s.newTable(t, tableOptions{})
	tb.load(t, tb.put(tb.key("a", 1), c("c", 1)), tb.put(tb.key("a", 2), c("d", 2)), tb.put(tb.key("a", 3), c("c", 3)))
	read := func(t *testing.T, limit int32, names ...string) (*tablestore.GetRangeResponse, []*row) {
		r := ranged(tb.criteria(tb.key("a", minKey), columns(names...)), tablestore.FORWARD, tb.key("a", maxKey), limit)
		r.RangeRowQueryCriteria.ReturnSpecifiedPkOnly = true
		got, err := s.GetRange(r)
		must(t, err)
		var rows []*row
		for _, x := range got.Rows {
			rows = append(rows, (&row{keyValues(x.PrimaryKey), cellsOf(x.Columns)}).untimed())
		}
		return got, rows
	}
	one, three := c("c", int64(1)), c("c", int64(3))
	t.Run("a key column that is named, and every row", func(t *testing.T) {
		_, rows := read(t, 0, "pk2", "c")
		diff(t, rows, []*row{{[]any{int64(1)}, []cell{one}}, {[]any{int64(2)}, nil}, {[]any{int64(3)}, []cell{three}}})
	})
	t.Run("all of the key, in the order of the schema", func(t *testing.T) {
		_, rows := read(t, 1, "pk2", "pk1")
		diff(t, rows, []*row{{[]any{"a", int64(1)}, nil}})
	})
	t.Run("no names are the whole row", func(t *testing.T) {
		_, rows := read(t, 1)
		diff(t, rows, []*row{{[]any{"a", int64(1)}, []cell{one}}})
	})
	t.Run("the next key is whole", func(t *testing.T) {
		r, _ := read(t, 1, "pk2")
		diff(t, keyValues(r.NextStartPrimaryKey), []any{"a", int64(2)})
	})
	t.Run("no key column", func(t *testing.T) {
		skipReal(t, s) // what it answers is not known
		_, rows := read(t, 0, "c")
		diff(t, rows, []*row{{nil, []cell{one}}, {nil, []cell{three}}})
	})
	t.Run("a filter still sees the key", func(t *testing.T) {
		skipReal(t, s)
		r := ranged(tb.criteria(tb.key("a", minKey), columns("pk2"), filtered(allOf(compare("pk1", eq, "a"), compare("pk2", gt, 1)))), tablestore.FORWARD, tb.key("a", maxKey), 0)
		r.RangeRowQueryCriteria.ReturnSpecifiedPkOnly = true
		got, err := s.GetRange(r)
		must(t, err)
		diff(t, len(got.Rows), 2)
	})
}

func TestAMatrixIsAnsweredWhereItHoldsTheRows(t *testing.T) {
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
			got, err := s.GetRange(r)
			must(t, err)
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

func TestAnEmptyNameBoundsNoColumns(t *testing.T) {
	s := proving(t, "3.11.4")
	skipReal(t, s)
	tb := s.newTable(t, tableOptions{})
	must(t, s.do(tb.put(tb.key("a", 1), c("c", 1))))
	empty := func(q *tablestore.SingleRowQueryCriteria) { q.StartColumn, q.EndColumn = ptr(""), ptr("") }
	diff(t, tb.get(t, tb.key("a", 1), empty).untimed().Cells, []cell{c("c", int64(1))})
}
