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
	must(t, json.Unmarshal([]byte(p.output(strings.Fields("bench write --duration 1s --rate 400 --batch-rows 20 --store store --json -q")...)), res))
	if res.Settings.Rate != 400 || res.Totals.Rows > 420 || res.Totals.Rows < 20 {
		t.Errorf("%+v in a second at %v", res.Totals, res.Settings.Rate)
	}
	if lines := strings.Count(p.read("a.jsonl"), "\n"); lines != 11 || !strings.Contains(p.read("a.txt"), " rows/s\t") {
		t.Errorf("%d lines of samples, and %q", lines, p.read("a.txt"))
	}
}

// TestBenchRefusesWhatItCannotMeasure in a line, and makes nothing. What else is refused is shown in bench/write.
func TestBenchRefusesWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for args, want := range map[string]string{
		"-q --rows 0": "--rows", "-q a.csv": "takes no arguments", "-q --max-p99 5ms": "--max-p99 is for", "-q --find-max --max-throttled 5": "--max-throttled",
		"-q --find-max --rate 5 --duration 1s": "--find-max and --rate", "-q --samples no/such/folder.json": "--samples", "-q --sync often": "--sync",
	} {
		if said := p.ends(2, append([]string{"bench", "write"}, strings.Fields(args)...), want); strings.Count(said, "\n") != 1 {
			t.Errorf("%s: want one line: %s", args, said)
		}
	}
	if left, err := os.ReadDir(p.dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
