package plainbuffer

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

// drawnCell is a cell of a row that encoded builds, with a placeholder or a value in its key. stamp, if not negative,
// is the timestamp of the cells that put a value and have none.
type drawnCell struct {
	name  string
	kind  int
	value table.Value
	stamp int64
}

func encoded(cells []drawnCell, auto bool, stamp int64, mark string) []byte {
	var r Row
	r.Begin(nil)
	user, seq := NewName("user"), NewName("seq")
	r.Key(&user, table.Value{Type: table.String, Bytes: []byte("u")})
	if auto {
		r.KeyAutoIncrement(&seq)
	} else {
		r.Key(&seq, table.Value{Type: table.Integer, Int: -7})
	}
	for _, c := range cells {
		n := NewName(c.name)
		switch {
		case c.kind == 0 && stamp >= 0:
			r.CellAt(&n, c.value, stamp)
		case c.kind == 0:
			r.Cell(&n, c.value)
		case c.kind == 1:
			r.CellAt(&n, c.value, c.stamp)
		case c.kind == 2:
			r.DeleteColumn(&n)
		case c.kind == 3:
			r.DeleteVersion(&n, c.stamp)
		default:
			r.Increment(&n, 4)
		}
	}
	if mark != "" {
		n := NewName("_mark")
		r.Cell(&n, table.Value{Type: table.String, Bytes: []byte(mark)})
	}
	return r.End()
}

func drawCells(t *rapid.T, kinds int) (cells []drawnCell) {
	for range rapid.IntRange(0, 6).Draw(t, "cells") {
		c := drawnCell{name: rapid.StringN(1, 5, 20).Draw(t, "name"), kind: rapid.IntRange(0, kinds-1).Draw(t, "kind"),
			stamp: rapid.Int64Range(0, 1<<50).Draw(t, "stamp")}
		switch rapid.IntRange(0, 3).Draw(t, "type") {
		case 0:
			c.value = table.Value{Type: table.Integer, Int: rapid.Int64().Draw(t, "integer")}
		case 1:
			c.value = table.Value{Type: table.Boolean, Int: 1}
		case 2:
			c.value = table.Value{Type: table.Double, Double: 1.5}
		default:
			c.value = table.Value{Type: table.Binary, Bytes: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "binary")}
		}
		cells = append(cells, c)
	}
	return cells
}

func TestAddedCellEqualsEncodedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, auto := drawCells(t, 2), rapid.Bool().Draw(t, "auto")
		n := NewName("_mark")
		got, err := AppendWithCell([]byte("x"), encoded(cells, auto, -1, ""), &n, str("m"))
		want := append([]byte("x"), encoded(cells, auto, -1, "m")...)
		conformance.MustTrue(t, err == nil && bytes.Equal(got, want), "got %x, %v; want %x", got, err, want)
	})
}

func TestRemovingAddedCellRestoresRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, auto := drawCells(t, 5), rapid.Bool().Draw(t, "auto")
		plain := encoded(cells, auto, -1, "")
		n := NewName("#it")
		with, err := AppendWithCell(nil, plain, &n, bin(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "added")...))
		conformance.Must(t, err)
		for _, row := range [][]byte{with, plain} {
			got, err := AppendWithout([]byte("x"), row, "#it")
			conformance.MustTrue(t, err == nil && bytes.Equal(got, append([]byte("x"), plain...)), "%x, %v: %x", got, err, plain)
		}
	})
}

func TestStampedRowEqualsEncodedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, auto := drawCells(t, 5), rapid.Bool().Draw(t, "auto")
		plain := encoded(cells, auto, -1, "")
		got, err := AppendStamped([]byte("x"), plain, 1700000000123)
		conformance.MustEqual(t, len(got)-1-len(plain), StampBytes(plain), "bytes longer")
		want := append([]byte("x"), encoded(cells, auto, 1700000000123, "")...)
		conformance.MustTrue(t, err == nil && bytes.Equal(got, want), "got %x, %v; want %x", got, err, want)
	})
}

func TestMalformedRowIsNotAnnotated(t *testing.T) {
	row := encoded([]drawnCell{{name: "a", value: table.Value{Type: table.Integer}}}, true, -1, "")
	n := NewName("m")
	for cut := range row {
		got, err := AppendStamped([]byte("x"), row[:cut], 1)
		conformance.True(t, err != nil && string(got[:1]) == "x", "the first %d bytes are stamped", cut)
		conformance.Refused(t, conformance.ErrorOf(AppendWithout(nil, row[:cut], "m")), "", "a row cut at %d is taken", cut)
		conformance.Refused(t, conformance.ErrorOf(AppendWithCell(nil, row[:cut], &n, num(0))), "", "cut at %d", cut)
	}
	var r Row
	r.Begin(nil)
	r.Key(&n, table.Value{Type: table.Integer})
	conformance.Refused(t, conformance.ErrorOf(AppendStamped(nil, r.EndDelete(), 1)), "", "a delete is stamped")
}

// Similar values, and texts that differ by a bit, in their length or by a swap, have different hashes. A chance
// collision occurs in one of 10⁹ runs.
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
		before, known := of[hash]
		conformance.MustTrue(t, !known, "%+v and %s: %+v have the hash %x", before, column, v, hash)
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
	conformance.True(t, len(of) >= 50_000, "%d cells", len(of))
}

// A sum detects values that change places, and opposite changes in two columns.
func TestSumsDistinguishColumns(t *testing.T) {
	h := NewHasher()
	integer := func(n int64) *table.Value { return &table.Value{Type: table.Integer, Int: n} }
	a, b := h.Column("a"), h.Column("b")
	seen := map[uint64][2]int64{}
	for x := range int64(300) {
		for y := range int64(300) {
			sum := h.Cell(a, integer(x)) + h.Cell(b, integer(y))
			before, known := seen[sum]
			conformance.MustTrue(t, !known, "%d and %d have the sum of %v", x, y, before)
			seen[sum] = [2]int64{x, y}
		}
	}
}
