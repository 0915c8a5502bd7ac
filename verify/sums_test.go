package verify

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/plainbuffer"
)

// TestRowsAsTheyCameAreJudgedAsTheirCells: rows that the table delivers are compared by their bytes first, and cell by cell only where
// these differ. The two must agree of values that print alike, of any order of the columns and any timestamps.
func TestRowsAsTheyCameAreJudgedAsTheirCells(t *testing.T) {
	text := func(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }
	bin := func(s string) table.Value { return table.Value{Type: table.Binary, Bytes: []byte(s)} }
	double := func(d float64) table.Value { return table.Value{Type: table.Double, Double: d} }
	values := []table.Value{
		{Type: table.Integer}, {Type: table.Integer, Int: 1}, {Type: table.Integer, Int: -1}, {Type: table.Boolean}, {Type: table.Boolean, Int: 1},
		double(0), double(math.Copysign(0, -1)), double(1), double(math.NaN()), double(math.Float64frombits(0x7ff8000000000002)), double(math.Inf(1)),
		text(""), text("1"), text("0"), text("1.0"), text("true"), text("NaN"), text("a\x00"), text("é"), text("e\u0301"), bin(""), bin("1"), bin("0"), bin("é"),
	}
	names := []string{"a", "b", "ab", "A", "é"}
	prepared := map[string]*plainbuffer.Name{}
	for _, n := range append(names, "id") {
		p := plainbuffer.NewName(n)
		prepared[n] = &p
	}
	type column struct {
		name  string
		value table.Value
	}
	encode := func(columns []column, at func() int64) []byte {
		var r plainbuffer.Row
		r.Begin(nil)
		r.Key(prepared["id"], table.Value{Type: table.Integer, Int: 7})
		for _, c := range columns {
			if ms := at(); ms < 0 {
				r.Cell(prepared[c.name], c.value)
			} else {
				r.CellAt(prepared[c.name], c.value, ms)
			}
		}
		return r.End()
	}
	none := func() int64 { return -1 }
	r := rand.New(rand.NewPCG(1, 2))
	h := plainbuffer.NewHasher()
	reduce := &reducer{Hasher: h, mode: table.Put}
	j := &judge{Hasher: h, mode: table.Put, sums: true, names: map[uint64]string{}, oldest: -1, loaded: -1, hashes: map[string]uint64{}, got: map[uint64][]got{}}
	w := wants{mode: table.Put}
	var memory client.PageMemory
	equal, different := 0, 0
	for range 6000 {
		var in []column
		for _, n := range names {
			if r.IntN(4) > 0 {
				in = append(in, column{n, values[r.IntN(len(values))]})
			}
		}
		out := slices.Clone(in)
		r.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
		switch r.IntN(4) {
		case 0:
			if len(out) > 0 {
				out[0].value = values[r.IntN(len(values))]
			}
		case 1:
			if len(out) > 1 {
				out[0].value, out[1].value = out[1].value, out[0].value
			}
		case 2:
			if len(out) > 0 {
				out = out[1:]
			}
		}
		kept, err := reduce.reduce(1, encode(in, none))
		if err != nil || kept[headBytes-1] != kindWhole {
			t.Fatalf("%v, kind %c", err, kept[headBytes-1])
		}
		want := want{rows: 1}
		w.take(&want, kept)
		body := encode(out, func() int64 { return r.Int64() })
		row, err := memory.Unpack(plainbuffer.WithoutHeader(body))
		must(t, err)
		sum, _ := h.Row(plainbuffer.CellsOf(body))
		same := j.same(&want, sum)
		verdict, _ := j.compare(&want, row)
		// What is meant: the same columns, with values of the same type and the same bits.
		byName := func(a, b column) int { return slices.Index(names, a.name) - slices.Index(names, b.name) }
		slices.SortFunc(out, byName)
		meant := slices.EqualFunc(in, out, func(a, b column) bool {
			return a.name == b.name && a.value.Type == b.value.Type && a.value.Int == b.value.Int && math.Float64bits(a.value.Double) == math.Float64bits(b.value.Double) &&
				string(a.value.Bytes) == string(b.value.Bytes)
		})
		if same != meant || (verdict == isEqual) != meant {
			t.Fatalf("by bytes %v, by cells %v, want %v:\n%+v\n%+v", same, verdict == isEqual, meant, in, out)
		}
		if meant {
			equal++
		} else {
			different++
		}
	}
	if equal < 500 || different < 500 {
		t.Errorf("%d rows were equal and %d different", equal, different)
	}
}
