package encode

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/plainbuffer"
)

// TestRowsThatAreAppendedAsTheyCameAreThoseThatAreMade: of values of every type, versions, columns that are missing and out of order, and
// rows that are refused.
func TestRowsThatAreAppendedAsTheyCameAreThoseThatAreMade(t *testing.T) {
	values := []table.Value{{Type: table.Integer}, {Type: table.Integer, Int: math.MinInt64}, {Type: table.Integer, Int: math.MaxInt64}, {Type: table.Boolean}, {Type: table.Boolean, Int: 1},
		{Type: table.Double}, {Type: table.Double, Double: math.Copysign(0, -1)}, {Type: table.Double, Double: 0.1}, {Type: table.Double, Double: math.MaxFloat64},
		str(""), str("1"), str("é,\"\n"), {Type: table.Binary}, {Type: table.Binary, Bytes: []byte{0xff}}}
	refused := []table.Value{{Type: table.Double, Double: math.NaN()}, {Type: table.Double, Double: math.Inf(-1)}, str("\xff"), {Type: table.String, Bytes: tooLongText}}
	s := &table.Schema{Table: "t", Key: []table.KeyColumn{{Name: "id", Type: table.String}}, Columns: []table.Column{{Name: "id"}}}
	fast, slow := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		e, made := New(s, table.Put, false), New(s, table.Put, false)
		reserve := rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, table.MaxRowBytes - 60, table.MaxRowBytes}).Draw(t, "reserve")
		cells := rapid.SampledFrom([]int{0, 0, 0, table.MaxColumns - 3}).Draw(t, "reserved cells")
		for _, e := range []*Encoder{e, made} {
			e.Reserve, e.ReserveCells, e.StampBytes, e.Window = reserve, cells, 8, func() (int64, int64) { return 1000, 5000 }
		}
		names := map[string]*Name{}
		b, want := new(table.Block), new(table.Block)
		for range rapid.IntRange(1, 10).Draw(t, "rows") {
			columns := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ab", "b", "c", "d", "e", "f", "g", "z", "never"}), 0, 5).Draw(t, "columns")
			if rapid.IntRange(0, 9).Draw(t, "sorted") > 0 {
				slices.Sort(columns)
			}
			key := rapid.SampledFrom([]string{"", "k"}).Draw(t, "key")
			keyName := rapid.SampledFrom([]string{"id", "id", "id", "id", "id", "id", "ID"}).Draw(t, "name of the key")
			bad := false // it has a value that the service refuses
			var r plainbuffer.Row
			r.Begin(nil)
			of := plainbuffer.NewName(keyName)
			r.Key(&of, str(key))
			made.Cells = []Cell{}
			at := int64(4999)
			for i, c := range columns {
				v := rapid.SampledFrom(values).Draw(t, "value")
				if rapid.IntRange(0, 20).Draw(t, "refused") == 0 {
					v, bad = rapid.SampledFrom(refused).Draw(t, "which"), true
				}
				if at = at - 1; i > 0 && columns[i-1] != c || rapid.IntRange(0, 9).Draw(t, "other time") == 0 {
					at = rapid.SampledFrom([]int64{-1, 0, 999, 1000, 4999, 5000, 4000, 4000, 4000, 4000, 4001, 4002, 3000, 3001, 2000, 1999}).Draw(t, "timestamp")
				}
				name := plainbuffer.NewName(c)
				if at < 0 {
					r.Cell(&name, v)
				} else {
					r.CellAt(&name, v, at)
				}
				if names[c] == nil {
					names[c] = NewName(c)
				}
				made.Cells = append(made.Cells, Cell{names[c], v, at})
			}
			row := plainbuffer.WithoutHeader(r.End())
			span := table.Span{Record: uint32(len(b.Rows))}
			was := len(b.Data)
			if !e.AppendPacked(b, []table.Value{str(key)}, span, row, []byte("record"), func(name []byte) bool { return string(name) != "never" }) {
				if len(b.Data) != was || len(b.Rows) != len(want.Rows) {
					t.Fatalf("%x was not appended and has left %d bytes", row, len(b.Data)-was)
				}
				slow++
				continue
			}
			fast++
			if why := made.Append(want, []table.Value{str(key)}, nil, span, []byte("record")); why != nil || bad || keyName != "id" || slices.Contains(columns, "never") {
				t.Fatalf("%x was appended: %v", row, why)
			}
			if !bytes.Equal(b.Data, want.Data) || !slices.Equal(b.Rows, want.Rows) {
				t.Fatalf("as it came\n%x %+v, made\n%x %+v", b.Data, b.Rows, want.Data, want.Rows)
			}
		}
	})
	if t.Logf("%d rows were appended as they came, %d were not", fast, slow); fast == 0 || slow == 0 {
		t.Error("one of both was not tested")
	}
}
