package scan

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
)

// TestCSVWhoseColumnsAreFoundOnTheWayIsThatOfKnownColumns: with any rows, flushes and continuations, and with what an interruption leaves
// after a flush cut off.
func TestCSVWhoseColumnsAreFoundOnTheWayIsThatOfKnownColumns(t *testing.T) {
	texts := rapid.SampledFrom([]any{"", "x", "a,b", "\"", "\"\"\n", "\r\n", "two\nlines, and a \"quote\"", int64(-5), 0.5, true, []byte{}, []byte{0, 1}})
	names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b,c", "\"d\"", "e\nf", "g", "z"}), rapid.ID[string])
	keys := []string{"k", "n"}
	whole, rewritten := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var rows []*Row
		seen := map[string]bool{}
		for i := range rapid.IntRange(0, 20).Draw(t, "rows") {
			r := &Row{PrimaryKey: new(tablestore.PrimaryKey)}
			r.PrimaryKey.AddPrimaryKeyColumn("k", rapid.SampledFrom([]any{"", "a\"b", "c"}).Draw(t, "key"))
			r.PrimaryKey.AddPrimaryKeyColumn("n", int64(i))
			columns := names.Draw(t, "columns")
			slices.Sort(columns)
			for _, c := range columns {
				seen[c] = true
				r.Columns = append(r.Columns, &tablestore.AttributeColumn{ColumnName: c, Value: texts.Draw(t, "value")})
			}
			rows = append(rows, r)
		}
		var attributes []string
		for c := range seen {
			attributes = append(attributes, c)
		}
		slices.Sort(attributes)
		var want, file, got bytes.Buffer
		known, err := NewCSV(&want, keys, attributes)
		must(t, err)
		grown := NewGrowing(&file, keys, Growth{}, 0)
		for _, r := range rows {
			must(t, known.Write(r))
			must(t, grown.Write(r))
			if rapid.IntRange(0, 3).Draw(t, "interrupted") == 0 {
				must(t, grown.Flush())
				noted, size := Growth{slices.Clone(grown.Order), slices.Clone(grown.Sections)}, file.Len()
				must(t, grown.Write(r))
				must(t, grown.Flush())
				file.Truncate(size)
				grown = NewGrowing(&file, keys, noted, int64(size))
			}
		}
		must(t, known.Flush())
		must(t, grown.Flush())
		if grown.Whole() {
			whole++
			got = file
		} else {
			rewritten++
			for _, wrong := range []int64{-1, 1} {
				if grown.Rewrite(new(bytes.Buffer), bytes.NewReader(file.Bytes()), keys, int64(len(rows))+wrong) == nil {
					t.Fatalf("%d rows are %d", len(rows), int64(len(rows))+wrong)
				}
			}
			must(t, grown.Rewrite(&got, &file, keys, int64(len(rows))))
		}
		conformance.MustEqual(t, got.String(), want.String(), "got")
	})
	if whole == 0 || rewritten == 0 {
		t.Errorf("%d files were CSV, %d were rewritten: one of both was not tested", whole, rewritten)
	}
}

var must = conformance.Must

// TestACutFileOfGrowingCSVIsAnError: a row or a part of one is missing, at any byte.
func TestACutFileOfGrowingCSVIsAnError(t *testing.T) {
	var file bytes.Buffer
	grown := NewGrowing(&file, []string{"n"}, Growth{}, 0)
	for i := range 4 {
		r := &Row{PrimaryKey: new(tablestore.PrimaryKey)}
		r.PrimaryKey.AddPrimaryKeyColumn("n", int64(i))
		r.Columns = []*tablestore.AttributeColumn{{ColumnName: fmt.Sprint("c", i/2), Value: "a\n,\"b"}}
		must(t, grown.Write(r))
		must(t, grown.Flush())
	}
	text := file.Bytes()
	must(t, grown.Rewrite(new(bytes.Buffer), bytes.NewReader(text), []string{"n"}, 4))
	for n := range text {
		if grown.Rewrite(new(bytes.Buffer), bytes.NewReader(text[:n]), []string{"n"}, 4) == nil {
			t.Errorf("of %d bytes the first %d were enough", len(text), n)
		}
	}
}
