package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/objectstore/storetest"
	"example.com/tsimport/pipeline/checkpoint"
)

func newClient(endpoint, instance, keyID, secret string) *tablestore.TableStoreClient {
	config := tablestore.NewDefaultTableStoreConfig()
	config.RetryTimes = 0
	return tablestore.NewClientWithConfig(endpoint, instance, keyID, secret, "", config)
}

type table struct {
	*tablestore.TableStoreClient
	name string
}

func (s *served) table(name string) *table { return &table{s.client(), name} }

// newTable creates a table with the key pk1 STRING, pk2 INTEGER. Defined columns of one letter are integers, others
// strings.
func (s *served) newTable(t testing.TB, name string, versions int, defined ...string) *table {
	t.Helper()
	meta := &tablestore.TableMeta{TableName: name}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
	for _, d := range defined {
		kind := tablestore.DefinedColumn_STRING
		if len(d) == 1 {
			kind = tablestore.DefinedColumn_INTEGER
		}
		meta.AddDefinedColumn(d, kind)
	}
	tb := s.table(name)
	must(t, tb.create(meta, versions))
	return tb
}

func (tb *table) create(meta *tablestore.TableMeta, versions int) error {
	_, err := tb.CreateTable(&tablestore.CreateTableRequest{TableMeta: meta,
		ReservedThroughput: &tablestore.ReservedThroughput{},
		TableOption:        &tablestore.TableOption{TimeToAlive: -1, MaxVersion: versions}})
	return err
}

// codeOf returns the code of a refusal, or the text of an error that is not the service's.
func codeOf(err error) string {
	if err == nil {
		return ""
	} else if e, ok := errors.AsType[*tablestore.OtsError](err); ok {
		return e.Code
	}
	return err.Error()
}

// key returns a primary key of the table. It converts an int to int64.
func (tb *table) key(values ...any) *tablestore.PrimaryKey {
	k := &tablestore.PrimaryKey{}
	for i, v := range values {
		k.AddPrimaryKeyColumn(fmt.Sprintf("pk%d", i+1), integer(v))
	}
	return k
}

func integer(v any) any {
	if i, ok := v.(int); ok {
		return int64(i)
	}
	return v
}

// cell is one version of a column. A timestamp of 0 means none in a write, and any in an expectation.
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
		p.Columns = append(p.Columns, tablestore.AttributeColumn{ColumnName: c.Name, Value: integer(c.Value),
			Timestamp: c.Timestamp})
	}
	return p
}

func (tb *table) delete(k *tablestore.PrimaryKey) *tablestore.DeleteRowChange {
	d := &tablestore.DeleteRowChange{TableName: tb.name, PrimaryKey: k}
	d.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	return d
}

func (tb *table) batch(changes ...tablestore.RowChange) (*tablestore.BatchWriteRowResponse, error) {
	r := &tablestore.BatchWriteRowRequest{}
	for _, change := range changes {
		r.AddRowChange(change)
	}
	return tb.BatchWriteRow(r)
}

func (tb *table) load(t testing.TB, changes ...tablestore.RowChange) {
	t.Helper()
	for len(changes) > 0 {
		n := min(200, len(changes))
		r := conformance.Try(tb.batch(changes[:n]...)).Must(t)
		for _, row := range r.TableToRowsResult[tb.name] {
			conformance.MustTrue(t, row.IsSucceed, "row %d was refused: %+v", row.Index, row.Error)
		}
		changes = changes[n:]
	}
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

func untimed(cells []cell) (out []cell) {
	for _, cell := range cells {
		out = append(out, c(cell.Name, cell.Value))
	}
	return out
}

// rowsOf reads all versions of a table through the SDK, page by page.
func rowsOf(t testing.TB, client *tablestore.TableStoreClient, name string) func(func(*tablestore.Row) bool) {
	return func(yield func(*tablestore.Row) bool) {
		start, end := &tablestore.PrimaryKey{}, &tablestore.PrimaryKey{}
		described := conformance.Try(client.DescribeTable(&tablestore.DescribeTableRequest{TableName: name})).Must(t)
		for _, k := range described.TableMeta.SchemaEntry {
			start.AddPrimaryKeyColumnWithMinValue(*k.Name)
			end.AddPrimaryKeyColumnWithMaxValue(*k.Name)
		}
		for start != nil {
			r := conformance.Try(client.GetRange(&tablestore.GetRangeRequest{
				RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
					TableName: name, StartPrimaryKey: start, EndPrimaryKey: end, Direction: tablestore.FORWARD,
					MaxVersion: 100}})).Must(t)
			for _, row := range r.Rows {
				if !yield(row) {
					return
				}
			}
			start = r.NextStartPrimaryKey
		}
	}
}

// pairOf is a pair of services, the second under the profile b.
type pairOf struct {
	*place
	a, b *served
}

func newPairOf(t testing.TB) *pairOf {
	return pairUp(t, startServe(t, "--sync", "none", "--splits", "200ms:0ms:6"),
		startServe(t, "--sync", "none", "--splits", "150ms:0ms:6"))
}

