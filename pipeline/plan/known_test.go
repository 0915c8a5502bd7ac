package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
	"github.com/parquet-go/parquet-go"
)

func put(t *testing.T, admin *client.Admin, id string, cells map[string]any) {
	t.Helper()
	must(t, tabletest.Do(admin.Client, tabletest.Put("t", tabletest.Key("id", id), cells)))
}

func TestTableTypesAreDefault(t *testing.T) {
	t.Chdir(t.TempDir())
	admin := store(t, table.KeyColumn{Name: "id", Type: table.String})
	put(t, admin, "a", map[string]any{"price": 10.25, "qty": int64(5), "zip": "007", "ok": true, "mixed": "x"})
	put(t, admin, "b", map[string]any{"mixed": int64(1)})
	for _, tt := range []struct{ header, row string }{{"price", "10.20"}, {"price", "7"}, {"price", ""}, {"price", "+7"},
		{"price", "0.1000000000000000055"}, {"qty", "6"}, {"qty", "007"}, {"qty", "1.5"}, {"zip", "123"}, {"ok", "false"},
		{"mixed", "5"}, {"fresh", "5"}, {"price", strings.Repeat("5.00\nx,", 19) + "n/a"},
		{"price", strings.Repeat("12.80\nx,", 100) + "0.1000000000000000055"},
		{"price", strings.Repeat("5.00\nx,", 5) + "n/a"}, // too few doubles to tell
	} {
		for _, known := range []Known{KnownDefault, KnownIgnored, KnownStrict} {
			r := ask(file(t, "in.csv", fmt.Sprintf("id,%s\nx,%s\n", tt.header, tt.row)))
			r.Target.Absent, r.Target.Key, r.Columns.Known = false, nil, known
			_, _ = try(t, r, admin) // the golden file says which are refused
		}
	}
}

func TestTypesOfLastRunFillMissingTypes(t *testing.T) {
	t.Chdir(t.TempDir())
	admin := store(t, table.KeyColumn{Name: "id", Type: table.String})
	started := time.Unix(0, 0)
	run := func(name, target string, written int, types ...string) {
		started = started.Add(time.Hour)
		dir := filepath.Join("tsimport-runs", name)
		must(t, os.MkdirAll(dir, 0o755))
		var schema []map[string]string
		for i := 0; i < len(types); i += 2 {
			schema = append(schema, map[string]string{"name": types[i], "type": types[i+1]})
		}
		text, _ := json.Marshal(map[string]any{"version": 1, "table": "t", "target": target, "written": written,
			"schema": schema, "started": started})
		must(t, os.WriteFile(filepath.Join(dir, "summary.json"), text, 0o644))
	}
	run("20260101T000000.000Z-t", "test", 5, "rare", "double", "price", "double")
	run("20260102T000000.000Z-job/load+2", "test", 5, "rare", "integer", "price", "string")
	run("20260102T000000.000Z-job/load+10", "test", 5, "rare", "string", "price", "string")
	run("20260103T000000.000Z-t", "test", 0, "rare", "integer")
	run("20260104T000000.000Z-t", "elsewhere", 5, "rare", "integer")
	for _, price := range []any{nil, 2.5, "2.50"} { // an empty table, then one with a type, then with several
		if price != nil {
			put(t, admin, fmt.Sprint("a", price), map[string]any{"price": price})
		}
		r := ask(file(t, "in.csv", "id,rare,price\nx,5,2.5\n"))
		r.Target.Absent, r.Target.Key = false, nil
		makes(t, r, admin)
		r.Columns.Types = map[string]Type{"rare": {Type: table.Integer}, "price": {Type: table.String}} // one is another
		makes(t, r, admin)
	}
}

