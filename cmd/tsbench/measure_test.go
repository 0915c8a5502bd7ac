//go:build e2e

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func measured[T any](t *testing.T, args ...string) *T {
	t.Helper()
	report := new(T)
	d := json.NewDecoder(strings.NewReader(ends(t, 0, "", args...)))
	d.DisallowUnknownFields()
	conformance.Must(t, d.Decode(report))
	return report
}

// TestBenchMeasuresAndVerifiesLoads checks results that do not depend on the machine's speed, for a plain
// table, a limited one, slow partitions, and partitions that split.
func TestBenchMeasuresAndVerifiesLoads(t *testing.T) {
	for i, tt := range []struct {
		args       string
		rows       int64
		partitions int // with rows
		scenarios  []string
		ideal      float64 // minimum seconds
	}{
		{"--rows 20000 --partitions 4 --partition-wcu 2000 --only tsimport-none,baseline", 20000, 4,
			[]string{baseline, tsimportNone}, 2.4},
		// Without the limit, four partitions of 1,000 rows per second would take 1.5 s.
		{"--rows 6000 --partitions 4 --limiter queue --limit-table 3000 --only tsimport", 6000, 4, []string{tool}, 2},
		{"--pk DeviceID:integer --pk OrderNumber:integer --pk CardID:integer --order arrival --rows 3000 --partitions 3 " +
			"--slow 1:0.5 --only tsimport", 3000, 3, []string{tool}, 1.9},
		{"--rows 6000 --partition-wcu 1000 --splits 3s:500ms:2 --only tsimport-none", 6000, 3, []string{tsimportNone}, 0},
	} {
		t.Run(fmt.Sprint("bench ", i+1), func(t *testing.T) {
			report := measured[struct {
				Scenarios []*scenario `json:"scenarios"`
			}](t, append([]string{"spread", "--json"}, strings.Fields(tt.args)...)...)
			var names []string
			for _, s := range report.Scenarios {
				names = append(names, s.Name)
				used, sum := 0, int64(0)
				for _, p := range s.Partitions {
					if sum += p.Rows; p.Rows > 0 {
						used++
					}
				}
				conformance.True(t, used == tt.partitions && sum == s.Rows && s.Rows+s.Lost == tt.rows && s.Error == "" &&
					!s.Stopped, "%s: %d partitions with %d rows: %+v", s.Name, used, sum, s)
				conformance.True(t, s.CapacityShare > 0 && s.CapacityShare <= 1.1 && s.BatchFill > 0 && s.BatchFill <= 1 &&
					s.ThrottledShare >= 0 && s.ThrottledShare < 1 && s.PeakRSSBytes >= 1<<20 && s.Makespan <= s.Seconds+0.1 &&
					s.Makespan >= s.Ideal && (s.Ideal >= tt.ideal || s.Name == baseline), "%+v", s)
			}
			conformance.Equal(t, strings.Join(names, " "), strings.Join(tt.scenarios, " "), "scenarios")
		})
	}
	stopped := measured[struct {
		Scenarios []*scenario `json:"scenarios"`
	}](t, "spread", "--json", "--rows", "5000", "--partitions", "2", "--partition-wcu", "100", "--only", "baseline",
		"--baseline-seconds", "1").Scenarios[0]
	conformance.True(t, stopped.Stopped && stopped.Rows < 5000 && stopped.CapacityShare > 0 && stopped.Ideal == 0 &&
		math.Abs(stopped.Makespan-stopped.Seconds) <= 0.001, "stopped: %+v", stopped)
}

func TestSharesCountServingPartitionsOnly(t *testing.T) {
	at := func(ms float64) *float64 { return &ms }
	whole := partition{rowCounts: rowCounts{Units: 1000}, Capacity: 1000}
	for name, tt := range map[string]struct {
		parts                     []partition
		ceiling, end, share, want float64
	}{
		"two partitions":           {[]partition{whole, whole}, 0, 2000, 0.5, 1},
		"of which one has no rows": {[]partition{whole, {Capacity: 1000}}, 0, 2000, 0.25, 1},
		"and one is slow": {[]partition{whole, {rowCounts: rowCounts{Units: 500}, Capacity: 100}}, 0, 5000,
			1500.0 / 5500, 5},
		"in a table with a limit": {[]partition{whole, whole}, 500, 8000, 0.5, 4},
		"a split": {[]partition{{rowCounts: rowCounts{Units: 1000}, Capacity: 1000, EndedMS: at(2000)},
			{rowCounts: rowCounts{Units: 1000}, Capacity: 1000, SinceMS: 3000}}, 0, 5000, 0.5, 1},
		"no capacity, so no measure": {[]partition{{rowCounts: rowCounts{Units: 10}}}, 0, 1000, 0, 0},
	} {
		stats := &tableStats{Partitions: tt.parts}
		for _, p := range tt.parts {
			stats.Units += p.Units
		}
		share, ideal := shareOf(stats, tt.ceiling, tt.end), idealOf(stats, tt.ceiling)
		conformance.True(t, math.Abs(share-tt.share) <= 1e-9 && ideal == tt.want,
			"%s: share %v and %v s, want %v and %v s", name, share, ideal, tt.share, tt.want)
	}
}

