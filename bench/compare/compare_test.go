package compare

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tsimport/bench/result"
)

func TestTheUTestMatchesKnownProbabilities(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		// Of 4 and 4 values in any order, 2 of the 70 ways keep the sides apart.
		{[]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 2.0 / 70},
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 2.0 / 20},
		{[]float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}, 2.0 / 252},
		{[]float64{1, 3, 5, 7}, []float64{2, 4, 6, 8}, 48.0 / 70}, // U = 6, at most 2 from the middle in 22 ways
		{[]float64{1}, []float64{2}, 1},
		{nil, []float64{2}, 1},
		{[]float64{5, 5, 5, 5}, []float64{5, 5, 5, 5}, 1},
		{[]float64{1, 2, 2, 3, 4, 5}, []float64{4, 5, 6, 7, 8, 9}, 10.0 / 924}, // of the 924 ways to deal these, equal ones among them
	} {
		if got := MannWhitney(c.a, c.b); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v and %v: p = %v, want %v", c.a, c.b, got, c.want)
		}
		if got := MannWhitney(c.b, c.a); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v and %v: p = %v the other way round, want %v", c.b, c.a, got, c.want)
		}
	}
}

// made is a result of so many seconds with about so many rows each and latencies about a mean.
func made(seconds int, rows, latency float64, seed uint64, shape func(second int, noise float64) float64) *result.Result {
	rng := rand.New(rand.NewPCG(seed, 7))
	rec := result.NewRecorder(2 * time.Second)
	slot := rec.Slot("", "")
	for s := range seconds + 2 {
		factor := shape(s, rng.NormFloat64())
		for i := range 50 {
			sent := time.Duration(s)*time.Second + time.Duration(i)*20*time.Millisecond
			took := time.Duration(latency * (1 + rng.ExpFloat64()/4) * float64(time.Millisecond))
			n := int(rows * factor / 50)
			rec.Add(&result.Sample{Intended: sent, Sent: sent, Done: sent + min(took, 19*time.Millisecond), Attempt: 1, Rows: n, Written: n, Units: int64(n), Bytes: int64(200 * n), Outcome: result.OK, Slot: slot, Last: true})
		}
	}
	r := rec.Result(time.Duration(seconds+2) * time.Second)
	r.Settings = result.Settings{Keys: "random", RowSize: 200, Columns: 5, BatchRows: 200, Concurrency: 32}
	return r
}

func steady(_ int, noise float64) float64 { return 1 + noise/20 }

func sideOf(name string, results ...*result.Result) *Side {
	s := &Side{Name: name}
	for _, r := range results {
		s.runs = append(s.runs, runOf(r))
	}
	return s
}

func metric(t *testing.T, c *Comparison, name string) Metric {
	t.Helper()
	for _, m := range c.Metrics {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("there is no %s in %+v", name, c.Metrics)
	return Metric{}
}

func TestADifferenceIsFoundWithItsDirection(t *testing.T) {
	a, b := made(60, 10000, 4, 1, steady), made(60, 11000, 3, 2, steady)
	c := Compare(sideOf("a", a), sideOf("b", b), .05)
	if m := metric(t, c, "rows/s"); m.Verdict != Better || m.P == nil || *m.P > 1e-6 || math.Abs(*m.Change-10) > 3 {
		t.Errorf("rows/s: %+v", m)
	}
	if m := metric(t, c, "p50 ms"); m.Verdict != Better || m.Low == nil || *m.Low > -20 || *m.High > -20 {
		t.Errorf("p50: %+v", m)
	}
	back := Compare(sideOf("b", b), sideOf("a", a), .05)
	for _, name := range []string{"rows/s", "p50 ms", "p99 ms"} {
		if m := metric(t, back, name); m.Verdict != Worse {
			t.Errorf("the other way round, %s: %+v", name, m)
		}
	}
}

func TestEqualRunsAreNotSignificant(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		c := Compare(sideOf("a", made(40, 10000, 4, 2*seed+10, steady)), sideOf("b", made(40, 10000, 4, 2*seed+11, steady)), .05)
		for _, name := range []string{"rows/s", "p50 ms"} {
			if v := metric(t, c, name).Verdict; v == Better || v == Worse {
				found++
			}
		}
	}
	if found > 6 { // 40 comparisons, one in twenty by chance
		t.Errorf("%d of 40 comparisons of like with like are called different", found)
	}
}

