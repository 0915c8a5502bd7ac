package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
)

var numberedKey = []table.KeyColumn{{Name: "user", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}}

func askNumbered(inputs ...string) *Request {
	r := ask(inputs...)
	r.Target.Key = numberedKey
	return r
}

func TestAutoIncrementColumnNeedsNoInput(t *testing.T) {
	r := askNumbered(file(t, "in.csv", "user,v\na,1\n"))
	conformance.Equal(t, cmp.Diff([]string{"user:string", "seq:integer<", "v:integer!"}, planned(t, r)), "", "-want +got")
	p := makes(t, r, nil)
	conformance.True(t, p.Schema.Numbered == 1 && p.Mark == DefaultMarkColumn && len(p.Schema.Ordering()) == 1,
		"%+v, marks in %q", p.Schema, p.Mark)
	r.MarkColumn = "m"
	conformance.Equal(t, makes(t, r, nil).Mark, "m", "marks")
	r.MarkColumn, r.AtLeastOnce = "", true
	if p := makes(t, r, nil); p.Mark != "" || !strings.Contains(strings.Join(p.Warnings, "\n"), "twice") {
		t.Errorf("marks in %q, warnings %q", p.Mark, p.Warnings)
	}
}

func TestAutoIncrementTableIsRecognised(t *testing.T) {
	admin := store(t, numberedKey...)
	r := ask(file(t, "in.csv", "user,v\na,1\n"))
	r.Target.Absent, r.Target.Key = false, nil
	p := makes(t, r, admin)
	conformance.True(t, p.Schema.Numbered == 1 && !p.Create, "%+v", p.Schema)
	r.Target.Key = numberedKey
	p = makes(t, r, admin)
	conformance.Equal(t, p.Schema.Numbered, 1, "%+v", p.Schema)
	r.Target.Key = []table.KeyColumn{{Name: "user", Type: table.String}, {Name: "seq", Type: table.Integer}}
	refused(t, r, admin, "exists with the primary key user:string, seq:auto, not user:string, seq:integer")

	plain := store(t, table.KeyColumn{Name: "user", Type: table.String})
	r.Target.Key = nil
	for flag, set := range map[string]func(*Request){
		"--at-least-once": func(r *Request) { r.AtLeastOnce = true },
		"--look-first":    func(r *Request) { r.LookFirst = true },
		"--returned-keys": func(r *Request) { r.Returned = true },
		"--mark-column":   func(r *Request) { r.MarkColumn = "m" },
	} {
		other := *r
		set(&other)
		refused(t, &other, plain, flag)
	}
}

func TestInputValuesOfNumberedColumnAreExcludedOrChangeRows(t *testing.T) {
	r := askNumbered(file(t, "in.csv", "user,seq,v\na,5,1\n"))
	refused(t, r, nil, "--exclude seq")
	r.Columns.Exclude = []string{"seq"}
	conformance.Equal(t, cmp.Diff([]string{"user:string", "seq:integer<", "v:integer!"}, planned(t, r)), "", "-want +got")
	r.Columns.Exclude, r.Condition = nil, table.ExpectExist
	p := makes(t, r, nil)
	conformance.True(t, p.Schema.Numbered == 0 && p.Mark == "" && p.Schema.Columns[1].Source == "seq", "%+v", p.Schema)
	r.Condition, r.Mode = table.Ignore, table.Delete
	p = makes(t, r, nil)
	conformance.Equal(t, p.Schema.Numbered, 0, "%+v", p.Schema)
}

