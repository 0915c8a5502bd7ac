package advise

import (
	"bytes"
	"cmp"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCodesNeverTurnTheOrderOfTextsAround(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 12), 0, 20)
		sample, a, b := texts.Draw(t, "sample"), rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "a"), rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "b")
		for _, generous := range []bool{true, false} {
			book := buildCodebook(sample, generous)
			if got, want := cmp.Compare(book.code(a), book.code(b)), bytes.Compare(a, b); got != 0 && got != want {
				t.Fatalf("%q and %q are in order %d, their codes in order %d", a, b, want, got)
			}
		}
	})
}

func TestCodesDistinguishSecondsOfDaysOutsideTheSample(t *testing.T) {
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	text := func(at time.Time) []byte { return at.AppendFormat(nil, time.RFC3339) }
	var sample [][]byte
	for i := range 3600 {
		sample = append(sample, text(start.Add(time.Duration(i)*time.Second)))
	}
	book := newCodebook(sample)
	for _, later := range []time.Duration{0, 26 * time.Hour, 400 * 24 * time.Hour} {
		if a, b := book.code(text(start.Add(later))), book.code(text(start.Add(later+time.Second))); a >= b {
			t.Errorf("after %v: the code of the next second is %d, after %d", later, b, a)
		}
	}
}

func TestCodesLookPastALongSharedPrefix(t *testing.T) {
	var sample [][]byte
	for i := range 1000 {
		sample = append(sample, fmt.Appendf(nil, "https://shop.example.com/item/%04d", i))
	}
	book := newCodebook(sample)
	seen := map[uint64]bool{}
	for _, text := range sample {
		seen[book.code(text)] = true
	}
	if len(seen) != len(sample) {
		t.Errorf("%d texts have %d codes", len(sample), len(seen))
	}
}
