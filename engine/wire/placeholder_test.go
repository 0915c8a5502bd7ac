package wire

import (
	"testing"

	"example.com/tsimport/internal/conformance"
)

func pk(name string, typ ValueType, value ...byte) Cell {
	return Cell{Name: []byte(name), Type: typ, Value: value}
}

func TestBoundsSortAsTheirKeysDo(t *testing.T) {
	integer := func(n int64) Cell {
		c := Cell{Type: Integer}
		for i := range 8 {
			c.Value = append(c.Value, byte(uint64(n)>>(8*i)))
		}
		return c
	}
	for _, sorted := range [][]Cell{
		{{Type: InfMin}, integer(-1 << 63), integer(-1), integer(0), integer(1<<63 - 1), {Type: InfMax}},
		{{Type: InfMin}, pk("", String), pk("", String, 'a'), pk("", String, 'a', 0), pk("", String, 0xc3, 0xa9), {Type: InfMax}},
		{{Type: InfMin}, pk("", Binary, 0), pk("", Binary, 0, 1), pk("", Binary, 255), {Type: InfMax}},
	} {
		for i := range sorted {
			for j := range sorted {
				got, want := CompareBounds(&sorted[i], &sorted[j]), 0
				switch {
				case i < j:
					want = -1
				case i > j:
					want = 1
				}
				conformance.Equal(t, got, want, "%+v and %+v", sorted[i], sorted[j])
			}
		}
	}
}

// FuzzCreateTable looks for requests whose judging panics, or that pass with partitions that do not ascend.
func FuzzCreateTable(f *testing.F) {
	f.Add(unhex(f, vCreate))
	ranged := unhex(f, vCreate)
	for _, p := range [][]byte{{0x0a, 1, 9, 0x12, 6, 3, 1, 0, 0, 0, 'm'}, {0x0a, 6, 3, 1, 0, 0, 0, 'm', 0x12, 1, 10}} {
		ranged = append(append(ranged, 0x22, byte(len(p))), p...)
	}
	f.Add(ranged)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeCreateTable(b)
		if err != nil {
			return
		}
		if r.Check(true) != nil {
			return
		}
		if len(r.Bounds) >= MaxTablePartitions {
			t.Fatalf("%d bounds", len(r.Bounds))
		}
		for i := 1; i < len(r.Bounds); i++ {
			if CompareBounds(&r.Bounds[i-1], &r.Bounds[i]) >= 0 {
				t.Fatalf("bounds %+v", r.Bounds)
			}
		}
		for i := range r.Bounds {
			typ, value, rest, ok := ReadVariant(AppendVariant(nil, &r.Bounds[i]))
			if !ok || len(rest) > 0 || typ != r.Bounds[i].Type || string(value) != string(r.Bounds[i].Value) {
				t.Fatalf("bound %+v does not come back", r.Bounds[i])
			}
		}
	})
}
