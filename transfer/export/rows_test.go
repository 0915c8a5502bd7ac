package export

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// drawnRows are rows as answered: columns absent or out of order, versions in sequence or not, texts of all kinds.
func drawnRows(t *rapid.T) (rows [][]byte) {
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "x", "a,b", "\"", "\"\"\n", "\r\n", "\r",
		"seven..", "eight...", "eight..,", "nine....\"", "é", "12345678é", "\x00",
		"two\nlines, and a \"quote\""}), rapid.SampledFrom([]string{"\xff", "12345678\xed\xa0\x80", "é\xc3"}))
	value := rapid.Custom(func(t *rapid.T) table.Value {
		switch rapid.SampledFrom([]table.Type{table.Integer, table.Double, table.Boolean, table.String, table.Binary}).Draw(t,
			"type") {
		case table.Integer:
			return table.Value{Type: table.Integer, Int: rapid.OneOf(rapid.Int64(),
				rapid.SampledFrom([]int64{0, -1, math.MinInt64, math.MaxInt64})).Draw(t, "integer")}
		case table.Double:
			return table.Value{Type: table.Double, Double: rapid.OneOf(rapid.Float64(),
				rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1),
					1e21, 1e-7, 0.1, 5e-324, math.MaxFloat64})).Draw(t, "double")}
		case table.Boolean:
			return table.Value{Type: table.Boolean, Int: int64(rapid.IntRange(0, 1).Draw(t, "boolean"))}
		case table.String:
			return table.Value{Type: table.String, Bytes: []byte(texts.Draw(t, "text"))}
		}
		return table.Value{Type: table.Binary, Bytes: rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "bytes")}
	})
	// In most draws all names are UTF-8, so that text formats have rows after the first.
	names := []string{"a", "b,c", "\"d\"", "e\nf", "g", "z", ""}
	if rapid.IntRange(0, 5).Draw(t, "odd names") == 0 {
		names = append(names, "\xff")
	}
	sorted := rapid.Bool().Draw(t, "sorted")
	key, number := plainbuffer.NewName("k"), plainbuffer.NewName("n")
	for i := range rapid.IntRange(0, 12).Draw(t, "rows") {
		var r plainbuffer.Row
		r.Begin(nil)
		r.Key(&key, table.Value{Type: table.String, Bytes: []byte(rapid.SampledFrom([]string{"", "a\"b", "c", "d", "e"}).Draw(
			t, "key"))})
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

// madeCSV is what an export of the rows must give: its text, its result and its error.
func madeCSV(t *rapid.T, c *Config, rows [][]byte) (text string, r Result, failed string) {
	var lines []map[string]string
	types, quoted := map[string]map[string]int64{}, func(v any) string {
		text := ""
		switch v := v.(type) {
		case string:
			if text = v; v == "" || strings.ContainsAny(v, ",\"\r\n") {
				text = `"` + strings.ReplaceAll(v, `"`, `""`) + `"`
			}
		case []byte:
			if text = base64.StdEncoding.EncodeToString(v); len(v) == 0 {
				text = `""`
			}
		case float64:
			text = string(table.AppendDouble(nil, v))
		default:
			text = fmt.Sprint(v)
		}
		return text
	}
	for _, row := range rows {
		made := conformance.Try(new(client.PageMemory).Unpack(row)).Must(t)
		if n := made.PrimaryKey.PrimaryKeys[1].Value; c.Scan.Where != nil && n == int64(2) {
			r.LeftOut++
			continue
		}
		line := map[string]string{}
		for _, k := range made.PrimaryKey.PrimaryKeys {
			line["key "+k.ColumnName] = quoted(k.Value)
		}
		newest, older := map[string]*tablestore.AttributeColumn{}, int64(0)
		for _, cell := range made.Columns {
			before := newest[cell.ColumnName]
			switch {
			case c.Scan.Columns != nil && !slices.Contains(c.Scan.Columns, cell.ColumnName):
			case before == nil:
				newest[cell.ColumnName] = cell
			default:
				if older++; cell.Timestamp > before.Timestamp {
					newest[cell.ColumnName] = cell
				}
			}
		}
		for name, cell := range newest {
			if s, is := cell.Value.(string); is && !(utf8.ValidString(s) && utf8.ValidString(name)) {
				return "", r, "is not UTF-8"
			}
			line[name] = quoted(cell.Value)
		}
		for name, cell := range newest {
			if types[name] == nil {
				types[name] = map[string]int64{}
			}
			types[name][client.ValueOf(cell.Value).Type.String()]++
		}
		r.Lost.Timestamps, r.Lost.OlderVersions = r.Lost.Timestamps+int64(len(newest)), r.Lost.OlderVersions+older
		lines = append(lines, line)
		if r.Rows++; r.Rows == c.Limit {
			break
		}
	}
	columns := slices.Concat([]string{"key k", "key n"}, c.Scan.Columns)
	r.Columns = []Column{}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		column := Column{name, types[name]}
		r.Columns, r.Lost.Types = append(r.Columns, column), r.Lost.Types+column.Others()
		if c.Scan.Columns == nil {
			columns = append(columns, name)
		}
	}
	var out strings.Builder
	for i, name := range columns {
		out.WriteString(strings.Repeat(",", min(i, 1)) + quoted(strings.TrimPrefix(name, "key ")))
	}
	for _, line := range lines {
		for i, name := range columns {
			out.WriteString([]string{"\n", ","}[min(i, 1)] + line[name])
		}
	}
	return out.String() + "\n", r, ""
}

