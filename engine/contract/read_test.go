package contract

import (
	"math"
	"net/http"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// row is a row as read; nil means no row.
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

// criteria returns a read of one row, by default of the newest version of all columns.
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

func (tb *table) get(t testing.TB, k *tablestore.PrimaryKey, options ...selection) *row {
	t.Helper()
	r, _, err := tb.tryGet(k, options...)
	must(t, err)
	return r
}

func (tb *table) values(t testing.TB, k *tablestore.PrimaryKey) *row {
	t.Helper()
	return tb.get(t, k).untimed()
}

func ranged(q *tablestore.SingleRowQueryCriteria, d tablestore.Direction, end *tablestore.PrimaryKey,
	limit int32) *tablestore.GetRangeRequest {
	return &tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
		TableName: q.TableName, StartPrimaryKey: q.PrimaryKey, EndPrimaryKey: end, Direction: d, Limit: limit,
		ColumnsToGet: q.ColumnsToGet, MaxVersion: q.MaxVersion, TimeRange: q.TimeRange, StartColumn: q.StartColumn,
		EndColumn: q.EndColumn, Filter: q.Filter,
	}}
}

func (tb *table) page(t testing.TB, d tablestore.Direction, end key, limit int32, start key,
	options ...selection) *tablestore.GetRangeResponse {
	t.Helper()
	r := conformance.Try(tb.GetRange(ranged(tb.criteria(start, options...), d, end, limit))).Must(t)
	return r
}

func (tb *table) scan(t testing.TB, d tablestore.Direction, start, end *tablestore.PrimaryKey, limit int32,
	options ...selection) (rows []*row, pages []int) {
	t.Helper()
	const most = 100
	for start != nil {
		r := tb.page(t, d, end, limit, start, options...)
		for _, x := range r.Rows {
			rows = append(rows, newRow(x.PrimaryKey, x.Columns))
		}
		pages = append(pages, len(r.Rows))
		conformance.MustTrue(t, len(pages) <= most, "more than %d pages", most)
		start = r.NextStartPrimaryKey
	}
	return rows, pages
}

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

