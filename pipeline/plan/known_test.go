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

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
)

func put(t *testing.T, admin *client.Admin, id string, cells map[string]any) {
	t.Helper()
	must(t, tabletest.Do(admin.Client, tabletest.Put("t", tabletest.Key("id", id), cells)))
}

// typed plans a load of a file into table t and returns the types of its columns.
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

func TestTypesOfTheTableAreTheDefault(t *testing.T) {
	t.Chdir(t.TempDir())
	admin := store(t, table.KeyColumn{Name: "id", Type: table.String})
	put(t, admin, "a", map[string]any{"price": 10.25, "qty": int64(5), "zip": "007", "ok": true, "mixed": "x"})
	put(t, admin, "b", map[string]any{"mixed": int64(1)})
	for _, tt := range []struct{ header, row, want, warning string }{
		{"price", "10.20", "price:double", ""},
		{"price", "7", "price:double", ""},
		{"price", "", "price:double", ""}, // no value says nothing
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
		if tt.warning != "" && !strings.Contains(tt.warning, "others") { // which are rejected
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

func TestAColumnOfNearlyOneTypeIsReported(t *testing.T) {
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
		{column(100, 20, "7.5", "10.50"), "string", ""}, // a note says that all are numbers
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

// keyedRows are rows with a key of several columns, and perhaps another one.
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

// TestSourceKeysStayDistinctOrAreRefused has the key a (text), n (number), and b (binary) in a longer one.
func TestSourceKeysStayDistinctOrAreRefused(t *testing.T) {
	a, n, b := source.KeyColumn{Name: "a", Kind: record.String}, source.KeyColumn{Name: "n", Kind: record.Integer},
		source.KeyColumn{Name: "b", Kind: record.Binary}
	for _, c := range []struct {
		keys   string // separated by spaces; NAME=EXPRESSION is computed
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
