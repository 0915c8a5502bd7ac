package contract

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

func TestValueRoundTrip(t *testing.T) {
	s := proving(t, "3.3.1")
	tb := s.newTable(t, tableOptions{})
	for name, value := range map[string]any{
		"the least integer": int64(math.MinInt64), "the greatest integer": int64(math.MaxInt64), "zero": int64(0),
		"minus one": int64(-1), "beyond a double": int64(1<<53 + 1), "true": true, "false": false, "a fraction": 0.1,
		"the greatest double": math.MaxFloat64, "the least double above zero": math.SmallestNonzeroFloat64,
		"minus zero": math.Copysign(0, -1), "a negative double": -1.5, "an empty string": "", "Chinese text": "表格存储，你好",
		"text outside the basic plane": "𝄞😀", "text with NUL": "a\x00b\x00", "control characters": "\t\r\n\x01\x7f",
		"text with combining marks": "e\u0301", "a byte order mark": "\ufeff", "an empty binary": []byte{},
		"NUL bytes": []byte{0, 0, 0}, "bytes that are no text": []byte{0xff, 0xfe, 0x80, 0xc0},
	} {
		t.Run(name, func(t *testing.T) {
			k := tb.key(name, 1)
			must(t, s.do(tb.put(k, c("c", value))))
			got := tb.values(t, k)
			diff(t, got, &row{[]any{name, int64(1)}, []cell{c("c", value)}})
			if f, ok := value.(float64); ok && math.Float64bits(got.Cells[0].Value.(float64)) != math.Float64bits(f) {
				t.Errorf("the bits of %v have changed", f)
			}
			must(t, s.do(tb.update(k, set("d", value))))
			diff(t, tb.values(t, k).Cells, []cell{c("c", value), c("d", value)})
		})
	}
}

func TestKeyRoundTrip(t *testing.T) {
	s := proving(t, "3.1.1")
	tb := s.newTable(t, tableOptions{keys: []tablestore.PrimaryKeyType{
		tablestore.PrimaryKeyType_STRING, tablestore.PrimaryKeyType_INTEGER, tablestore.PrimaryKeyType_BINARY,
		tablestore.PrimaryKeyType_STRING}})
	for name, values := range map[string][]any{
		"empty values":     {"", int64(0), []byte{}, ""},
		"NUL bytes":        {"\x00", int64(1), []byte{0}, "a\x00b"},
		"extreme integers": {"i", int64(math.MinInt64), []byte{255}, "\u007f"},
		"Chinese text":     {"学号", int64(math.MaxInt64), []byte{0, 255, 0, 255}, "你好"},
		"long values":      {text(1024), int64(-1), []byte(text(1024)), text(1024)},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, s.do(tb.put(tb.key(values...), c("name", name))))
			diff(t, tb.values(t, tb.key(values...)), &row{values, []cell{c("name", name)}})
		})
	}
}

func TestColumnNamesMayBeAnyText(t *testing.T) {
	s := proving(t, "3.4.2", "3.3.7", "2.3.5")
	tb := s.newTable(t, tableOptions{})
	for _, name := range []string{"_", "9", "a.b", "a:b", "a-b", "a b", `"quoted"`, "line\nbreak", "姓名", text(255)} {
		t.Run(name, func(t *testing.T) {
			must(t, s.do(tb.put(tb.key(name, 1), c(name, 1))))
			diff(t, tb.values(t, tb.key(name, 1)).Cells, []cell{c(name, int64(1))})
		})
	}
	for _, name := range []string{"", "#a", text(256), "\xff"} {
		t.Run("refused "+name, func(t *testing.T) {
			want := invalid("Invalid column name: '" + name + "'.")
			if name == "\xff" {
				want = invalid("")
			}
			check(t, s.do(tb.put(tb.key("bad", 1), c(name, 1))), want)
			check(t, s.do(tb.update(tb.key("bad", 1), set(name, 1))), want)
		})
	}
	t.Run("the name of a key column is taken", func(t *testing.T) {
		want := invalid("Duplicated attribute column name with primary key column: 'pk2'.")
		check(t, s.do(tb.put(tb.key("bad", 1), c("pk2", 1))), want)
		check(t, s.do(tb.update(tb.key("bad", 1), drop("pk2"))), want)
	})
	diff(t, tb.get(t, tb.key("bad", 1)), (*row)(nil))
}

