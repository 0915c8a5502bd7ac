package partitioner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

// feed adds rows whose partition key pick chooses, each with a second column of its own.
func feed(h *HotKeys, rows int, pick func(i int) table.Value) {
	var key []byte
	for i := range rows {
		key = table.AppendKey(key[:0], pick(i))
		h.Add(table.AppendKey(key, integer(int64(i))))
	}
}

func TestHotValuesAreFoundWithTheirShares(t *testing.T) {
	for _, rows := range []int{2_000, 20_000, 300_000} {
		for _, order := range []string{"shuffled", "hot first", "hot last", "periodic"} {
			r := rand.New(rand.NewPCG(uint64(rows), 7))
			h := NewHotKeys(table.String)
			feed(h, rows, func(i int) table.Value {
				place := (float64(i) + 0.5) / float64(rows)
				switch order {
				case "shuffled":
					place = r.Float64()
				case "hot last":
					place = 1 - place
				case "periodic":
					place = (float64(i%64) + 0.5) / 64
				}
				switch {
				case place < 0.25:
					return text("hot")
				case place < 0.375:
					return text("warm\x00") // with a zero byte
				}
				return text(fmt.Sprint("cold ", r.IntN(1_000_000)))
			})
			hot := h.Report(32)
			if len(hot) != 2 || string(hot[0].Value.Bytes) != "hot" || string(hot[1].Value.Bytes) != "warm\x00" {
				t.Errorf("%d rows, %s: %v", rows, order, hot)
				continue
			}
			for i, want := range []float64{0.25, 0.125} {
				if math.Abs(hot[i].Share-want) > 0.03 {
					t.Errorf("%d rows, %s: %s has share %.3f, want %.3f", rows, order, hot[i].Value.Bytes, hot[i].Share, want)
				}
			}
		}
	}
}

// TestRowsAreSampledAlikeOneByOneAndTogether counts the same rows in both ways.
func TestRowsAreSampledAlikeOneByOneAndTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	keys := make([][]byte, 60_000)
	for i := range keys {
		keys[i] = table.AppendKey(nil, integer(int64(r.ExpFloat64()*3)))
	}
	one, all := NewHotKeys(table.Integer), NewHotKeys(table.Integer)
	for rest := keys; len(rest) > 0; {
		some := rest[:min(len(rest), r.IntN(300))]
		rest = rest[len(some):]
		for _, key := range some {
			one.Add(key)
		}
		all.AddAll(len(some), func(i int) []byte { return some[i] })
		if one.rows != all.rows || one.skip != all.skip {
			t.Fatalf("with %d rows left: the samples stand for %d and %d rows, and %d and %d are passed over", len(rest), one.rows, all.rows, one.skip, all.skip)
		}
	}
	if got, want := all.Report(32), one.Report(32); len(want) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("together %v, one by one %v", got, want)
	}
}

func TestEvenKeysAreNotHot(t *testing.T) {
	for _, values := range []int{40, 300, 100_000, math.MaxInt} {
		r := rand.New(rand.NewPCG(1, 7))
		h := NewHotKeys(table.Integer)
		feed(h, 200_000, func(int) table.Value { return integer(int64(r.IntN(values)) - 20) })
		for _, lanes := range []int{0, 1, 2, 10} {
			if hot := h.Report(lanes); len(hot) > 0 {
				t.Errorf("%d values, %d lanes: %v", values, lanes, hot)
			}
		}
	}
}

func TestHotKeysDependOnTheLanes(t *testing.T) {
	h := NewHotKeys(table.Integer)
	feed(h, 100_000, func(i int) table.Value { // 25 values of about 4 % each, but −1 has a third more of them all
		if i%4 == 0 {
			return integer(-1)
		}
		return integer(int64(i % 25))
	})
	for lanes, want := range map[int]int{1: 1, 2: 0, 4: 0, 7: 1, 32: 1, 75: 10, 1000: 10} {
		hot := h.Report(lanes)
		conformance.Equal(t, len(hot), want, "%d lanes: hot values", lanes)
		if len(hot) > 0 && hot[0].Value.Int != -1 {
			t.Errorf("%d lanes: the hottest is %v", lanes, hot[0].Value)
		}
		for i := 1; i < len(hot); i++ {
			if hot[i].Share > hot[i-1].Share {
				t.Errorf("%d lanes: not the most first: %v", lanes, hot)
			}
		}
	}
}

func TestFewRowsGiveNoHotKeys(t *testing.T) {
	h := NewHotKeys(table.Integer)
	feed(h, minRows-1, func(int) table.Value { return integer(1) })
	if got := h.Report(1); got != nil {
		t.Errorf("%d rows: %v", minRows-1, got)
	}
	feed(h, 1, func(int) table.Value { return integer(1) })
	if hot := h.Report(1); len(hot) != 1 || hot[0].Share != 1 {
		t.Errorf("%d rows of one value: %v", minRows, hot)
	}
}

func TestInvalidKeysAreNotCounted(t *testing.T) {
	for _, kind := range []table.Type{table.Integer, table.String} {
		h := NewHotKeys(kind)
		for range 2 * minRows {
			h.Add(nil)
			h.Add([]byte{'a', 0})
		}
		if got := h.Report(1); got != nil {
			t.Errorf("report: %v", got)
		}
	}
}

func TestAFewRowsOfOneValueInAWholeInputAreReported(t *testing.T) {
	for _, tt := range []struct{ rows, values, want int }{{199, 1, 0}, {200, 1, 1}, {999, 1, 1}, {2000, 1, 1}, {500, 2, 0}, {2000, 2, 2}} {
		h := NewHotKeys(table.Integer)
		feed(h, tt.rows, func(i int) table.Value { return integer(int64(i % tt.values)) })
		if hot := h.ReportWhole(); len(hot) != tt.want || tt.values == 1 && tt.want == 1 && hot[0].Share != 1 {
			t.Errorf("%+v: %v", tt, hot)
		}
	}
}
