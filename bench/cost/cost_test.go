package cost

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/pipeline/plan"
)

var must = conformance.Must

func TestTheFloorIsMeasuredWithTheRowsOfTheShape(t *testing.T) {
	for _, shape := range bench.Shapes() {
		file := filepath.Join(t.TempDir(), "rows.csv")
		out, err := os.Create(file)
		must(t, err)
		must(t, shape.WriteCSV(t.Context(), out, 500, 1))
		out.Close()
		samples, err := gather(file, shape, 500)
		must(t, err)
		f, err := samples.measure(Counting, 0, cpuTime)
		must(t, err)
		for stage, took := range map[string]float64{"CSV": f.CSV, "encoding": f.Encode, "MD5": f.MD5, "MD5 of answers": f.AnswerMD5, "decoding": f.Decode, "the file": f.File, "answers' bytes": f.AnswerBytes} {
			if took <= 0 {
				t.Errorf("shape %s: %s has %v", shape.Name, stage, took)
			}
		}
		if shape.Name == "3" {
			f, err = measureFloor(file, shape, 500, Loading)
			if err != nil || math.Abs(f.Sum-f.CSV-f.Encode-f.MD5) > 1e-9 {
				t.Errorf("shape %s: %+v, %v", shape.Name, f, err)
			}
			if busy, err := samples.measureBusy(Loading, 0, 2); threadTime() > 0 && (err != nil || busy <= 0) {
				t.Errorf("shape %s: %v while two threads measure, %v", shape.Name, busy, err)
			}
		}
		if shape.Name == "12" && math.Abs(f.WireBytes-414) > 0.5 {
			t.Errorf("a row of 12 columns has %v bytes on the wire, want 414", f.WireBytes)
		}
	}
}

func TestAFileThatIsMissingHasNoFloor(t *testing.T) {
	if _, err := measureFloor("missing", bench.Shapes()[1], 10, Counting); err == nil {
		t.Error("a missing file: no error")
	}
}

func TestTheMedianRoundCounts(t *testing.T) {
	r := &Report{Loads: map[string]*Load{}, order: []string{Tool, "sequential", "workers"}}
	floors := []Floor{{Sum: 1}, {Sum: 2}, {Sum: 3}}
	r.finish(floors, map[string][]Load{
		Tool:         {{CPUPerRow: 2, Requests: 7}, {CPUPerRow: 9}, {CPUPerRow: 1}},
		"sequential": {{CPUPerRow: 20}, {CPUPerRow: 20}, {CPUPerRow: 20}},
		"workers":    {{CPUPerRow: 10}, {CPUPerRow: 12}, {CPUPerRow: 14}},
	})
	tool := r.Loads[Tool]
	if tool.CPUPerRow != 2 || tool.Requests != 7 || tool.OfFloor != 2 { // 2/1, 9/2, 1/3
		t.Errorf("%+v", tool)
	}
	if r.Floor.Sum != 2 || r.BestBaseline != "workers" || r.TimesCheaper != 6 {
		t.Errorf("%+v", r)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "workers takes 6.0 times the CPU of tsimport") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}

func TestBadMeasurementsAreRefused(t *testing.T) {
	good := Config{Rows: 1, Rounds: 1, Shape: bench.Shapes()[0]}
	for name, spoil := range map[string]func(*Config){
		"no rows":         func(c *Config) { c.Rows = 0 },
		"too many rows":   func(c *Config) { c.Rows = 1e9 },
		"no round":        func(c *Config) { c.Rounds = 0 },
		"a latency below": func(c *Config) { c.Latency = -1 },
		"another load":    func(c *Config) { c.Only = []string{"spark"} },
		"no command":      func(c *Config) { c.Only = []string{External} },
	} {
		c := good
		spoil(&c)
		if _, err := Run(t.Context(), c); !errors.As(err, new(*plan.UsageError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	conformance.Equal(t, good.check(), nil, "check")
	c := good
	c.Binary, c.Dir = filepath.Join(t.TempDir(), "missing"), t.TempDir()
	_, err := Run(t.Context(), c)
	conformance.Refused(t, err, "start null server", "a missing binary")
}

func TestEachMeasurementHasAFloorOfItsOwn(t *testing.T) {
	f := Floor{CSV: 1, Encode: 10, MD5: 100, AnswerMD5: 1000, Decode: 10_000, File: 100_000}
	for what, want := range map[string]float64{Loading: 111, Scanning: 11_000, Exporting: 11_000, Verifying: 11_001, Copying: 11_110, Counting: 100_000, Checking: 100_000} {
		conformance.Equal(t, f.sum(what), want, "%s", what)
		conformance.Equal(t, slices.Contains(Whats, what), true, "%s is not among %v", what, Whats)
	}
}

func TestRowsToReadAreThoseOfTheInput(t *testing.T) {
	for _, shape := range append(bench.Shapes(), bench.OddShapes()...) {
		stored, err := StoredRows(shape, 12)
		conformance.MustEqual(t, err, nil, "shape %s", shape.Name)
		rows := 0
		stored.Pages(func(_ []byte, n int) { rows += n })
		conformance.Equal(t, rows, 12, "shape %s: rows", shape.Name)
	}
}

func TestOnlyTheToolReads(t *testing.T) {
	for _, c := range []Config{{What: "delete"}, {What: Exporting, Command: "true"}, {What: Copying, Only: []string{"workers"}}} {
		c.Rows, c.Rounds, c.Shape = 1, 1, bench.Shapes()[0]
		if _, err := Run(t.Context(), c); !errors.As(err, new(*plan.UsageError)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	c := Config{What: Scanning}
	if loads, err := c.loads(); err != nil || !slices.Equal(loads, []string{Tool}) {
		t.Errorf("%v, %v", loads, err)
	}
}
