//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"example.com/tsimport/bench/result"
)

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

func TestBenchRefusesWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for args, want := range map[string]string{
		"write -q --rows 0": "--rows", "write -q a.csv": "takes no arguments", "write -q --keys sorted": "--keys", "write -q --row-size 20": "--row-size 20",
		"write -q --columns 0": "--columns 0", "write -q --duration 1s --warmup 1s": "--warmup", "write -q --max-p99 5ms": "--max-p99 is for",
		"write -q --find-max --max-throttled 5": "--max-throttled", "write -q --find-max --rate 5 --duration 1s": "--find-max and --rate",
		"write -q --table-prefix a-b": "--table-prefix", "write -q --samples no/such/folder.json": "--samples", "write -q --sync often": "--sync",
	} {
		if said := p.ends(2, append([]string{"bench"}, strings.Fields(args)...), want); strings.Count(said, "\n") != 1 {
			t.Errorf("%s: want one line: %s", args, said)
		}
	}
	if left, err := os.ReadDir(p.dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
