package commands

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/rundir"
)

// shownAtTheEnd is what the screen says of a load that has ended.
func shownAtTheEnd(r *pipeline.Report) string {
	var shown bytes.Buffer
	s := &screen{say: newDisplay(&shown).say}
	s.report(r, table.Put, "look")
	return shown.String()
}

func TestTheSlowestPartitionIsNamedAtTheEnd(t *testing.T) {
	r := new(pipeline.Report)
	r.RunDir = t.TempDir()
	if text := shownAtTheEnd(r); strings.Contains(text, "slowest") {
		t.Errorf("a partition is named that did not hold the load up:\n%s", text)
	}
	r.Slowest = &ledger.ReportSlowest{Partition: 2, Table: "t", From: "k00600", Rows: 3000, Waiting: 60, OthersWaiting: 1.5, Throttled: 1234, Unavailable: 5}
	const want = "tsimport: slowest: partition 2 of table t from k00600; its rows waited for 1m0s, those of most others for 1.5s at most; " +
		"3,000 rows, 50 a second, 1,234 refused for capacity, 5 while it was unavailable\n"
	if text := shownAtTheEnd(r); !strings.Contains(text, want) {
		t.Errorf("shown:\n%s\nwant\n%s", text, want)
	}
}

func TestWhatLimitedALoadIsSaidAtTheEnd(t *testing.T) {
	r := new(pipeline.Report)
	r.RunDir, r.Seconds = t.TempDir(), 10
	for _, w := range bottleneck.Words() {
		r.LimitedBy = []ledger.ReportLimit{{By: w.String(), Seconds: 8.7, Share: 0.87}, {By: "link", Seconds: 1.3, Share: 0.13}}
		want := fmt.Sprintf("tsimport: limited by %v 87%% of the time: %s; to load faster, %s\n", w, w.Reason(), w.Advice())
		if text := shownAtTheEnd(r); !strings.Contains(text, want) {
			t.Errorf("shown:\n%s\nwant\n%s", text, want)
		}
	}
	r.Seconds = 0.5
	if text := shownAtTheEnd(r); strings.Contains(text, "limited by") {
		t.Errorf("a load of half a second was too slow:\n%s", text)
	}
}

func TestProgressSaysWhatLimitsTheLoad(t *testing.T) {
	s := new(screen)
	if text := s.counts(); strings.Contains(text, "limited") {
		t.Error(text)
	}
	s.progress.Hindrance.LimitedBy.Store(uint32(bottleneck.Disk))
	conformance.Contains(t, s.counts(), " rows/s (limited by disk)", "counts")
}

func TestARemovedRunFolderIsNotNamedAsAPlace(t *testing.T) {
	r := new(pipeline.Report)
	r.RunDir = t.TempDir() + "/gone"
	r.Unfinished, r.Rejected, r.RejectsFiles = 5, 2, []string{r.RunDir + "/rejects.csv", r.RunDir + "/rejects.jsonl"}
	text := shownAtTheEnd(r)
	conformance.Contains(t, text, r.RunDir+"/summary.json is missing", "shown")
	for _, said := range []string{"rejected rows: ", "--retry-rejects", "to resume: ", "summary: "} {
		if strings.Contains(text, said) {
			t.Errorf("%q is said:\n%s", said, text)
		}
	}
}

func TestALoadIntoARecreatedTableIsNotOfferedForResuming(t *testing.T) {
	r := new(pipeline.Report)
	r.RunDir, r.Unfinished = t.TempDir(), 5
	must(t, os.WriteFile(filepath.Join(r.RunDir, "summary.json"), []byte("{}"), 0o600))
	for _, remade := range []bool{false, true} {
		r.Remade = remade
		if text := shownAtTheEnd(r); strings.Contains(text, "to resume: ") == remade {
			t.Errorf("remade %v:\n%s", remade, text)
		}
	}
}

func TestRejectedDeletionsMayHaveBeenApplied(t *testing.T) {
	r := new(pipeline.Report)
	r.RunDir, r.MaybeApplied = t.TempDir(), 3
	for deletes, want := range map[bool]string{false: "3 rejected rows may be in the table: ", true: "3 rejected rows may have been deleted: "} {
		r.Deletes = deletes
		conformance.Contains(t, shownAtTheEnd(r), want, "deletes %v", deletes)
	}
}

func TestSkippedEmptyLinesAreToldAtTheEnd(t *testing.T) {
	for lines, want := range map[int64]string{0: "", 1: "1 empty line skipped", 1234: "1,234 empty lines skipped"} {
		r := new(pipeline.Report)
		r.RunDir, r.EmptyLines = t.TempDir(), lines
		if text := shownAtTheEnd(r); !strings.Contains(text, want) || want == "" && strings.Contains(text, "empty line") {
			t.Errorf("%d:\n%s", lines, text)
		}
	}
}

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