func TestColumnOfNearlyOneTypeIsReported(t *testing.T) {
	column := func(rows, each int, value, other string) string {
		var b strings.Builder
		b.WriteString("id,qty\n")
		for i := range rows {
			v := value
			if (i+1)%each == 0 {
				v = other
			}
			fmt.Fprintf(&b, "%d,%s\n", i, v)
		}
		return b.String()
	}
	texts := []string{column(2000, 100, "7", "n/a"),
		column(100, 20, "7.5", "10.50"), // a decision says that all are numbers
		column(100, 50, "true", "no"), column(100, 101, "7", ""), column(100, 50, "x", "7"),
		column(100, 5, "7", "x"), // too many
		column(5, 5, "7", "x")}   // too few to tell
	for _, text := range texts {
		makes(t, ask(file(t, "in.csv", text)), nil)
	}
	r := ask(file(t, "in.csv", texts[0]))
	r.Columns.Known = KnownStrict
	makes(t, r, nil)
	makes(t, ask(file(t, "in.jsonl", strings.Repeat("{\"id\":\"a\",\"n\":1.5}\n", 99)+
		`{"id":"b","n":0.1000000000000000055}`)), nil)
}

func TestColumnTypeFollowsSample(t *testing.T) {
	t.Chdir(t.TempDir())
	asked := func(r *Request) {
		r.Columns.Types = map[string]Type{"id": {Type: table.String}, "v": {Type: table.String}}
	}
	kept := func(r *Request) {
		r.Inferred = map[string]Inferred{"id": {Type: table.String, Own: table.Double},
			"v": {Type: table.Integer, Own: table.Integer}}
	}
	for _, tt := range []struct {
		key  table.Type
		text string
		set  func(*Request)
	}{{table.Integer, `{"id":7,"v":"x"}`, nil}, {table.Integer, `{"id":"7","v":1.5}`, nil},
		{table.String, `{"id":7,"v":12345678901234567891}`, nil}, {table.String, `{"id":"7","v":null}`, nil},
		{table.String, `{"id":"7","v":1}` + "\n" + `{"id":7,"v":"1"}`, nil}, {table.String, `{"id":7,"v":1}`, asked},
		{table.String, `{"id":"7","v":"1"}`, kept}} {
		r := ask(file(t, "in.jsonl", tt.text+"\n"))
		r.Target.Absent, r.Target.Key = false, nil
		if tt.set != nil {
			tt.set(r)
		}
		makes(t, r, store(t, table.KeyColumn{Name: "id", Type: tt.key}))
	}
}

// keyedRows are rows with a key of several columns, and perhaps a second key.
type keyedRows struct {
	*sourcetest.Rows
	unique []source.KeyColumn
	also   [][]string
}

func (r keyedRows) Open(context.Context, []byte) ([]source.Source, error) {
	return []source.Source{r}, nil
}
func (r keyedRows) Suspend() error { return nil }
func (r keyedRows) About() source.About {
	a := r.Rows.About()
	a.Unique, a.AlsoUnique = r.unique, r.also
	return a
}

