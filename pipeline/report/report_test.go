package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/timeline"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/ledger"
)

func example(dir string) *pipeline.Report {
	return &pipeline.Report{
		ReportOutcome: ledger.ReportOutcome{State: pipeline.StateFinished},
		ReportTarget:  ledger.ReportTarget{Table: "t", Target: "a store", RunDir: dir},
		ReportSource: ledger.ReportSource{Inputs: []string{"a.csv", "<b>.csv"}, Command: "tsimport load a.csv",
			Schema: []ledger.ReportColumn{{Source: "id", Name: "id", Type: "integer", Key: true}}},
		ReportTime: ledger.ReportTime{Seconds: 2.5, RowsPerSecond: 396, Started: time.Unix(0, 0).UTC()},
		Counted: ledger.Counted{
			ReportCounts:  ledger.ReportCounts{Read: 1000, Written: 990, Rejected: 10},
			ReportTraffic: ledger.ReportTraffic{Requests: 5, RowsSent: 1000, WriteCU: 1980},
			ReportPartitions: ledger.ReportPartitions{Partitions: 2, PartitionsUsed: 2,
				HotKeys: []ledger.ReportHotKey{{Column: "id", Value: "7", Share: .5}}},
			Timeline: &ledger.Timeline{Every: time.Second, Points: []ledger.Point{{Final: 400, Read: 1000}, {Final: 400},
				{Final: 200, Queued: 1}},
				Heat: timeline.Map{Every: time.Second, Partitions: []string{"", "m"},
					Counts: [][]int64{{400, 0}, {0, 400}, {100, 100}}}},
		},
	}
}

func TestPageIsWrittenToRunFolder(t *testing.T) {
	dir := t.TempDir()
	path, err := Write(example(dir))
	conformance.MustTrue(t, err == nil && path == filepath.Join(dir, "report.html"), "%s, %v", path, err)
	text := conformance.Try(os.ReadFile(path)).Must(t)
	for _, want := range []string{"Load into t", "finished", ">990<", "a.csv, &lt;b&gt;.csv", "Rows written by partition",
		"Ledger", "Hot spots", "capacity units", "archived"} {
		conformance.Contains(t, string(text), want, "the page")
	}
	files, err := os.ReadDir(dir)
	conformance.True(t, err == nil && len(files) == 1, "files %v, %v", files, err)
}

func TestLastIntervalHasRatesPerSecond(t *testing.T) {
	got := Page(example("")).Charts[0].Series[0].Values
	if len(got) != 3 || got[0] != 400 || got[2] != 400 { // there were 200 rows in the last half second
		t.Errorf("rows a second %v, want 400 throughout", got)
	}
}

func TestLoadWithoutWritesHasPage(t *testing.T) {
	r := &pipeline.Report{
		ReportOutcome: ledger.ReportOutcome{State: pipeline.StateFailed, ExitCode: exitcode.Failed, Error: "no such table"},
		ReportTarget:  ledger.ReportTarget{RunDir: t.TempDir()}}
	conformance.Must(t, conformance.ErrorOf(Write(r)))
	p := Page(r)
	conformance.True(t, p.Tone == "bad" && len(p.Charts) == 0 &&
		strings.Contains(strings.Join(p.Lead, " "), "no such table"), "page %+v", p)
	r.RunDir = filepath.Join(r.RunDir, "missing")
	conformance.Refused(t, conformance.ErrorOf(Write(r)), "", "a page is written into a folder that is not there")
}
