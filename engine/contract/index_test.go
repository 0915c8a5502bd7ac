package contract

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
)

// withIndexes creates a table with two key columns, the columns a (integer), b (string) and c (double), and indexes.
func (s *service) withIndexes(t *testing.T, indexes ...*tablestore.IndexMeta) *table {
	t.Helper()
	return s.newTable(t, tableOptions{indexes: indexes, defined: []tablestore.DefinedColumnSchema{
		{Name: "a", ColumnType: tablestore.DefinedColumn_INTEGER}, {Name: "b", ColumnType: tablestore.DefinedColumn_STRING},
		{Name: "c", ColumnType: tablestore.DefinedColumn_DOUBLE}}})
}

func indexOn(name string, key []string, columns ...string) *tablestore.IndexMeta {
	m := &tablestore.IndexMeta{IndexName: name, IndexType: tablestore.IT_GLOBAL_INDEX, Primarykey: key,
		DefinedColumns: columns}
	return m
}

func (s *service) addIndex(table string, index *tablestore.IndexMeta, base bool) error {
	_, err := s.CreateIndex(&tablestore.CreateIndexRequest{MainTableName: table, IndexMeta: index, IncludeBaseData: base})
	return err
}

func (s *service) dropIndex(table, index string) error {
	_, err := s.DeleteIndex(&tablestore.DeleteIndexRequest{MainTableName: table, IndexName: index})
	return err
}

func (tb *table) indexRows(t *testing.T, index string, columns int) (keys [][]any, cells [][]cell) {
	t.Helper()
	low, high := &tablestore.PrimaryKey{}, &tablestore.PrimaryKey{}
	d := conformance.Try(tb.DescribeTable(&tablestore.DescribeTableRequest{TableName: index})).Must(t)
	diff(t, len(d.TableMeta.SchemaEntry), columns)
	for _, k := range d.TableMeta.SchemaEntry {
		low.AddPrimaryKeyColumnWithMinValue(*k.Name)
		high.AddPrimaryKeyColumnWithMaxValue(*k.Name)
	}
	for low != nil {
		r := conformance.Try(tb.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
			TableName: index, StartPrimaryKey: low, EndPrimaryKey: high, MaxVersion: 1, Direction: tablestore.FORWARD}})).Must(t)
		for _, row := range r.Rows {
			keys = append(keys, keyValues(row.PrimaryKey))
			var some []cell
			for _, c := range row.Columns {
				some = append(some, cell{Name: c.ColumnName, Value: c.Value})
			}
			cells = append(cells, some)
		}
		low = r.NextStartPrimaryKey
	}
	return keys, cells
}

func TestIndexFollowsItsTable(t *testing.T) {
	s := proving(t, "3.14.1", "3.14.2", "3.14.3")
	skipReal(t, s) // a real instance updates indexes a little later
	byA := newTableName()
	tb := s.withIndexes(t, indexOn(byA, []string{"a"}, "b", "c"))
	must(t, s.do(tb.put(tb.key("x", 1), c("a", 7), c("b", "one"), c("other", true))))
	must(t, s.do(tb.put(tb.key("x", 2), c("b", "no a"))))
	must(t, s.do(tb.put(tb.key("w", 3), c("a", 7), c("c", 0.5))))
	keys, cells := tb.indexRows(t, byA, 3)
	diff(t, keys, [][]any{{int64(7), "w", int64(3)}, {int64(7), "x", int64(1)}})
	diff(t, cells, [][]cell{{{Name: "c", Value: 0.5}}, {{Name: "b", Value: "one"}}})

	must(t, s.do(tb.update(tb.key("x", 1), set("a", 3))))
	must(t, s.do(tb.update(tb.key("x", 2), add("a", 4))))
	must(t, s.do(tb.delete(tb.key("w", 3))))
	keys, _ = tb.indexRows(t, byA, 3)
	diff(t, keys, [][]any{{int64(3), "x", int64(1)}, {int64(4), "x", int64(2)}})
	must(t, s.do(tb.update(tb.key("x", 2), drop("a"))))

	t.Run("a later index has the existing rows on request", func(t *testing.T) {
		full, empty := newTableName(), newTableName()
		for name, base := range map[string]bool{full: true, empty: false} {
			must(t, s.addIndex(tb.name, indexOn(name, []string{"b", "pk2"}), base))
		}
		keys, _ := tb.indexRows(t, full, 3)
		diff(t, keys, [][]any{{"no a", int64(2), "x"}, {"one", int64(1), "x"}})
		keys, _ = tb.indexRows(t, empty, 3)
		diff(t, len(keys), 0)
		d := describe(t, s, tb.name)
		diff(t, len(d.IndexMetas), 3)
		diff(t, d.IndexMetas[0].Primarykey, []string{"a"})
		diff(t, d.IndexMetas[0].DefinedColumns, []string{"b", "c"})
		must(t, s.dropIndex(tb.name, full))
		check(t, s.describes(full), noSuchTable)
	})
	t.Run("an index cannot be written to or changed itself", func(t *testing.T) {
		x := &table{service: s, name: byA}
		key := &tablestore.PrimaryKey{}
		key.AddPrimaryKeyColumn("a", int64(1))
		key.AddPrimaryKeyColumn("pk1", "x")
		key.AddPrimaryKeyColumn("pk2", int64(1))
		want := invalid("Can't write index table directly.")
		check(t, s.do(x.put(key, c("b", "x"))), want)
		checkRow(t, x.rows(t, x.put(key, c("b", "x")))[0], want)
		check(t, s.deleteTable(byA), invalid("Can't delete index table directly."))
		check(t, s.alter(byA, newOptions(-1, 1)), invalid("Can't update index table directly."))
		check(t, s.addIndex(byA, indexOn(newTableName(), []string{"b"}), false),
			invalid("Can't create an index of an index table."))
		list := conformance.Try(s.ListTable()).Must(t)
		for _, name := range list.TableNames {
			conformance.True(t, name != byA, "the index is listed as a table")
		}
	})
}

