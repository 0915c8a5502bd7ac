package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// Bounds of a range; elsewhere in a key they are an error.
type infinity int

const (
	minKey infinity = iota
	maxKey
)

// key is a primary key of the table; an int stands for an int64.
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

// cell is one version of a column. A timestamp of 0 is none in a write, and any in an expectation.
type cell struct {
	Name      string
	Value     any
	Timestamp int64
}

func c(name string, value any) cell           { return cell{Name: name, Value: value} }
func v(name string, value any, ts int64) cell { return cell{name, value, ts} }
func text(length int) string                  { return strings.Repeat("x", length) }
func ptr[T any](v T) *T                       { return &v }

// Existence conditions, as options of a change.
const (
	ignore         = tablestore.RowExistenceExpectation_IGNORE
	expectExist    = tablestore.RowExistenceExpectation_EXPECT_EXIST
	expectNotExist = tablestore.RowExistenceExpectation_EXPECT_NOT_EXIST
)

func (tb *table) put(k *tablestore.PrimaryKey, cells ...cell) *tablestore.PutRowChange {
	p := &tablestore.PutRowChange{TableName: tb.name, PrimaryKey: k}
	p.SetCondition(ignore)
	for _, c := range cells {
		p.Columns = append(p.Columns, tablestore.AttributeColumn{ColumnName: c.Name, Value: integer(c.Value), Timestamp: c.Timestamp})
	}
	return p
}

func integer(v any) any {
	if i, ok := v.(int); ok {
		return int64(i)
	}
	return v
}

// step is one operation of an UpdateRow.
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

// answering asks for the incremented columns.
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

// expecting gives a change an existence condition.
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

// do sends one change as a request of its own.
func (s *service) do(change tablestore.RowChange) error {
	_, err := s.units(change)
	return err
}

// units is do that says what it consumed.
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

// rows sends a batch for this table alone and returns its answers.
func (tb *table) rows(t testing.TB, changes ...tablestore.RowChange) []tablestore.RowResult {
	t.Helper()
	r, err := tb.batch(changes...)
	must(t, err)
	rows := r.TableToRowsResult[tb.name]
	if len(rows) != len(changes) {
		t.Fatalf("%d answers to %d rows", len(rows), len(changes))
	}
	return rows
}

// load writes rows that must all be accepted.
func (tb *table) load(t testing.TB, changes ...tablestore.RowChange) {
	t.Helper()
	for len(changes) > 0 {
		n := min(200, len(changes))
		checkRows(t, tb.rows(t, changes[:n]...), accepted)
		changes = changes[n:]
	}
}