// The source's key is a (text) and n (number), or these with b (binary).
func TestSourceKeysStayDistinctOrAreRefused(t *testing.T) {
	a, n, b := source.KeyColumn{Name: "a", Kind: record.String}, source.KeyColumn{Name: "n", Kind: record.Integer},
		source.KeyColumn{Name: "b", Kind: record.Binary}
	type keyed struct {
		keys   string // key columns, separated by spaces; NAME=EXPRESSION is computed
		unique []source.KeyColumn
		also   [][]string
		change func(*Request)
	}
	var all []keyed
	for _, keys := range []string{"a n", "n a", "n", "a", "h=md5(a,4) a n", "h=md5(a,4)+a n", "h=md5(a,32) n",
		"h=sha256(a,32) n", "h=sha256(a,31) n", "h=lower(a) n", "h=bucket(n,8)+a", "k=splice(auto,a,n)",
		`k=splice(",",a,pad(n,9))`, "k=a+pad(n,9)", "k=a+text(n)", `k=text(n)+"/"+a`, "k=text(n)+a", `k=text(n)+"0"+a`,
		"a k=n+1", "a k=int(n/2)", "h=md5(a,2) i=md5(a,3) j=md5(a,4)"} {
		all = append(all, keyed{keys: keys})
	}
	for _, c := range append(all, []keyed{
		{keys: "a b n", unique: []source.KeyColumn{a, n, b}},
		{keys: "a n", unique: []source.KeyColumn{a, n, b}},
		{keys: "a n", unique: []source.KeyColumn{a, n, b}, also: [][]string{{"a", "n"}}},
		{keys: "a", unique: []source.KeyColumn{a, n, b}, also: [][]string{{"a", "n"}}},
		{keys: "a n", change: func(r *Request) { r.Target.Key[1].Type = table.String }},
		{keys: "x n", change: func(r *Request) { r.Columns.Rename = map[string]string{"a": "x"} }},
		{keys: "a n", change: func(r *Request) { r.Read.Convert.Trim = true }},
		{keys: "a n", change: func(r *Request) { r.Target.Key[0].Type = table.Binary }},
		{keys: "a n", change: func(r *Request) {
			r.Columns.Types = map[string]Type{"n": {Type: table.Integer, Time: &table.Time{}}}
		}},
		{keys: "n", change: func(r *Request) { r.Target.Table = "t_{a}" }},
		{keys: "n", change: func(r *Request) { r.Target.Table = "t_{lower(a)}" }},
		{keys: "n", change: func(r *Request) { r.Target.Table = "t_{a}_{n}" }},
		{keys: "n", change: func(r *Request) { r.Mode = table.Delete }},
		{keys: "a", change: func(r *Request) { r.Mode, r.Columns.Exclude = table.Increment, []string{"b"} }},
		{keys: "n seq", change: func(r *Request) {
			r.Read.Archived, r.Target.Key[1] = true, table.KeyColumn{Name: "seq", Type: table.Integer, Auto: true}
		}},
		{keys: "n", change: func(r *Request) { r.Keep = KeepKeyFields }},
	}...) {
		rows := keyedRows{&sourcetest.Rows{Name: "rows", Columns: []string{"a", "n", "b"}}, c.unique, c.also}
		rows.Data = [][]record.Datum{{{Kind: record.String, Bytes: []byte("x")}, {Kind: record.Integer, Int: 1},
			{Kind: record.Binary, Bytes: []byte{1}}}}
		if rows.unique == nil {
			rows.unique = []source.KeyColumn{a, n}
		}
		r := &Request{Inputs: []string{"rows"}, Mode: table.Put, Target: Target{Table: "t", Create: true, Absent: true}}
		r.Read.Sources = rows
		for _, k := range strings.Fields(c.keys) {
			name, expr, computed := strings.Cut(k, "=")
			if r.Target.Key = append(r.Target.Key, table.KeyColumn{Name: name}); computed {
				r.Columns.Keys = append(r.Columns.Keys, Column{Name: name, Expr: expr})
			}
		}
		if c.change != nil {
			c.change(r)
		}
		_, err := try(t, r, nil)
		if conformance.True(t, err == nil || errors.As(err, new(*UsageError)), "%s: %v", c.keys, err); err == nil {
			continue
		}
		looked := 0
		r.Read.Look = func(context.Context) error { looked++; return errors.New("seen") }
		if _, err := try(t, r, nil); err == nil || err.Error() != "seen" || looked != 1 {
			t.Errorf("%s: looked %d times: %v", c.keys, looked, err)
		}
		r.Written = true
		p, err := try(t, r, nil)
		conformance.True(t, err == nil && p.Merging != nil && looked == 1, "%s: a comparison: %v", c.keys, err)
	}
}

var must = conformance.Must

// parquetFile writes a file with one row, whose column v has the given type. An optional v is null.
func parquetFile(t *testing.T, name string, v parquet.Node, options ...parquet.WriterOption) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f := conformance.Try(os.Create(path)).Must(t)
	options = append(options, parquet.NewSchema("", parquet.Group{"id": parquet.String(), "v": v}))
	w := parquet.NewWriter(f, options...)
	value := parquet.ValueOf(int64(1_700_000_000))
	switch v.Type().Kind() {
	case parquet.Int32:
		value = parquet.ValueOf(int32(19_000))
	case parquet.ByteArray:
		value = parquet.ValueOf([]byte("x"))
	}
	if v.Optional() {
		value = parquet.NullValue()
	}
	rows := []parquet.Row{{parquet.ValueOf("a").Level(0, 0, 0), value.Level(0, 0, 1)}}
	for i := range 50_000 * strings.Count(name, "large") {
		rows = append(rows, parquet.Row{parquet.ValueOf(fmt.Sprintf("%0200d", i)).Level(0, 0, 0), value.Level(0, 0, 1)})
	}
	must(t, errors.Join(conformance.ErrorOf(w.WriteRows(rows)), w.Close(), f.Close()))
	return path
}