func TestClientCostIsMeasuredAgainstBaselines(t *testing.T) {
	external := fmt.Sprintf("%q baseline > %q", os.Args[0], t.TempDir()+"/out")
	r := measured[costs](t, "client", "--json", "--rounds", "1", "--rows", "3000", "--shape", "3",
		"--baseline-cmd", external)
	for _, name := range []string{tool, baseline, "external"} {
		l := r.Loads[name]
		conformance.True(t, l.CPUPerRow > 0 && l.RowsPerSecond > 0 && l.PeakRSSBytes >= 1<<20 && l.Requests >= 15 &&
			(l.AllocsPerRow > 0) == (name != "external"), "%s: %+v", name, l)
	}
	again := fmt.Sprintf("%q baseline && %q baseline", os.Args[0], os.Args[0])
	conformance.Equal(t, measured[costs](t, "client", "--json", "--rounds", "1", "--rows", "1000", "--shape", "3",
		"--only", "external", "--baseline-cmd", again).Loads["external"].RowsAgain, 1000, "rows that are sent again")
	l := measured[costs](t, "client", "--json", "--rounds", "1", "--rows", "50000", "--shape", "3", "--only", "tsimport",
		"--latency", "10ms", "--load-flag=--concurrency=256").Loads["tsimport"]
	if l.Connections > 256+8 || l.Requests < 250 { // the SDK's client has a few connections more
		t.Errorf("%d connections for %d requests of 256 workers", l.Connections, l.Requests)
	}
}

var every = flag.Bool("every-memory-file", false, "measure what every command allocates")

// Limits of allocations. The difference between two sizes of input cancels fixed costs.
const (
	requestAllocs     = 105  // mostly headers of request and answer
	requestAllocBytes = 8000 // the part of a body that does not depend on rows
	mostAllocs        = 0.5  // per row; usually 0 to 0.2
	// per row of 12 columns; usually 900 to 1,000: the input (150), its block (560), and growth of the block
	mostAllocBytes = 1250
)

func TestLoadAllocatesAlmostNothingPerRow(t *testing.T) {
	for _, flags := range [][]string{nil, {"--partitions", "8", "--tls"}} {
		if flags != nil && !*every { // see make memory
			continue
		}
		load := func(rows int) (allocs, bytes float64) {
			args := append([]string{"client", "--json", "--rounds", "1", "--rows", fmt.Sprint(rows), "--only", "tsimport"},
				flags...)
			l := measured[costs](t, args...).Loads["tsimport"]
			return l.AllocsPerRow*float64(rows) - requestAllocs*float64(l.Requests),
				l.AllocBytesPerRow*float64(rows) - requestAllocBytes*float64(l.Requests)
		}
		const few, many = 20_000, 100_000
		var allocs, bytes float64
		for range 3 { // other allocations can only add to the figures, so the minimum counts
			allocs1, bytes1 := load(few)
			allocs2, bytes2 := load(many)
			allocs, bytes = (allocs2-allocs1)/(many-few), (bytes2-bytes1)/(many-few)
			t.Logf("%v: %.3f allocations and %.0f bytes a row", flags, allocs, bytes)
			if allocs <= mostAllocs && bytes <= mostAllocBytes {
				break
			}
		}
		conformance.True(t, allocs <= mostAllocs && bytes <= mostAllocBytes,
			"%v: %.3f allocations, %.0f bytes a row; want at most %v and %v", flags, allocs, bytes, mostAllocs, mostAllocBytes)
	}
}

// TestReadingAllocatesNothingPerRow limits allocations per row. Many rows share a page's, split's or request's.
func TestReadingAllocatesNothingPerRow(t *testing.T) {
	for what, most := range map[string]float64{"export": 0.2, "verify": 0.3, "inspect": 0.1, "check": 0.1, "copy": 1.3} {
		if what != "verify" && what != "check" && what != "export" && !*every { // see make memory for the others
			continue
		}
		allocations := func(rows int) float64 {
			l := measured[costs](t, "client", "--json", "--rounds", "1", "--what", what, "--rows",
				fmt.Sprint(rows)).Loads["tsimport"]
			conformance.True(t, l.CPUPerRow > 0 && l.AllocsPerRow > 0, "%s: %+v", what, l)
			return l.AllocsPerRow*float64(rows) - requestAllocs*float64(l.Requests)
		}
		few, many := 4_000, 20_000
		if what == "copy" { // its buffers still grow
			few, many = 20_000, 100_000
		}
		allocs := (allocations(many) - allocations(few)) / float64(many-few)
		t.Logf("%s: %.3f allocations a row", what, allocs)
		conformance.True(t, allocs <= most, "%s: %.3f allocations a row, want at most %v", what, allocs, most)
	}
}
