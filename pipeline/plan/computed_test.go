package plan

import (
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
)

// askComputed asks for a table whose key and attributes are given as --pk and --set give them.
func askComputed(t *testing.T, text string, pk, set []string) *Request {
	t.Helper()
	r := ask(file(t, "a.csv", text))
	r.Target.Key = nil
	for _, p := range pk {
		col, err := keyexpr.ParseColumn(p)
		must(t, err)
		r.Target.Key = append(r.Target.Key, table.KeyColumn{Name: col.Name, Type: col.Type})
		if col.Expr != "" {
			r.Columns.Keys = append(r.Columns.Keys, col)
		}
	}
	for _, s := range set {
		col, err := keyexpr.ParseColumn(s)
		must(t, err)
		r.Columns.Set = append(r.Columns.Set, col)
	}
	return r
}

const cards = "card,seller,name\n1,a100,x y\n20,a1001,z\n"

func TestComputedColumnsStandInTheSchemaWithTheirTypes(t *testing.T) {
	for _, tt := range []struct {
		pk, set      []string
		change       func(*Request)
		want, fields string
	}{
		{[]string{"k=pad(card, 4)"}, nil, nil, "k:string< card:integer! seller:string! name:string!", "card seller name"},
		{[]string{"k=desc(card)", "seller"}, []string{"up=upper(name)"}, nil, "k:integer< seller:string! card:integer! name:string! up:string<", "seller card name"},
		{[]string{"card:string=text(card)"}, []string{"name=lower(name)"}, nil, "card:string< seller:string! name:string<", "seller card name"},
		{[]string{"k=pad(card, 4)"}, nil, func(r *Request) { r.Columns.Exclude = []string{"card"} }, "k:string< seller:string! name:string!", "seller name card"},
		{[]string{"k=pad(card, 4)"}, nil, func(r *Request) { r.Columns.Only = []string{"seller"} }, "k:string< seller:string!", "seller card"},
		{[]string{"k=pad(card, 4)"}, nil, func(r *Request) { r.Mode = table.Delete }, "k:string<", "card"},
		{[]string{"k=salt(9)", "c"}, nil, func(r *Request) { r.Columns.Rename = map[string]string{"card": "c"} }, "k:string< c:integer!<card seller:string! name:string!", "card seller name"},
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

func TestSaltDoesNotDependOnTheOrderOfTheInputsColumns(t *testing.T) {
	var keys []string
	for _, text := range []string{"a,b\n1,x\n", "b,a\nx,1\n"} {
		p := makes(t, askComputed(t, text, []string{"s=salt(1000)", `k=splice(",", b, pad(a, 4))`}, nil), nil)
		d, err := p.Design()
		must(t, err)
		must(t, p.Sample(func(row []table.Value) bool {
			keys = append(keys, strings.Join(d.Example(row).Key, " "))
			return true
		}))
	}
	if len(keys) != 2 || keys[0] != keys[1] || keys[0] != "297 x,0001" {
		t.Errorf("keys %q; want the same, by b and a as the expression names them", keys)
	}
}

func TestWithoutExpressionsNothingIsComputed(t *testing.T) {
	p := makes(t, askComputed(t, cards, []string{"card"}, nil), nil)
	if p.Makers != nil || len(p.Fields) != 3 || p.Expression(0) != "" {
		t.Errorf("makers %v, fields %v", p.Makers, p.Fields)
	}
}

func TestWrongExpressionsAreRefusedBeforeTheFirstRow(t *testing.T) {
	for _, tt := range []struct{ pk, set, want string }{
		{"k=pad(crad, 4)", "", "--pk k: expression \"pad(crad, 4)\": unknown column \"crad\"; did you mean card?"},
		{"k=pad(card, 4) + card", "", "text(card)"},
		{"k:integer=pad(card, 4)", "", "column k is to be integer"},
		{"k=card / 2", "", "a primary-key column cannot be double"},
		{"k=random()", "", "salt(n)"},
		{"card", "up=upper(card)", "--set up: expression"},
		{"card", "card=1 + card", "--set card: the column is set twice, or a primary-key column"},
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

func TestSpliceAutoTakesItsSeparatorFromTheSampleAndSaysSo(t *testing.T) {
	p := makes(t, askComputed(t, cards, []string{"k=splice(auto, seller, name)"}, nil), nil)
	conformance.Contains(t, strings.Join(p.Notes, "\n"), `joins with "\x1f"`, "notes")
	d, err := p.Design()
	must(t, err)
	var rows [][]table.Value
	if err := p.Sample(func(row []table.Value) bool {
		rows = append(rows, row)
		return false
	}); err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	x := keyexpr.Explain(d, rows, nil)
	if x.Key[0].Separator != "\x1f" || len(x.Examples) != 1 || x.Examples[0].Key[0] != "a100\x1fx y" {
		t.Errorf("%+v", x)
	}
}
