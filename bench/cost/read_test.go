package cost

import (
	"errors"
	"slices"
	"testing"

	"tsimport/bench"
)

func TestEachMeasurementHasAFloorOfItsOwn(t *testing.T) {
	f := Floor{CSV: 1, Encode: 10, MD5: 100, AnswerMD5: 1000, Decode: 10_000, File: 100_000}
	for what, want := range map[string]float64{Loading: 111, Scanning: 11_000, Exporting: 11_000, Verifying: 11_001, Copying: 11_110, Counting: 100_000, Checking: 100_000} {
		if got := f.sum(what); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		if !slices.Contains(Whats, what) {
			t.Errorf("%s is not among %v", what, Whats)
		}
	}
}

func TestRowsToReadAreThoseOfTheInput(t *testing.T) {
	for _, shape := range append(bench.Shapes(), bench.OddShapes()...) {
		stored, err := StoredRows(shape, 12)
		if err != nil {
			t.Fatalf("shape %s: %v", shape.Name, err)
		}
		rows := 0
		stored.Pages(func(_ []byte, n int) { rows += n })
		if rows != 12 {
			t.Errorf("shape %s: %d rows, want 12", shape.Name, rows)
		}
	}
}

func TestOnlyTheToolReads(t *testing.T) {
	for _, c := range []Config{{What: "delete"}, {What: Exporting, Command: "true"}, {What: Copying, Only: []string{"workers"}}} {
		c.Rows, c.Rounds, c.Shape = 1, 1, bench.Shapes()[0]
		var usage *UsageError
		if _, err := Run(t.Context(), c); !errors.As(err, &usage) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	c := Config{What: Scanning}
	if loads, err := c.loads(); err != nil || !slices.Equal(loads, []string{Tool}) {
		t.Errorf("%v, %v", loads, err)
	}
}
