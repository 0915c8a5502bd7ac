package contract

import (
	"fmt"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

func TestBatchAnswersRowsInOrder(t *testing.T) {
	s := proving(t, "3.10.1", "3.10.3")
	tb := s.newTable(t, tableOptions{})
	tb.load(t, several(3, func(i int) change { return tb.put(tb.key("there", i+1), c("a", 1)) })...)
	changes := []tablestore.RowChange{
		tb.put(tb.key("new", 9), c("a", 1)),
		expecting(expectNotExist, tb.put(tb.key("there", 1), c("a", 2))),
		tb.update(tb.key("there", 2), set("b", 2), drop("a")),
		expecting(expectExist, tb.update(tb.key("missing", 1), set("b", 2))),
		tb.delete(tb.key("there", 3)),
		tb.put(tb.key("short")),
		tb.update(tb.key("new", 8), add("n", 3)),
		expecting(expectExist, tb.delete(tb.key("missing", 2))),
	}
	short := invalidPK("Validate PK size fail. Input: 1, Meta: 2.")
	for i, row := range tb.rows(t, changes...) {
		diff(t, row.Index, int32(i))
		checkRow(t, row, map[int]refusal{1: conditionFailed, 3: conditionFailed, 5: short, 7: conditionFailed}[i])
	}
	diff(t, tb.all(t), []*row{
		{[]any{"new", int64(8)}, []cell{c("n", int64(3))}},
		{[]any{"new", int64(9)}, []cell{c("a", int64(1))}},
		{[]any{"there", int64(1)}, []cell{c("a", int64(1))}},
		{[]any{"there", int64(2)}, []cell{c("b", int64(2))}},
	})
}

func TestBatchMayNameSeveralTables(t *testing.T) {
	s := proving(t, "3.6.3", "3.10.1", "3.10.4")
	one, two := s.newTable(t, tableOptions{}), s.newTable(t, tableOptions{})
	missing := &table{service: s, name: newTableName()}
	r, err := s.batch(one.put(one.key("a", 1), c("t", 1)), missing.put(missing.key("a", 1)),
		two.put(two.key("b", 2), c("t", 2)), missing.delete(missing.key("a", 1)))
	must(t, err)
	checkRow(t, r.TableToRowsResult[one.name][0], accepted)
	checkRow(t, r.TableToRowsResult[two.name][0], accepted)
	diff(t, one.all(t), []*row{{[]any{"a", int64(1)}, []cell{c("t", int64(1))}}})
	diff(t, two.all(t), []*row{{[]any{"b", int64(2)}, []cell{c("t", int64(2))}}})
	t.Run("rows of a missing table fail one by one", func(t *testing.T) {
		checkRows(t, r.TableToRowsResult[missing.name], noSuchTable)
	})
	t.Run("reads of a missing table fail one by one", func(t *testing.T) {
		absent := missing.keysToGet(missing.key("a", 1), missing.key("b", 1))
		r := conformance.Try(s.BatchGetRow(batchRead(one.keysToGet(one.key("a", 1)), absent))).Must(t)
		checkRow(t, r.TableToRowsResult[one.name][0], accepted)
		checkRows(t, r.TableToRowsResult[missing.name], noSuchTable)
	})
	t.Run("a row of another table is not repeated", func(t *testing.T) {
		r := conformance.Try(s.batch(expecting(expectNotExist, one.put(one.key("k", 1), c("n", 1))),
			expecting(expectNotExist, two.put(two.key("k", 1))),
			one.update(one.key("k", 2), add("n", 1)), two.update(two.key("k", 2), add("n", 1)))).Must(t)
		for _, tb := range []*table{one, two} {
			checkRows(t, r.TableToRowsResult[tb.name], accepted)
			diff(t, len(tb.all(t)), 3)
		}
	})
	t.Run("each table has its own selection", func(t *testing.T) {
		a, b := one.keysToGet(one.key("k", 1)), two.keysToGet(two.key("k", 2))
		a.ColumnsToGet = []string{"x"}
		g, err := s.BatchGetRow(batchRead(a, b))
		must(t, err)
		diff(t, len(g.TableToRowsResult[one.name][0].PrimaryKey.PrimaryKeys), 0)
		diff(t, len(g.TableToRowsResult[two.name][0].Columns), 1)
	})
}

func TestBatchAppliesRepeatedRowsInOrder(t *testing.T) {
	s := proving(t, "3.10.4")
	tb := s.newTable(t, tableOptions{})
	expectation := invalid("Repeated rows do not support row exist expectation check in BatchModify.")
	condition := invalid("Repeated rows do not support row condition check in BatchModify.")
	passes := lenient(compare("x", eq, 1))
	var puts, updates []change
	k := tb.key("k", 1)
	for i := range 10 {
		puts = append(puts, tb.put(k, c(fmt.Sprint("c", i), i)))
		updates = append(updates, tb.update(k, set(fmt.Sprint("c", i), i)))
	}
	put, update := tb.put(k, c("a", 1)), tb.update(k, set("b", 2))
	for name, v := range map[string]struct {
		changes []change
		want    refusal
		cells   int // columns afterwards; -1 means no row
	}{
		"the last of ten puts":     {puts, accepted, 1},
		"ten updates add up":       {updates, accepted, 10},
		"put, then update":         {[]change{put, update}, accepted, 2},
		"update, then put":         {[]change{update, put}, accepted, 1},
		"put, then delete":         {[]change{put, tb.delete(k)}, accepted, -1},
		"delete, then update":      {[]change{put, tb.delete(k), tb.update(k, set("b", 2), set("c", 3))}, accepted, 2},
		"increments add up":        {[]change{tb.put(k), tb.update(k, add("n", 1)), tb.update(k, add("n", 1))}, accepted, 1},
		"the first expects no row": {[]change{expecting(expectNotExist, tb.put(k)), tb.put(k)}, expectation, -1},
		"the last expects a row":   {[]change{tb.put(k), tb.put(k), expecting(expectExist, tb.delete(k))}, expectation, -1},
		"the first's condition":    {[]change{when(passes, tb.put(k)), tb.put(k)}, condition, -1},
		"the last's condition":     {[]change{tb.put(k), update, when(passes, tb.delete(k))}, condition, -1},
		"both: expectation first":  {[]change{when(passes, expecting(expectExist, tb.put(k))), tb.put(k)}, expectation, -1},
		"conditions of no rows":    {[]change{when(passes, tb.put(k)), when(passes, tb.put(tb.key("l", 2)))}, accepted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, s.do(tb.delete(k)))
			bystander := tb.key(name, 2)
			r, err := tb.batch(append([]change{tb.put(bystander)}, v.changes...)...)
			check(t, err, v.want)
			if err == nil {
				checkRows(t, r.TableToRowsResult[tb.name], accepted)
			}
			conformance.Equal(t, tb.get(t, bystander) != nil, v.want == accepted, "the other row of the batch is there")
			got := -1
			if r := tb.get(t, k); r != nil {
				got = len(r.Cells)
			}
			diff(t, got, v.cells)
		})
	}
}

