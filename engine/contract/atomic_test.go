package contract

import (
	"fmt"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// atomicBatch returns the answers by table.
func (s *service) atomicBatch(t *testing.T, changes ...change) map[string][]tablestore.RowResult {
	t.Helper()
	q := &tablestore.BatchWriteRowRequest{IsAtomic: true}
	for _, c := range changes {
		q.AddRowChange(c)
	}
	r, err := s.BatchWriteRow(q)
	must(t, err)
	return r.TableToRowsResult
}

// All rows of a table share one partition key, else every row fails.
func TestAnAtomicBatchHasOnePartitionKey(t *testing.T) {
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
		r := s.atomicBatch(t, tb.put(tb.key("a", 1)), other.put(other.key("b", 1)), tb.put(tb.key("a", 2)), other.put(other.key("b", 2)))
		for _, name := range []string{tb.name, other.name} {
			checkRows(t, r[name], accepted)
		}
		diff(t, len(tb.all(t))+len(other.all(t)), 4)
	})
	t.Run("and its own fate", func(t *testing.T) {
		other, missing := s.newTable(t, tableOptions{}), &table{service: s, name: newTableName()}
		r := s.atomicBatch(t, expecting(expectExist, tb.put(tb.key("z", 1))), tb.put(tb.key("z", 2)), other.put(other.key("z", 1)), missing.put(missing.key("z", 1)))
		for name, want := range map[string]refusal{tb.name: conditionFailed, other.name: accepted, missing.name: noSuchTable} {
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

// Is_atomic. That the other rows answer the error of the one that failed is the engine's choice.
func TestAnAtomicBatchIsAppliedAllOrNone(t *testing.T) {
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
		"a condition that fails":     {expecting(expectExist, tb.put(tb.key("a", 5))), conditionFailed},
		"a column's condition":       {conditional, conditionFailed},
		"a key that does not fit":    {tb.put(tb.key("a")), invalidPK("Validate PK size fail. Input: 1, Meta: 2.")},
		"an increment of text":       {tb.update(tb.key("a", 9), add("t", 1)), invalid("")},
		"a timestamp out of bounds":  {tb.put(tb.key("a", 5), v("c", 1, 1)), invalid("Invalid timestamp. Cell:c. Timestamp:1. MinTimestamp:…")},
		"a row of another partition": {tb.put(tb.key("b", 5)), refusal{0, "OTSDataOutOfRange", ""}},
	} {
		for _, last := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, at the end %t", name, last), func(t *testing.T) {
				changes := []tablestore.RowChange{tb.put(tb.key("a", 1), c("t", 1)), tb.update(tb.key("a", 2), add("n", 1))}
				if name != "an increment of text" && name != "a column's condition" { // those are of that row
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
	t.Run("every row fits", func(t *testing.T) {
		r := s.atomicBatch(t, tb.put(tb.key("a", 1), c("t", 1)), tb.update(tb.key("a", 2), add("n", 1)), tb.delete(tb.key("a", 9)),
			expecting(expectNotExist, tb.put(tb.key("a", 3))))
		checkRows(t, r[tb.name], accepted)
		diff(t, tb.all(t), []*row{
			{[]any{"a", int64(1)}, []cell{c("t", int64(1))}}, {[]any{"a", int64(2)}, []cell{c("n", int64(1))}}, {[]any{"a", int64(3)}, nil}})
	})
}

func TestDataSurvivesARestart(t *testing.T) {
	spec(t, "3.6.5", "3.8.9")
	t.Parallel()
	for name, end := range map[string]func(*restartable){"after a stop": func(r *restartable) { r.stop() }, "after a loss of power": (*restartable).losePower} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openStore(t)
			tb := r.newTable(t, tableOptions{versions: 2})
			gone := r.newTable(t, tableOptions{})
			must(t, r.do(gone.put(gone.key("a", 1))))
			must(t, r.deleteTable(gone.name))
			must(t, r.alter(tb.name, newOptions(864000, 3)))
			tb.load(t,
				tb.put(tb.key("put", 1), c("b", []byte{0, 255}), c("d", 0.5), c("i", -7), c("s", "表\x00"), c("t", true)),
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
			t.Run("and a table of a deleted one's name is empty", func(t *testing.T) {
				must(t, r.create(newMeta(gone.name, "pk1", "pk2"), newOptions(-1, 1)))
				diff(t, len(gone.all(t)), 0)
			})
		})
	}
}