func TestIndexedTableRefusesRepeatedRows(t *testing.T) {
	s := proving(t, "3.10.4", "3.13.1", "3.14.2")
	skipReal(t, s) // a real instance's message is undocumented
	name := newTableName()
	tb := s.withIndexes(t, indexOn(name, []string{"a"}))
	want := invalid("Repeated rows do not support tables with secondary indexes in BatchModify.")
	for what, changes := range map[string][]tablestore.RowChange{
		"two puts": {tb.put(tb.key("x", 1), c("a", 1)), tb.put(tb.key("x", 1), c("a", 2))},
		"a put and an update": {tb.put(tb.key("x", 1), c("a", 1)), tb.put(tb.key("y", 1), c("a", 1)),
			tb.update(tb.key("x", 1), set("a", 2))},
		"two deletions": {tb.delete(tb.key("x", 1)), tb.delete(tb.key("x", 1))},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := tb.batch(changes...)
			check(t, err, want)
		})
	}
	twice := bulkRow(tb, tb.key("x", 1), c("a", int64(1)))
	s.ask(t, "BulkImport", bulkBody(tb.name, twice, twice)).check(t, want)
	diff(t, len(tb.all(t)), 0)
	checkRows(t, tb.rows(t, tb.put(tb.key("x", 1), c("a", 1)), tb.put(tb.key("x", 2), c("a", 1))), accepted)
	must(t, s.dropIndex(tb.name, name))
	checkRows(t, tb.rows(t, tb.put(tb.key("x", 1), c("a", 1)), tb.put(tb.key("x", 1), c("a", 3))), accepted)
	diff(t, tb.values(t, tb.key("x", 1)).Cells, []cell{c("a", int64(3))})
}

