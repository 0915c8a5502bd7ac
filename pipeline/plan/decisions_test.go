package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader"
)

func TestEachDecisionIsShownWithWhatContradictsIt(t *testing.T) {
	r := ask(file(t, "a.csv", "id,v\n1,x\n"), file(t, "b.csv", "id,v\n2,x\n"), file(t, "c.jsonl", `{"id":3,"v":"x"}`+"\n"))
	var all []string
	for _, d := range makes(t, r, nil).Decisions {
		all = append(all, d.String())
	}
	for _, want := range []string{"format: 2 files csv, 1 file jsonl (", "encoding: utf-8"} {
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("no %q in %q", want, all)
		}
	}
}

func TestColumnsOfFilesThatSayTheirTypesTakeTextsThatSurvive(t *testing.T) {
	var lines strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&lines, `{"id":%d,"n":%d,"f":2.5,"s":"x","b":true,"mix":%d}`+"\n", i, i, i)
	}
	lines.WriteString(`{"id":"1000","n":1,"f":2.5,"s":"x","b":false,"mix":"x"}` + "\n")
	typed, texts := file(t, "a.jsonl", lines.String()), file(t, "b.csv", "id,n,f,s,b,mix\n2001,7,10.50,8,true,5\n")
	for _, order := range [][]string{{typed, texts}, {texts, typed}} {
		r := ask(order...)
		r.Target.Key[0].Type = table.Null
		p := makes(t, r, nil)
		var all []string
		for _, c := range p.Schema.Columns {
			all = append(all, c.Name+":"+c.Type.String()+":"+c.Own.String())
		}
		want := "id:integer:integer n:integer:integer f:double:double s:string:string b:boolean:boolean mix:any:integer"
		conformance.Equal(t, strings.Join(all, " "), want, "join")
		said := strings.Join(p.Warnings, "\n")
		for _, want := range []string{"key column id: 1,001 integers, 1 others (\"1000\")", "rejects the others", "--type id=string makes text of all 1,002"} {
			if !strings.Contains(said, want) {
				t.Errorf("no %q in %q", want, said)
			}
		}
	}
}

func TestNumbersThatAreLoadedAsTextAreNoted(t *testing.T) {
	in := file(t, "a.csv", "id,v,w\n1,23.0,8.76712776820554e-05\n2,68.60,1.5\n")
	p := makes(t, ask(in), nil)
	inspected, err := Inspect(t.Context(), []string{in}, Read{}, false)
	must(t, err)
	const want = `column v: string, but all values in the sample are numbers, some with trailing zeros ("68.60"); --type v=double changes this`
	if d := inspected[0].Decisions; len(d) != 1 || d[0].String() != want || !slices.Contains(p.Notes, want) {
		t.Errorf("inspect %v, load %q", d, p.Notes)
	}
	if w := p.Schema.Columns[2]; w.Type != table.Double {
		t.Errorf("%s is %s", w.Name, w.Type)
	}
}

func TestTypeTagsAnywhereInTheInputsDecideForAllOfThem(t *testing.T) {
	plain := file(t, "a.jsonl", `{"id":"x","v":1}`+"\n")
	tagged := file(t, "b.jsonl", `{"id":"y","v":2}`+"\n"+`{"id":{"$oid":"5d505646cf6d4fe581014ab2"},"v":{"$numberLong":"3"}}`+"\n")
	csv := file(t, "c.csv", "id,v\nz,4\n")
	for _, order := range [][]string{{plain, tagged, csv}, {csv, tagged, plain}, {plain, csv, "-", tagged}} {
		r := ask(order...)
		r.Read.Stdin = strings.NewReader(`{"id":"s","v":5}` + "\n")
		p := makes(t, r, nil)
		if v := p.Schema.Columns[1]; v.Type != table.Integer {
			t.Errorf("%v: %s is %s", order, v.Name, v.Type)
		}
		for _, s := range p.Sources {
			if got := s.About().Found[0].As; got != "mongodb" && s.Name != csv {
				t.Errorf("%s is read as %s", s.Name, got)
			}
		}
	}
	r := ask(plain, tagged)
	r.Read.Format = reader.JSONLines
	if v := makes(t, r, nil).Schema.Columns[1]; v.Type == table.Integer {
		t.Errorf("--format jsonl: %s", v.Type)
	}
}
