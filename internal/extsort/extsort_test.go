package extsort

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/spill"
)

type pair struct{ key, value string }

func sorted(t testing.TB, o Options, items []pair) *Sorted {
	t.Helper()
	s := conformance.Try(New(o)).Must(t)
	for _, p := range items {
		conformance.Must(t, s.Add([]byte(p.key), []byte(p.value)))
	}
	return conformance.Try(s.Sort()).Must(t)
}

func all(t testing.TB, it *Iterator) (got []pair) {
	t.Helper()
	alone := false
	for it.Next() {
		p := pair{string(it.Key()), string(it.Value())}
		conformance.MustTrue(t, !alone || p.key != got[len(got)-1].key, "%x is alone, and the next has it too", p.key)
		got, alone = append(got, p), it.Alone()
	}
	conformance.Must(t, it.Err())
	return got
}

func inOrder(items []pair) []pair {
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b pair) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value)) })
	return items
}

func TestSortingOnDiskEqualsMemory(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pair {
			return pair{string(rapid.SliceOfN(rapid.ByteRange(0, 3), 0, 12).Draw(t, "k")), rapid.StringN(0, 4, 8).Draw(t, "v")}
		}), 0, 60).Draw(rt, "items")
		var items []pair // enough for many runs, some of them merged twice
		for n := range rapid.SampledFrom([]int{1, 30, 60}).Draw(rt, "times") {
			for _, p := range seed {
				items = append(items, pair{p.key + fmt.Sprint(n%7), p.value})
			}
		}
		want := inOrder(items)
		o := Options{Memory: 1, Spill: spill.Options{Dir: dir}}
		for _, memory := range []int64{1, 0} {
			o.Memory = memory
			s := sorted(t, o, items)
			got := all(t, s.Range(nil, nil))
			conformance.MustTrue(rt, slices.Equal(got, want), "memory %d: %d items came out as %d", memory, len(want), len(got))
			if s.Len() != int64(len(items)) || memory == 1 && len(items) > 1000 && s.Spilled() != s.Len() {
				rt.Fatalf("%d items, %d on disk, of %d", s.Len(), s.Spilled(), len(items))
			}
			// The ranges between the cuts hold all items.
			var parts []pair
			var from []byte
			for _, cut := range append(s.Cuts(rapid.IntRange(1, 9).Draw(rt, "parts")), nil) {
				conformance.MustTrue(rt, from == nil || cut == nil || bytes.Compare(from, cut) < 0, "%x comes after %x", cut, from)
				parts = append(parts, all(t, s.Range(from, cut))...)
				from = cut
			}
			conformance.MustTrue(rt, slices.Equal(parts, want), "memory %d: the parts are not the whole", memory)
			conformance.Must(rt, s.Close())
		}
	})
}

func TestManyRunsAreMergedBeforeReading(t *testing.T) {
	var items []pair
	for i := range 20_000 {
		var key [8]byte
		binary.BigEndian.PutUint64(key[:], uint64(i)*7919%20_000)
		items = append(items, pair{string(key[:]), "a value of some length"})
	}
	s := sorted(t, Options{Memory: 8 << 10, Spill: spill.Options{Dir: t.TempDir()}}, items)
	defer s.Close()
	n := len(s.runs)
	conformance.True(t, n <= minFanIn, "%d runs are read at a time", n)
	conformance.Same(t, all(t, s.Range(nil, nil)), inOrder(items), "the items came out in another order")
	u := s.Usage()
	conformance.True(t, u.DiskBytes <= 2*u.RawBytes+1<<20, "%+v: merged runs are not freed", u)
}

func TestFullDiskIsAnError(t *testing.T) {
	s, err := New(Options{Memory: 1, Spill: spill.Options{Dir: t.TempDir(), MaxBytes: 8 << 10}})
	conformance.Must(t, err)
	defer s.Close()
	for i := range 100_000 {
		var value [64]byte
		binary.BigEndian.PutUint64(value[:], uint64(i)*0x9e3779b97f4a7c15)
		if err = s.Add(value[:8], value[:]); err != nil {
			break
		}
	}
	conformance.Refused(t, err, "", "more was kept than the limit allows")
}
