package contract

import (
	"net/http"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// row is a row as it was read; nil is none.
type row struct {
	Key   []any
	Cells []cell
}

func keyValues(k *tablestore.PrimaryKey) (values []any) {
	if k == nil {
		return nil
	}
	for _, c := range k.PrimaryKeys {
		values = append(values, c.Value)
	}
	return values
}

func newRow(k *tablestore.PrimaryKey, columns []*tablestore.AttributeColumn) *row {
	if len(k.PrimaryKeys) == 0 {
		return nil
	}
	return &row{keyValues(k), cellsOf(columns)}
}

func cellsOf(columns []*tablestore.AttributeColumn) (cells []cell) {
	for _, a := range columns {
		cells = append(cells, cell{a.ColumnName, a.Value, a.Timestamp})
	}
	return cells
}

// untimed is the row without its timestamps.
func (r *row) untimed() *row {
	if r == nil {
		return nil
	}
	out := &row{Key: r.Key}
	for _, c := range r.Cells {
		out.Cells = append(out.Cells, cell{Name: c.Name, Value: c.Value})
	}
	return out
}

// selection is an option of a read.
type selection func(*tablestore.SingleRowQueryCriteria)

func versions(n int) selection {
	return func(q *tablestore.SingleRowQueryCriteria) { q.MaxVersion = int32(n) }
}

func columns(names ...string) selection {
	return func(q *tablestore.SingleRowQueryCriteria) { q.ColumnsToGet = names }
}

func columnRange(start, end string) selection {
	return func(q *tablestore.SingleRowQueryCriteria) {
		if start != "" {
			q.StartColumn = &start
		}
		if end != "" {
			q.EndColumn = &end
		}
	}
}

func between(start, end int64) selection {
	return func(q *tablestore.SingleRowQueryCriteria) {
		q.TimeRange = &tablestore.TimeRange{Start: start, End: end}
	}
}

func exactly(ts int64) selection {
	return func(q *tablestore.SingleRowQueryCriteria) { q.TimeRange = &tablestore.TimeRange{Specific: ts} }
}

// criteria is a read of one row; without options it wants the newest version of everything.
func (tb *table) criteria(k *tablestore.PrimaryKey, options ...selection) *tablestore.SingleRowQueryCriteria {
	q := &tablestore.SingleRowQueryCriteria{TableName: tb.name, PrimaryKey: k}
	for _, o := range options {
		o(q)
	}
	if q.MaxVersion == 0 && q.TimeRange == nil {
		q.MaxVersion = 1
	}
	return q
}

func (tb *table) tryGet(k *tablestore.PrimaryKey, options ...selection) (*row, *tablestore.GetRowResponse, error) {
	r, err := tb.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: tb.criteria(k, options...)})
	if err != nil {
		return nil, nil, err
	}
	return newRow(&r.PrimaryKey, r.Columns), r, nil
}

// get reads a row with its timestamps.
func (tb *table) get(t testing.TB, k *tablestore.PrimaryKey, options ...selection) *row {
	t.Helper()
	r, _, err := tb.tryGet(k, options...)
	must(t, err)
	return r
}

// values reads the newest cells of a row, without their timestamps.
func (tb *table) values(t testing.TB, k *tablestore.PrimaryKey) *row {
	t.Helper()
	return tb.get(t, k).untimed()
}

// ranged turns a read of one row into a read of a range.
func ranged(q *tablestore.SingleRowQueryCriteria, d tablestore.Direction, end *tablestore.PrimaryKey, limit int32) *tablestore.GetRangeRequest {
	return &tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
		TableName: q.TableName, StartPrimaryKey: q.PrimaryKey, EndPrimaryKey: end, Direction: d, Limit: limit,
		ColumnsToGet: q.ColumnsToGet, MaxVersion: q.MaxVersion, TimeRange: q.TimeRange, StartColumn: q.StartColumn, EndColumn: q.EndColumn,
		Filter: q.Filter,
	}}
}

// page reads a range once.
func (tb *table) page(t testing.TB, d tablestore.Direction, end key, limit int32, start key, options ...selection) *tablestore.GetRangeResponse {
	t.Helper()
	r, err := tb.GetRange(ranged(tb.criteria(start, options...), d, end, limit))
	must(t, err)
	return r
}