func TestUnnumberableKeysAreRefused(t *testing.T) {
	in := file(t, "in.csv", "user,v,_tsimport\na,1,2\n")
	for want, set := range map[string]func(*Request){
		"--mode update":            func(r *Request) { r.Mode = table.Update },
		"--mode delete":            func(r *Request) { r.Mode = table.Delete },
		"--condition":              func(r *Request) { r.Condition = table.ExpectNotExist },
		"--order none":             func(r *Request) { r.Order = OrderNone },
		"--mark-column _tsimport:": func(*Request) {},
		"--mark-column v:":         func(r *Request) { r.MarkColumn = "v" },
		"--mark-column user:":      func(r *Request) { r.MarkColumn = "user" },
		"leading #":                func(r *Request) { r.MarkColumn = "#" },
		"leave one out":            func(r *Request) { r.AtLeastOnce, r.LookFirst = true, true },
		"the first column cannot be auto": func(r *Request) {
			r.Target.Key = []table.KeyColumn{{Name: "seq", Type: table.Integer, Auto: true}}
		},
		"one auto column at most": func(r *Request) {
			r.Target.Key = append(r.Target.Key[:2:2], table.KeyColumn{Name: "n", Type: table.Integer, Auto: true})
		},
	} {
		r := askNumbered(in)
		set(r)
		refused(t, r, nil, want)
	}
}

func TestJobInMarksIdentifiesLoad(t *testing.T) {
	in, other := file(t, "in.csv", "user,v\na,1\n"), file(t, "other.csv", "user,v\na,1\n")
	job := makes(t, askNumbered(in), nil).Job()
	again := makes(t, askNumbered(in), nil).Job()
	conformance.True(t, again == job && len(job) == 12, "%q, then %q", job, again)
	for name, set := range map[string]func(*Request){
		"table":    func(r *Request) { r.Target.Table = "t2" },
		"instance": func(r *Request) { r.Target.Client.Instance = "i2" },
		"input":    func(r *Request) { r.Inputs = []string{other} },
		"columns":  func(r *Request) { r.Columns.Exclude = []string{"v"} },
		"type":     func(r *Request) { r.Columns.Types = map[string]Type{"v": {Type: table.String}} },
	} {
		r := askNumbered(in)
		set(r)
		conformance.True(t, makes(t, r, nil).Job() != job, "another %s makes the same job", name)
	}
}

func TestSeveralVersionsNeedUpdateMode(t *testing.T) {
	r := ask(file(t, "in.csv", "id,at,v\na,1,1\n"))
	r.Target.Define.MaxVersions = 3
	r.Read.Convert.VersionColumn = "at"
	refused(t, r, nil, "give --mode update")
	r.Mode = table.Update
	p := makes(t, r, nil)
	conformance.True(t, p.Restamp, "cells of rows without a version get no timestamp")
	r.Read.Convert.VersionColumn, r.Mode = "", table.Put
	p = makes(t, r, nil)
	conformance.True(t, !p.Restamp, "a put is stamped")
	r.Mode, r.Target.Define.MaxVersions = table.Update, 1
	p = makes(t, r, nil)
	conformance.True(t, !p.Restamp, "an update is stamped where one version is kept")
}

func planWide(t *testing.T, change func(*Request)) (*Plan, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.ndjson")
	row := `{"Wide":true,"PK":{"Values":[{"C":"id","V":1,"IsInt":true},{"C":"part","V":"a"}]},"Attr":{"Values":[{"C":"city","V":"Bern"},{"C":"n","V":5,"IsInt":true,"TS":7},{"C":"n","V":"x","TS":5}]}}` + "\n"
	must(t, os.WriteFile(path, []byte(row+row), 0o644))
	r := &Request{Inputs: []string{path}, Memory: 1 << 30,
		Target: Target{Table: "t", Create: true, Absent: true, Key: []table.KeyColumn{{Name: "id"}, {Name: "part"}}}}
	if change != nil {
		change(r)
	}
	p, err := Make(t.Context(), r, nil)
	if err == nil {
		t.Cleanup(p.Close)
	}
	return p, err
}