func TestInvalidIndexesAreRefused(t *testing.T) {
	s := proving(t, "3.14.1", "3.14.4")
	skipReal(t, s)
	taken := newTableName()
	tb := s.withIndexes(t, indexOn(taken, []string{"a"}))
	badKey := invalid("The number of primary key columns must be in range: [1, 4] in index.")
	var manyColumns []string
	for i := range 33 {
		manyColumns = append(manyColumns, fmt.Sprint("d", i))
	}
	unknown := func(column string) refusal {
		const why = "neither a primary key column of the table nor a defined column of a key type."
		return invalid("Column '" + column + "' of index 'i' is " + why)
	}
	oneVersion := invalid("The maximum versions of a table with secondary indexes must be 1.")
	tooLong := invalid("The length of primary key column: 'b' exceeds the MaxLength:1024 with CurrentLength:1025.")
	for name, v := range map[string]struct {
		index *tablestore.IndexMeta
		want  refusal
	}{
		"no table's column": {indexOn("i", []string{"x"}), unknown("x")},
		"a double as key":   {indexOn("i", []string{"c"}), unknown("c")},
		"a column twice":    {indexOn("i", []string{"a", "a"}), invalid("Duplicated primary key name: 'a'.")},
		"a column in both":  {indexOn("i", []string{"a"}, "a"), invalid("Duplicated column name: 'a'.")},
		"a column beside": {indexOn("i", []string{"a"}, "pk1"),
			invalid("Column 'pk1' of index 'i' is not a defined column of the table.")},
		"five columns": {indexOn("i", []string{"a", "b", "pk1", "pk2", "x"}), badKey},
		"no key":       {indexOn("i", nil), badKey},
		"33 columns": {indexOn("i", []string{"a"}, manyColumns...),
			invalid("The number of attribute columns must be in range: [0, 32] in index.")},
		"an index's name":  {indexOn(taken, []string{"b"}), alreadyExists},
		"the table's name": {indexOn(tb.name, []string{"b"}), alreadyExists},
		"a wrong name":     {indexOn("1", []string{"b"}), invalid("Invalid table name: '1'.")},
	} {
		t.Run(name, func(t *testing.T) { check(t, s.addIndex(tb.name, v.index, false), v.want) })
	}
	check(t, s.addIndex("not_there", indexOn("i", nil), false), badKey)
	withTaken := &tablestore.TableMeta{TableName: newTableName()}
	withTaken.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	check(t, s.create(withTaken, newOptions(-1, 1), indexOn(taken, []string{"pk1"})), alreadyExists)
	check(t, s.alter(tb.name, newOptions(-1, 2)), oneVersion)
	old := s.newTable(t, tableOptions{versions: 2})
	check(t, s.addIndex(old.name, indexOn(newTableName(), []string{"pk2"}), false), oneVersion)
	check(t, s.dropIndex(tb.name, "not_there"), refusal{404, "OTSObjectNotExist", "Requested index does not exist."})
	_, err := s.DeleteDefinedColumn(&tablestore.DeleteDefinedColumnRequest{TableName: tb.name,
		DefinedColumns: []string{"a"}})
	check(t, err, invalid("Defined column 'a' is used by index '"+taken+"'."))
	long := tb.put(tb.key("x", 1), c("b", text(1025)))
	must(t, s.do(long))
	more := newTableName()
	check(t, s.addIndex(tb.name, indexOn(more, []string{"b"}), true), tooLong)
	must(t, s.addIndex(tb.name, indexOn(more, []string{"b"}), false))
	check(t, s.do(long), tooLong)
	for range 3 {
		must(t, s.addIndex(tb.name, indexOn(newTableName(), []string{"a"}), false))
	}
	check(t, s.addIndex(tb.name, indexOn(newTableName(), []string{"a"}), false),
		invalid("Number of index per table exceeds the quota:5."))
}

func TestLocalIndexBeginsWithPartitionKey(t *testing.T) {
	s := proving(t, "3.14.1")
	skipReal(t, s)
	tb := s.withIndexes(t)
	local := func(name string, key ...string) *tablestore.IndexMeta {
		m := indexOn(name, key, "b")
		m.IndexType = tablestore.IT_LOCAL_INDEX
		return m
	}
	name := newTableName()
	check(t, s.addIndex(tb.name, local(name, "a"), true), invalid("The first primary key column of local index '"+name+
		"' must be the table's, 'pk1'."))
	must(t, s.do(tb.put(tb.key("x", 1), c("a", int64(9)), c("b", "early"))))
	must(t, s.addIndex(tb.name, local(name, "pk1", "a"), true))
	must(t, s.do(tb.put(tb.key("x", 2), c("a", int64(8)), c("b", "late"))))
	d := conformance.Try(s.DescribeTable(&tablestore.DescribeTableRequest{TableName: tb.name})).Must(t)
	diff(t, d.IndexMetas[0].IndexType, tablestore.IT_LOCAL_INDEX)
	keys, cells := tb.indexRows(t, name, 3)
	diff(t, keys, [][]any{{"x", int64(8), int64(2)}, {"x", int64(9), int64(1)}})
	diff(t, cells, [][]cell{{{Name: "b", Value: "late"}}, {{Name: "b", Value: "early"}}})
}

