package contract

import (
	"fmt"
	"slices"
	"testing"

	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// newNumberedTable creates a table with the key pk1 STRING, pk2 INTEGER AUTO_INCREMENT.
func (s *service) newNumberedTable(t testing.TB) *table {
	return s.newTable(t, tableOptions{numbered: true})
}

// placeholder returns a key whose second column the table is to number.
func (tb *table) placeholder(pk1 string) *tablestore.PrimaryKey {
	k := tb.key(pk1)
	k.AddPrimaryKeyColumnWithAutoIncrement("pk2")
	return k
}

func (tb *table) append(pk1 string, cells ...cell) *tablestore.PutRowChange {
	p := tb.put(tb.placeholder(pk1), cells...)
	p.SetReturnPk()
	return p
}

func numberOf(t testing.TB, k *tablestore.PrimaryKey) int64 {
	t.Helper()
	conformance.MustTrue(t, k != nil && len(k.PrimaryKeys) == 2, "the answer has no key: %+v", k)
	n, ok := k.PrimaryKeys[1].Value.(int64)
	conformance.MustTrue(t, ok && n > 0, "pk2 is %v, which is no positive integer", k.PrimaryKeys[1].Value)
	return n
}

func (tb *table) number(t testing.TB, pk1 string, cells ...cell) int64 {
	t.Helper()
	r := conformance.Try(tb.PutRow(&tablestore.PutRowRequest{PutRowChange: tb.append(pk1, cells...)})).Must(t)
	return numberOf(t, &r.PrimaryKey)
}

// The table generates the value, which is unique and rising for a partition key. With RT_PK it returns it at no cost.
func TestAutoIncrementNumbersRows(t *testing.T) {
	s := proving(t, "3.2.2")
	tb := s.newNumberedTable(t)
	last := int64(0)
	for i := range 5 {
		r := conformance.Try(s.PutRow(&tablestore.PutRowRequest{PutRowChange: tb.append("a", c("i", i))})).Must(t)
		n := numberOf(t, &r.PrimaryKey)
		conformance.True(t, n > last, "%d is not above %d", n, last)
		last = n
		diff(t, *r.ConsumedCapacityUnit, tablestore.ConsumedCapacityUnit{Write: 1})
		diff(t, tb.values(t, tb.key("a", n)), &row{[]any{"a", n}, []cell{c("i", int64(i))}})
	}
	t.Run("a row without RT_PK is numbered, too", func(t *testing.T) {
		r, err := s.PutRow(&tablestore.PutRowRequest{PutRowChange: tb.put(tb.placeholder("b"), c("i", 1))})
		must(t, err)
		diff(t, len(r.PrimaryKey.PrimaryKeys), 0)
		diff(t, len(tb.all(t)), 6)
	})
	t.Run("an update creates a row", func(t *testing.T) {
		must(t, s.do(tb.update(tb.placeholder("c"), set("i", 1), add("n", 2))))
		rows := tb.all(t)
		diff(t, rows[len(rows)-1].Cells, []cell{c("i", int64(1)), c("n", int64(2))})
	})
	t.Run("the table is described as it was created", func(t *testing.T) {
		k := describe(t, s, tb.name).TableMeta.SchemaEntry
		conformance.True(t, k[0].Option == nil && k[1].Option != nil && *k[1].Option == tablestore.AUTO_INCREMENT,
			"%+v %+v", k[0], k[1])
	})
}

// Rows with placeholders never count as repeated.
func TestAutoIncrementFollowsBatchOrder(t *testing.T) {
	s := proving(t, "3.2.2", "3.10.4")
	tb := s.newNumberedTable(t)
	var changes []tablestore.RowChange
	for i := range 100 {
		changes = append(changes, tb.append(fmt.Sprint(i%3), c("i", i)))
		u := tb.update(tb.placeholder(fmt.Sprint(i%3)), add("n", 1))
		u.ReturnType = tablestore.ReturnType_RT_PK
		changes = append(changes, u)
	}
	last := map[any]int64{}
	for i, r := range tb.rows(t, changes...) {
		checkRow(t, r, accepted)
		if !r.IsSucceed {
			continue
		}
		part, n := r.PrimaryKey.PrimaryKeys[0].Value, numberOf(t, &r.PrimaryKey)
		conformance.True(t, part == fmt.Sprint(i/2%3) && n > last[part], "row %d: %v %d, after %d", i, part, n, last[part])
		last[part] = n
	}
	diff(t, len(tb.all(t)), 200)
	t.Run("beside a row with a number, which has a condition", func(t *testing.T) {
		n := last["0"]
		changes := []tablestore.RowChange{expecting(expectExist, tb.delete(tb.key("0", n))), tb.append("0"), tb.append("0")}
		checkRows(t, tb.rows(t, changes...), accepted)
		diff(t, tb.get(t, tb.key("0", n)), (*row)(nil))
		diff(t, len(tb.all(t)), 201)
	})
}

func TestAutoIncrementRefusesInvalidWrites(t *testing.T) {
	s := proving(t, "3.2.3", "3.2.4", "3.2.5")
	tb := s.newNumberedTable(t)
	plain := s.newTable(t, tableOptions{})
	n := tb.number(t, "a", c("v", 1))
	two := &tablestore.PrimaryKey{}
	two.AddPrimaryKeyColumnWithAutoIncrement("pk1")
	two.AddPrimaryKeyColumnWithAutoIncrement("pk2")
	first := &tablestore.PrimaryKey{}
	first.AddPrimaryKeyColumnWithAutoIncrement("pk1")
	first.AddPrimaryKeyColumn("pk2", n)
	conditional := tb.put(tb.placeholder("a"))
	conditional.SetColumnCondition(tablestore.NewSingleColumnCondition("v", tablestore.CT_EQUAL, int64(1)))
	one := tb.placeholder("a")
	unfit := func(what string) refusal { return invalid(what + " when modify row with pk auto increment") }
	mustExist := unfit("Invalid expect:EXPECT_EXIST")
	invalidRow := func(e string) refusal {
		return invalid("Invalid expect: " + e + " when modify a specific row for table with pk auto increment")
	}
	for name, v := range map[string]struct {
		change tablestore.RowChange
		want   refusal
		row    bool // the row is refused, not the whole batch
	}{
		"one that must exist": {expecting(expectExist, tb.put(one)), mustExist, false},
		"one that must not":   {expecting(expectNotExist, tb.put(one)), unfit("Invalid expect:EXPECT_NOT_EXIST"), false},
		"an update that must": {expecting(expectExist, tb.update(one, set("v", 1))), mustExist, false},
		"one on a condition":  {conditional, unfit("Can't set condition"), false},
		"a delete of one":     {tb.delete(one), invalid("Invalid row to delete which with pk auto increment."), false},
		"two placeholders":    {tb.put(two), invalid("2 pk auto increment exist in row."), false},
		"a partition key":     {tb.put(first), invalid("Primary key column 'pk1' is not auto increment."), true},
		"another table's": {plain.put(plain.placeholder("a")), invalid("Primary key column 'pk2' is not auto increment."),
			true},
		"a put of a value":   {tb.put(tb.key("a", 7)), invalidRow("IGNORE"), true},
		"a put of a new one": {expecting(expectNotExist, tb.put(tb.key("a", 7))), invalidRow("EXPECT_NOT_EXIST"), true},
		"a value's update":   {tb.update(tb.key("a", n), set("v", 2)), invalidRow("IGNORE"), true},
		"a put of none":      {expecting(expectExist, tb.put(tb.key("a", 7))), conditionFailed, true},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, s.do(v.change), v.want)
			r, err := s.batch(v.change)
			if !v.row {
				check(t, err, v.want)
				return
			}
			must(t, err)
			checkRow(t, append(r.TableToRowsResult[tb.name], r.TableToRowsResult[plain.name]...)[0], v.want)
		})
	}
	for name, read := range map[string]func() error{
		"GetRow":      func() error { _, _, err := tb.tryGet(tb.placeholder("a")); return err },
		"BatchGetRow": func() error { return tb.readBatch(tb.placeholder("a")) },
		"GetRange": func() error {
			_, err := s.GetRange(ranged(tb.criteria(tb.placeholder("a")), tablestore.FORWARD, tb.key("b", 1), 0))
			return err
		},
	} {
		t.Run("a placeholder of "+name, func(t *testing.T) {
			check(t, read(), invalid("PKAutoIncr can't be used for read operations."))
		})
	}
	t.Run("an existing row may be named by its value", func(t *testing.T) {
		must(t, s.do(expecting(expectExist, tb.put(tb.key("a", n), c("v", 3)))))
		must(t, s.do(expecting(expectExist, tb.update(tb.key("a", n), add("v", 1)))))
		diff(t, tb.values(t, tb.key("a", n)).Cells, []cell{c("v", int64(4))})
		must(t, s.do(tb.delete(tb.key("a", n))))
		diff(t, len(tb.all(t)), 0)
	})
}