type (
	key    = *tablestore.PrimaryKey
	change = tablestore.RowChange
)

func TestRowLifecycle(t *testing.T) {
	s := proving(t, "3.8.1", "3.8.2", "3.8.3", "3.8.4", "3.8.5", "3.8.6", "3.8.7", "3.9.1")
	tb := s.newTable(t, tableOptions{})
	putting := func(cells ...cell) func(key) change { return func(k key) change { return tb.put(k, cells...) } }
	updating := func(steps ...step) func(key) change { return func(k key) change { return tb.update(k, steps...) } }
	seed, kept := []cell{c("a", 1), c("b", "two")}, []cell{c("a", int64(1)), c("b", "two")}
	for name, v := range map[string]struct {
		seeded bool
		change func(key) change
		want   refusal
		cells  []cell // afterwards; the row exists unless gone
		gone   bool
	}{
		"put creates a row": {false, putting(c("z", 1), c("a", 2)), accepted,
			[]cell{c("a", int64(2)), c("z", int64(1))}, false},
		"put replaces columns":     {true, putting(c("b", 3)), accepted, []cell{c("b", int64(3))}, false},
		"an empty put creates one": {false, putting(), accepted, nil, false},
		"an empty put empties it":  {true, putting(), accepted, nil, false},
		"update creates a row":     {false, updating(set("c", 3)), accepted, []cell{c("c", int64(3))}, false},
		"update keeps the others": {true, updating(set("a", 9), set("c", true)), accepted,
			[]cell{c("a", int64(9)), c("b", "two"), c("c", true)}, false},
		"update changes a type": {true, updating(set("a", "text")), accepted, []cell{c("a", "text"), c("b", "two")},
			false},
		"update deletes a column":   {true, updating(drop("a")), accepted, []cell{c("b", "two")}, false},
		"update deletes no column":  {true, updating(drop("x")), accepted, kept, false},
		"update deletes twice":      {true, updating(drop("a"), drop("a")), accepted, []cell{c("b", "two")}, false},
		"an empty row stays":        {true, updating(drop("a"), drop("b")), accepted, nil, false},
		"a deletion creates no row": {false, updating(drop("a")), accepted, nil, true},
		"no update is refused":      {true, updating(), invalid("Attribute column is missing."), kept, false},
		"an increment creates":      {false, updating(add("n", -7)), accepted, []cell{c("n", int64(-7))}, false},
		"an increment adds": {true, updating(add("a", 41), set("c", "c")), accepted,
			[]cell{c("a", int64(42)), c("b", "two"), c("c", "c")}, false},
		"one of text is refused":  {true, updating(set("a", 5), add("b", 1)), invalid(""), kept, false},
		"an overflow is refused":  {true, updating(add("a", math.MaxInt64)), invalid(""), kept, false},
		"increment and put clash": {true, updating(set("a", 5), add("a", 1)), invalid(""), kept, false},
		"delete removes the row":  {true, func(k key) change { return tb.delete(k) }, accepted, nil, true},
		"delete of none succeeds": {false, func(k key) change { return tb.delete(k) }, accepted, nil, true},
		"a column put twice":      {false, putting(c("a", 1), c("a", 2)), accepted, []cell{c("a", int64(2))}, false},
	} {
		for _, how := range []string{"alone", "in a batch"} {
			t.Run(name+" "+how, func(t *testing.T) {
				k := tb.key(name+how, 1)
				if v.seeded {
					must(t, s.do(tb.put(k, seed...)))
				}
				if how == "alone" {
					check(t, s.do(v.change(k)), v.want)
				} else {
					tb.checkInBatch(t, v.change(k), v.want)
				}
				want := &row{[]any{name + how, int64(1)}, v.cells}
				if v.gone {
					want = nil
				}
				diff(t, tb.values(t, k), want)
				there := map[bool]refusal{true: conditionFailed}[want != nil] // even without columns
				check(t, s.do(expecting(expectNotExist, tb.put(k))), there)
			})
		}
	}
}

