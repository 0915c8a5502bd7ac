//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tsimport/bench/cost"
)

func benchClient(t *testing.T, args ...string) *cost.Report {
	t.Helper()
	temp := t.TempDir()
	stdout, stderr, code := runBinaryWith(t, []string{"TMPDIR=" + temp}, append([]string{"bench", "client", "--json", "--quiet", "--rounds", "1"}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	report := new(cost.Report)
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

func TestTheClientsCostIsMeasuredWithTheBaselines(t *testing.T) {
	external := fmt.Sprintf("%q bench baseline sequential > %q", binary, filepath.Join(t.TempDir(), "out"))
	r := benchClient(t, "--rows", "3000", "--shape", "3", "--baseline-cmd", external)
	for _, name := range []string{"tsimport", "sequential", "workers", "timeline", "external"} {
		l := r.Loads[name]
		if l == nil || l.CPUPerRow <= 0 || l.RowsPerSecond <= 0 || l.PeakRSSBytes < 1<<20 || l.Requests < 15 {
			t.Errorf("%s: %+v", name, l)
			continue
		}
		if measures := l.AllocsPerRow > 0; measures != (name != "external") {
			t.Errorf("%s: %v allocations a row", name, l.AllocsPerRow)
		}
	}
	if r.BestBaseline == "" || r.BestBaseline == "tsimport" || r.Floor.Sum <= 0 {
		t.Errorf("best baseline %q, floor %+v", r.BestBaseline, r.Floor)
	}
}

// What a load allocates beside its requests, of which a busy machine makes more, of fewer rows: one allocation for each row is too many. Two
// sizes take out what does not depend on the rows.
const (
	requestAllocs     = 105  // most of them headers of request and answer
	requestAllocBytes = 8000 // of a body, whose size depends on the rows, a part that does not
	mostAllocs        = 0.5  // a row; usually 0 to 0.2
	mostAllocBytes    = 1250 // a row of 12 columns; usually 900 to 1,000: what is read (150), its block (560), a part of that again for what grows
)

func TestRowsThatAnotherLoaderSendsAgainAreCounted(t *testing.T) {
	again := fmt.Sprintf("%q bench baseline sequential && %q bench baseline sequential", binary, binary)
	if l := benchClient(t, "--rows", "1000", "--shape", "3", "--only", "external", "--baseline-cmd", again).Loads["external"]; l == nil || l.RowsAgain != 1000 {
		t.Errorf("%+v", l)
	}
}

func TestALoadAllocatesHardlyAnythingForARow(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--partitions", "8", "--tls"}} {
		if flags != nil && !*everyMemoryFile { // make memory
			continue
		}
		load := func(rows int) (allocs, bytes float64) {
			args := append([]string{"--rows", fmt.Sprint(rows), "--only", "tsimport"}, flags...)
			l := benchClient(t, args...).Loads["tsimport"]
			return l.AllocsPerRow*float64(rows) - requestAllocs*float64(l.Requests), l.AllocBytesPerRow*float64(rows) - requestAllocBytes*float64(l.Requests)
		}
		const few, many = 20_000, 100_000
		var allocs, bytes float64
		for range 3 { // what else the process allocates now and then only adds to the figures
			allocs1, bytes1 := load(few)
			allocs2, bytes2 := load(many)
			allocs, bytes = (allocs2-allocs1)/(many-few), (bytes2-bytes1)/(many-few)
			t.Logf("%v: %.3f allocations and %.0f bytes a row", flags, allocs, bytes)
			if allocs <= mostAllocs && bytes <= mostAllocBytes {
				break
			}
		}
		if allocs > mostAllocs || bytes > mostAllocBytes {
			t.Errorf("%v: %.3f allocations and %.0f bytes a row, want at most %v and %v", flags, allocs, bytes, mostAllocs, mostAllocBytes)
		}
	}
}

// TestReadingAllocatesNothingForARow: what a page or a split takes is shared by its rows, and what a request takes is left out.
func TestReadingAllocatesNothingForARow(t *testing.T) {
	t.Parallel()
	for what, most := range map[string]float64{"scan": 0.2, "export": 0.2, "verify": 0.3, "inspect": 0.1, "check": 0.1, "copy": 1.3} {
		if what != "verify" && what != "check" && what != "export" && !*everyMemoryFile { // a table and a file are read, and written; the others by make memory
			continue
		}
		allocations := func(rows int) float64 {
			l := benchClient(t, "--what", what, "--rows", fmt.Sprint(rows)).Loads["tsimport"]
			if l.CPUPerRow <= 0 || l.AllocsPerRow <= 0 {
				t.Errorf("%s: %+v", what, l)
			}
			return l.AllocsPerRow*float64(rows) - requestAllocs*float64(l.Requests)
		}
		few, many := 4_000, 20_000
		if what == "copy" { // whose buffers still grow
			few, many = 20_000, 100_000
		}
		allocs := (allocations(many) - allocations(few)) / float64(many-few)
		t.Logf("%s: %.3f allocations a row", what, allocs)
		if allocs > most {
			t.Errorf("%s: %.3f allocations a row, want at most %v", what, allocs, most)
		}
	}
}

func TestWorkersKeepTheirConnections(t *testing.T) {
	t.Parallel()
	l := benchClient(t, "--rows", "50000", "--shape", "3", "--only", "tsimport", "--latency", "10ms", "--load-flag=--concurrency=256").Loads["tsimport"]
	if l.Connections > 256+8 || l.Requests < 250 { // the SDK's client has a few of its own
		t.Errorf("%d connections for %d requests of 256 workers", l.Connections, l.Requests)
	}
}

func TestReadingAloneIsMeasured(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(file, []byte("id,n\n"+strings.Repeat("a,1\n", 1000)), 0o644); err != nil {
		t.Fatal(err)
	}
	var r struct {
		Rows  int64
		Bytes int64
	}
	stdout, stderr, code := runBinary(t, "bench", "read-input", file, "--json")
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil || r.Rows != 1000 || r.Bytes != 4005 {
		t.Errorf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	for _, args := range [][]string{{}, {"-"}, {file + ".missing"}, {file, "--order", "odd"}} {
		if _, stderr, code := runBinary(t, append([]string{"bench", "read-input"}, args...)...); code != 2 || stderr == "" {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
}

func TestBenchClientRefusesWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--shape", "13"}, {"--rows", "0"}, {"--only", "spark"}, {"file.csv"}, {"--timeout", "1s"}, {"--timeout", "-1s", "--baseline-cmd", "true"}} {
		if _, stderr, code := runBinary(t, append([]string{"bench", "client"}, args...)...); code != 2 || stderr == "" {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
	if _, stderr, code := runBinary(t, "bench", "client", "--quiet", "--rows", "1000", "--only", "external", "--baseline-cmd", "exit 3"); code != 1 || !strings.Contains(stderr, "exit status 3") {
		t.Errorf("a command that fails: exit code %d, %s", code, stderr)
	}
	if _, stderr, code := runBinary(t, "bench", "client", "--quiet", "--rows", "1000", "--only", "external", "--baseline-cmd", "true"); code != 1 || !strings.Contains(stderr, "0 rows arrived") {
		t.Errorf("a command that writes nothing: exit code %d, %s", code, stderr)
	}
	_, stderr, code := runBinary(t, "bench", "client", "--quiet", "--rows", "1000", "--only", "external", "--timeout", "100ms", "--baseline-cmd", "sleep 100000; true")
	if code != 1 || !strings.Contains(stderr, "did not end within --timeout 100ms") {
		t.Errorf("a command that hangs: exit code %d, %s", code, stderr)
	}
}
