package report

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/timeline"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/bottleneck"
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
	for _, want := range []string{"finished", ">990<", "a.csv, &lt;b&gt;.csv", "Rows written by partition", "Ledger"} {
		conformance.Contains(t, string(text), want, "the page")
	}
	files, err := os.ReadDir(dir)
	conformance.True(t, err == nil && len(files) == 1, "files %v, %v", files, err)
}

var update = flag.Bool("update", false, "write the golden file of these tests")

// TestPagesShowReports compares all that the pages of several reports show.
func TestPagesShowReports(t *testing.T) {
	var text strings.Builder
	for _, change := range []func(*pipeline.Report){
		func(*pipeline.Report) {},
		func(r *pipeline.Report) { // a dry run without a course over time
			r.DryRun, r.Unfinished, r.Timeline.Points, r.HotKeys, r.Schema = true, 1234567, nil, nil, nil
			r.Inputs = strings.Fields("a b c d e")
		},
		func(r *pipeline.Report) { // most values differ from zero
			r.State, r.ExitCode, r.Error, r.Inputs = "failed", exitcode.Failed, "no disk", strings.Fields("a b c d e f g")
			r.Superseded, r.ConditionFailed, r.Archived, r.Unfinished, r.Created = 11, 12, 13, 14, true
			r.Throttled, r.Retried, r.Unavailable, r.BytesRead, r.BytesSent, r.WriteCU = 15, 16, 17, 18<<20, 19<<20, 990
			r.PartitionReads, r.Recuts, r.LastLaneSeconds, r.SpilledRows, r.SpilledBytes = 20, 21, 59.9, 22, 23<<10
			r.CPUSeconds, r.PeakRSSBytes, r.Seconds, r.Timeline.Every = 60, 24<<30, 5, 2*time.Second
			r.LimitedBy = []ledger.ReportLimit{{By: "link", Share: 0.75}, {By: "disk", Share: 0.25}}
			for i := range r.Timeline.Points {
				n := int64(100 * i)
				r.Timeline.Points[i] = ledger.Point{Read: n, Final: n + 1, Rejected: n + 2, Throttled: n + 3, Unavailable: n + 4,
					Retried: n + 5, Requests: n + 6, Units: float64(n + 7), Queued: n + 8,
					Limited: bottleneck.Spent{bottleneck.Link: time.Second, bottleneck.Disk: time.Millisecond}}
			}
			r.Timeline.Heat.Partitions = []string{""}
			r.Schema = append(r.Schema, ledger.ReportColumn{Name: "n", Expression: "a + b", Type: "double", Inferred: true})
		},
		func(r *pipeline.Report) { // one of each, and an interval that has hardly begun
			r.ExitCode, r.Requests, r.RowsSent, r.Throttled, r.Seconds = exitcode.Rejects, 1, 1, 1, 0.01
			r.Timeline.Points, r.Timeline.Heat.Counts = r.Timeline.Points[:1], r.Timeline.Heat.Counts[:1]
			r.LimitedBy = []ledger.ReportLimit{{By: "cpu", Share: 1}}
		},
	} {
		r := example("run")
		change(r)
		p := Page(r)
		heat := p.Heat
		p.Heat = nil // shown by itself, as a pointer would be shown as one
		fmt.Fprintf(&text, "%+v\n%+v\n\n", *p, heat)
	}
	golden := filepath.Join("testdata", "pages.txt")
	got := strings.NewReplacer("} {", "}\n{", "] [", "]\n[").Replace(text.String())
	if *update {
		conformance.Must(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want := conformance.Try(os.ReadFile(golden)).Must(t)
	conformance.Equal(t, got, string(want), "what the pages show")
}

func TestLoadWithoutWritesHasPage(t *testing.T) {
	r := &pipeline.Report{
		ReportOutcome: ledger.ReportOutcome{State: pipeline.StateFailed, ExitCode: exitcode.Failed, Error: "no such table"},
		ReportTarget:  ledger.ReportTarget{RunDir: t.TempDir()}}
	conformance.Must(t, conformance.ErrorOf(Write(r)))
	r.RunDir = filepath.Join(r.RunDir, "missing")
	conformance.Refused(t, conformance.ErrorOf(Write(r)), "", "a page is written into a folder that is not there")
}
