package plan

import (
	"strings"
	"testing"
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