// scan reads a range, page by page as the service cuts it, and returns the rows and the size of each page.
func (tb *table) scan(t testing.TB, d tablestore.Direction, start, end *tablestore.PrimaryKey, limit int32, options ...selection) (rows []*row, pages []int) {
	t.Helper()
	const most = 100
	for start != nil {
		r := tb.page(t, d, end, limit, start, options...)
		for _, x := range r.Rows {
			rows = append(rows, newRow(x.PrimaryKey, x.Columns))
		}
		if pages = append(pages, len(r.Rows)); len(pages) > most {
			t.Fatalf("more than %d pages", most)
		}
		start = r.NextStartPrimaryKey
	}
	return rows, pages
}

// all is every row of a table of two key columns, without timestamps.
func (tb *table) all(t testing.TB) (rows []*row) {
	t.Helper()
	found, _ := tb.scan(t, tablestore.FORWARD, tb.key(minKey, minKey), tb.key(maxKey, maxKey), 0)
	for _, r := range found {
		rows = append(rows, r.untimed())
	}
	return rows
}

func keysOf(rows []*row) (keys [][]any) {
	for _, r := range rows {
		keys = append(keys, r.Key)
	}
	return keys
}

// TestTheFirstRefusalIsTheAnswer mends a request that is wrong in every respect, one fault at a time.
func TestTheFirstRefusalIsTheAnswer(t *testing.T) {
	s := proving(t, "9.1")
	tb := s.newTable(t, tableOptions{})
	must(t, s.do(tb.put(tb.key("there", 1))))
	old := stamp(time.Now().Add(-time.Hour))
	broken := wireRow{key: wireKey("there", 1), wrongCRC: true}
	short := wireRow{key: wireKey("there", 1)[:1]}
	r := rawRequest{operation: "NoSuchThing", method: http.MethodGet, body: make([]byte, 5<<20+1), keyID: "nobody", secret: "wrong", instance: "nowhere",
		change: header("x-ots-apiversion", "")}
	for _, step := range []struct {
		want refusal
		mend func()
	}{
		{refusal{405, "OTSMethodNotAllowed", ""}, func() { r.method = "" }},
		{refusal{413, "OTSRequestBodyTooLarge", ""}, func() { r.body = []byte{0xff} }},
		{invalid("Missing header: x-ots-apiversion."), func() { r.change = header("x-ots-date", old) }},
		{authFailed("The AccessKeyID does not exist."), func() { r.keyID = "" }},
		{authFailed("Signature mismatch."), func() { r.secret = "" }},
		{authFailed("The instance is not found."), func() { r.instance = "" }},
		{authFailed("Mismatch between system time and x-ots-date: " + old + "."), func() { r.change = header("x-ots-contentmd5", "AAAA") }},
		{authFailed("Mismatch between MD5 value of request body and x-ots-contentmd5 in header."), func() { r.change = nil }},
		{invalid("Unsupported operation: NoSuchThing."), func() { r.operation = "PutRow" }},
		{invalid("Parse PBMessage from RawString failed."), func() { r.body = rawPut("1t", broken.encode(), 2) }},
		{invalid("Invalid table name: '1t'."), func() { r.body = rawPut("none", broken.encode(), 2) }},
		{invalid(""), func() { r.body = rawPut("no_such_table", short.encode(), 2) }},
		{noSuchTable, func() { r.body = rawPut(tb.name, short.encode(), 2) }},
		{invalidPK("Validate PK size fail. Input: 1, Meta: 2."), func() { r.body = rawPut(tb.name, wireRow{key: wireKey("there", 1)}.encode(), 2) }},
		{conditionFailed, func() { r.body = rawPut(tb.name, wireRow{key: wireKey("there", 1)}.encode(), 1) }},
		{accepted, func() {}},
	} {
		s.send(t, r).check(t, step.want)
		step.mend()
	}
}

func TestNamesAreCaseSensitive(t *testing.T) {
	s := proving(t, "3.4.1", "3.4.2", "3.1.4")
	lower := s.newTable(t, tableOptions{})
	upper := &table{service: s, name: "T" + lower.name[1:]}
	check(t, s.do(upper.put(upper.key("a", 1))), noSuchTable)
	must(t, s.create(newMeta(upper.name, "pk1", "PK1"), newOptions(-1, 1)))
	s.dropLater(t, upper.name)
	k := lower.key("a", 1)
	must(t, s.do(lower.put(k, c("c", 1), c("C", 2), c("Pk1", 3))))
	diff(t, lower.values(t, k).Cells, []cell{c("C", int64(2)), c("Pk1", int64(3)), c("c", int64(1))})
	check(t, s.do(upper.put(k, c("c", 1))), invalidPK("Validate PK name fail. Input: pk2, Meta: PK1."))
}
