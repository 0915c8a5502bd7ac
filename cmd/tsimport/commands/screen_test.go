package commands

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/rundir"
)

func TestReasonsOfRejectedRowsAreShown(t *testing.T) {
	r := &pipeline.Report{ReportRejects: ledger.ReportRejects{RejectReasons: []rundir.ReasonCount{
		{Code: "WrongType", Count: 1234, First: rundir.Reason{File: "a.csv", Record: 8, Line: 9, Column: "qty", Message: "not an integer", Value: "n/a\x1b[2J"}},
		{Code: "OTSParameterInvalid", Count: 1, First: rundir.Reason{File: "https://u:p@h/b.parquet?sig=1", Record: 7, Message: "no"}},
		{Code: "c"}, {Code: "d"}, {Code: "e"}, {Code: "f"},
	}}}
	var got []string
	sayRejects(func(_ words.Kind, line string) { got = append(got, line) }, r.RejectReasons)
	want := []string{
		`rejected 1,234 with WrongType; the first: a.csv:9, column qty: not an integer ("n/a\x1b[2J")`,
		`rejected 1 with OTSParameterInvalid; the first: https://xxxxx@h/b.parquet?sig=xxxxx record 7: no`,
	}
	conformance.Equal(t, cmp.Diff(want, got[:2]), "", "(-want +got)")
	if len(got) != shownCodes+1 || got[shownCodes] != "… and 1 more codes, see the summary" {
		t.Errorf("%d lines: %q", len(got), got[len(got)-1])
	}
}
