//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tsimport/bench/spread"
)

func benchSpread(t *testing.T, args ...string) *spread.Report {
	t.Helper()
	temp := t.TempDir()
	stdout, stderr, code := runBinaryWith(t, []string{"TMPDIR=" + temp}, append([]string{"bench", "spread", "--json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	report := new(spread.Report)
	d := json.NewDecoder(strings.NewReader(stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(report); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return report
}

// checkScenario checks what holds however fast the machine is.
func checkScenario(t *testing.T, s *spread.Scenario, rows int64, partitions int) {
	t.Helper()
	if len(s.Partitions) != partitions {
		t.Fatalf("%s: %d partitions, want %d", s.Name, len(s.Partitions), partitions)
	}
	var sum, perSecond int64
	for _, p := range s.Partitions {
		sum += p.Rows
		for _, n := range p.PerSecond {
			perSecond += n
		}
	}
	if sum != s.Rows || perSecond != s.Units || s.Rows+s.Lost != rows {
		t.Errorf("%s: %d rows in the partitions, %d units in their seconds, of %d rows, %d units, %d lost", s.Name, sum, perSecond, s.Rows, s.Units, s.Lost)
	}
	if s.CapacityShare <= 0 || s.CapacityShare > 1.05 || s.BatchFill <= 0 || s.BatchFill > 1 || s.ThrottledShare < 0 || s.ThrottledShare >= 1 {
		t.Errorf("%s: capacity share %v, batch fill %v, throttled %v", s.Name, s.CapacityShare, s.BatchFill, s.ThrottledShare)
	}
	if s.Seconds <= 0 || s.MakespanSeconds > s.Seconds+0.1 || s.Requests < rows/200 {
		t.Errorf("%s: %v s, last row after %v s, %d requests", s.Name, s.Seconds, s.MakespanSeconds, s.Requests)
	}
}

func TestTheBenchMeasuresLoadsAndComparesWithTheFile(t *testing.T) {
	t.Parallel()
	report := benchSpread(t, "--rows", "20000", "--partitions", "4", "--partition-wcu", "2000", "--only", "tsimport-none,parallel")
	if report.Rows != 20000 || len(report.Scenarios) != 2 || report.Scenarios[0].Name != spread.Parallel || report.Scenarios[1].Name != spread.TsimportNone {
		t.Fatalf("%d rows, scenarios %+v", report.Rows, report.Scenarios)
	}
	for _, s := range report.Scenarios {
		checkScenario(t, s, 20000, 4)
	}
	s := report.Scenarios[1]
	if s.Comparison == nil || s.Comparison.Rows != 20000 || !s.Comparison.Exact() || !strings.HasPrefix(s.Verified, "exact") {
		t.Errorf("compared: %+v, %s", s.Comparison, s.Verified)
	}
	if s.Loader == nil || s.Loader.Written != 20000 || s.PeakRSSBytes == 0 || s.IdealSeconds < 2.4 || s.MakespanSeconds < 2.4 {
		t.Errorf("loader %+v, ideal %v s, makespan %v s; 20,000 rows need 2.5 s", s.Loader, s.IdealSeconds, s.MakespanSeconds)
	}
}

func TestTheBenchMeasuresAgainstTheLimitOfATable(t *testing.T) {
	t.Parallel()
	report := benchSpread(t, "--rows", "6000", "--partitions", "4", "--limiter", "queue", "--limit-table", "3000", "--only", "tsimport")
	if report.Limiter != "queue" || report.TableWCU != 3000 || len(report.Scenarios) != 1 {
		t.Fatalf("%+v", report)
	}
	s := report.Scenarios[0]
	checkScenario(t, s, 6000, 4)
	// Four partitions of 1,000 would be done in 1.5 s.
	if s.IdealSeconds != 2 || s.MakespanSeconds < 2 || s.Comparison == nil || !s.Comparison.Exact() {
		t.Errorf("ideal %v s, makespan %v s, %s", s.IdealSeconds, s.MakespanSeconds, s.Verified)
	}
}

func TestTheBenchTakesAFileAndSlowPartitions(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.csv")
	text := "id,name,note\n"
	for i := range 600 {
		text += string(rune('a'+i%26)) + strings.Repeat("x", i/26) + ",n,\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	report := benchSpread(t, file, "--pk", "id", "--partitions", "3", "--partition-wcu", "5000", "--slow", "1:0.5", "--only", "preshuffled,tsimport")
	if report.Rows != 600 || len(report.Scenarios) != 2 {
		t.Fatalf("%+v", report)
	}
	for _, s := range report.Scenarios {
		if s.Rows != 600 || len(s.Partitions) != 3 || s.Partitions[1].Capacity != 2500 || s.Lost != 0 {
			t.Errorf("%s: %+v", s.Name, s)
		}
	}
	if c := report.Scenarios[1].Comparison; c == nil || !c.Exact() {
		t.Errorf("compared: %+v", c)
	}
}

func TestTheBenchReportsSplits(t *testing.T) {
	t.Parallel()
	report := benchSpread(t, "--rows", "6000", "--partitions", "2", "--partition-wcu", "1000", "--splits", "--only", "tsimport-none")
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "at each moment") {
		t.Errorf("notes %q; want one about rows in key order", report.Notes)
	}
	s := report.Scenarios[0]
	if len(s.Splits) != 1 || len(s.Partitions) != 3 || s.Partitions[0].EndedMS == nil || string(s.Splits[0].From) != "null" || s.Splits[0].AtMS < 2000 {
		t.Errorf("splits %+v, partitions %+v", s.Splits, s.Partitions)
	}
	if s.Comparison == nil || !s.Comparison.Exact() || s.CapacityShare <= 0 {
		t.Errorf("compared %+v, share %v", s.Comparison, s.CapacityShare)
	}
}

func TestTheBenchRefusesWhatItCannotMeasure(t *testing.T) {
	for want, args := range map[string][]string{
		"--only":        {"--only", "fast"},
		"--pk":          {"a.csv"},
		"one file":      {"a.csv", "b.csv"},
		"--slow":        {"--slow", "x"},
		"--limiter":     {"--limiter", "leaky"},
		"--limit-table": {"--limit-table", "-1"},
		"--splits":      {"--splits=never"},
		"--splits ":     {"--splits=-1s"},
		"--order":       {"--order", "up"},
		"--rows":        {"a.csv", "--pk", "a", "--rows", "5"},
		"digits only, such as 1000; see tsimport bench spread --help": {"--rows", "1,000"},
		"--splits 5s: 5s is read as a file name; write --splits=5s":   {"--splits", "5s"},
		"--splits 2m: 2m is read as a file name; write --splits=2m":   {"a.csv", "--pk", "a", "--splits", "2m"},
		"--memory 1MiB: a load needs 16MiB at least":                  {"--memory", "1MiB"},
		`--memory: "lots" is not a size`:                              {"--memory", "lots"},
		"open input missing.csv: there is no such file or folder":     {"-q", "missing.csv", "--pk", "a"},
	} {
		_, stderr, code := runBinary(t, append([]string{"bench", "spread"}, args...)...)
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, strings.Trim(want, "- ")) {
			t.Errorf("%q: exit code %d, %q; want 2 and a line about %s", args, code, stderr, want)
		}
	}
	if stdout, _, code := runBinary(t, "bench", "spread", "--help"); code != 0 || !strings.Contains(stdout, "preshuffled") {
		t.Errorf("help: exit code %d\n%s", code, stdout)
	}
}
