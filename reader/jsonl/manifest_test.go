package jsonl

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tsimport/internal/conformance"
)

// read returns the text of a file.
func read(t testing.TB, dir string, f conformance.File) []byte {
	t.Helper()
	data := conformance.Read(t, dir, f.Path)
	if f.Compression == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if data, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return bytes.TrimPrefix(data, []byte("\uFEFF"))
}

// deviations are the files on which this package and the manifest differ, and why.
var deviations = map[string]string{
	"csv/duckdb-json/duplicate_key.ndjson":                 "a key that occurs twice is ambiguous: one record is refused",
	"csv/duckdb-json/malformed/union/empty_object.ndjson":  "valid JSON lines; DuckDB refuses them for the UNION type of its test",
	"csv/duckdb-json/malformed/union/too_many_keys.ndjson": "valid JSON lines; DuckDB refuses them for the UNION type of its test",
}

func TestEveryJSONLinesFileOfTheManifestIsReadAsItSays(t *testing.T) {
	conformance.Run(t, everyJSONLinesFile)
}

func everyJSONLinesFile(t *testing.T, dir string) {
	counts := map[string]int{}
	for _, f := range conformance.Files(t, dir) {
		suite := strings.Contains(f.Path, "jsontestsuite")
		if f.Format != "jsonl" && f.Format != "json" || suite {
			continue
		}
		data := read(t, dir, f)
		var columns Columns
		records, bad := Discover(data, Options{}, &columns)
		verdict := "ok"
		if bad > 0 {
			verdict = "error"
		}
		counts[f.Format+" "+f.Expected+"→"+verdict]++
		_, deviates := deviations[f.Path]
		if f.Format == "json" {
			// One document over several lines is not a JSON-lines file: its lines are refused one by one.
			t.Logf("%s (one document, %s): %d records, %d refused", f.Path, f.Expected, records, bad)
			continue
		}
		if f.Expected != "any" && (verdict != f.Expected) != deviates {
			t.Errorf("%s: %d records, %d refused, manifest says %s", f.Path, records, bad, f.Expected)
		}
		if f.Expected == "ok" && !deviates && f.Rows != nil && int64(records) != *f.Rows {
			t.Errorf("%s: %d records, manifest says %d", f.Path, records, *f.Rows)
		}
		if f.Expected == "any" {
			t.Logf("%s: %d records, %d refused, rows %v", f.Path, records, bad, *f.Rows)
		}
		for line := range bytes.Lines(data) {
			check(t, bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	if counts["jsonl ok→ok"] < 20 || counts["jsonl error→error"] < 1 {
		t.Errorf("hardly anything was read: %v", counts)
	}
}

// TestJSONTestSuite reads each text of the suite as the value of a key, so that texts that are not objects count too.
func TestJSONTestSuite(t *testing.T) {
	dir := filepath.Join(conformance.Dir(t), "csv", "jsontestsuite")
	counts := map[string]int{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		name := filepath.Base(path)
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".json") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		// A line feed is white space between tokens, which a line cannot hold, and never anything else.
		line := append([]byte(`{"v":`), bytes.ReplaceAll(bytes.TrimRight(data, "\n"), []byte("\n"), []byte(" "))...)
		line = append(line, '}')
		var columns Columns
		records, bad := Discover(line, Options{}, &columns)
		verdict := "accepted"
		if bad > 0 {
			verdict = "refused"
		}
		if name == "n_string_unescaped_newline.json" {
			_, bad = Discover(append([]byte(`{"v":`), data...), Options{}, &columns)
		} else if records != 1 {
			t.Errorf("%s: %d records", name, records)
		}
		counts[name[:2]+" "+verdict]++
		switch {
		case name[0] == 'y' && bad > 0 && !strings.Contains(name, "duplicated_key"):
			t.Errorf("%s is refused", name)
		case name[0] == 'n' && bad == 0:
			t.Errorf("%s is accepted", name)
		case name[0] == 'y' && bad > 0:
			t.Logf("%s is refused: keys that occur twice are ambiguous", name)
		case name[0] == 'i':
			t.Logf("%s is %s", name, verdict)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if counts["y_ accepted"] < 40 || counts["n_ refused"] < 90 {
		t.Errorf("hardly anything was judged: %v", counts)
	}
}

func TestTextsOfTheSuiteThatAreObjectsAreJudgedAsLines(t *testing.T) {
	dir := conformance.Dir(t)
	for _, f := range conformance.Files(t, dir) {
		if !strings.Contains(f.Path, "jsontestsuite") {
			continue
		}
		data := bytes.TrimRight(read(t, dir, f), "\n")
		if !bytes.Contains(data, []byte("\n")) && len(data) > 0 {
			check(t, data)
		}
	}
}