func TestMixedUnitsAreRefusedByName(t *testing.T) {
	ms, us := parquetFile(t, "ms.parquet", parquet.Timestamp(parquet.Millisecond)),
		parquetFile(t, "us.parquet", parquet.Timestamp(parquet.Microsecond))
	local := parquetFile(t, "local.parquet", parquet.TimestampAdjusted(parquet.Millisecond, false))
	date, number := parquetFile(t, "date.parquet", parquet.Date()), parquetFile(t, "number.parquet", parquet.Int(64))
	zero, clock := parquetFile(t, "zero.parquet", parquet.Decimal(0, 18, parquet.Int64Type)),
		parquetFile(t, "clock.parquet", parquet.Time(parquet.Millisecond))
	two, three := parquetFile(t, "two.parquet", parquet.Decimal(2, 18, parquet.Int64Type)),
		parquetFile(t, "three.parquet", parquet.Decimal(3, 18, parquet.Int64Type))
	text, bytes := parquetFile(t, "text.parquet", parquet.String()),
		parquetFile(t, "bytes.parquet", parquet.Leaf(parquet.ByteArrayType))
	numbers, words := file(t, "numbers.csv", "id,v\nb,5\n"), file(t, "words.csv", "id,v\nb,2023-11-14\n")
	nothing, unseen := parquetFile(t, "nothing.parquet", parquet.Optional(parquet.Int(64))),
		parquetFile(t, "large.parquet", parquet.Optional(parquet.Int(64)))
	integer, str, double, binary := Type{Type: table.Integer}, Type{Type: table.String}, Type{Type: table.Double},
		Type{Type: table.Binary}
	instant := conformance.Try(convert.ParseTime(",UTC,us")).Must(t)
	for _, tt := range []struct {
		a, b string
		as   Type
	}{{ms, us, Type{}}, {ms, us, integer}, {ms, us, str}, {ms, us, Type{Type: table.Integer, Time: instant}},
		{ms, local, Type{}}, {ms, date, Type{}},
		{clock, parquetFile(t, "exact.parquet", parquet.Time(parquet.Microsecond)), Type{}}, {ms, date, integer},
		{ms, number, Type{}}, {ms, number, integer}, {two, three, Type{}}, {zero, two, Type{}}, {number, zero, Type{}},
		{number, two, str}, {two, three, integer}, {two, three, double}, {text, bytes, Type{}}, {text, bytes, str},
		{ms, numbers, Type{}}, {ms, words, Type{}}, {two, numbers, Type{}}, {ms, ms, Type{}}, {number, numbers, Type{}},
		{ms, nothing, Type{}}, {ms, nothing, integer}, {ms, unseen, integer}, {text, bytes, binary}, {ms, us, double},
		{zero, number, integer}, {bytes, words, Type{}}} {
		for _, order := range [][]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			r := ask(order...)
			if tt.as.Type != table.Null {
				r.Columns.Types = map[string]Type{"v": tt.as}
			}
			_, _ = try(t, r, nil)
		}
	}
}

func TestDurationsDoNotMixWithOtherNumbers(t *testing.T) {
	for _, column := range []table.Column{{Type: table.Integer, Exact: true}, {Type: table.Integer}, {Type: table.Double},
		{Type: table.String}, {Type: table.Any, Exact: true}} {
		for _, other := range []string{"duration, ms", "duration, months", convert.Numbers, convert.NumericTexts,
			convert.Texts} {
			p := planner{request: new(Request), plan: &Plan{Schema: new(table.Schema), Fields: []table.Column{column}}}
			for _, path := range []string{"", ".d"} {
				a, b := p.kept(0, path, "duration, s"), p.kept(0, path, other)
				conformance.True(t, mixes(a, b) && mixes(b, a), "%s%s: %q and %q", column.Type, path, a, b)
			}
		}
	}
	got := UnitText("integer", "duration, µs") + UnitText("string", "timestamp, µs") + UnitText("integer", "number")
	conformance.True(t, got == " (µs) (timestamp, µs)", "%v", got)
}