func TestSchemaOfSelfDescribingRowsIsTheirKey(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(*Request)
		schema   string   // columns with their types
		fields   []string // that the source gives
		warnings []string // a part of each
	}{
		"as it is": {nil, "id integer, part string", []string{"id", "part"}, nil},
		"a part": {func(r *Request) { r.Target.Key = r.Target.Key[:1] }, "id integer", []string{"id", "part"},
			[]string{"column part of"}},
		"an exclude": {func(r *Request) { r.Target.Key, r.Columns.Exclude = r.Target.Key[:1], []string{"part", "none"} },
			"id integer", []string{"id", "part"}, nil},
		"of a cell": {func(r *Request) { r.Target.Key = append(r.Target.Key, table.KeyColumn{Name: "n"}) },
			"id integer, part string, n integer", []string{"id", "part", "n"}, nil},
		"renamed": {func(r *Request) {
			r.Target.Key, r.Columns.Rename = append(r.Target.Key, table.KeyColumn{Name: "town"}),
				map[string]string{"city": "town"}
		}, "id integer, part string, town string", []string{"id", "part", "city"}, nil},
		"computed": {func(r *Request) {
			r.Target.Key[0] = table.KeyColumn{Name: "h"}
			r.Columns.Keys, r.Columns.Set = []keyexpr.Column{{Name: "h", Expr: `pad(id, 5) + city`}},
				[]keyexpr.Column{{Name: "late", Expr: "n > 3"}}
		}, "h string, part string, late boolean", []string{"id", "part", "city", "n"}, nil},
		"unknown": {func(r *Request) { r.Columns.Set = []keyexpr.Column{{Name: "x", Expr: `text(cty)`}} },
			"id integer, part string, x string", []string{"id", "part", "cty"}, []string{"column cty"}},
		"versions": {func(r *Request) { r.Read.Convert.VersionColumn = "n" }, "id integer, part string",
			[]string{"id", "part", "n"}, nil},
		"a table": {func(r *Request) { r.Target.Table = "t_{city}" }, "id integer, part string",
			[]string{"id", "part", "city"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := conformance.Try(planWide(t, tt.change)).Must(t)
			var schema []string
			for _, c := range p.Schema.Columns {
				schema = append(schema, c.Name+" "+c.Type.String())
			}
			got := strings.Join(schema, ", ")
			conformance.True(t, got == tt.schema && p.Wide, "schema %s, want %s", got, tt.schema)
			conformance.Same(t, p.Sources[0].About().Columns, tt.fields, "fields")
			if len(p.Warnings) != len(tt.warnings) || len(tt.warnings) > 0 && !strings.Contains(p.Warnings[0], tt.warnings[0]) {
				t.Errorf("warnings %q, want %q", p.Warnings, tt.warnings)
			}
		})
	}
}

func TestSelfDescribingRowsAreRefused(t *testing.T) {
	for says, change := range map[string]func(*Request){
		"--exclude id: the column is part of the primary key": func(r *Request) { r.Columns.Exclude = []string{"id"} },
		`expression "city +"`:       func(r *Request) { r.Columns.Set = []keyexpr.Column{{Name: "x", Expr: "city +"}} },
		`would both be called "id"`: func(r *Request) { r.Columns.Rename = map[string]string{"part": "id"} },
		"the column is set twice":   func(r *Request) { r.Columns.Set = []keyexpr.Column{{Name: "id", Expr: "1"}} },
		"--on-null delete needs":    func(r *Request) { r.DeleteNull = true },
	} {
		_, err := planWide(t, change)
		conformance.True(t, err != nil && strings.Contains(err.Error(), says), "%v, want %s", err, says)
	}
}

// A resumed load must treat the cells alike, although no column of the schema shows how.
func TestFactsIncludeCellOptions(t *testing.T) {
	facts := func(change func(*Request)) []progress.Fact {
		p := conformance.Try(planWide(t, change)).Must(t)
		all := conformance.Try(p.Facts()).Must(t)
		return slices.DeleteFunc(all, func(f progress.Fact) bool { return f.Input })
	}
	same := facts(nil)
	for name, change := range map[string]func(*Request){
		"--columns": func(r *Request) { r.Columns.Only = []string{"n"} },
		"--exclude": func(r *Request) { r.Columns.Exclude = []string{"n"} },
		"--rename":  func(r *Request) { r.Columns.Rename = map[string]string{"n": "m"} },
		"--type":    func(r *Request) { r.Columns.Types = map[string]Type{"n": {Type: table.String}} },
	} {
		var differ []string
		for i, f := range facts(change) {
			if f != same[i] {
				differ = append(differ, f.Name)
			}
		}
		conformance.Same(t, differ, []string{name}, "%s: the facts differ", name)
	}
}