func (tb *table) readBatch(k *tablestore.PrimaryKey) error {
	_, err := tb.BatchGetRow(batchRead(tb.keysToGet(k)))
	return err
}

// At most one column is numbered. It is an INTEGER and not the partition key.
func TestAutoIncrementDeclarationRules(t *testing.T) {
	s := proving(t, "3.2.1")
	pk := func(name string, typ int64) message { return message{}.text(1, name).int(2, typ).int(3, 1) }
	for name, v := range map[string]struct {
		change func(r *create)
		want   refusal
	}{
		"the partition key": {func(r *create) { r.meta = message{}.text(1, r.name).bytes(2, pk("pk1", 1)) },
			invalid("First primary key can't be auto increment, table: …")},
		"a STRING": {func(r *create) { r.meta = r.meta.bytes(2, pk("pk2", 2)) },
			invalid("AUTO_INCREMENT primary key must be integer.")},
		"two columns": {func(r *create) { r.meta = r.meta.bytes(2, pk("pk2", 1)).bytes(2, pk("pk3", 1)) },
			invalid("AUTO_INCREMENT primary key count must <= 1.")},
		"the last of four columns": {func(r *create) {
			plain := func(name string) message { return message{}.text(1, name).int(2, 3) }
			r.meta = r.meta.bytes(2, plain("pk2")).bytes(2, plain("pk3")).bytes(2, pk("pk4", 1))
		}, accepted},
	} {
		t.Run(name, func(t *testing.T) { s.checkCreate(t, v.change, v.want) })
	}
}

func TestAutoIncrementContinuesAfterRestart(t *testing.T) {
	spec(t, "3.2.2")
	t.Parallel()
	r := openStore(t)
	tb := r.newNumberedTable(t)
	var numbers []int64
	for i := range 6 {
		for range 3 {
			numbers = append(numbers, tb.number(t, "a"))
		}
		must(t, r.do(tb.delete(tb.key("a", numbers[len(numbers)-1])))) // the stored rows no longer have the highest number
		if i%2 == 0 {
			r.losePower()
		} else {
			r.stop()
		}
		r.start(t)
	}
	conformance.True(t, slices.IsSorted(numbers) && len(slices.Compact(slices.Clone(numbers))) == len(numbers),
		"numbers do not rise: %d", numbers)
	diff(t, len(tb.all(t)), 12)
}