// The schemas are from pyarrow: v is a duration in s or ms.
func TestParquetDurationsKeepArrowUnit(t *testing.T) {
	const begin = "/////3AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAEAAAAUAAAAEAAUAAgABgAHAAwAAAAQABAAAAAAAAESEAAAABgAAAAEAAAAAAAAAAEAAAB2"
	s := parquetFile(t, "s.parquet", parquet.Int(64), parquet.KeyValueMetadata("ARROW:schema", begin+
		"AAYACAAGAAYAAAAAAAAA"))
	ms := parquetFile(t, "ms.parquet", parquet.Int(64), parquet.KeyValueMetadata("ARROW:schema", begin+
		"AAAABAAEAAQAAAAAAAAA"))
	damaged := parquetFile(t, "damaged.parquet", parquet.Int(64), parquet.KeyValueMetadata("ARROW:schema", begin))
	refused(t, ask(s, ms), nil, "duration, ms")
	refused(t, ask(s, damaged), nil, "as number")
	words := []string{file(t, "words.csv", "id,v\nb,5 s\n"), file(t, "words.jsonl", "{\"id\":\"b\",\"v\":\"5 s\"}\n"),
		parquetFile(t, "words.parquet", parquet.String())}
	for _, text := range words {
		refused(t, ask(text, s), nil, "as text")
	}
	makes(t, ask(s), nil)
}

// The schemas are from pyarrow: v is a struct with a list of durations in s or µs.
func TestNestedDurationsHaveOneUnit(t *testing.T) {
	const begin = "/////8gAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAEAAAAEAAAArP///wAAAQ0UAAAAGAAAAAQAAAABAAAAEAAAAAEAAAB2AAAA2P///9T///8AAAEMFAAAABwAAAAEAAAAAQAAACQAAAABAAAAZAAAAAQABAAEAAAAEAAUAAgABgAHAAwAAAAQABAAAAAAAAESEAAAABwAAAAEAAAAAAAAAAQAAABpdGVtAAAGAAgABgAGAAAAAAA"
	type row struct {
		ID string `parquet:"id"`
		V  struct {
			D []int64 `parquet:"d,list"`
			N int64   `parquet:"n"`
		} `parquet:"v"`
	}
	write := func(name string, options ...parquet.WriterOption) string {
		path := filepath.Join(t.TempDir(), name)
		one := row{ID: "a"}
		one.V.D = []int64{5}
		must(t, parquet.WriteFile(path, []row{one}, options...))
		return path
	}
	s := write("s.parquet", parquet.KeyValueMetadata("ARROW:schema", begin+"AAA=="))
	us := write("us.parquet", parquet.KeyValueMetadata("ARROW:schema", begin+"CAA=="))
	refused(t, ask(s, us), nil, "column v.d[]: "+s+" has it as duration, s, and "+us+" as duration, µs")
	refused(t, ask(write("number.parquet"), s), nil, "number.parquet has it as number")
	refused(t, ask(s, file(t, "a.jsonl", `{"id":"b","v":{"d":[5]}}`)), nil, "as text")
	makes(t, ask(s, file(t, "b.jsonl", `{"id":"b","v":null}`)), nil)
	makes(t, ask(s, s), nil)
}

func TestKeysHaveOneUnitAndScale(t *testing.T) {
	two, three := parquetFile(t, "two.parquet", parquet.Decimal(2, 18, parquet.Int64Type)),
		parquetFile(t, "three.parquet", parquet.Decimal(3, 18, parquet.Int64Type))
	for _, expression := range []string{"", `md5(v)`} {
		r := ask(two, three)
		if r.Target.Key = []table.KeyColumn{{Name: "v"}}; expression != "" {
			e := conformance.Try(keyexpr.ParseColumn("k=" + expression)).Must(t)
			r.Target.Key, r.Columns.Keys = []table.KeyColumn{{Name: "k"}}, []keyexpr.Column{e}
		}
		refused(t, r, nil, "decimal, scale 3")
	}
	// The column of an existing table may be a string.
	admin := store(t, table.KeyColumn{Name: "v", Type: table.String})
	r := ask(two, three)
	r.Target.Absent, r.Target.Key = false, nil
	refused(t, r, admin, "decimal, scale 3, which one column cannot hold; load them")
}

