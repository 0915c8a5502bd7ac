package parquet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/jsontext"
	"example.com/tsimport/reader/record"
)

// files returns the Parquet files of a collection.
func files(t testing.TB, dir string) []conformance.File {
	t.Helper()
	return slices.DeleteFunc(conformance.Files(t, dir), func(f conformance.File) bool { return f.Format != "parquet" })
}

// loadAll reads all of a file, every column, and returns the delivered rows and how many of them are bad.
func loadAll(b []byte, name string, o Options, each func(*record.Record)) (rows, bad int64, err error) {
	f, err := Open(bytes.NewReader(b), int64(len(b)), name, o)
	if err != nil {
		return 0, 0, err
	}
	p := f.NewParser(every(f))
	defer p.Close()
	for _, s := range f.Splits() {
		err := p.Parse(s, func(r *record.Record) error {
			rows++
			if r.Bad != nil {
				bad++
			}
			if each != nil {
				each(r)
			}
			return nil
		})
		if err != nil {
			return rows, bad, err
		}
	}
	if rows != f.Rows() {
		return rows, bad, fmt.Errorf("delivered %d rows of %d without an error", rows, f.Rows())
	}
	return rows, bad, nil
}

func every(f *File) []int {
	all := make([]int, len(f.Columns()))
	for i := range all {
		all[i] = i
	}
	return all
}

// show is a value for a comparison.
func show(d *record.Datum) string {
	if d.Kind == record.String {
		return fmt.Sprintf("%q", d.Bytes)
	}
	return string(jsontext.Append(nil, d))
}

func TestFilesOfOtherWritersGiveTheStatedValues(t *testing.T) {
	for name, want := range map[string]struct {
		rows  int
		first []string // of the records, at most
		err   string
	}{
		"dict-page-offset-zero":       {rows: 39, first: []string{"1552", "1552"}},
		"fixed_length_decimal_legacy": {rows: 24, first: []string{"1.00", "2.00", "3.00"}},
		"int96_from_spark": {rows: 6, first: []string{`"2024-01-01T20:34:56.123456"`, `"2024-01-01T01:00:00"`,
			`"9999-12-31T03:00:00"`, `"2024-12-30T23:00:00"`, "null", "OutOfRange"}},
		"nested_lists.snappy": {rows: 3, first: []string{`[[["a","b"],["c"]],[null,["d"]]] 1`}},
		"repeated_no_annotation": {rows: 6, first: []string{"1 null", "2 null", `3 {"phone":[]}`,
			`4 {"phone":[{"number":5555555555,"kind":null}]}`}},
		"datapage_v2_empty_datapage.snappy": {rows: 1, first: []string{"null"}},
		"rle_boolean_encoding":              {rows: 68, first: []string{"true", "false", "null", "true"}},
		"upstream_rle_booleans":             {rows: 12, first: slices.Repeat([]string{"true"}, 12)},
		"upstream_lz4_raw":                  {rows: 1, first: []string{`"` + strings.Repeat("YWFh", 1356/3) + `"`}},
		"upstream_short_page":               {err: "page holds fewer values than its header says"},
		"ARROW-RS-GH-6229-LEVELS":           {err: "row group 0: column outer.list.item.c: page 1:"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", name+".parquet"))
			must(t, err)
			var got []string
			rows, _, err := loadAll(b, name, Options{}, func(r *record.Record) {
				var cells []string
				for i := range r.Fields {
					if d := &r.Fields[i]; d.Kind == record.JSON {
						cells = append(cells, string(d.Bytes))
					} else {
						cells = append(cells, show(d))
					}
				}
				if r.Bad != nil {
					cells = []string{r.Bad.Code}
				}
				got = append(got, strings.Join(cells, " "))
			})
			if want.err != "" {
				conformance.Refused(t, err, want.err, "error")
				return
			}
			if err != nil || int(rows) != want.rows {
				t.Errorf("%d rows: %v", rows, err)
			}
			conformance.Equal(t, cmp.Diff(want.first, got[:min(len(got), len(want.first))]), "", "(-want +got)")
		})
	}
}
