package spread

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

func integers(values ...int64) *sample {
	s := newSample(1, maxSample)
	for _, v := range values {
		s.add(table.Value{Type: table.Integer, Int: v})
	}
	return s
}

func TestEvenValuesAreCutIntoEqualPartitions(t *testing.T) {
	s := integers()
	for i := range int64(1000) {
		for range 20 {
			s.add(table.Value{Type: table.Integer, Int: -i})
		}
	}
	bounds, parts := s.cuts(8)
	if len(bounds) != 7 || len(parts) != 8 {
		t.Fatalf("%d bounds, %d parts", len(bounds), len(parts))
	}
	for i, n := range parts {
		conformance.Equal(t, n, 2500, "partition %d: rows", i)
	}
	conformance.Equal(t, bounds[0].Int, -874, "the second partition begins")
	if got := cutNotes(parts, 8); got != nil {
		t.Errorf("notes about even partitions: %v", got)
	}
}

func TestFewOrSkewedValuesGiveFewerPartitionsAndAWord(t *testing.T) {
	for _, test := range []struct {
		values, bounds []int64
		note           string
	}{
		{nil, nil, "too few"},
		{[]int64{7, 7, 7, 7}, nil, "too few"},
		{[]int64{1, 2}, []int64{2}, "too few"},
		{[]int64{1, 9, 9, 9, 9, 9, 9, 9, 9, 9}, []int64{9}, "too few"},
		{[]int64{1, 1, 1, 1, 1, 1, 2, 3, 4}, []int64{2, 3, 4}, "uneven"},
	} {
		bounds, parts := integers(test.values...).cuts(4)
		var got []int64
		for _, b := range bounds {
			got = append(got, b.Int)
		}
		conformance.Same(t, got, test.bounds, "cuts of %v", test.values)
		conformance.Contains(t, strings.Join(cutNotes(parts, 4), "; "), test.note, "%v: notes", test.values)
	}
}

func TestCutsRiseAndTheirPartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.StringMatching(`[ab]{0,3}`)).Draw(t, "values")
		n := rapid.IntRange(1, 40).Draw(t, "n")
		s := newSample(1, maxSample)
		for _, v := range values {
			s.add(table.Value{Type: table.String, Bytes: []byte(v)})
		}
		bounds, parts := s.cuts(n)
		if len(bounds) >= n || len(parts) != len(bounds)+1 {
			t.Fatalf("%d bounds and %d parts for %d partitions", len(bounds), len(parts), n)
		}
		for i, part := range parts {
			count := 0
			for _, v := range s.values {
				if (i == 0 || compareKeys(v, bounds[i-1]) >= 0) && (i == len(bounds) || compareKeys(v, bounds[i]) < 0) {
					count++
				}
			}
			if count != part || count == 0 && len(values) > 0 {
				t.Fatalf("part %d of %v at %v holds %d rows, said to be %d", i, values, bounds, count, part)
			}
		}
	})
}

func TestASampleKeepsItsSizeAndTakesFromEverywhere(t *testing.T) {
	s := newSample(1, 1000)
	for i := range int64(100_000) {
		s.add(table.Value{Type: table.Integer, Int: i})
	}
	late := 0
	for _, v := range s.values {
		if v.Int >= 50_000 {
			late++
		}
	}
	if len(s.values) != 1000 || late < 400 || late > 600 {
		t.Errorf("%d values, %d of the second half; want 1000 and about 500", len(s.values), late)
	}
}

func TestKeysAreReadable(t *testing.T) {
	for raw, want := range map[string]string{"null": "-inf", "": "-inf", "-5": "-5", `"a\"b"`: `a"b`, `{"binary":"AA=="}`: `{"binary":"AA=="}`} {
		conformance.Equal(t, keyText([]byte(raw)), want, "%s", raw)
	}
}
