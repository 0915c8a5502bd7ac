package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// typed plans a load of a file into table t, and returns the types of its columns and the warnings.
func typed(t *testing.T, admin *client.Admin, text string, set func(*Request)) (types string, warnings []string) {
	t.Helper()
	r := ask(file(t, "in.csv", text))
	r.Target.Absent, r.Target.Key = false, nil
	if set != nil {
		set(r)
	}
	p := makes(t, r, admin)
	var all []string
	for _, c := range p.Schema.Attributes() {
		all = append(all, c.Name+":"+c.Type.String())
	}
	return strings.Join(all, " "), p.Warnings
}

func TestTableTypesAreDefault(t *testing.T) {
	t.Chdir(t.TempDir())
	admin := store(t, table.KeyColumn{Name: "id", Type: table.String})
	put(t, admin, "a", map[string]any{"price": 10.25, "qty": int64(5), "zip": "007", "ok": true, "mixed": "x"})
	put(t, admin, "b", map[string]any{"mixed": int64(1)})
	for _, tt := range []struct{ header, row, want, warning string }{
		{"price", "10.20", "price:double", ""},
		{"price", "7", "price:double", ""},
		{"price", "", "price:double", ""}, // a missing value has no type
		{"price", "+7", "price:string", "price: the table has it as double"},
		{"price", "0.1000000000000000055", "price:string", "--type price=double"},
		{"qty", "6", "qty:integer", ""},
		{"qty", "007", "qty:string", "this load writes it as string"},
		{"qty", "1.5", "qty:double", "this load writes it as double"},
		{"zip", "123", "zip:string", ""},
		{"ok", "false", "ok:boolean", ""},
		{"mixed", "5", "mixed:integer", ""},
		{"fresh", "5", "fresh:integer", ""},
		{"price", strings.Repeat("5.00\nx,", 19) + "n/a", "price:double",
			`19 doubles, 1 others ("n/a") in the sample; loaded as double, the others are rejected`},
		{"price", strings.Repeat("12.80\nx,", 100) + "0.1000000000000000055", "price:double", "100 doubles, 1 others"},
		{"price", strings.Repeat("5.00\nx,", 5) + "n/a", "price:string", "price: the table has it as double"}, // too few
	} {
		text := fmt.Sprintf("id,%s\nx,%s\n", tt.header, tt.row)
		types, warnings := typed(t, admin, text, nil)
		said := strings.Join(warnings, "\n")
		conformance.True(t, types == tt.want && (tt.warning == "") == (said == "") && strings.Contains(said, tt.warning),
			"%s %q: %s, %q", tt.header, tt.row, types, said)
		types, _ = typed(t, admin, text, func(r *Request) { r.Columns.Known = KnownIgnored })
		conformance.True(t, tt.header != "zip" || types == "zip:integer", "the input alone: %s", types)
		if tt.warning != "" && !strings.Contains(tt.warning, "others") { // others would be rejected
			r := ask(file(t, "in.csv", text))
			r.Target.Absent, r.Target.Key, r.Columns.Known = false, nil, KnownStrict
			refused(t, r, admin, "column "+tt.header+": the table has it as")
		}
	}
}