// TestRawRowsMakeTheSameCSV covers named columns and columns found on the way.
func TestRawRowsMakeTheSameCSV(t *testing.T) {
	condition := conformance.Try(keyexpr.CompileWhere("n != 2")).Must(t)
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		rows := drawnRows(t)
		c := Config{Format: CSV, Limit: int64(rapid.IntRange(0, 15).Draw(t, "limit"))}
		c.Scan.Table = &client.Table{Key: []table.KeyColumn{{Name: "k", Type: table.String},
			{Name: "n", Type: table.Integer}}}
		if rapid.Bool().Draw(t, "columns are named") {
			c.Scan.Columns = rapid.Permutation([]string{"a", "z", "\"d\"", "never"}).Draw(t, "which")
		}
		if rapid.Bool().Draw(t, "with a condition") {
			c.Scan.Where = condition
		}
		held := rapid.Bool().Draw(t, "rows are held back")
		e := newExporter(t.Context(), &c)
		var file, got bytes.Buffer
		f, err := e.lines(&file, false)
		if e.grows() {
			f, err = e.spool(&file, nil)
		}
		must(t, err)
		w := newRowWriter(e, f, nil)
		for i, row := range rows {
			if i == 1 && !held {
				must(t, f.Flush()) // after which the columns of the first section are known
			}
			if err = w.row(table.AppendKey(nil, table.Value{Type: table.Integer, Int: int64(i)}), row); err != nil {
				break
			}
		}
		must(t, f.Flush())
		want, result, failed := madeCSV(t, &c, rows)
		if failed != "" {
			if refused++; err == nil || !strings.Contains(err.Error(), failed) {
				t.Fatalf("%v, want %s", err, failed)
			}
			return
		}
		conformance.MustTrue(t, err == nil || errors.Is(err, errEnough), "%v", err)
		if got = file; e.grown != nil && result.Rows > 0 {
			got.Reset()
			must(t, e.replay(&got, bytes.NewReader(file.Bytes())))
		}
		said := e.ended()
		conformance.MustTrue(t, reflect.DeepEqual(said, result), "it says %+v, want %+v", said, result)
		if result.Rows > 0 {
			conformance.MustEqual(t, got.String(), want, "text")
		}
	})
	conformance.True(t, refused != 0, "no text was refused")
}