// checkInBatch sends one change as a batch. Errors that do not depend on data refuse it as a whole.
func (tb *table) checkInBatch(t *testing.T, change tablestore.RowChange, want refusal) {
	if want.message == "Attribute column is missing." {
		want.message = "Invalid update row request: missing cells in request."
	}
	r, err := tb.batch(change)
	if err != nil {
		check(t, err, want)
		return
	}
	checkRow(t, r.TableToRowsResult[tb.name][0], want)
}

func TestUpdateDeletesVersions(t *testing.T) {
	s := proving(t, "3.8.5", "3.3.5", "3.7.3")
	tb := s.newTable(t, tableOptions{versions: 3})
	at := time.Now().Add(-time.Hour).UnixMilli()
	was := func(name string, value, ts int64) cell { return v(name, value, ts) }
	seed := []cell{v("a", 1, at), v("a", 2, at+1), v("a", 3, at+2), v("b", 4, at)}
	for name, x := range map[string]struct {
		steps []step
		want  []cell
	}{
		"one version": {[]step{dropAt("a", at+1)}, []cell{was("a", 3, at+2), was("a", 1, at), was("b", 4, at)}},
		"no version": {[]step{dropAt("a", at+9)}, []cell{was("a", 3, at+2), was("a", 2, at+1), was("a", 1, at),
			was("b", 4, at)}},
		"all versions": {[]step{drop("a")}, []cell{was("b", 4, at)}},
		"one, and another is put": {[]step{dropAt("a", at+2), setAt("a", 9, at+5)},
			[]cell{was("a", 9, at+5), was("a", 2, at+1), was("a", 1, at), was("b", 4, at)}},
		"none, one is put over": {[]step{setAt("a", 9, at+1)}, []cell{was("a", 3, at+2), was("a", 9, at+1), was("a", 1, at),
			was("b", 4, at)}},
		"none, a fourth is put": {[]step{setAt("a", 9, at+5)}, []cell{was("a", 9, at+5), was("a", 3, at+2),
			was("a", 2, at+1), was("b", 4, at)}},
	} {
		t.Run(name, func(t *testing.T) {
			k := tb.key(name, 1)
			must(t, s.do(tb.put(k, seed...)))
			must(t, s.do(tb.update(k, x.steps...)))
			diff(t, tb.get(t, k, versions(10)).Cells, x.want)
		})
	}
}