func TestMalformedBatchIsRefusedAsAWhole(t *testing.T) {
	s := proving(t, "3.10.2", "1.10.3", "2.3.4")
	tb := s.newTable(t, tableOptions{})
	put := func(row []byte) message { return message{}.int(1, 1).bytes(2, row).bytes(3, message{}.int(1, 0)) }
	good := put(tb.put(tb.key("a", 1), c("c", 1)).Serialize())
	flipped := tb.put(tb.key("a", 2), c("c", 1)).Serialize()
	flipped[len(flipped)-1] ^= 1
	part := message{}.text(1, tb.name).bytes(2, good)
	for name, v := range map[string]struct {
		body message
		want refusal
	}{
		"no table": {nil, invalid("No row is specified in BatchWriteRow.")},
		"no rows": {message{}.bytes(1, part).bytes(1, message{}.text(1, "other")),
			invalid("No operation is specified for table: 'other'.")},
		"a table twice": {message{}.bytes(1, part).bytes(1, part), invalid("Duplicated table name: " + tb.name + ".")},
		"no table's name": {message{}.bytes(1, part).bytes(1, message{}.text(1, "1t").bytes(2, good)),
			invalid("Invalid table name: '1t'.")},
		"an operation of 4": {message{}.bytes(1, part.bytes(2, message{}.int(1, 4).bytes(2, flipped).bytes(3,
			message{}.int(1, 0)))), invalid("The modify type is invalid.")},
		"no operation": {message{}.bytes(1, part.bytes(2, message{}.bytes(2, flipped).bytes(3, message{}.int(1, 0)))),
			invalid("")},
		"no condition": {message{}.bytes(1, part.bytes(2, message{}.int(1, 1).bytes(2, flipped))), invalid("")},
	} {
		t.Run(name, func(t *testing.T) {
			s.ask(t, "BatchWriteRow", v.body).check(t, v.want)
			diff(t, len(tb.all(t)), 0)
		})
	}
}

