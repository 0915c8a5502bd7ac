package export

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
)

// drawnRows are rows as answers have them: with columns that are missing and out of order, versions that follow each other and that do not, and texts of all kinds.
func drawnRows(t *rapid.T) (rows [][]byte) {
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "x", "a,b", "\"", "\"\"\n", "\r\n", "\r", "seven..", "eight...", "eight..,", "nine....\"", "é", "12345678é", "\x00",
		"two\nlines, and a \"quote\""}), rapid.SampledFrom([]string{"\xff", "12345678\xed\xa0\x80", "é\xc3"}))
	value := rapid.Custom(func(t *rapid.T) table.Value {
		switch rapid.SampledFrom([]table.Type{table.Integer, table.Double, table.Boolean, table.String, table.Binary}).Draw(t, "type") {
		case table.Integer:
			return table.Value{Type: table.Integer, Int: rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, math.MinInt64, math.MaxInt64})).Draw(t, "integer")}
		case table.Double:
			return table.Value{Type: table.Double, Double: rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1),
				1e21, 1e-7, 0.1, 5e-324, math.MaxFloat64})).Draw(t, "double")}
		case table.Boolean:
			return table.Value{Type: table.Boolean, Int: int64(rapid.IntRange(0, 1).Draw(t, "boolean"))}
		case table.String:
			return table.Value{Type: table.String, Bytes: []byte(texts.Draw(t, "text"))}
		}
		return table.Value{Type: table.Binary, Bytes: rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "bytes")}
	})
	// In most draws no name is other than UTF-8, so that there are rows after the first of a text.
	names := []string{"a", "b,c", "\"d\"", "e\nf", "g", "z", ""}
	if rapid.IntRange(0, 5).Draw(t, "odd names") == 0 {
		names = append(names, "\xff")
	}
	sorted := rapid.Bool().Draw(t, "sorted")
	key, number := plainbuffer.NewName("k"), plainbuffer.NewName("n")
	for i := range rapid.IntRange(0, 12).Draw(t, "rows") {
		var r plainbuffer.Row
		r.Begin(nil)
		r.Key(&key, table.Value{Type: table.String, Bytes: []byte(rapid.SampledFrom([]string{"", "a\"b", "c", "d", "e"}).Draw(t, "key"))})
		r.Key(&number, table.Value{Type: table.Integer, Int: int64(i)})
		columns := rapid.SliceOfN(rapid.SampledFrom(names), 0, 8).Draw(t, "columns")
		if sorted {
			slices.Sort(columns)
		}
		for _, c := range columns {
			name := plainbuffer.NewName(c)
			if at := rapid.Int64Range(-1, 3).Draw(t, "timestamp"); at < 0 {
				r.Cell(&name, value.Draw(t, "value"))
			} else {
				r.CellAt(&name, value.Draw(t, "value"), at)
			}
		}
		rows = append(rows, plainbuffer.WithoutHeader(r.End()))
	}
	return rows
}

// TestCSVOfRowsAsTheyCameIsThatOfRowsThatAreMade: bytes, errors and counts of an export, with columns that are named and that are not.
func TestCSVOfRowsAsTheyCameIsThatOfRowsThatAreMade(t *testing.T) {
	condition, err := keyexpr.CompileWhere("n != 2")
	must(t, err)
	fast := 0
	rapid.Check(t, func(t *rapid.T) {
		rows := drawnRows(t)
		c := Config{Format: CSV, Limit: int64(rapid.IntRange(0, 15).Draw(t, "limit"))}
		c.Scan.Table = &client.Table{Key: []table.KeyColumn{{Name: "k", Type: table.String}, {Name: "n", Type: table.Integer}}}
		if rapid.Bool().Draw(t, "columns are named") {
			c.Scan.Columns = rapid.Permutation([]string{"a", "z", "\"d\"", "never"}).Draw(t, "which")
		}
		if rapid.Bool().Draw(t, "with a condition") {
			c.Scan.Where = condition
		}
		held := rapid.Bool().Draw(t, "rows are held back")
		type outcome struct {
			text   string
			err    string
			result Result
			last   string
			growth scan.Growth
		}
		write := func(packed bool) (o outcome) {
			c := c
			e := newExporter(t.Context(), &c)
			var out bytes.Buffer
			f, err := e.lines(&out, false)
			if e.grows() {
				f, err = e.spool(&out, nil)
			}
			must(t, err)
			to := f
			if !packed {
				to = struct{ scan.Formatter }{f} // which has every row made
			}
			w := newRowWriter(e, to, nil)
			for i, row := range rows {
				if i == 1 && !held {
					err = f.Flush() // after which the columns of the first section are known
				}
				if err != nil {
					break
				}
				r, failed := new(client.PageMemory).Unpack(row)
				if failed != nil {
					t.Fatal(failed)
				}
				var key []byte
				for _, k := range r.PrimaryKey.PrimaryKeys {
					key = table.AppendKey(key, client.ValueOf(k.Value))
				}
				err = w.row(key, row)
			}
			conformance.Must(t, f.Flush())
			o = outcome{text: out.String(), result: e.ended(), last: string(e.last)}
			if err != nil {
				o.err = err.Error()
			}
			if e.grown != nil {
				o.growth = e.grown.Growth
			}
			if packed && err == nil && len(rows) > 0 {
				if _, ok, _ := w.packed.WritePacked(rows[0], w.columns); ok {
					fast++
				}
			}
			return o
		}
		got, want := write(true), write(false)
		conformance.MustTrue(t, reflect.DeepEqual(got, want), "as they came:\n%+v\nmade:\n%+v", got, want)
	})
	conformance.True(t, fast != 0, "no row was written as it came")
}
