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

// TestEveryLineOfTheManifestIsJudgedAsByEncodingJSON compares the lines of the collection with what encoding/json makes of them. How many of each
// file are records is tested in the room above.
func TestEveryLineOfTheManifestIsJudgedAsByEncodingJSON(t *testing.T) {
	dir, lines := conformance.Dir(t), 0
	for _, f := range conformance.Files(t, dir) {
		if f.Format != "jsonl" && f.Format != "json" {
			continue
		}
		for line := range bytes.SplitSeq(bytes.TrimRight(read(t, dir, f), "\n"), []byte("\n")) {
			if len(line) > 0 {
				check(t, line)
				lines++
			}
		}
	}
	if lines < 1000 {
		t.Errorf("only %d lines were judged", lines)
	}
}