func batchRead(read ...*tablestore.MultiRowQueryCriteria) *tablestore.BatchGetRowRequest {
	return &tablestore.BatchGetRowRequest{MultiRowQueryCriteria: read}
}

// keysToGet returns a table's part of BatchGetRow, for the newest version of all columns.
func (tb *table) keysToGet(keys ...*tablestore.PrimaryKey) *tablestore.MultiRowQueryCriteria {
	return &tablestore.MultiRowQueryCriteria{TableName: tb.name, MaxVersion: 1, PrimaryKey: keys}
}

func (tb *table) batchGet(t *testing.T, q *tablestore.MultiRowQueryCriteria) (rows []*row) {
	t.Helper()
	r, err := tb.BatchGetRow(batchRead(q))
	must(t, err)
	for _, x := range r.TableToRowsResult[tb.name] {
		checkRow(t, x, accepted)
		rows = append(rows, newRow(&x.PrimaryKey, x.Columns).untimed())
	}
	return rows
}

func TestBatchGetRowAnswersKeyByKey(t *testing.T) {
	s := proving(t, "3.11.1", "3.11.3", "3.11.6")
	tb := s.newTable(t, tableOptions{})
	tb.load(t, tb.put(tb.key("a", 1), c("x", 1), c("y", 2)), tb.put(tb.key("b", 1), c("x", 3)), tb.put(tb.key("c", 1)))
	a := &row{[]any{"a", int64(1)}, []cell{c("x", int64(1)), c("y", int64(2))}}
	b := &row{[]any{"b", int64(1)}, []cell{c("x", int64(3))}}
	t.Run("a missing row has an empty answer in its place", func(t *testing.T) {
		diff(t, tb.batchGet(t, tb.keysToGet(tb.key("b", 1), tb.key("z", 1), tb.key("a", 1))), []*row{b, nil, a})
	})
	t.Run("a key may be repeated", func(t *testing.T) {
		diff(t, tb.batchGet(t, tb.keysToGet(tb.key("a", 1), tb.key("a", 1))), []*row{a, a})
	})
	t.Run("a row without columns exists", func(t *testing.T) {
		diff(t, tb.batchGet(t, tb.keysToGet(tb.key("c", 1))), []*row{{Key: []any{"c", int64(1)}}})
	})
	t.Run("a row without the columns to get is not answered", func(t *testing.T) {
		q := tb.keysToGet(tb.key("a", 1), tb.key("b", 1))
		q.ColumnsToGet = []string{"y"}
		diff(t, tb.batchGet(t, q), []*row{{a.Key, a.Cells[1:]}, nil})
	})
	t.Run("a table without keys has no answers", func(t *testing.T) { diff(t, len(tb.batchGet(t, tb.keysToGet())), 0) })
	for name, v := range map[string]struct {
		body message
		want refusal
	}{
		"no table":         {nil, invalid("No row specified in the request of BatchGetRow.")},
		"a bad table name": {message{}.bytes(1, message{}.text(1, "1t").int(6, 1)), invalid("Invalid table name: '1t'.")},
		"a bad column to get": {message{}.bytes(1, message{}.text(1, tb.name).bytes(2, tb.key("a", 1).Build(false)).text(4,
			"").int(6, 1)), invalid("")},
	} {
		t.Run(name+" is refused", func(t *testing.T) { s.ask(t, "BatchGetRow", v.body).check(t, v.want) })
	}
}