func pairUp(t testing.TB, a, b *served) *pairOf {
	return &pairOf{newPlace(t, append(a.env(), "TABLESTORE_ENDPOINT_B="+b.URL, "TABLESTORE_ACCESS_KEY_ID_B="+b.AccessKeyID,
		"TABLESTORE_ACCESS_KEY_SECRET_B="+b.AccessKeySecret)...), a, b}
}

// swapped returns the same services in the same folder, but with the first one under the profile b.
func (p *pairOf) swapped() *pairOf {
	q := pairUp(p.t, p.b, p.a)
	q.dir, q.env = p.dir, append(p.env, q.env...)
	return q
}

// bucket starts an object store that the commands find.
func (p *place) bucket(t *testing.T, name string) *storetest.Server {
	around := &surroundings{T: t}
	objects := storetest.New(around, name)
	p.env = append(append(p.env, around.env...), "OSS_ENDPOINT="+objects.URL(), "OSS_REGION=cn-test")
	return objects
}

// unreliable makes a store refuse one of every requests, and lose the answer to another one.
func unreliable(objects *storetest.Server, every int) {
	objects.Change(func(s *storetest.Server) {
		s.Fault = func(number int, w http.ResponseWriter, r *http.Request) bool {
			if number%every == 1 {
				storetest.Refuse(w, r, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
			}
			return number%every == 1
		}
		s.After = func(number int, _ *http.Request) {
			if number%every == 3 {
				panic(http.ErrAbortHandler)
			}
		}
	})
}

func (p *pairOf) inB(table string) string { return "ots://b@" + p.b.Instance + "/" + table }

func dump(t testing.TB, s *served, name string) map[string][]cell {
	t.Helper()
	rows := map[string][]cell{}
	for r := range rowsOf(t, s.client(), name) {
		rows[fmt.Sprint(keyValues(r.PrimaryKey))] = cellsOf(r.Columns)
	}
	return rows
}

// fill creates a table with all kinds of rows: with several versions, with any columns and types, and without columns.
func (p *pairOf) fill(name string, from, to int) {
	p.t.Helper()
	tb := p.a.table(name)
	if from == 0 {
		tb = p.a.newTable(p.t, name, 4, "n")
	}
	now := time.Now().UnixMilli()
	var changes []tablestore.RowChange
	for i := from; i < to; i++ {
		var cells []cell
		if i%13 != 12 {
			cells = append(cells, c("text", strings.Repeat(fmt.Sprint("row ", i, " "), 1+i%30)), c("n", i),
				c("b", []byte{0, byte(i)}), c(fmt.Sprint("c", i%90), i%2 == 0), c("d", float64(i)/3))
			for back := range i % 5 {
				cells = append(cells, v("versions", int64(i*back), now-int64(1000*back)))
			}
		}
		changes = append(changes, tb.put(tb.key(fmt.Sprint("key ", i%997), i), cells...))
	}
	tb.load(p.t, changes...)
}

func (p *pairOf) same(from, to *served, source, target string) {
	p.t.Helper()
	conformance.Equal(p.t, differs(dump(p.t, from, source), dump(p.t, to, target)), "", "%s is not %s", target, source)
}

// indexed creates a table with two indexes, and rows that are in both, in one or in neither.
func (p *pairOf) indexed(name string, rows int) {
	p.t.Helper()
	tb := p.a.newTable(p.t, name, 1, "city", "n")
	for _, i := range []*tablestore.IndexMeta{
		{IndexName: name + "_by_city", Primarykey: []string{"city", "pk2"}, DefinedColumns: []string{"n"}},
		{IndexName: name + "_by_n", Primarykey: []string{"n"}},
	} {
		i.IndexType = tablestore.IT_GLOBAL_INDEX
		_, err := tb.CreateIndex(&tablestore.CreateIndexRequest{MainTableName: name, IndexMeta: i, IncludeBaseData: true})
		must(p.t, err)
	}
	var changes []tablestore.RowChange
	for i := range rows {
		var cells []cell
		if i%3 > 0 {
			cells = append(cells, c("city", fmt.Sprint("city ", i%7)))
		}
		if i%4 > 0 {
			cells = append(cells, c("n", i%11))
		}
		changes = append(changes, tb.put(tb.key(fmt.Sprint("key ", i%97), i), append(cells, c("other", float64(i)))...))
	}
	tb.load(p.t, changes...)
}

// sameIndexes compares the indexes of a table and its copy.
func (p *pairOf) sameIndexes(from, to *served, source, target string) {
	p.t.Helper()
	for _, name := range []string{"_by_city", "_by_n"} {
		was, is := dump(p.t, from, source+name), dump(p.t, to, target+name)
		if diff := differs(was, is); diff != "" || len(was) == 0 {
			p.t.Errorf("%s of %s: %d rows and %d: %.1000s", name, target, len(was), len(is), diff)
		}
	}
}

// finalRows returns the number of final rows in the newest checkpoint in a folder, or -1 if there is none.
func finalRows(dir string) int64 {
	runs, err := filepath.Glob(filepath.Join(dir, "tsimport-runs", "*"))
	if err != nil || len(runs) == 0 {
		return -1
	}
	s, err := checkpoint.Read(slices.Max(runs))
	if err != nil {
		return -1
	}
	return s.Counters["written"] + s.Counters["rejected"] + s.Counters["superseded"] + s.Counters["condition_failed"] +
		s.Counters["archived"]
}