func TestWritesReturnRequestedRow(t *testing.T) {
	s := proving(t, "2.4.5", "3.8.8")
	tb := s.newTable(t, tableOptions{})
	k := func() *tablestore.PrimaryKey { return tb.key("a", 7) }
	keyed := tb.put(k(), c("c", 1))
	keyed.SetReturnPk()
	t.Run("PutRow with RT_PK returns the key", func(t *testing.T) {
		r := conformance.Try(s.PutRow(&tablestore.PutRowRequest{PutRowChange: keyed})).Must(t)
		diff(t, keyValues(&r.PrimaryKey), []any{"a", int64(7)})
	})
	t.Run("a batch returns the key of rows with RT_PK", func(t *testing.T) {
		update := tb.update(tb.key("b", 8), set("c", 1))
		update.ReturnType = tablestore.ReturnType_RT_PK
		rows := tb.rows(t, keyed, tb.put(tb.key("c", 9)), update)
		diff(t, keyValues(&rows[0].PrimaryKey), []any{"a", int64(7)})
		diff(t, keyValues(&rows[1].PrimaryKey), []any(nil))
		diff(t, keyValues(&rows[2].PrimaryKey), []any{"b", int64(8)})
	})
	t.Run("UpdateRow with RT_AFTER_MODIFY returns the requested sums", func(t *testing.T) {
		must(t, s.do(tb.put(k(), c("n", 40), c("other", 1))))
		before := time.Now().Add(-time.Minute).UnixMilli()
		r, err := s.UpdateRow(&tablestore.UpdateRowRequest{UpdateRowChange: tb.update(k(), add("n", 2), add("m", -1),
			add("x", 1), set("c", 5), answering("n", "m"))})
		must(t, err)
		got := cellsOf(r.Columns)
		diff(t, (&row{Cells: got}).untimed().Cells, []cell{c("m", int64(-1)), c("n", int64(42))})
		for _, x := range got {
			conformance.True(t, x.Timestamp >= before, "%+v is not of now", x)
		}
	})
	t.Run("a batch with RT_AFTER_MODIFY returns the sums", func(t *testing.T) {
		must(t, s.do(tb.put(k(), c("n", 40))))
		rows := tb.rows(t, tb.update(k(), add("n", 2), answering("n")), tb.put(tb.key("c", 9)))
		diff(t, (&row{Cells: cellsOf(rows[0].Columns)}).untimed().Cells, []cell{c("n", int64(42))})
		diff(t, len(rows[1].Columns), 0)
	})
	t.Run("RT_AFTER_MODIFY of a column that is not incremented is refused", func(t *testing.T) {
		check(t, s.do(tb.update(k(), add("n", 2), set("c", 1), answering("c"))), invalid(""))
	})
}

// infinity is a bound of a range; in other keys it is an error.
type infinity int

const (
	minKey infinity = iota
	maxKey
)

// key returns a primary key of the table. It converts an int to int64.
func (tb *table) key(values ...any) *tablestore.PrimaryKey {
	k := &tablestore.PrimaryKey{}
	for i, v := range values {
		name := fmt.Sprintf("pk%d", i+1)
		switch v := v.(type) {
		case int:
			k.AddPrimaryKeyColumn(name, int64(v))
		case infinity:
			if v == minKey {
				k.AddPrimaryKeyColumnWithMinValue(name)
			} else {
				k.AddPrimaryKeyColumnWithMaxValue(name)
			}
		default:
			k.AddPrimaryKeyColumn(name, v)
		}
	}
	return k
}

// cell is one version of a column. A timestamp of 0 means none in a write, and any in an expectation.
type cell struct {
	Name      string
	Value     any
	Timestamp int64
}

func c(name string, value any) cell           { return cell{Name: name, Value: value} }
func v(name string, value any, ts int64) cell { return cell{name, value, ts} }
func text(length int) string                  { return strings.Repeat("x", length) }
func ptr[T any](v T) *T                       { return &v }

const (
	ignore         = tablestore.RowExistenceExpectation_IGNORE
	expectExist    = tablestore.RowExistenceExpectation_EXPECT_EXIST
	expectNotExist = tablestore.RowExistenceExpectation_EXPECT_NOT_EXIST
)

func (tb *table) put(k *tablestore.PrimaryKey, cells ...cell) *tablestore.PutRowChange {
	p := &tablestore.PutRowChange{TableName: tb.name, PrimaryKey: k}
	p.SetCondition(ignore)
	for _, c := range cells {
		p.Columns = append(p.Columns, tablestore.AttributeColumn{ColumnName: c.Name, Value: integer(c.Value),
			Timestamp: c.Timestamp})
	}
	return p
}

func integer(v any) any {
	if i, ok := v.(int); ok {
		return int64(i)
	}
	return v
}

type step func(*tablestore.UpdateRowChange)