func (s *service) atomicBatch(t *testing.T, changes ...change) map[string][]tablestore.RowResult {
	t.Helper()
	q := &tablestore.BatchWriteRowRequest{IsAtomic: true}
	for _, c := range changes {
		q.AddRowChange(c)
	}
	r := conformance.Try(s.BatchWriteRow(q)).Must(t)
	return r.TableToRowsResult
}

// If the rows of a table differ in their partition key, all of them fail.
func TestAtomicBatchHasOnePartitionKey(t *testing.T) {
	s := proving(t, "3.10.5")
	tb := s.newTable(t, tableOptions{})
	changes := several(10, func(i int) change { return tb.put(tb.key(fmt.Sprint(i), 0)) })
	r := s.atomicBatch(t, changes...)
	rows := r[tb.name]
	diff(t, len(rows), 10)
	checkRows(t, rows, refusal{0, "OTSDataOutOfRange", "Data out of scope of atomic. Atomic PartKey:0. Data PartKey:1"})
	diff(t, len(tb.all(t)), 0)
	t.Run("each table has its own", func(t *testing.T) {
		other := s.newTable(t, tableOptions{})
		a, b := tb.put, other.put
		r := s.atomicBatch(t, a(tb.key("a", 1)), b(other.key("b", 1)), a(tb.key("a", 2)), b(other.key("b", 2)))
		for _, name := range []string{tb.name, other.name} {
			checkRows(t, r[name], accepted)
		}
		diff(t, len(tb.all(t))+len(other.all(t)), 4)
	})
	t.Run("each table succeeds or fails alone", func(t *testing.T) {
		other, missing := s.newTable(t, tableOptions{}), &table{service: s, name: newTableName()}
		r := s.atomicBatch(t, expecting(expectExist, tb.put(tb.key("z", 1))), tb.put(tb.key("z", 2)),
			other.put(other.key("z", 1)), missing.put(missing.key("z", 1)))
		for name, want := range map[string]refusal{tb.name: conditionFailed, other.name: accepted,
			missing.name: noSuchTable} {
			checkRows(t, r[name], want)
		}
		diff(t, len(tb.all(t))+len(other.all(t)), 2+1)
	})
	t.Run("an integer is named in digits, a binary in hex", func(t *testing.T) {
		for _, v := range []struct {
			kind         tablestore.PrimaryKeyType
			first, other any
			named        string
		}{
			{tablestore.PrimaryKeyType_INTEGER, -3, 4, "Atomic PartKey:-3. Data PartKey:4"},
			{tablestore.PrimaryKeyType_BINARY, []byte{1, 255}, []byte{10}, "Atomic PartKey:01ff. Data PartKey:0a"},
		} {
			of := s.newTable(t, tableOptions{keys: []tablestore.PrimaryKeyType{v.kind}})
			r := s.atomicBatch(t, of.put(of.key(v.first)), of.put(of.key(v.other)))
			checkRows(t, r[of.name], refusal{0, "OTSDataOutOfRange", "Data out of scope of atomic. " + v.named})
		}
	})
}

