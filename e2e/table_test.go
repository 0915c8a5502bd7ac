package e2e

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// newClient returns the SDK's client of a server, which does not retry.
func newClient(endpoint, instance, keyID, secret string) *tablestore.TableStoreClient {
	config := tablestore.NewDefaultTableStoreConfig()
	config.RetryTimes = 0
	return tablestore.NewClientWithConfig(endpoint, instance, keyID, secret, "", config)
}

// service is what the tables of a test talk to.
type service struct{ *tablestore.TableStoreClient }

// table is a table of one test.
type table struct {
	*service
	name string
}

var tableNumber atomic.Int64

// newTable creates a table of the key pk1 STRING, pk2 INTEGER.
func (s *service) newTable(t testing.TB) *table {
	t.Helper()
	tb := &table{service: s, name: fmt.Sprintf("t%d", tableNumber.Add(1))}
	meta := &tablestore.TableMeta{TableName: tb.name}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
	must(t, s.create(meta, newOptions(-1, 1)))
	return tb
}

func (s *service) create(meta *tablestore.TableMeta, option *tablestore.TableOption) error {
	_, err := s.CreateTable(&tablestore.CreateTableRequest{TableMeta: meta, TableOption: option, ReservedThroughput: &tablestore.ReservedThroughput{}})
	return err
}

func newOptions(ttl, versions int) *tablestore.TableOption {
	return &tablestore.TableOption{TimeToAlive: ttl, MaxVersion: versions}
}

func describe(t testing.TB, s *service, name string) *tablestore.DescribeTableResponse {
	t.Helper()
	d, err := s.DescribeTable(&tablestore.DescribeTableRequest{TableName: name})
	must(t, err)
	return d
}

// codeOf is the code of a refusal; an error that is not the service's has its text.
func codeOf(err error) string {
	var e *tablestore.OtsError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return err.Error()
}

// minKey and maxKey are the bounds of a range.
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
		switch v {
		case minKey:
			k.AddPrimaryKeyColumnWithMinValue(name)
		case maxKey:
			k.AddPrimaryKeyColumnWithMaxValue(name)
		default:
			k.AddPrimaryKeyColumn(name, integer(v))
		}
	}
	return k
}

func integer(v any) any {
	if i, ok := v.(int); ok {
		return int64(i)
	}
	return v
}

// cell is one version of a column. A timestamp of 0 is none in a write, and any in an expectation.
type cell struct {
	Name      string
	Value     any
	Timestamp int64
}

func c(name string, value any) cell           { return cell{Name: name, Value: value} }
func v(name string, value any, ts int64) cell { return cell{name, value, ts} }

func (tb *table) put(k *tablestore.PrimaryKey, cells ...cell) *tablestore.PutRowChange {
	p := &tablestore.PutRowChange{TableName: tb.name, PrimaryKey: k}
	p.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	for _, c := range cells {
		p.Columns = append(p.Columns, tablestore.AttributeColumn{ColumnName: c.Name, Value: integer(c.Value), Timestamp: c.Timestamp})
	}
	return p
}

func (tb *table) delete(k *tablestore.PrimaryKey) *tablestore.DeleteRowChange {
	d := &tablestore.DeleteRowChange{TableName: tb.name, PrimaryKey: k}
	d.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	return d
}

func (s *service) batch(changes ...tablestore.RowChange) (*tablestore.BatchWriteRowResponse, error) {
	r := &tablestore.BatchWriteRowRequest{}
	for _, change := range changes {
		r.AddRowChange(change)
	}
	return s.BatchWriteRow(r)
}

// load writes rows that must all be accepted.
func (tb *table) load(t testing.TB, changes ...tablestore.RowChange) {
	t.Helper()
	for len(changes) > 0 {
		n := min(200, len(changes))
		r, err := tb.batch(changes[:n]...)
		must(t, err)
		for _, row := range r.TableToRowsResult[tb.name] {
			if !row.IsSucceed {
				t.Fatalf("row %d was refused: %+v", row.Index, row.Error)
			}
		}
		changes = changes[n:]
	}
}

// row is a row as it was read.
type row struct {
	Key   []any
	Cells []cell
}

func keyValues(k *tablestore.PrimaryKey) (values []any) {
	for _, c := range k.PrimaryKeys {
		values = append(values, c.Value)
	}
	return values
}

func cellsOf(columns []*tablestore.AttributeColumn) (cells []cell) {
	for _, a := range columns {
		cells = append(cells, cell{a.ColumnName, a.Value, a.Timestamp})
	}
	return cells
}

// untimed are cells without their timestamps.
func untimed(cells []cell) (out []cell) {
	for _, cell := range cells {
		out = append(out, c(cell.Name, cell.Value))
	}
	return out
}

// scan reads a range, the newest version of each cell.
func (tb *table) scan(t testing.TB, start, end *tablestore.PrimaryKey) (rows []*row) {
	t.Helper()
	for start != nil {
		r, err := tb.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
			TableName: tb.name, StartPrimaryKey: start, EndPrimaryKey: end, Direction: tablestore.FORWARD, MaxVersion: 1}})
		must(t, err)
		for _, x := range r.Rows {
			rows = append(rows, &row{keyValues(x.PrimaryKey), cellsOf(x.Columns)})
		}
		start = r.NextStartPrimaryKey
	}
	return rows
}

// all is every row of a table of two key columns, without timestamps.
func (tb *table) all(t testing.TB) (rows []*row) {
	t.Helper()
	for _, r := range tb.scan(t, tb.key(minKey, minKey), tb.key(maxKey, maxKey)) {
		rows = append(rows, &row{r.Key, untimed(r.Cells)})
	}
	return rows
}

// rowsOf reads all versions of a table through the SDK, page by page.
func rowsOf(t testing.TB, client *tablestore.TableStoreClient, name string) func(func(*tablestore.Row) bool) {
	return func(yield func(*tablestore.Row) bool) {
		start, end := &tablestore.PrimaryKey{}, &tablestore.PrimaryKey{}
		described, err := client.DescribeTable(&tablestore.DescribeTableRequest{TableName: name})
		must(t, err)
		for _, k := range described.TableMeta.SchemaEntry {
			start.AddPrimaryKeyColumnWithMinValue(*k.Name)
			end.AddPrimaryKeyColumnWithMaxValue(*k.Name)
		}
		for start != nil {
			r, err := client.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
				TableName: name, StartPrimaryKey: start, EndPrimaryKey: end, Direction: tablestore.FORWARD, MaxVersion: 100}})
			must(t, err)
			for _, row := range r.Rows {
				if !yield(row) {
					return
				}
			}
			start = r.NextStartPrimaryKey
		}
	}
}
