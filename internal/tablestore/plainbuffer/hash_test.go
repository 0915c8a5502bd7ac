package plainbuffer

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"tsimport/internal/table"
)

// Values that look alike, and texts that differ in a bit, in their length or by a swap, have different hashes. By chance two of these
// would have the same in one of 10⁹ runs.
func TestDifferentCellsHaveDifferentHashes(t *testing.T) {
	h := NewHasher()
	of := map[uint64]string{}
	cells := 0
	add := func(column string, v table.Value) {
		t.Helper()
		what, hash := fmt.Sprintf("%s: %+v", column, v), h.Cell(h.Column(column), &v)
		if before, known := of[hash]; known {
			t.Fatalf("%s and %s have the hash %x", before, what, hash)
		}
		of[hash] = what
		cells++
	}
	for _, column := range []string{"", "a", "b"} {
		for _, kind := range []table.Type{table.String, table.Binary} {
			for n := range 100 {
				text := bytes.Repeat([]byte{0}, n)
				add(column, table.Value{Type: kind, Bytes: bytes.Clone(text)})
				for bit := range 8 * n {
					text[bit/8] ^= 1 << (bit % 8)
					add(column, table.Value{Type: kind, Bytes: bytes.Clone(text)})
					text[bit/8] ^= 1 << (bit % 8)
				}
			}
		}
		for n := range int64(1000) {
			add(column, table.Value{Type: table.Integer, Int: n - 500})
			add(column, table.Value{Type: table.Double, Double: math.Float64frombits(uint64(n - 500))})
		}
		for n := range int64(2) {
			add(column, table.Value{Type: table.Boolean, Int: n})
		}
	}
	if cells < 50_000 {
		t.Errorf("%d cells", cells)
	}
}

// A sum is not blind to values that change places, or by which two columns differ in opposite ways.
func TestSumsTellColumnsApart(t *testing.T) {
	h := NewHasher()
	integer := func(n int64) *table.Value { return &table.Value{Type: table.Integer, Int: n} }
	a, b := h.Column("a"), h.Column("b")
	seen := map[uint64][2]int64{}
	for x := range int64(300) {
		for y := range int64(300) {
			sum := h.Cell(a, integer(x)) + h.Cell(b, integer(y))
			if before, known := seen[sum]; known {
				t.Fatalf("%d and %d have the sum of %v", x, y, before)
			}
			seen[sum] = [2]int64{x, y}
		}
	}
}

func BenchmarkHasher(b *testing.B) {
	h := NewHasher()
	column := h.Column("a")
	for _, n := range []int{5, 12, 30, 60, 64, 100, 1000} {
		v := table.Value{Type: table.String, Bytes: bytes.Repeat([]byte("x"), n)}
		b.Run(fmt.Sprint(n, " bytes"), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				h.Cell(column, &v)
			}
		})
	}
}