func TestUnitMustMatchLastRun(t *testing.T) {
	t.Chdir(t.TempDir())
	admin := store(t, table.KeyColumn{Name: "id", Type: table.String})
	put(t, admin, "a", map[string]any{"v": int64(5)})
	dir := filepath.Join("tsimport-runs", "20260101T000000.000Z-t")
	must(t, os.MkdirAll(dir, 0o755))
	summary := `{"version":1,"table":"t","target":"test","written":5,"schema":[{"name":"v","type":"integer","unit":"timestamp, ms"}],"units":{"v":"timestamp, ms"}}`
	must(t, os.WriteFile(filepath.Join(dir, "summary.json"), []byte(summary), 0o644))
	as := func(known Known) func(*Request) {
		return func(r *Request) {
			r.Target.Absent, r.Target.Key, r.Columns.Known = false, nil, known
			r.Columns.Types = map[string]Type{"v": {Type: table.Integer}}
		}
	}
	us, ms := parquetFile(t, "us.parquet", parquet.Timestamp(parquet.Microsecond)),
		parquetFile(t, "ms.parquet", parquet.Timestamp(parquet.Millisecond))
	// A load in between that lacks the column keeps the unit for the next one.
	r := ask(file(t, "between.csv", "id,w\nb,5\n"))
	r.Target.Absent, r.Target.Key = false, nil
	makes(t, r, admin)
	// The rejects of that run are in JSON, which has no units.
	r = ask(file(t, "rejects.ndjson", `{"id":"c","v":7}`))
	as(KnownDefault)(r)
	refused(t, r, admin, "timestamp, ms")
	r.Inferred = map[string]Inferred{"v": {Type: table.Integer}}
	makes(t, r, admin)
	// On another machine, the unit is in the state.
	must(t, os.Rename("tsimport-runs", "elsewhere"))
	r = ask(us)
	as(KnownDefault)(r)
	r.Selection = keptUnits{"v": "timestamp, ms"}
	refused(t, r, admin, "the last run has it as timestamp, ms, and "+us)
	must(t, os.Rename("elsewhere", "tsimport-runs"))
	for _, last := range []string{summary,
		`{"version":1,"table":"t","target":"test","written":5,"schema":[{"name":"w","type":"integer"}],"units":{"v":"timestamp, ms"}}`} {
		must(t, os.WriteFile(filepath.Join(dir, "summary.json"), []byte(last), 0o644))
		r = ask(us)
		as(KnownDefault)(r)
		refused(t, r, admin, `the last run has it as timestamp, ms, and `+us+` as timestamp, µs`)
	}
	r.Columns.Types["v"] = Type{Type: table.Integer, Time: &table.Time{Unit: 1e9}}
	refused(t, r, admin, "and --type as timestamp, ns")
	for in, known := range map[string]Known{us: KnownIgnored, ms: KnownDefault, "compared": KnownDefault} {
		r := ask(strings.Replace(in, "compared", us, 1))
		as(known)(r)
		r.Written = in == "compared"
		makes(t, r, admin)
	}
}

// keptUnits is a Selection that chooses all inputs and remembers units.
type keptUnits map[string]string

func (k keptUnits) Units() map[string]string  { return k }
func (keptUnits) KeepUnits(map[string]string) {}
func (keptUnits) Select(_ context.Context, found []input.Item, _ int64, _ []string, _ map[string]bool) ([]input.Item,
	[]string, error) {
	return found, nil, nil
}

func askComputed(t *testing.T, text string, pk, set []string) *Request {
	t.Helper()
	r := ask(file(t, "a.csv", text))
	r.Target.Key = nil
	for _, p := range pk {
		col := conformance.Try(keyexpr.ParseColumn(p)).Must(t)
		r.Target.Key = append(r.Target.Key, table.KeyColumn{Name: col.Name, Type: col.Type})
		if col.Expr != "" {
			r.Columns.Keys = append(r.Columns.Keys, col)
		}
	}
	for _, s := range set {
		r.Columns.Set = append(r.Columns.Set, conformance.Try(keyexpr.ParseColumn(s)).Must(t))
	}
	return r
}

