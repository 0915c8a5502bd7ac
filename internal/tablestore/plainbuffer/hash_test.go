package plainbuffer

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"example.com/tsimport/internal/table"
)

// Values that look alike, and texts that differ in a bit, in their length or by a swap, have different hashes. By chance two of these
// would have the same in one of 10⁹ runs.
func TestDifferentCellsHaveDifferentHashes(t *testing.T) {
	h := NewHasher()
	type cell struct {
		column string
		value  table.Value
	}
	of := map[uint64]cell{}
	add := func(column string, v table.Value) {
		t.Helper()
		hash := h.Cell(h.Column(column), &v)
		if before, known := of[hash]; known {
			t.Fatalf("%+v and %s: %+v have the hash %x", before, column, v, hash)
		}
		of[hash] = cell{column, v}
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
	if len(of) < 50_000 {
		t.Errorf("%d cells", len(of))
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

// BenchmarkSplit goes over rows of 12 columns with sums.
func BenchmarkSplit(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	id := NewName("id")
	var names []Name
	for _, n := range []string{"user", "created", "count", "price", "mass", "status", "city", "product", "note", "device", "currency"} {
		names = append(names, NewName(n))
	}
	var text []byte
	const rows = 1000
	for n := range rows {
		var row Row
		row.Begin(nil)
		row.Key(&id, table.Value{Type: table.Integer, Int: int64(n)})
		for i := range names {
			v := table.Value{Type: table.Integer, Int: r.Int64N(1e12)}
			switch {
			case i > 4:
				v = table.Value{Type: table.String, Bytes: bytes.Repeat([]byte{'a' + byte(r.IntN(26))}, 3+r.IntN(30))}
			case i > 2:
				v = table.Value{Type: table.Double, Double: float64(r.Int64N(1e6)) / 100}
			}
			row.CellAt(&names[i], v, 1700000000000)
		}
		made := row.End()
		if n > 0 {
			made = WithoutHeader(made)
		}
		text = append(text, made...)
	}
	reader := RowReader{Hasher: NewHasher()}
	var to Rows
	for b.Loop() {
		if plain, err := reader.Split(text, &to); !plain || err != nil {
			b.Fatal(plain, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}
