package bench

import (
	"fmt"
	"slices"
	"testing"
)

// taken returns n keys as text.
func taken(t *testing.T, kind KeyKind, rows, seed uint64, n int) (keys []string, first map[int64]int) {
	t.Helper()
	k, err := NewKeys(kind, rows, seed)
	must(t, err)
	first = map[int64]int{}
	var integers []int64
	var text []byte
	for range n {
		integers, text = k.Next(integers, text)
		if len(integers) != len(k.Columns()) {
			t.Fatalf("%s: %d values for %d columns", kind, len(integers), len(k.Columns()))
		}
		keys = append(keys, fmt.Sprintf("%v %s", integers, text))
		first[integers[0]]++
	}
	return keys, first
}

var kinds = []KeyKind{RandomKeys, SequentialKeys, ZipfKeys, StudentCardKeys}

func TestNoTwoKeysAreAlikeAndTheSeedDecidesThem(t *testing.T) {
	for _, kind := range kinds {
		keys, _ := taken(t, kind, 5000, 1, 20000) // more than was said
		again, _ := taken(t, kind, 5000, 1, 20000)
		if !slices.Equal(keys, again) {
			t.Errorf("%s: the same seed gives other keys", kind)
		}
		other, _ := taken(t, kind, 5000, 2, 20000)
		if kind != SequentialKeys && slices.Equal(keys, other) {
			t.Errorf("%s: another seed gives the same keys", kind)
		}
		slices.Sort(keys)
		if n := len(slices.Compact(keys)); n != 20000 {
			t.Errorf("%s: %d different keys of 20000", kind, n)
		}
	}
	if _, err := NewKeys("sorted", 1, 1); err == nil {
		t.Error("keys of no kind are made")
	}
}

func TestKeysSpreadAsTheirKindSays(t *testing.T) {
	const n = 20000
	most := func(kind KeyKind) int {
		_, first := taken(t, kind, n, 1, n)
		most := 0
		for _, count := range first {
			most = max(most, count)
		}
		return most
	}
	if m := most(ZipfKeys); m < n/12 || m > n/6 {
		t.Errorf("zipf: the most frequent value has %d of %d rows, want about an eighth", m, n)
	}
	if m := most(RandomKeys); m != 1 {
		t.Errorf("random: a value has %d rows", m)
	}
	if m := most(StudentCardKeys); m != purchasesByCard {
		t.Errorf("student cards: a card has %d purchases, want %d", m, purchasesByCard)
	}
	keys, first := taken(t, RandomKeys, n, 1, n)
	low := 0
	for k := range first {
		if k < 0 {
			low++
		}
	}
	if low < n*45/100 || low > n*55/100 {
		t.Errorf("random: %d of %d keys in the lower half", low, len(keys))
	}
}