func TestTypesOfLastRunFillMissingTypes(t *testing.T) {
	t.Chdir(t.TempDir())
	admin := store(t, table.KeyColumn{Name: "id", Type: table.String})
	run := func(name, target string, written int, types ...string) {
		dir := filepath.Join("tsimport-runs", name)
		must(t, os.MkdirAll(dir, 0o755))
		var schema []map[string]string
		for i := 0; i < len(types); i += 2 {
			schema = append(schema, map[string]string{"name": types[i], "type": types[i+1]})
		}
		text, _ := json.Marshal(map[string]any{"version": 1, "table": "t", "target": target, "written": written,
			"schema": schema})
		must(t, os.WriteFile(filepath.Join(dir, "summary.json"), text, 0o644))
	}
	run("20260101T000000.000Z-t", "test", 5, "rare", "double", "price", "double")
	run("20260102T000000.000Z-t", "test", 5, "rare", "string", "price", "string")
	run("20260103T000000.000Z-t", "test", 0, "rare", "integer")
	run("20260104T000000.000Z-t", "elsewhere", 5, "rare", "integer")
	const text = "id,rare,price\nx,5,2.5\n"
	types, _ := typed(t, admin, text, nil)
	conformance.Equal(t, types, "rare:integer price:double", "of an empty table")
	put(t, admin, "a", map[string]any{"price": 2.5})
	types, _ = typed(t, admin, text, nil)
	conformance.Equal(t, types, "rare:string price:double", "of a table without a value in one column")
	put(t, admin, "b", map[string]any{"price": "2.50"})
	types, _ = typed(t, admin, text, nil)
	conformance.Equal(t, types, "rare:string price:string", "of a table with several types in one column")
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
	for _, tt := range []struct {
		text, kind, warning string
	}{
		{column(2000, 100, "7", "n/a"), "string",
			`qty: 1,980 integers, 20 others ("n/a") in the sample; loaded as string; --null n/a loads them as null, --type qty=integer or --types strict rejects them`},
		{column(100, 20, "7.5", "10.50"), "string", ""}, // a decision says that all are numbers
		{column(100, 50, "true", "no"), "string", "98 booleans, 2 others"},
		{column(100, 5, "7", "x"), "string", ""}, // too many
		{column(100, 101, "7", ""), "integer", ""},
		{column(5, 5, "7", "x"), "string", ""}, // too few to tell
		{column(100, 50, "x", "7"), "string", ""},
	} {
		p := makes(t, ask(file(t, "in.csv", tt.text)), nil)
		said := strings.Join(p.Warnings, "\n")
		got := p.Schema.Columns[1].Type.String()
		conformance.True(t, got == tt.kind && strings.Contains(said, tt.warning) && (tt.warning == "") == (said == ""),
			"%s, %q; want %s, %q", got, said, tt.kind, tt.warning)
	}
	r := ask(file(t, "in.csv", column(2000, 100, "7", "n/a")))
	r.Columns.Known = KnownStrict
	if p := makes(t, r, nil); p.Schema.Columns[1].Type != table.Integer || !strings.Contains(strings.Join(p.Warnings, ""),
		"the others are rejected") {
		t.Errorf("--types strict: %s, %q", p.Schema.Columns[1].Type, p.Warnings)
	}
	r = ask(file(t, "in.jsonl", strings.Repeat("{\"id\":\"a\",\"n\":1.5}\n", 99)+`{"id":"b","n":0.1000000000000000055}`))
	if p := makes(t, r, nil); !strings.Contains(strings.Join(p.Warnings, ""),
		`n: 99 doubles, 1 others ("0.1000000000000000055") in the sample; loaded as string`) {
		t.Errorf("JSON: %q", p.Warnings)
	}
}

