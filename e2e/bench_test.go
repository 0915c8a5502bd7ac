//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"example.com/tsimport/bench/result"
	"example.com/tsimport/internal/conformance"
)

func TestBenchWriteUsesTemporaryTable(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	stdout := p.output("bench", "write", "--rows", "2000", "--row-size", "120", "--columns", "3", "--keys", "zipf", "--concurrency", "4", "--store", "store",
		"--json", "--samples", "a.jsonl", "--benchfmt", "a.txt")
	res := new(result.Result)
	must(t, json.Unmarshal([]byte(stdout), res))
	if res.Totals.Rows != 2000 || res.Totals.Bytes != 240_000 || res.Latency.Count != 10 || res.PerSecond.Rows <= 0 || !strings.HasPrefix(res.Settings.Table, "tsimport_bench_") {
		t.Errorf("totals %+v, %d batches, table %s", res.Totals, res.Latency.Count, res.Settings.Table)
	}
	conformance.True(t, !there(p.path("store"))(), "the store that the bench made is left")
	must(t, json.Unmarshal([]byte(p.output(strings.Fields("bench write --duration 1s --rate 400 --batch-rows 20 --store store --json -q")...)), res))
	conformance.True(t, res.Settings.Rate == 400 && res.Totals.Rows <= 420 && res.Totals.Rows >= 20,
		"%+v in a second at %v", res.Totals, res.Settings.Rate)
	if lines := strings.Count(p.read("a.jsonl"), "\n"); lines != 11 || !strings.Contains(p.read("a.txt"), " rows/s\t") {
		t.Errorf("%d lines of samples, and %q", lines, p.read("a.txt"))
	}
}

// TestBenchRefusesInvalidMeasurements in one line, and creates nothing. bench/write tests other refusals.
func TestBenchRefusesInvalidMeasurements(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for args, want := range map[string]string{
		"-q --rows 0": "--rows", "-q a.csv": "takes no arguments", "-q --max-p99 5ms": "--max-p99 is for", "-q --find-max --max-throttled 5": "--max-throttled",
		"-q --find-max --rate 5 --duration 1s": "--find-max and --rate", "-q --samples no/such/folder.json": "--samples", "-q --sync often": "--sync",
	} {
		said := p.ends(2, append([]string{"bench", "write"}, strings.Fields(args)...), want)
		conformance.Equal(t, strings.Count(said, "\n"), 1, "%s: want one line: %s", args, said)
	}
	left, err := os.ReadDir(p.dir)
	conformance.True(t, err == nil && len(left) == 0, "left behind: %v, %v", left, err)
}

// BenchmarkSmallLoads measures loads with negligible rows: a process, its files and its syncs. CPU is the process's.
func BenchmarkSmallLoads(b *testing.B) {
	server := startServe(b)
	target := func(name string) string {
		if name == "one row, served" {
			return "--endpoint=" + server.URL + " --instance=" + server.Instance
		}
		return "--store=store"
	}
	one := "load one.csv --table t --create --pk id:integer --quiet "
	for _, c := range []struct {
		name, args string
		again      bool // the store is there
	}{
		{"start", "--version", true},
		{"one row, new store", one, false},
		{"one row, store that exists", one, true},
		{"one row, served", one, true},
		{"job of 200 tables of 1,000 rows", "run job.yaml --quiet ", false},
		{"the same, 4 at a time", "run job.yaml --parallel 4 --quiet ", false},
	} {
		b.Run(c.name, func(b *testing.B) {
			args := c.args
			if args != "--version" {
				args += target(c.name)
			}
			p := smallPlace(b, server)
			if c.again {
				p.run(0, strings.Fields(args)...)
			}
			cpu := 0.0
			for b.Loop() {
				if !c.again {
					b.StopTimer()
					p = smallPlace(b, server)
					b.StartTimer()
				}
				cmd := p.command(strings.Fields(args)...)
				text, err := cmd.CombinedOutput()
				conformance.MustTrue(b, err == nil, "%v: %s", err, text)
				cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() * 1e3
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/op")
			b.ReportMetric(cpu/float64(b.N), "cpu-ms/op")
		})
	}
}

func smallPlace(b *testing.B, s *served) *place {
	p := newPlace(b, s.credentials()...)
	p.write("one.csv", "id,item\n1,tea\n")
	for i := range 200 {
		var rows strings.Builder
		rows.WriteString("id,name,amount\n")
		for row := range 1000 {
			fmt.Fprintf(&rows, "%d,name %d of %d,%d.5\n", row, row, i, row)
		}
		p.write(fmt.Sprintf("in/t%03d.csv", i), rows.String())
	}
	p.write("job.yaml", "version: 1\ndefaults: {create: true, pk: [id:integer]}\nloads:\n  \"{table}\": {from: [\"in/{table}.csv\"]}\n")
	return p
}