// TestErrorPrecedence sends a request with every possible fault, and corrects one fault at a time.
func TestErrorPrecedence(t *testing.T) {
	s := proving(t, "9.1")
	tb := s.newTable(t, tableOptions{})
	must(t, s.do(tb.put(tb.key("there", 1))))
	old := stamp(time.Now().Add(-time.Hour))
	broken := wireRow{key: wireKey("there", 1), wrongCRC: true}
	short := wireRow{key: wireKey("there", 1)[:1]}
	r := rawRequest{operation: "NoSuchThing", method: http.MethodGet, body: make([]byte, 5<<20+1), keyID: "nobody",
		secret: "wrong", instance: "nowhere", change: header("x-ots-apiversion", "")}
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
		{authFailed("Mismatch between system time and x-ots-date: " + old + "."),
			func() { r.change = header("x-ots-contentmd5", "AAAA") }},
		{authFailed("Mismatch between MD5 value of request body and x-ots-contentmd5 in header."), func() { r.change = nil }},
		{invalid("Unsupported operation: NoSuchThing."), func() { r.operation = "PutRow" }},
		{invalid("Parse PBMessage from RawString failed."), func() { r.body = rawPut("1t", broken.encode(), 2) }},
		{invalid("Invalid table name: '1t'."), func() { r.body = rawPut("none", broken.encode(), 2) }},
		{invalid(""), func() { r.body = rawPut("no_such_table", short.encode(), 2) }},
		{noSuchTable, func() { r.body = rawPut(tb.name, short.encode(), 2) }},
		{invalidPK("Validate PK size fail. Input: 1, Meta: 2."),
			func() { r.body = rawPut(tb.name, wireRow{key: wireKey("there", 1)}.encode(), 2) }},
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

// seedVersions writes a row and returns its cells: column a has three versions, b one, c two.
func seedVersions(t *testing.T, tb *table, k *tablestore.PrimaryKey) (at int64, a0, a1, a2, b1, c0, c2 cell) {
	t.Helper()
	at = time.Now().Add(-time.Hour).UnixMilli()
	a0, a1, a2 = v("a", int64(10), at), v("a", int64(11), at+1), v("a", int64(12), at+2)
	b1, c0, c2 = v("b", int64(20), at+1), v("c", int64(30), at), v("c", int64(32), at+2)
	must(t, tb.do(tb.put(k, a0, a1, a2, b1, c0, c2)))
	return at, a0, a1, a2, b1, c0, c2
}

func rowOfVersions(cells ...cell) *row { return &row{[]any{"k", int64(1)}, cells} }

func TestReadsSelectColumnsVersionsAndTimes(t *testing.T) {
	s := proving(t, "2.4.4", "3.11.1", "3.11.3", "3.11.4")
	tb := s.newTable(t, tableOptions{versions: 5})
	k := tb.key("k", 1)
	at, a0, a1, a2, b1, c0, c2 := seedVersions(t, tb, k)
	some := rowOfVersions
	for name, x := range map[string]struct {
		read []selection
		want *row
	}{
		"the newest versions, by name":         {[]selection{versions(1)}, some(a2, b1, c2)},
		"two versions, newest first":           {[]selection{versions(2)}, some(a2, a1, b1, c2, c0)},
		"more versions than there are":         {[]selection{versions(math.MaxInt32)}, some(a2, a1, a0, b1, c2, c0)},
		"a time range holds only its start":    {[]selection{between(at, at+2)}, some(a1, a0, b1, c0)},
		"a time range and versions":            {[]selection{between(at, at+2), versions(1)}, some(a1, b1, c0)},
		"one timestamp":                        {[]selection{exactly(at + 1)}, some(a1, b1)},
		"a time range without any cell":        {[]selection{between(1, 2)}, some()},
		"a timestamp without any cell":         {[]selection{exactly(1)}, some()},
		"one column":                           {[]selection{versions(1), columns("b")}, some(b1)},
		"a column twice is once":               {[]selection{versions(1), columns("b", "b", "a")}, some(a2, b1)},
		"a missing column and another":         {[]selection{versions(1), columns("b", "x")}, some(b1)},
		"only a missing column: no row":        {[]selection{versions(1), columns("x")}, nil},
		"outside the time range: no row":       {[]selection{between(at, at+1), columns("b")}, nil},
		"a key column alone answers the row":   {[]selection{versions(1), columns("pk2")}, some()},
		"a key column and a missing one":       {[]selection{versions(1), columns("pk1", "x")}, some()},
		"a key column and another answer both": {[]selection{versions(1), columns("pk2", "c")}, some(c2)},
		"a start column is inside":             {[]selection{versions(1), columnRange("b", "")}, some(b1, c2)},
		"an end column is outside":             {[]selection{versions(1), columnRange("", "b")}, some(a2)},
		"start and end":                        {[]selection{versions(2), columnRange("a", "c")}, some(a2, a1, b1)},
		"start and end between columns":        {[]selection{versions(1), columnRange("aa", "bb")}, some(b1)},
		"a column range and columns to get":    {[]selection{versions(1), columnRange("b", ""), columns("a", "c")}, some(c2)},
		"a column range without any cell":      {[]selection{versions(1), columnRange("x", "")}, some()},
		"all of it at once": {[]selection{versions(1), between(at, at+2), columns("a", "b", "pk1"),
			columnRange("a", "b")}, some(a1)},
	} {
		t.Run(name, func(t *testing.T) { tb.checkRead(t, k, x.want, x.read...) })
	}
	t.Run("a missing row is nil", func(t *testing.T) {
		diff(t, tb.get(t, tb.key("k", 2)), (*row)(nil))
		diff(t, tb.get(t, tb.key("k", 2), columns("pk1")), (*row)(nil))
	})
}

func TestTableKeepsVersionsAndTTL(t *testing.T) {
	s := proving(t, "3.7.3", "3.7.4")
	const day = 24 * 60 * 60
	tb := s.newTable(t, tableOptions{versions: 2, ttl: 5 * day, deviation: 100 * day})
	ago := func(days int64) int64 { return time.Now().UnixMilli() - days*day*1000 }
	t.Run("surplus versions are invisible", func(t *testing.T) {
		k, at := tb.key("versions", 1), ago(1)
		must(t, s.do(tb.put(k, v("a", 1, at), v("a", 3, at+2), v("a", 2, at+1))))
		must(t, s.do(tb.update(k, setAt("b", 1, at+2), setAt("b", 2, at+3))))
		must(t, s.do(tb.update(k, setAt("b", 0, at))))
		diff(t, tb.get(t, k, versions(10)).Cells, []cell{v("a", int64(3), at+2), v("a", int64(2), at+1),
			v("b", int64(2), at+3), v("b", int64(1), at+2)})
		diff(t, tb.get(t, k, between(at, at+1)).Cells, []cell(nil))
	})
	t.Run("a version beyond the time to live is refused", func(t *testing.T) {
		k := tb.key("late", 1)
		check(t, s.do(tb.put(k, v("a", 1, ago(6)))), invalid("Invalid timestamp. Cell:a. Timestamp:…"))
		must(t, s.do(tb.put(k, v("a", 1, ago(5)+2000))))
	})
	t.Run("a version beyond the time to live is invisible", func(t *testing.T) {
		k, at := tb.key("ttl", 1), ago(1)
		live := func(days int) { must(t, s.alter(tb.name, newOptions(days*day, 2))) }
		live(7)
		must(t, s.do(tb.put(k, v("a", 1, ago(6)), v("b", 1, at))))
		live(5)
		diff(t, tb.get(t, k, versions(10)).Cells, []cell{v("b", int64(1), at)})
		rows, _ := tb.scan(t, tablestore.FORWARD, tb.key("ttl", minKey), tb.key("ttl", maxKey), 0)
		diff(t, rows, []*row{{[]any{"ttl", int64(1)}, []cell{v("b", int64(1), at)}}})
	})
	t.Run("an update changes the time to live", func(t *testing.T) {
		k, at := tb.key("moved", 1), ago(3)
		must(t, s.do(tb.put(k, v("a", 1, at), c("b", 1))))
		diff(t, len(tb.get(t, k).Cells), 2)
		must(t, s.alter(tb.name, newOptions(2*day, 2)))
		diff(t, tb.values(t, k).Cells, []cell{c("b", int64(1))})
	})
	t.Run("an update lowers the number of versions", func(t *testing.T) {
		k, at := tb.key("fewer", 1), ago(1)
		must(t, s.do(tb.put(k, v("a", 1, at), v("a", 2, at+1))))
		must(t, s.alter(tb.name, newOptions(-1, 1)))
		diff(t, tb.get(t, k, versions(10)).Cells, []cell{v("a", int64(2), at+1)})
	})
}

// TestHiddenVersionsRemainHidden tests choices of the engine (docs/internals/protocol-choices.md).
func TestHiddenVersionsRemainHidden(t *testing.T) {
	s := proving(t, "3.7.2", "3.7.3", "3.8.5", "3.8.6", "3.10.4")
	skipReal(t, s)
	const day = 24 * 60 * 60
	at := time.Now().Add(-time.Hour).UnixMilli()
	a := func(n int64) cell { return v("a", n, at+n) }
	tb := s.newTable(t, tableOptions{deviation: 100 * day})
	for name, x := range map[string]struct {
		steps    []step
		versions int // of the table, set after the write
		want     []cell
	}{
		"a put before its deletion":                {[]step{set("a", 9), drop("a")}, 2, nil},
		"a put after it":                           {[]step{drop("a"), setAt("a", 9, at+9)}, 2, []cell{a(9)}},
		"a surplus one when another is deleted":    {[]step{dropAt("a", at+3)}, 2, []cell{a(2)}},
		"and when the table keeps more":            {[]step{dropAt("a", at+3)}, 5, []cell{a(2)}},
		"one that no write has removed shows then": {nil, 5, []cell{a(3), a(2), a(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			k := tb.key(name, 1)
			must(t, s.alter(tb.name, newOptions(-1, 5)))
			must(t, s.do(tb.put(k, a(1), a(2), a(3), v("b", 1, at))))
			must(t, s.alter(tb.name, newOptions(-1, 2)))
			if x.steps != nil {
				must(t, s.do(tb.update(k, x.steps...)))
			}
			must(t, s.alter(tb.name, newOptions(-1, x.versions)))
			diff(t, tb.get(t, k, versions(9)).Cells, append(x.want, v("b", int64(1), at)))
		})
	}
	t.Run("an increment replaces a base in the future", func(t *testing.T) {
		k, later := tb.key("ahead", 1), time.Now().Add(time.Hour).UnixMilli()
		must(t, s.do(tb.put(k, v("n", 40, later))))
		must(t, s.do(tb.update(k, add("n", 2))))
		diff(t, tb.get(t, k, versions(9)).Cells, []cell{v("n", int64(42), later)})
	})
	t.Run("a row refused by itself does not make others repeated", func(t *testing.T) {
		k := tb.key("refused", 1)
		rows := tb.rows(t, expecting(expectNotExist, tb.put(k, v("a", 1, 1))), tb.put(k, c("a", 2)))
		checkRow(t, rows[0], invalid("Invalid timestamp. Cell:a. Timestamp:…"))
		checkRow(t, rows[1], accepted)
	})
	t.Run("a scan skips a row whose cells have expired", func(t *testing.T) {
		must(t, s.alter(tb.name, newOptions(day, 2)))
		for i, back := range []time.Duration{0, 12 * time.Hour, 0} {
			must(t, s.do(tb.put(tb.key("x", i), v("a", i, time.Now().Add(-back).UnixMilli()))))
		}
		s.tell(t, "clock", `{"advance": "13h"}`, http.StatusOK)
		diff(t, tb.get(t, tb.key("x", 1)), (*row)(nil))
		page := tb.page(t, tablestore.FORWARD, tb.key("x", maxKey), 1, tb.key("x", minKey))
		diff(t, newRow(page.NextStartPrimaryKey, nil), &row{[]any{"x", int64(1)}, nil})
		rows, _ := tb.scan(t, tablestore.FORWARD, page.NextStartPrimaryKey, tb.key("x", maxKey), 0)
		diff(t, rows, []*row{{[]any{"x", int64(2)}, rows[0].Cells}})
	})
}

func TestCellsWithoutTimestampGetCurrentTime(t *testing.T) {
	s := proving(t, "3.3.5")
	tb := s.newTable(t, tableOptions{versions: 2})
	k := tb.key("a", 1)
	before := time.Now().Add(-time.Minute).UnixMilli() // a real instance has another clock
	must(t, s.do(tb.put(k, c("a", 1), c("b", 2))))
	must(t, s.do(tb.update(k, set("c", 3))))
	r := tb.get(t, k)
	after := time.Now().Add(time.Minute).UnixMilli()
	for _, x := range r.Cells {
		conformance.True(t, x.Timestamp >= before && x.Timestamp <= after, "%+v is not between %d and %d", x, before, after)
	}
	conformance.True(t, r.Cells[0].Timestamp == r.Cells[1].Timestamp && r.Cells[2].Timestamp >= r.Cells[0].Timestamp,
		"%+v", r.Cells)
}