func TestColumnTypeFollowsSample(t *testing.T) {
	t.Chdir(t.TempDir())
	of := func(key table.Type, text string, set func(*Request)) string {
		admin := store(t, table.KeyColumn{Name: "id", Type: key})
		r := ask(file(t, "in.jsonl", text))
		r.Target.Absent, r.Target.Key = false, nil
		if set != nil {
			set(r)
		}
		var all []string
		for _, f := range makes(t, r, admin).Fields {
			all = append(all, fmt.Sprintf("%s:%s:%s", f.Name, f.Type, f.Own))
		}
		return strings.Join(all, " ")
	}
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
		want string
	}{
		{table.Integer, `{"id":7,"v":"x"}`, nil, "id:integer:integer v:string:string"},
		{table.Integer, `{"id":"7","v":1.5}`, nil, "id:integer:string v:double:double"},
		{table.String, `{"id":7,"v":12345678901234567891}`, nil, "id:string:double v:string:double"},
		{table.String, `{"id":"7","v":null}`, nil, "id:string:string v:any:any"},
		{table.String, `{"id":"7","v":1}` + "\n" + `{"id":7,"v":"1"}`, nil, "id:string:string v:any:any"},
		{table.String, `{"id":7,"v":1}`, asked, "id:string:null v:string:null"},
		{table.String, `{"id":"7","v":"1"}`, kept, "id:string:double v:integer:integer"},
	} {
		conformance.Equal(t, of(tt.key, tt.text+"\n", tt.set), tt.want, "%s, a key of %s", tt.text, tt.key)
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
	for _, c := range []struct {
		keys   string // key columns, separated by spaces; NAME=EXPRESSION is computed
		unique []source.KeyColumn
		also   [][]string
		change func(*Request)
		lost   string
	}{
		{keys: "a n"},
		{keys: "n a"},
		{keys: "n", lost: "a"},
		{keys: "a", lost: "n"},
		{keys: "a b n", unique: []source.KeyColumn{a, n, b}},
		{keys: "a n", unique: []source.KeyColumn{a, n, b}, lost: "b"},
		{keys: "a n", unique: []source.KeyColumn{a, n, b}, also: [][]string{{"a", "n"}}},
		{keys: "a", unique: []source.KeyColumn{a, n, b}, also: [][]string{{"a", "n"}}, lost: "n,b"},
		{keys: "h=md5(a,4) a n"},
		{keys: "h=md5(a,4)+a n"},
		{keys: "h=md5(a,32) n", lost: "a"},
		{keys: "h=sha256(a,32) n"},
		{keys: "h=sha256(a,31) n", lost: "a"},
		{keys: "h=lower(a) n", lost: "a"},
		{keys: "h=bucket(n,8)+a", lost: "n"},
		{keys: `k=splice(auto,a,n)`},
		{keys: `k=splice(",",a,pad(n,9))`},
		{keys: `k=a+pad(n,9)`},
		{keys: `k=a+text(n)`, lost: "a,n"},
		{keys: `k=text(n)+"/"+a`},
		{keys: `k=text(n)+a`, lost: "a,n"},
		{keys: `k=text(n)+"0"+a`, lost: "a,n"},
		{keys: `a k=n+1`},
		{keys: `a k=int(n/2)`, lost: "n"},
		{keys: "a n", change: func(r *Request) { r.Target.Key[1].Type = table.String }},
		{keys: "x n", change: func(r *Request) { r.Columns.Rename = map[string]string{"a": "x"} }},
		{keys: "a n", lost: "a", change: func(r *Request) { r.Read.Convert.Trim = true }},
		{keys: "a n", lost: "a", change: func(r *Request) { r.Target.Key[0].Type = table.Binary }},
		{keys: "a n", lost: "n", change: func(r *Request) {
			r.Columns.Types = map[string]Type{"n": {Type: table.Integer, Time: &table.Time{}}}
		}},
		{keys: "n", change: func(r *Request) { r.Target.Table = "t_{a}" }},
		{keys: "n", lost: "a", change: func(r *Request) { r.Target.Table = "t_{lower(a)}" }},
		{keys: "n", lost: "a", change: func(r *Request) { r.Target.Table = "t_{a}_{n}" }},
		{keys: "n", change: func(r *Request) { r.Mode = table.Delete }},
		{keys: "a", change: func(r *Request) { r.Mode, r.Columns.Exclude = table.Increment, []string{"b"} }},
		{keys: "n seq", change: func(r *Request) {
			r.Read.Archived, r.Target.Key[1] = true, table.KeyColumn{Name: "seq", Type: table.Integer, Auto: true}
		}},
		{keys: "n", change: func(r *Request) { r.Keep = KeepKeyFields }},
		{keys: "h=md5(a,2) i=md5(a,3) j=md5(a,4)", lost: "a,n"},
	} {
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
		p, err := Make(t.Context(), r, nil)
		if c.lost == "" {
			if err != nil {
				t.Errorf("%s: %v", c.keys, err)
				continue
			}
			p.Close()
			continue
		}
		usage := new(UsageError)
		conformance.True(t, errors.As(err, &usage) &&
			strings.Contains(err.Error(), "differ only in "+strings.ReplaceAll(c.lost, ",", ", ")+" may become one row") &&
			strings.Contains(err.Error(), "splice(auto, …)") == (len(r.Target.Key)+strings.Count(c.lost,
				",")+1 > table.MaxKeyColumns),
			"%s: %v, and %s is lost", c.keys, err, c.lost)
		looked := 0
		r.Read.Look = func(context.Context) error { looked++; return errors.New("seen") }
		if _, err := Make(t.Context(), r, nil); err == nil || err.Error() != "seen" || looked != 1 {
			t.Errorf("%s: looked %d times: %v", c.keys, looked, err)
		}
		r.Written = true
		p, err = Make(t.Context(), r, nil)
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
	conformance.Must(t, conformance.ErrorOf(w.WriteRows(rows)))
	must(t, w.Close())
	must(t, f.Close())
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
		says string // part of the refusal; "" means none
		unit string
	}{{ms, us, Type{}, "timestamp, µs", ""}, {ms, us, integer, "--type 'v=timestamp(,UTC,ns)'", ""}, {ms, us, str, "", ""},
		{ms, us, Type{Type: table.Integer, Time: instant}, "", "timestamp, µs"},
		{ms, local, Type{}, "local timestamp, ms", ""}, {ms, date, Type{}, "date, days", ""},
		{clock, parquetFile(t, "exact.parquet", parquet.Time(parquet.Microsecond)), Type{}, "time, ms", ""},
		{ms, date, integer, "date, days", ""}, {ms, number, Type{}, "as number", ""}, {ms, number, integer, "as number", ""},
		{two, three, Type{}, "; --type v=string keeps the text of each; --type v=double", ""},
		{zero, two, Type{}, "; --type v=string", ""}, {number, zero, Type{}, "; --type v=string", ""},
		{ms, us, Type{}, "; --type v=string keeps the text of each; --type 'v=timestamp(,UTC,ns)'", ""},
		{number, two, str, "", ""}, {two, three, integer, "scale 3", ""}, {two, three, double, "", ""},
		{text, bytes, Type{}, "--type v=string", ""}, {text, bytes, str, "", ""},
		{ms, numbers, Type{}, "as numeric text", ""}, {ms, words, Type{}, "", "timestamp, ms"},
		{two, numbers, Type{}, "", "decimal, scale 2"}, {ms, ms, Type{}, "", "timestamp, ms"},
		{number, numbers, Type{}, "", "number"}, {ms, nothing, Type{}, "", "timestamp, ms"},
		{ms, nothing, integer, "", "timestamp, ms"}, {ms, unseen, integer, "as number", ""}, {text, bytes, binary, "", ""},
		{ms, us, double, "", ""}, {zero, number, integer, "", "number"}, {bytes, words, Type{}, "--type v=string", ""}} {
		for _, order := range [][]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			r := ask(order...)
			if tt.as.Type != table.Null {
				r.Columns.Types = map[string]Type{"v": tt.as}
			}
			p, err := Make(t.Context(), r, nil)
			if tt.says != "" {
				conformance.True(t, err != nil && strings.Contains(err.Error(), tt.says) && strings.Contains(err.Error(), tt.a) &&
					strings.Contains(err.Error(), tt.b), "%v as %s: %v", order, tt.as.Type, err)
				continue
			}
			if err != nil {
				t.Errorf("%v as %s: %v", order, tt.as.Type, err)
				continue
			}
			i := slices.IndexFunc(p.Schema.Columns, func(c table.Column) bool { return c.Name == "v" })
			unit := p.Schema.Columns[i].Unit
			conformance.True(t, tt.unit == "" || unit == tt.unit, "%v as %s: unit %q", order, tt.as.Type, unit)
			p.Close()
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
	v := makes(t, ask(s), nil).Schema.Columns[1]
	conformance.Equal(t, v.Unit, "duration, s", "%s", v.Name)
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
	units := makes(t, ask(s, s), nil).Units()
	conformance.True(t, units["v.d[]"] == "duration, s" && units["v.n"] == "number", "%v", units)
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
	units := makes(t, r, admin).Units()
	conformance.True(t, units["v"] == "timestamp, ms" && units["w"] == "number", "%v", units)
	// The rejects of that run are in JSON, which has no units.
	r = ask(file(t, "rejects.ndjson", `{"id":"c","v":7}`))
	as(KnownDefault)(r)
	refused(t, r, admin, "timestamp, ms")
	r.Inferred = map[string]Inferred{"v": {Type: table.Integer}}
	conformance.Equal(t, makes(t, r, admin).Units()["v"], "timestamp, ms", "units")
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
		pk, set      []string
		change       func(*Request)
		want, fields string
	}{
		{[]string{"k=pad(card, 4)"}, nil, nil, "k:string< card:integer! seller:string! name:string!", "card seller name"},
		{[]string{"k=desc(card)", "seller"}, []string{"up=upper(name)"}, nil,
			"k:integer< seller:string! card:integer! name:string! up:string<", "seller card name"},
		{[]string{"card:string=text(card)"}, []string{"name=lower(name)"}, nil, "card:string< seller:string! name:string<",
			"seller card name"},
		{[]string{"k=pad(card, 4)"}, nil, func(r *Request) { r.Columns.Exclude = []string{"card"} },
			"k:string< seller:string! name:string!", "seller name card"},
		{[]string{"k=pad(card, 4)"}, nil, func(r *Request) { r.Columns.Only = []string{"seller"} },
			"k:string< seller:string!", "seller card"},
		{[]string{"k=pad(card, 4)"}, nil, func(r *Request) { r.Mode = table.Delete }, "k:string<", "card"},
		{[]string{"k=salt(9)", "c"}, nil, func(r *Request) { r.Columns.Rename = map[string]string{"card": "c"} },
			"k:string< c:integer!<card seller:string! name:string!", "card seller name"},
		{[]string{"k=card + \"x\""}, nil, func(r *Request) {
			r.Columns.Exclude = []string{"card"}
			r.Columns.Types = map[string]Type{"card": {Type: table.String}}
		}, "k:string< seller:string! name:string!", "seller name card"},
	} {
		r := askComputed(t, cards, tt.pk, tt.set)
		if tt.change != nil {
			tt.change(r)
		}
		conformance.Equal(t, strings.Join(planned(t, r), " "), tt.want, "%v %v", tt.pk, tt.set)
		p := makes(t, r, nil)
		var fields []string
		for _, f := range p.Fields {
			fields = append(fields, f.Source)
		}
		if got := strings.Join(fields, " "); got != tt.fields || p.Schema.Key[0].Type != p.Schema.Columns[0].Type {
			t.Errorf("%v: fields %s, want %s; key %v", tt.pk, got, tt.fields, p.Schema.Key)
		}
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

func TestNothingIsComputedWithoutExpressions(t *testing.T) {
	p := makes(t, askComputed(t, cards, []string{"card"}, nil), nil)
	conformance.True(t, p.Makers == nil && len(p.Fields) == 3 && p.Expression(0) == "",
		"makers %v, fields %v", p.Makers, p.Fields)
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
	conformance.Contains(t, strings.Join(p.Notes, "\n"), `joins with "\x1f"`, "notes")
	d := conformance.Try(p.Design()).Must(t)
	var rows [][]table.Value
	if err := p.Sample(func(row []table.Value) bool {
		rows = append(rows, row)
		return false
	}); err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	x := keyexpr.Explain(d, rows, nil, nil)
	conformance.True(t, x.Key[0].Separator == "\x1f" && len(x.Examples) == 1 && x.Examples[0].Key[0] == "a100\x1fx y",
		"%+v", x)
}
