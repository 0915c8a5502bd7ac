//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"tsimport/bench/cost"
	"tsimport/bench/result"
	"tsimport/bench/spread"
)

// measured runs a bench, which must leave no file, and decodes all of its result.
func measured[T any](t *testing.T, args ...string) *T {
	t.Helper()
	temp := t.TempDir()
	report := new(T)
	d := json.NewDecoder(strings.NewReader(newPlace(t, "TMPDIR="+temp).output(append([]string{"bench"}, args...)...)))
	d.DisallowUnknownFields()
	must(t, d.Decode(report))
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return report
}

func benchClient(t *testing.T, args ...string) *cost.Report {
	t.Helper()
	return measured[cost.Report](t, append([]string{"client", "--json", "--quiet", "--rounds", "1"}, args...)...)
}

// TestTheBenchMeasuresLoadsAndComparesWithTheFile looks at what holds however fast the machine is: of a plain table, of one with a limit, of
// a file with slow partitions, and of partitions that split.
func TestTheBenchMeasuresLoadsAndComparesWithTheFile(t *testing.T) {
	t.Parallel()
	file := newPlace(t).write("a.csv", fileOf("id,name,note", 600, func(i int) string { return string(rune('a'+i%26)) + strings.Repeat("x", i/26) + ",n," }))
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
		{file + " --pk id --partitions 3 --partition-wcu 5000 --slow 1:0.5 --only preshuffled,tsimport", 600, 3, []string{spread.Preshuffled, spread.Tsimport}, 0,
			func(_ *spread.Report, s *spread.Scenario) bool {
				return s.Partitions[1].Capacity == 2500 && s.Lost == 0
			}},
		{"--rows 6000 --partitions 2 --partition-wcu 1000 --splits --only tsimport-none", 6000, 3, []string{spread.TsimportNone}, 0,
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

func TestBenchWriteMeasuresATableThatItMakesAndDrops(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	stdout := p.output("bench", "write", "--rows", "2000", "--row-size", "120", "--columns", "3", "--keys", "zipf", "--concurrency", "4", "--store", "store",
		"--json", "--samples", "a.jsonl", "--benchfmt", "a.txt")
	res := new(result.Result)
	must(t, json.Unmarshal([]byte(stdout), res))
	if res.Totals.Rows != 2000 || res.Totals.Bytes != 240_000 || res.Latency.Count != 10 || res.PerSecond.Rows <= 0 || !strings.HasPrefix(res.Settings.Table, "tsimport_bench_") {
		t.Errorf("totals %+v, %d batches, table %s", res.Totals, res.Latency.Count, res.Settings.Table)
	}
	if there(p.path("store"))() {
		t.Error("the store that the bench made is left")
	}
	if lines := strings.Count(p.read("a.jsonl"), "\n"); lines != 11 || !strings.Contains(p.read("a.txt"), " rows/s\t") {
		t.Errorf("%d lines of samples, and %q", lines, p.read("a.txt"))
	}
}

func TestBenchWriteKeepsToARateAndFindsTheHighestOverTheWire(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--sync", "none", "--partitions", "2", "--partition-wcu", "1000", "--burst", "100ms")
	p := newPlace(t, s.env()...)
	res := new(result.Result)
	must(t, json.Unmarshal([]byte(p.output("bench", "write", "--duration", "3s", "--rate", "400", "--batch-rows", "20", "--json", "-q")), res))
	if res.Totals.Rows > 1200 || res.Totals.Rows < 20 {
		t.Errorf("%+v in 3 s at 400 a second", res)
	}
	cmd := p.command("bench", "write", "--find-max", "--start-rate", "200", "--step", "100ms", "--duration", "1s", "--max-p99", "0s", "--max-throttled", "20%", "--batch-rows", "10", "--row-size", "60", "--columns", "2", "--json", "-q")
	stdout := new(strings.Builder)
	cmd.Stdout = stdout
	r := begin(t, cmd)
	if code := r.wait(); code == 1 { // a machine that starves us keeps no rate
		r.says("^tsimport: find the highest rate: ", 1)
	} else if res = new(result.Result); json.Unmarshal([]byte(stdout.String()), res) != nil || len(res.Steps) < 2 || res.Settings.Rate <= 0 || !res.Steps[len(res.Steps)-1].Passed {
		t.Errorf("exit code %d, rate %v, steps %+v:\n%s", code, res.Settings.Rate, res.Steps, &r.said)
	}
	if left := p.output("table", "list", "-q"); left != "" {
		t.Errorf("tables left: %q", left)
	}
}

func TestTheClientsCostIsMeasuredWithTheBaselines(t *testing.T) {
	external := fmt.Sprintf("%q bench baseline sequential > %q", binary, t.TempDir()+"/out")
	r := benchClient(t, "--rows", "3000", "--shape", "3", "--baseline-cmd", external)
	for _, name := range []string{"tsimport", "sequential", "workers", "timeline", "external"} {
		l := r.Loads[name]
		if l == nil || l.CPUPerRow <= 0 || l.RowsPerSecond <= 0 || l.PeakRSSBytes < 1<<20 || l.Requests < 15 || (l.AllocsPerRow > 0) != (name != "external") {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if r.BestBaseline == "" || r.BestBaseline == "tsimport" || r.Floor.Sum <= 0 {
		t.Errorf("best baseline %q, floor %+v", r.BestBaseline, r.Floor)
	}
	again := fmt.Sprintf("%q bench baseline sequential && %q bench baseline sequential", binary, binary)
	if l := benchClient(t, "--rows", "1000", "--shape", "3", "--only", "external", "--baseline-cmd", again).Loads["external"]; l == nil || l.RowsAgain != 1000 {
		t.Errorf("rows that are sent again: %+v", l)
	}
	l := benchClient(t, "--rows", "50000", "--shape", "3", "--only", "tsimport", "--latency", "10ms", "--load-flag=--concurrency=256").Loads["tsimport"]
	if l.Connections > 256+8 || l.Requests < 250 { // the SDK's client has a few of its own
		t.Errorf("%d connections for %d requests of 256 workers", l.Connections, l.Requests)
	}
	rows := newPlace(t).write("rows.csv", "id,n\n"+strings.Repeat("a,1\n", 1000))
	if read := newPlace(t).output("bench", "read-input", rows, "--json"); !strings.Contains(read, `"rows": 1000`) || !strings.Contains(read, `"bytes": 4005`) {
		t.Error(read)
	}
}

func TestBenchRefusesWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, tt := range []struct {
		args, want string
		code       int
	}{
		{"spread --only fast", "--only", 2}, {"spread a.csv", "--pk", 2}, {"spread a.csv b.csv", "one file", 2}, {"spread --slow x", "--slow", 2}, {"spread --limiter leaky", "--limiter", 2},
		{"spread --limit-table -1", "--limit-table", 2}, {"spread --splits=never", "--splits", 2}, {"spread --splits=-1s", "--splits", 2}, {"spread --order up", "--order", 2},
		{"spread a.csv --pk a --rows 5", "--rows", 2}, {"spread --splits 5s", "--splits 5s: 5s is read as a file name; write --splits=5s", 2},
		{"spread a.csv --pk a --splits 2m", "--splits 2m: 2m is read as a file name; write --splits=2m", 2},
		{"spread --memory 1MiB", "--memory 1MiB: a load needs 16MiB at least", 2}, {"spread --memory lots", `--memory: "lots" is not a size`, 2},
		{"spread -q missing.csv --pk a", "open input missing.csv: there is no such file or folder", 2},
		{"write -q --rows 0", "--rows", 2}, {"write -q a.csv", "takes no arguments", 2}, {"write -q --keys sorted", "--keys", 2}, {"write -q --row-size 20", "--row-size 20", 2},
		{"write -q --columns 0", "--columns 0", 2}, {"write -q --duration 1s --warmup 1s", "--warmup", 2}, {"write -q --max-p99 5ms", "--max-p99 is for", 2},
		{"write -q --find-max --max-throttled 5", "--max-throttled", 2}, {"write -q --find-max --rate 5 --duration 1s", "--find-max and --rate", 2},
		{"write -q --table-prefix a-b", "--table-prefix", 2}, {"write -q --samples no/such/folder.json", "--samples", 2}, {"write -q --sync often", "--sync", 2},
		{"compare a.txt b.txt", "bench compare is gone: benchstat a.txt b.txt", 2},
		{"read-input", "", 2}, {"read-input -", "", 2}, {"read-input missing.csv", "", 2}, {"read-input missing.csv --order odd", "", 2},
		{"client --shape 13", "", 2}, {"client --rows 0", "", 2}, {"client --only spark", "", 2}, {"client file.csv", "", 2}, {"client --timeout 1s", "", 2}, {"client --timeout -1s --baseline-cmd true", "", 2},
	} {
		if said := p.ends(tt.code, append([]string{"bench"}, strings.Fields(tt.args)...), tt.want); strings.Count(said, "\n") != 1 && !strings.HasPrefix(tt.args, "client") && !strings.HasPrefix(tt.args, "read") || said == "" {
			t.Errorf("%s: want one line: %s", tt.args, said)
		}
	}
	if left, err := os.ReadDir(p.dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	external := []string{"bench", "client", "--quiet", "--rows", "1000", "--only", "external", "--baseline-cmd"}
	p.ends(1, append(external, "exit 3"), "exit status 3")
	p.ends(1, append(external, "true"), "0 rows arrived")
	p.ends(1, append(external, "sleep 100000; true", "--timeout", "100ms"), "did not end within --timeout 100ms")
}