// With is_atomic, the other rows return the error of the failed one. That is the engine's choice.
func TestAtomicBatchIsAppliedAllOrNone(t *testing.T) {
	s := proving(t, "3.10.5")
	tb := s.newTable(t, tableOptions{})
	tb.load(t, tb.put(tb.key("a", 9), c("t", "text")))
	before := tb.all(t)
	conditional := tb.delete(tb.key("a", 9))
	conditional.SetColumnCondition(tablestore.NewSingleColumnCondition("t", tablestore.CT_EQUAL, "other text"))
	for name, v := range map[string]struct {
		bad  tablestore.RowChange
		want refusal
	}{
		"a condition":          {expecting(expectExist, tb.put(tb.key("a", 5))), conditionFailed},
		"a column's condition": {conditional, conditionFailed},
		"an unfit key":         {tb.put(tb.key("a")), invalidPK("Validate PK size fail. Input: 1, Meta: 2.")},
		"an increment of text": {tb.update(tb.key("a", 9), add("t", 1)), invalid("")},
		"a timestamp of 1": {tb.put(tb.key("a", 5), v("c", 1, 1)),
			invalid("Invalid timestamp. Cell:c. Timestamp:1. MinTimestamp:…")},
		"another partition": {tb.put(tb.key("b", 5)), refusal{0, "OTSDataOutOfRange", ""}},
	} {
		for _, last := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, at the end %t", name, last), func(t *testing.T) {
				changes := []tablestore.RowChange{tb.put(tb.key("a", 1), c("t", 1)), tb.update(tb.key("a", 2), add("n", 1))}
				if name != "an increment of text" && name != "a column's condition" { // these need the row with key 9
					changes = append(changes, tb.delete(tb.key("a", 9)))
				}
				if last {
					changes = append(changes, v.bad)
				} else {
					changes = append([]tablestore.RowChange{v.bad}, changes...)
				}
				r := s.atomicBatch(t, changes...)
				checkRows(t, r[tb.name], v.want)
				diff(t, tb.all(t), before)
			})
		}
	}
	t.Run("all rows are applied", func(t *testing.T) {
		r := s.atomicBatch(t, tb.put(tb.key("a", 1), c("t", 1)), tb.update(tb.key("a", 2), add("n", 1)),
			tb.delete(tb.key("a", 9)), expecting(expectNotExist, tb.put(tb.key("a", 3))))
		checkRows(t, r[tb.name], accepted)
		diff(t, tb.all(t), []*row{
			{[]any{"a", int64(1)}, []cell{c("t", int64(1))}}, {[]any{"a", int64(2)}, []cell{c("n", int64(1))}},
			{[]any{"a", int64(3)}, nil}})
	})
}

func TestDataSurvivesRestart(t *testing.T) {
	spec(t, "3.6.5", "3.8.9")
	t.Parallel()
	for name, end := range map[string]func(*restartable){"after a stop": func(r *restartable) { r.stop() },
		"after a loss of power": (*restartable).losePower} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openStore(t)
			tb := r.newTable(t, tableOptions{versions: 2})
			gone := r.newTable(t, tableOptions{})
			must(t, r.do(gone.put(gone.key("a", 1))))
			must(t, r.deleteTable(gone.name))
			must(t, r.alter(tb.name, newOptions(864000, 3)))
			tb.load(t, tb.put(tb.key("put", 1), c("b", []byte{0, 255}), c("d", 0.5), c("i", -7), c("s", "表\x00"), c("t", true)),
				tb.put(tb.key("deleted", 1)), tb.put(tb.key("empty", 1)), tb.update(tb.key("updated", 1), set("a", 1)))
			must(t, r.do(tb.delete(tb.key("deleted", 1))))
			must(t, r.do(tb.update(tb.key("updated", 1), set("a", 2), add("n", 5))))
			read := func() (rows []*row) {
				rows, _ = tb.scan(t, tablestore.FORWARD, tb.key(minKey, minKey), tb.key(maxKey, maxKey), 0, versions(3))
				return rows
			}
			before := read()
			for range 2 {
				end(r)
				r.start(t)
				diff(t, read(), before)
				diff(t, options(describe(t, r.service, tb.name).TableOption), [3]int64{864000, 3, 86400})
				check(t, r.do(gone.put(gone.key("a", 1))), noSuchTable)
			}
			t.Run("a table with a deleted one's name is empty", func(t *testing.T) {
				must(t, r.create(newMeta(gone.name, "pk1", "pk2"), newOptions(-1, 1)))
				diff(t, len(gone.all(t)), 0)
			})
		})
	}
}
