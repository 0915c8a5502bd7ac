//go:build e2e

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/bench/cost"
	"example.com/tsimport/bench/spread"
	"example.com/tsimport/internal/conformance"
)

// measured decodes all of a command's result.
func measured[T any](t *testing.T, args ...string) *T {
	t.Helper()
	report := new(T)
	d := json.NewDecoder(strings.NewReader(ends(t, 0, "", args...)))
	d.DisallowUnknownFields()
	conformance.Must(t, d.Decode(report))
	return report
}

// TestTheBenchMeasuresLoadsAndComparesWithTheFile looks at what holds however fast the machine is: of a plain table, of one with a limit, of
// a file with slow partitions, and of partitions that split.
func TestTheBenchMeasuresLoadsAndComparesWithTheFile(t *testing.T) {
	file, rows := filepath.Join(t.TempDir(), "a.csv"), "id,name,note\n"
	for i := range 600 {
		rows += string(rune('a'+i%26)) + strings.Repeat("x", i/26) + ",n,\n"
	}
	conformance.Must(t, os.WriteFile(file, []byte(rows), 0o600))
	for i, tt := range []struct {
		args       string
		rows       int64
		partitions int
		scenarios  []string
		ideal      float64 // seconds at least
		check      func(r *spread.Report, s *spread.Scenario) bool
	}{
		{"--rows 20000 --partitions 4 --partition-wcu 2000 --only tsimport-none,parallel", 20000, 4, []string{spread.Parallel, spread.TsimportNone}, 2.4,
			func(_ *spread.Report, s *spread.Scenario) bool {
				return s.Loader.Written == 20000 && s.PeakRSSBytes > 0
			}},
		// Four partitions of 1,000 would be done in 1.5 s.
		{"--rows 6000 --partitions 4 --limiter queue --limit-table 3000 --only tsimport", 6000, 4, []string{spread.Tsimport}, 2,
			func(r *spread.Report, s *spread.Scenario) bool {
				return r.Limiter == "queue" && r.TableWCU == 3000 && s.IdealSeconds == 2
			}},
		{"--pk id --partitions 3 --partition-wcu 5000 --slow 1:0.5 --only preshuffled,tsimport " + file, 600, 3, []string{spread.Preshuffled, spread.Tsimport}, 0,
			func(_ *spread.Report, s *spread.Scenario) bool {
				return s.Partitions[1].Capacity == 2500 && s.Lost == 0
			}},
		{"--rows 6000 --partitions 2 --partition-wcu 1000 --splits 5s --only tsimport-none", 6000, 3, []string{spread.TsimportNone}, 0,
			func(r *spread.Report, s *spread.Scenario) bool {
				return len(r.Notes) == 1 && strings.Contains(r.Notes[0], "at each moment") && len(s.Splits) == 1 && s.Partitions[0].EndedMS != nil &&
					string(s.Splits[0].From) == "null" && s.Splits[0].AtMS >= 2000
			}},
	} {
		t.Run(fmt.Sprint("bench ", i+1), func(t *testing.T) {
			report := measured[spread.Report](t, append([]string{"spread", "--json"}, strings.Fields(tt.args)...)...)
			var names []string
			for _, s := range report.Scenarios {
				names = append(names, s.Name)
				var sum, perSecond int64
				for _, p := range s.Partitions {
					sum += p.Rows
					for _, n := range p.PerSecond {
						perSecond += n
					}
				}
				if len(s.Partitions) != tt.partitions || sum != s.Rows || perSecond != s.Units || s.Rows+s.Lost != tt.rows {
					t.Errorf("%s: %d partitions, %d rows in them, %d units in their seconds, of %d rows, %d units, %d lost", s.Name, len(s.Partitions), sum, perSecond, s.Rows, s.Units, s.Lost)
				}
				if s.CapacityShare <= 0 || s.CapacityShare > 1.05 && tt.ideal > 0 || s.BatchFill <= 0 || s.BatchFill > 1 || s.ThrottledShare < 0 || s.ThrottledShare >= 1 || s.MakespanSeconds > s.Seconds+0.1 {
					t.Errorf("%+v", s)
				}
			}
			s := report.Scenarios[len(report.Scenarios)-1]
			if report.Rows != tt.rows || !slices.Equal(names, tt.scenarios) || s.Comparison == nil || !s.Comparison.Exact() || s.IdealSeconds < tt.ideal || s.MakespanSeconds < tt.ideal || !tt.check(report, s) {
				t.Errorf("scenarios %q, %+v", names, s)
			}
		})
	}
}

func TestTheClientsCostIsMeasuredWithTheBaselines(t *testing.T) {
	external := fmt.Sprintf("%q baseline sequential > %q", os.Args[0], t.TempDir()+"/out")
	r := measured[cost.Report](t, "client", "--json", "--rounds", "1", "--rows", "3000", "--shape", "3", "--baseline-cmd", external)
	for _, name := range []string{"tsimport", "sequential", "workers", "timeline", "external"} {
		l := r.Loads[name]
		if l == nil || l.CPUPerRow <= 0 || l.RowsPerSecond <= 0 || l.PeakRSSBytes < 1<<20 || l.Requests < 15 || (l.AllocsPerRow > 0) != (name != "external") {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if r.BestBaseline == "" || r.BestBaseline == "tsimport" || r.Floor.Sum <= 0 {
		t.Errorf("best baseline %q, floor %+v", r.BestBaseline, r.Floor)
	}
	again := fmt.Sprintf("%q baseline sequential && %q baseline sequential", os.Args[0], os.Args[0])
	if l := measured[cost.Report](t, "client", "--json", "--rounds", "1", "--rows", "1000", "--shape", "3", "--only", "external", "--baseline-cmd", again).Loads["external"]; l == nil || l.RowsAgain != 1000 {
		t.Errorf("rows that are sent again: %+v", l)
	}
	l := measured[cost.Report](t, "client", "--json", "--rounds", "1", "--rows", "50000", "--shape", "3", "--only", "tsimport", "--latency", "10ms", "--load-flag=--concurrency=256").Loads["tsimport"]
	if l.Connections > 256+8 || l.Requests < 250 { // the SDK's client has a few of its own
		t.Errorf("%d connections for %d requests of 256 workers", l.Connections, l.Requests)
	}
}