const cards = "card,seller,name\n1,a100,x y\n20,a1001,z\n"

func TestComputedColumnsAreTypedInSchema(t *testing.T) {
	for _, tt := range []struct {
		pk, set []string
		change  func(*Request)
	}{
		{[]string{"k=pad(card, 4)"}, nil, nil},
		{[]string{"k=desc(card)", "seller"}, []string{"up=upper(name)"}, nil},
		{[]string{"card:string=text(card)"}, []string{"name=lower(name)"}, nil},
		{[]string{"k=pad(card, 4)"}, nil, func(r *Request) { r.Columns.Exclude = []string{"card"} }},
		{[]string{"k=pad(card, 4)"}, nil, func(r *Request) { r.Columns.Only = []string{"seller"} }},
		{[]string{"k=pad(card, 4)"}, nil, func(r *Request) { r.Mode = table.Delete }},
		{[]string{"k=salt(9)", "c"}, nil, func(r *Request) { r.Columns.Rename = map[string]string{"card": "c"} }},
		{[]string{"k=card + \"x\""}, nil, func(r *Request) {
			r.Columns.Exclude = []string{"card"}
			r.Columns.Types = map[string]Type{"card": {Type: table.String}}
		}},
	} {
		r := askComputed(t, cards, tt.pk, tt.set)
		if tt.change != nil {
			tt.change(r)
		}
		makes(t, r, nil)
	}
}

func TestSaltIgnoresInputColumnOrder(t *testing.T) {
	var keys []string
	for _, text := range []string{"a,b\n1,x\n", "b,a\nx,1\n"} {
		p := makes(t, askComputed(t, text, []string{"s=salt(1000)", `k=splice(",", b, pad(a, 4))`}, nil), nil)
		d := conformance.Try(p.Design()).Must(t)
		must(t, p.Sample(func(row []table.Value) bool {
			keys = append(keys, strings.Join(d.Example(row).Key, " "))
			return true
		}))
	}
	conformance.True(t, len(keys) == 2 && keys[0] == keys[1] && keys[0] == "297 x,0001",
		"keys %q; want the same, by b and a as the expression names them", keys)
}

func TestInvalidExpressionsAreRefusedBeforeFirstRow(t *testing.T) {
	for _, tt := range []struct{ pk, set, want string }{
		{"k=pad(crad, 4)", "", "--pk k: expression \"pad(crad, 4)\": unknown column \"crad\"; did you mean card?"},
		{"k=pad(card, 4) + card", "", "text(card)"},
		{"k:integer=pad(card, 4)", "", "column k has type integer"},
		{"k=card / 2", "", "a primary-key column cannot be double"},
		{"k=random()", "", "salt(n)"},
		{"card", "up=upper(card)", "--set up: expression"},
		{"card", "card=1 + card", "--set card: the column is set twice, or is a primary-key column"},
		{"k=salt(5)", "", "no columns"},
		{"k=lookup(name, \"absent.csv\")", "", "absent.csv"},
	} {
		var set []string
		if tt.set != "" {
			set = append(set, tt.set)
		}
		refused(t, askComputed(t, cards, []string{tt.pk}, set), nil, tt.want)
	}
	r := askComputed(t, cards, []string{"card"}, []string{"up=upper(name)"})
	r.Mode = table.Delete
	refused(t, r, nil, "--set up: deleting rows")
	refused(t, askComputed(t, "a\n\x01\n", []string{"k=splice(auto, a, a)"}, nil), nil, "no separator sorts below it")
}

func TestSpliceAutoChoosesSeparatorFromSample(t *testing.T) {
	p := makes(t, askComputed(t, cards, []string{"k=splice(auto, seller, name)"}, nil), nil)
	d := conformance.Try(p.Design()).Must(t)
	var rows [][]table.Value
	must(t, p.Sample(func(row []table.Value) bool {
		rows = append(rows, row)
		return false
	}))
	x := keyexpr.Explain(d, rows, nil, nil)
	conformance.True(t, x.Key[0].Separator == "\x1f" && len(x.Examples) == 1 && x.Examples[0].Key[0] == "a100\x1fx y",
		"%+v", x)
}
