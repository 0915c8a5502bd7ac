//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	benchcompare "tsimport/bench/compare"
	"tsimport/bench/result"
)

func TestBenchWriteMeasuresATableThatItMakesAndDrops(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	stdout, stderr, code := runBinary(t, "bench", "write", "--rows", "2000", "--row-size", "120", "--columns", "3", "--keys", "zipf", "--concurrency", "4", "--store", at("store"),
		"--json", "--samples", at("a.jsonl"), "--benchfmt", at("a.txt"), "--html", at("a.html"))
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	res := new(result.Result)
	d := json.NewDecoder(strings.NewReader(stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(res); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	if res.Totals.Rows != 2000 || res.Totals.Bytes != 240_000 || res.Latency.Count != 10 || res.PerSecond.Rows <= 0 || !strings.HasPrefix(res.Settings.Table, "tsimport_bench_") {
		t.Errorf("totals %+v, %d batches, table %s", res.Totals, res.Latency.Count, res.Settings.Table)
	}
	if _, err := os.Stat(at("store")); !os.IsNotExist(err) {
		t.Errorf("the store that the bench made is left: %v", err)
	}
	samples, err := os.Open(at("a.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer samples.Close()
	again, err := result.ReadSamples(samples)
	if err != nil || again.Totals != res.Totals {
		t.Errorf("samples: %v, totals %+v, want %+v", err, again.Totals, res.Totals)
	}
	page, err := os.ReadFile(at("a.html"))
	if err != nil || !strings.Contains(string(page), "Latency by percentile") {
		t.Errorf("page: %v, %d bytes", err, len(page))
	}
	if err := os.WriteFile(at("a.json"), []byte(stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code = runBinary(t, "bench", "compare", at("a.json"), at("a.jsonl"), "--json")
	var c benchcompare.Comparison
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || code != 0 {
		t.Fatalf("compare: exit code %d, %v: %s", code, err, stderr)
	}
	for _, m := range c.Metrics {
		if m.Verdict != benchcompare.TooFew { // a run of less than eight seconds tells nothing
			t.Errorf("compared with itself: %+v", m)
		}
	}
	if stdout, _, code := runBinary(t, "bench", "compare", at("a.txt"), at("a.json")); code != 0 || !strings.Contains(stdout, "too few samples to tell") {
		t.Errorf("compare: exit code %d\n%s", code, stdout)
	}
}

func TestBenchWriteKeepsToARateAndFindsTheHighestOverTheWire(t *testing.T) {
	s := startServe(t, "--sync", "none", "--partitions", "2", "--partition-wcu", "1000", "--burst", "100ms")
	to := []string{"--endpoint", s.URL, "--instance", s.Instance, "--json", "-q"}
	measure := func(args ...string) (*result.Result, string) {
		stdout, stderr, code := runBinaryWith(t, s.credentials(), append(append([]string{"bench", "write"}, args...), to...)...)
		if code == 1 {
			return nil, stderr
		}
		res := new(result.Result)
		if err := json.Unmarshal([]byte(stdout), res); err != nil || code != 0 || stderr != "" {
			t.Fatalf("%v: exit code %d, %v: %s", args, code, err, stderr)
		}
		return res, ""
	}
	if res, why := measure("--duration", "3s", "--rate", "400", "--batch-rows", "20"); res == nil || res.Totals.Rows > 1200 || res.Totals.Rows < 20 {
		t.Errorf("%+v in 3 s at 400 a second: %s", res, why)
	}
	res, why := measure("--find-max", "--start-rate", "200", "--step", "100ms", "--duration", "1s", "--max-p99", "0s", "--max-throttled", "20%", "--batch-rows", "10", "--row-size", "60", "--columns", "2")
	switch {
	case res == nil && !strings.HasPrefix(why, "tsimport: find the highest rate: "): // a machine that starves us keeps no rate
		t.Errorf("no rate: %s", why)
	case res != nil && (len(res.Steps) < 2 || res.Settings.Rate <= 0 || !res.Steps[len(res.Steps)-1].Passed):
		t.Errorf("rate %v, steps %+v", res.Settings.Rate, res.Steps)
	}
	if stdout, _, code := runBinaryWith(t, s.credentials(), "table", "list", "--endpoint", s.URL, "--instance", s.Instance, "-q"); code != 0 || stdout != "" {
		t.Errorf("exit code %d, tables left: %q", code, stdout)
	}
}

func TestBenchWriteAndCompareRefuseWhatTheyCannotDo(t *testing.T) {
	t.Chdir(t.TempDir())
	for want, args := range map[string][]string{
		"--rows":                   {"write", "--rows", "0"},
		"takes no arguments":       {"write", "a.csv"},
		"--keys":                   {"write", "--keys", "sorted"},
		"--row-size 20":            {"write", "--row-size", "20"},
		"--columns 0":              {"write", "--columns", "0"},
		"--warmup":                 {"write", "--duration", "1s", "--warmup", "1s"},
		"--max-p99 is for":         {"write", "--max-p99", "5ms"},
		"--max-throttled":          {"write", "--find-max", "--max-throttled", "5"},
		"--find-max and --rate":    {"write", "--find-max", "--rate", "5", "--duration", "1s"},
		"--table-prefix":           {"write", "--table-prefix", "a-b"},
		"--html":                   {"write", "--html", filepath.Join("no", "such", "folder.html")},
		"--sync":                   {"write", "--sync", "often"},
		"two results, not 1":       {"compare", "a"},
		"read a.json: no such":     {"compare", "a.json", "b.json"},
		"--alpha 0: want 0.002 to": {"compare", "a", "b", "--alpha", "0"},
	} {
		_, stderr, code := runBinary(t, append([]string{"bench"}, append(args, "-q")...)...)
		if args[0] == "compare" {
			_, stderr, code = runBinary(t, append([]string{"bench"}, args...)...)
		}
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, %q; want 2 and a line about %s", args, code, stderr, want)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestALoadLeavesItsPageInTheRunFolder(t *testing.T) {
	dir := t.TempDir()
	csv, run := filepath.Join(dir, "a.csv"), filepath.Join(dir, "run")
	if err := os.WriteFile(csv, []byte("id,v\n1,a\n2,b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, stderr, code := runBinary(t, "load", csv, "--table", "t", "--pk", "id", "--store", filepath.Join(dir, "store"), "--run-dir", run)
		if code != 0 || !strings.Contains(stderr, "report.html") {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
	}
	for _, path := range []string{filepath.Join(run, "report.html"), filepath.Join(run, "attempt-1", "report.html")} {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "Load into t") {
			t.Errorf("%s: %v, %d bytes", path, err, len(text))
		}
	}
}