func set(name string, value any) step {
	return func(u *tablestore.UpdateRowChange) { u.PutColumn(name, integer(value)) }
}

func setAt(name string, value any, ts int64) step {
	return func(u *tablestore.UpdateRowChange) { u.PutColumnWithTimestamp(name, integer(value), ts) }
}

func drop(name string) step {
	return func(u *tablestore.UpdateRowChange) { u.DeleteColumn(name) }
}

func dropAt(name string, ts int64) step {
	return func(u *tablestore.UpdateRowChange) { u.DeleteColumnWithTimestamp(name, ts) }
}

func add(name string, delta int64) step {
	return func(u *tablestore.UpdateRowChange) { u.IncrementColumn(name, delta) }
}

func answering(names ...string) step {
	return func(u *tablestore.UpdateRowChange) {
		u.SetReturnIncrementValue()
		for _, n := range names {
			u.AppendIncrementColumnToReturn(n)
		}
	}
}

func (tb *table) update(k *tablestore.PrimaryKey, steps ...step) *tablestore.UpdateRowChange {
	u := &tablestore.UpdateRowChange{TableName: tb.name, PrimaryKey: k}
	u.SetCondition(ignore)
	for _, s := range steps {
		s(u)
	}
	return u
}

func (tb *table) delete(k *tablestore.PrimaryKey) *tablestore.DeleteRowChange {
	d := &tablestore.DeleteRowChange{TableName: tb.name, PrimaryKey: k}
	d.SetCondition(ignore)
	return d
}

func expecting(e tablestore.RowExistenceExpectation, change tablestore.RowChange) tablestore.RowChange {
	switch x := change.(type) {
	case *tablestore.PutRowChange:
		x.SetCondition(e)
	case *tablestore.UpdateRowChange:
		x.SetCondition(e)
	case *tablestore.DeleteRowChange:
		x.SetCondition(e)
	}
	return change
}

func (s *service) do(change tablestore.RowChange) error {
	_, err := s.units(change)
	return err
}

func (s *service) units(change tablestore.RowChange) (*tablestore.ConsumedCapacityUnit, error) {
	switch x := change.(type) {
	case *tablestore.PutRowChange:
		r, err := s.PutRow(&tablestore.PutRowRequest{PutRowChange: x})
		if err != nil {
			return nil, err
		}
		return r.ConsumedCapacityUnit, nil
	case *tablestore.UpdateRowChange:
		r, err := s.UpdateRow(&tablestore.UpdateRowRequest{UpdateRowChange: x})
		if err != nil {
			return nil, err
		}
		return r.ConsumedCapacityUnit, nil
	case *tablestore.DeleteRowChange:
		r, err := s.DeleteRow(&tablestore.DeleteRowRequest{DeleteRowChange: x})
		if err != nil {
			return nil, err
		}
		return r.ConsumedCapacityUnit, nil
	}
	return nil, fmt.Errorf("unknown change %T", change)
}

func (s *service) batch(changes ...tablestore.RowChange) (*tablestore.BatchWriteRowResponse, error) {
	r := &tablestore.BatchWriteRowRequest{}
	for _, change := range changes {
		r.AddRowChange(change)
	}
	return s.BatchWriteRow(r)
}

func several(n int, of func(i int) change) (changes []change) {
	for i := range n {
		changes = append(changes, of(i))
	}
	return changes
}

func (tb *table) rows(t testing.TB, changes ...tablestore.RowChange) []tablestore.RowResult {
	t.Helper()
	r := conformance.Try(tb.batch(changes...)).Must(t)
	rows := r.TableToRowsResult[tb.name]
	conformance.MustEqual(t, len(rows), len(changes), "answers")
	return rows
}

func (tb *table) load(t testing.TB, changes ...tablestore.RowChange) {
	t.Helper()
	for len(changes) > 0 {
		n := min(200, len(changes))
		checkRows(t, tb.rows(t, changes[:n]...), accepted)
		changes = changes[n:]
	}
}
