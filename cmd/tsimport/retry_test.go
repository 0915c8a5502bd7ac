package main

import (
	"strings"
	"testing"

	"tsimport/pipeline"
)

func TestTheCommandForCorrectedRejectsKeepsTypesAndSeparator(t *testing.T) {
	r := &pipeline.Report{Table: "t", RejectsFiles: []string{"rejects.csv", "rejects.jsonl"}, Separator: "\x1f",
		Schema: []pipeline.ReportColumn{{Name: "k", Type: "string", Expression: "bucket(code, 9)"}, {Source: "id", Name: "id", Type: "integer"}},
		Fields: []pipeline.ReportField{{Name: "id", Type: "integer"}, {Name: "code", Type: "string"}, {Name: "mixed"}}}
	text := retryCommand(r)
	if want := "load rejects.csv --table t --type id=integer --type code=string and the other flags"; !strings.Contains(text, want) {
		t.Errorf("%s\nwant %s", text, want)
	}
	if !strings.Contains(text, `with "\x1f" in place of auto`) {
		t.Errorf("the separator is not named: %s", text)
	}
}