func TestSecondsThatMoveTogetherProveNothing(t *testing.T) {
	// A wave of 30 s, met at another time: every second counted alone would make it certain.
	wave := func(shift float64) func(int, float64) float64 {
		return func(s int, noise float64) float64 {
			return 1 + .3*math.Sin(2*math.Pi*(float64(s)+shift)/60) + noise/100
		}
	}
	a, b := made(30, 10000, 4, 1, wave(0)), made(30, 10000, 4, 2, wave(30))
	if p := MannWhitney(rates(oneByOne(a)), rates(oneByOne(b))); p > .001 {
		t.Fatalf("second by second p = %v; the example shows nothing", p)
	}
	c := Compare(sideOf("a", a), sideOf("b", b), .05)
	if m := metric(t, c, "rows/s"); m.Verdict != TooFew || m.P != nil {
		t.Errorf("rows/s: %+v; want too few", m)
	}
}

func oneByOne(r *result.Result) (blocks [][]result.Point) {
	for _, p := range seconds(r) {
		blocks = append(blocks, []result.Point{p})
	}
	return blocks
}

func TestTooFewSamplesNeverTellAnything(t *testing.T) {
	a, b := made(5, 1000, 2, 1, steady), made(5, 9000, 9, 2, steady)
	for name, c := range map[string]*Comparison{
		"short runs": Compare(sideOf("a", a), sideOf("b", b), .05),
		"three runs": Compare(sideOf("a", a, a, a), sideOf("b", b, b, b), .05),
		"one of one": Compare(sideOf("a", a), sideOf("b", b, b, b, b), .05),
	} {
		for _, m := range c.Metrics {
			if m.Verdict != TooFew {
				t.Errorf("%s: %s: %+v", name, m.Name, m)
			}
		}
	}
	// Enough seconds, but of the highest percentile only a handful of values.
	c := Compare(sideOf("a", made(40, 10000, 4, 1, steady)), sideOf("b", made(40, 10000, 8, 2, steady)), .05)
	if m := metric(t, c, "p99.99 ms"); m.Verdict != TooFew {
		t.Errorf("p99.99 of 2,000 requests: %+v", m)
	}
}

func TestRunsAreComparedRunByRun(t *testing.T) {
	var a, b []*result.Result
	for i := range uint64(5) {
		a, b = append(a, made(5, 10000, 4, i, steady)), append(b, made(5, 12000, 4, 100+i, steady))
	}
	c := Compare(sideOf("a", a...), sideOf("b", b...), .05)
	if m := metric(t, c, "rows/s"); m.Verdict != Better || m.P == nil || math.Abs(*m.P-2.0/252) > 1e-9 || c.By != "runs" {
		t.Errorf("by %s: %+v", c.By, m)
	}
}

func TestEveryFormatIsReadAndTheSameRunIsTheSame(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r := made(30, 10000, 4, 3, steady)
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	asJSON := write("a.json", string(text))
	var lines strings.Builder
	for range 4 {
		if err := r.WriteBenchmark(&lines); err != nil {
			t.Fatal(err)
		}
	}
	asLines := write("a.txt", lines.String())
	x, err := Read(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	y, err := Read(asLines)
	if err != nil {
		t.Fatal(err)
	}
	if len(y.runs) != 4 {
		t.Fatalf("%d runs of 4 lines", len(y.runs))
	}
	for _, name := range []string{"rows/s", "CU/s", "B/s", "p50 ms", "p99 ms"} {
		a, b := x.runs[0].values[name], y.runs[0].values[name]
		if a == 0 || math.Abs(a/b-1) > 1e-4 {
			t.Errorf("%s: %v of JSON, %v of lines", name, a, b)
		}
	}
	for _, m := range Compare(x, x, .05).Metrics {
		if m.Verdict != Same && m.Verdict != TooFew || m.A != m.B {
			t.Errorf("a run and itself: %+v", m)
		}
	}
	several, err := Read(asJSON + "," + asJSON)
	if err != nil || len(several.runs) != 2 {
		t.Errorf("%d runs, %v", len(several.runs), err)
	}
	for name, content := range map[string]string{
		"empty": "", "prose": "nothing here\n", "json": `{"rows": 1}`, "broken json": `{"rows": `, "two": "BenchmarkA 1 2 rows/s\nBenchmarkB 1 2 rows/s\n",
		"no number": "BenchmarkA 1 x rows/s\n", "samples": `{"format":"other"}`, "half samples": `{"format":"tsimport bench samples 1"}` + "\n" + `{"rows":1,"written":2}`,
	} {
		if _, err := Read(write("bad", content)); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want a line", name, err)
		}
	}
	if _, err := Read(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing file is read")
	}
}

func TestDifferentSettingsAreReported(t *testing.T) {
	a, b := made(20, 1000, 2, 1, steady), made(20, 1000, 2, 2, steady)
	b.Settings.Keys, b.Settings.RowSize = "zipf", 400
	c := Compare(sideOf("a", a), sideOf("b", b), .05)
	var text strings.Builder
	if err := c.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"keys, random in A and zipf in B", "bytes of a row, 200 in A and 400 in B", "rows/s", "p = "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if len(c.Settings) != 2 {
		t.Errorf("settings: %+v", c.Settings)
	}
}
