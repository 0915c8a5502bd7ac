package parquet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tsimport/internal/conformance"
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

// refused are the files that the manifest calls good and that are refused, with the reason.
var refused = map[string]string{
	"parquet/parquet-testing/data/datapage_v1-corrupt-checksum.parquet": "page checksum",
	// The length of its last value was changed by hand from 2 to 0; the two bytes are left over.
	"parquet/duckdb/data/parquet-testing/decimal/byte_array_decimal_empty_value.parquet": "holds more than the values",
}

// readable are the files that the manifest says no tool reads.
var readable = map[string]int64{"parquet/parquet-testing/data/hadoop_lz4_compressed.parquet": 4}

func TestEveryFileOfTheManifestLoadsOrIsRefusedAsItSays(t *testing.T) {
	dir := conformance.Dir(t)
	var ok, no, either int
	for _, e := range files(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(e.Path)))
		if err != nil {
			t.Fatal(err)
		}
		for _, flatten := range []bool{false, true} {
			start := time.Now()
			rows, bad, err := loadAll(b, e.Path, Options{Flatten: flatten}, nil)
			if took := time.Since(start); took > 2*time.Minute {
				t.Errorf("%s took %v", e.Path, took)
			}
			if err != nil && (!strings.Contains(err.Error(), e.Path) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("error is not one line that names the file: %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "runtime error") {
				t.Errorf("%s: panic: %v", e.Path, err)
			}
			reason, deviates := refused[e.Path]
			switch {
			case e.Expected == "any" || e.Expected == "":
				either++
				t.Logf("any   %s: %d rows, %d bad, %v", e.Path, rows, bad, err)
			case readable[e.Path] > 0:
				if err != nil || rows != readable[e.Path] {
					t.Errorf("%s: %d rows: %v", e.Path, rows, err)
				}
			case e.Expected == "error" && err == nil:
				t.Errorf("%s: %d rows of a file that is to be refused", e.Path, rows)
			case e.Expected == "error":
				no++
				t.Logf("error %v", err)
			case deviates:
				if err == nil || !strings.Contains(err.Error(), reason) {
					t.Errorf("%s: error with %q expected: %v", e.Path, reason, err)
				}
			case err != nil:
				t.Error(err)
			case e.Rows == nil || rows != *e.Rows:
				t.Errorf("%s: %d rows delivered", e.Path, rows)
			default:
				ok++
				if bad > 0 {
					t.Logf("bad   %s: %d of %d rows are bad", e.Path, bad, rows)
				}
			}
		}
	}
	if ok < 300 || no < 30 {
		t.Errorf("hardly anything was read: %d files delivered, %d refused", ok, no)
	}
	t.Logf("delivered %d, refused %d, either way %d, deviating %d (with and without Flatten)", ok, no, either, len(refused))
}
