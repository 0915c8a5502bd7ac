package parquet

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"tsimport/internal/conformance"
	"tsimport/reader/jsontext"
	"tsimport/reader/record"
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
