package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tsimport/internal/table"
)

func TestEachDecisionIsShownWithWhatSpeaksAgainstIt(t *testing.T) {
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
		if got := strings.Join(all, " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	const want = `column v: string; against it: all values in the sample are numbers, some with zeros at the end ("68.60"); --type v=double decides otherwise`
	if d := inspected[0].Decisions; len(d) != 1 || d[0].String() != want || !slices.Contains(p.Notes, want) {
		t.Errorf("inspect %v, load %q", d, p.Notes)
	}
	if w := p.Schema.Columns[2]; w.Type != table.Double {
		t.Errorf("%s is %s", w.Name, w.Type)
	}
}
