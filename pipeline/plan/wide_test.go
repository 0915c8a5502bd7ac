package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
)

// planWide plans a load of two rows that describe themselves.
func planWide(t *testing.T, change func(*Request)) (*Plan, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.ndjson")
	row := `{"Wide":true,"PK":{"Values":[{"C":"id","V":1,"IsInt":true},{"C":"part","V":"a"}]},"Attr":{"Values":[{"C":"city","V":"Bern"},{"C":"n","V":5,"IsInt":true,"TS":7},{"C":"n","V":"x","TS":5}]}}` + "\n"
	must(t, os.WriteFile(path, []byte(row+row), 0o644))
	r := &Request{
		Inputs: []string{path}, Memory: 1 << 30,
		Target: Target{Table: "t", Create: true, Absent: true, Key: []table.KeyColumn{{Name: "id"}, {Name: "part"}}},
	}
	if change != nil {
		change(r)
	}
	p, err := Make(t.Context(), r, nil)
	if err == nil {
		t.Cleanup(p.Close)
	}
	return p, err
}

func TestTheSchemaOfRowsThatDescribeThemselvesIsTheirKey(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(*Request)
		schema   string   // columns with their types
		fields   []string // that the source gives
		warnings []string // a part of each
	}{
		"as it is":   {nil, "id integer, part string", []string{"id", "part"}, nil},
		"a part":     {func(r *Request) { r.Target.Key = r.Target.Key[:1] }, "id integer", []string{"id", "part"}, []string{"column part of"}},
		"an exclude": {func(r *Request) { r.Target.Key, r.Columns.Exclude = r.Target.Key[:1], []string{"part", "none"} }, "id integer", []string{"id", "part"}, nil},
		"of a cell":  {func(r *Request) { r.Target.Key = append(r.Target.Key, table.KeyColumn{Name: "n"}) }, "id integer, part string, n integer", []string{"id", "part", "n"}, nil},
		"renamed": {func(r *Request) {
			r.Target.Key, r.Columns.Rename = append(r.Target.Key, table.KeyColumn{Name: "town"}), map[string]string{"city": "town"}
		}, "id integer, part string, town string", []string{"id", "part", "city"}, nil},
		"computed": {func(r *Request) {
			r.Target.Key[0] = table.KeyColumn{Name: "h"}
			r.Columns.Keys, r.Columns.Set = []keyexpr.Column{{Name: "h", Expr: `pad(id, 5) + city`}}, []keyexpr.Column{{Name: "late", Expr: "n > 3"}}
		}, "h string, part string, late boolean", []string{"id", "part", "city", "n"}, nil},
		"unknown":  {func(r *Request) { r.Columns.Set = []keyexpr.Column{{Name: "x", Expr: `text(cty)`}} }, "id integer, part string, x string", []string{"id", "part", "cty"}, []string{"column cty"}},
		"versions": {func(r *Request) { r.Read.Convert.VersionColumn = "n" }, "id integer, part string", []string{"id", "part", "n"}, nil},
		"a table":  {func(r *Request) { r.Target.Table = "t_{city}" }, "id integer, part string", []string{"id", "part", "city"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := planWide(t, tt.change)
			must(t, err)
			var schema []string
			for _, c := range p.Schema.Columns {
				schema = append(schema, c.Name+" "+c.Type.String())
			}
			if got := strings.Join(schema, ", "); got != tt.schema || !p.Wide {
				t.Errorf("schema %s, want %s", got, tt.schema)
			}
			conformance.Same(t, p.Sources[0].About().Columns, tt.fields, "fields")
			if len(p.Warnings) != len(tt.warnings) || len(tt.warnings) > 0 && !strings.Contains(p.Warnings[0], tt.warnings[0]) {
				t.Errorf("warnings %q, want %q", p.Warnings, tt.warnings)
			}
		})
	}
}

func TestALoadOfRowsThatDescribeThemselvesIsRefused(t *testing.T) {
	for says, change := range map[string]func(*Request){
		"--exclude id: the column is part of the primary key": func(r *Request) { r.Columns.Exclude = []string{"id"} },
		`expression "city +"`:       func(r *Request) { r.Columns.Set = []keyexpr.Column{{Name: "x", Expr: "city +"}} },
		`would both be called "id"`: func(r *Request) { r.Columns.Rename = map[string]string{"part": "id"} },
		"the column is set twice":   func(r *Request) { r.Columns.Set = []keyexpr.Column{{Name: "id", Expr: "1"}} },
		"--on-null delete needs":    func(r *Request) { r.DeleteNull = true },
	} {
		if _, err := planWide(t, change); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}

// A resumed load must do the same with the cells, which no column of the schema shows.
func TestFactsHaveWhatIsDoneWithCells(t *testing.T) {
	facts := func(change func(*Request)) []progress.Fact {
		p, err := planWide(t, change)
		must(t, err)
		all, err := p.Facts()
		must(t, err)
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