func TestIndexColumnLimits(t *testing.T) {
	s := proving(t, "3.14.1", "3.1.5")
	skipReal(t, s)
	columns, index := []string{"a", "b", "c", "d"}, newTableName()
	o := tableOptions{numbered: true, keys: slices.Repeat(stringInteger[1:], 4),
		indexes: []*tablestore.IndexMeta{indexOn(index, columns)}}
	for _, name := range columns {
		o.defined = append(o.defined, tablestore.DefinedColumnSchema{Name: name, ColumnType: tablestore.DefinedColumn_STRING})
	}
	tb := s.newTable(t, o)
	key := tb.key(0, 1, 2)
	key.AddPrimaryKeyColumnWithAutoIncrement("pk4")
	must(t, s.do(tb.put(key, c("a", "A"), c("b", "B"), c("c", "C"), c("d", "D"))))
	keys, _ := tb.indexRows(t, index, 8)
	diff(t, len(keys), 1)
	diff(t, keys[0][:7], []any{"A", "B", "C", "D", int64(0), int64(1), int64(2)})
	whole := &tablestore.PrimaryKey{}
	for i, name := range append(columns, "pk1", "pk2", "pk3", "pk4") {
		whole.AddPrimaryKeyColumn(name, keys[0][i])
	}
	read := func(table string) (*tablestore.GetRowResponse, error) {
		q := &tablestore.SingleRowQueryCriteria{TableName: table, PrimaryKey: whole, MaxVersion: 1}
		return s.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: q})
	}
	got, err := read(index)
	must(t, err)
	diff(t, len(got.PrimaryKey.PrimaryKeys), 8)
	_, err = read(tb.name)
	tooMany := invalid("The number of primary key columns must be in range: [1, 4].")
	check(t, err, tooMany)
	check(t, s.do(tb.put(whole)), tooMany)
	first := newTableName()
	check(t, s.addIndex(tb.name, indexOn(first, []string{"pk4"}), false),
		invalid("First primary key can't be auto increment, table: "+first+"."))
}

func TestIndexExpiresWithItsTable(t *testing.T) {
	s := proving(t, "3.14.1", "3.7.2")
	skipReal(t, s)
	refused := invalid("Don't support allow update operation on table with index and ttl")
	byA := newTableName()
	tb := s.withIndexes(t, indexOn(byA, []string{"a"}, "b"))
	check(t, s.alter(tb.name, newOptions(86400, 1)), refused)
	options := newOptions(86400, 1)
	options.AllowUpdate = ptr(false)
	options.DeviationCellVersionInSec = 10 * 86400
	must(t, s.alter(tb.name, options))
	d := describe(t, s, byA)
	diff(t, d.TableOption.TimeToAlive, 86400)
	check(t, s.alter(tb.name, &tablestore.TableOption{TimeToAlive: 86400, MaxVersion: 1, AllowUpdate: ptr(true)}), refused)
	check(t, s.do(tb.update(tb.key("x", 1), set("a", 3))), invalid("Update operation is not allowed in this table"))
	must(t, s.do(tb.put(tb.key("x", 1), c("a", 7), c("b", "one"))))
	must(t, s.do(tb.put(tb.key("x", 2), v("a", 8, time.Now().Add(-12*time.Hour).UnixMilli()), c("b", "two"))))
	x1, x2 := []any{int64(7), "x", int64(1)}, []any{int64(8), "x", int64(2)}
	for _, want := range [][][]any{{x1, x2}, {x1}, nil} { // in the second row, the key of the index expires first
		keys, _ := tb.indexRows(t, byA, 3)
		diff(t, keys, want)
		s.tell(t, "clock", `{"advance": "13h"}`, http.StatusOK)
	}
}

func (s *service) tell(t testing.TB, what, body string, status int) {
	t.Helper()
	res := conformance.Try(http.Post(s.endpoint+"/_engine/"+what, "", strings.NewReader(body))).Must(t)
	res.Body.Close()
	diff(t, res.StatusCode, status)
}

// Without a delay, indexes are updated at once. With one, they are updated later by the clock, which tests can move.
func TestIndexShowsWritesAfterDelay(t *testing.T) {
	t.Parallel()
	spec(t, "3.14.2")
	s := serviceWith(t, server.Options{Simulation: &server.Simulation{Choices: server.Choices{IndexDelay: time.Hour}}})
	name := newTableName()
	tb := s.withIndexes(t, indexOn(name, []string{"a"}))
	shows := func(want ...[]any) {
		t.Helper()
		keys, _ := tb.indexRows(t, name, 3)
		diff(t, keys, want)
	}
	must(t, s.do(tb.put(tb.key("x", 1), c("a", 7))))
	s.tell(t, "clock", `{"advance": "59m"}`, http.StatusOK)
	must(t, s.do(tb.update(tb.key("x", 1), set("a", 8))))
	shows()
	s.tell(t, "clock", `{"advance": "1m"}`, http.StatusOK)
	shows([]any{int64(7), "x", int64(1)})
	s.tell(t, "clock", `{"advance": "1h"}`, http.StatusOK)
	shows([]any{int64(8), "x", int64(1)})
	must(t, s.do(tb.delete(tb.key("x", 1))))
	shows([]any{int64(8), "x", int64(1)})
	s.tell(t, "tables/"+tb.name+"/simulate", `{"index_delay_ms": 5}`, http.StatusBadRequest)
	s.tell(t, "simulate", `{"index_delay_ms": -5}`, http.StatusBadRequest)
	s.tell(t, "simulate", `{}`, http.StatusOK)
	shows()
}
