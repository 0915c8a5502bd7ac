package jsonl

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// cutAll cuts a text that arrives in chunks and parses the result.
func cutAll(o Options, text string, chunks ...int) (records []string, err error) {
	c := Cutter{Array: o.Layout == Array}
	p := NewParser(o)
	var pending []byte
	seen := 0
	parsed := 0
	parse := func(data []byte) {
		if p.Reset(data); parsed > 0 {
			p.Continue(data)
		}
		parsed += len(data)
		for r, ok := p.Next(); ok; r, ok = p.Next() {
			records = append(records, show(p, r)+" "+string(data[r.Span.Start:r.Span.End]))
		}
	}
	for from := 0; from < len(text); {
		n := len(text) - from
		if len(chunks) > 0 {
			n, chunks = min(n, chunks[0]), chunks[1:]
		}
		pending = append(pending, text[from:from+n]...)
		from += n
		end, err := c.Cut(pending[seen:])
		if end >= 0 {
			end += seen
		}
		end = max(end, 0)
		parse(pending[:end])
		pending = pending[end:]
		if seen = len(pending); err != nil {
			return records, err
		}
	}
	if _, err := c.End(); err != nil {
		return records, err
	}
	parse(pending)
	return records, nil
}

func TestRecordsDoNotDependOnCuts(t *testing.T) {
	o := Options{Columns: []string{"a"}}
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		layout Layout
		text   string
		want   []string
	}{
		{Array, `[{"a":1},{"a":"}]\"\\"} , {"a":{"b":[1,{"c":2}]}}]`, []string{`n1 {"a":1}`, `s"}]\"\\" {"a":"}]\"\\"}`, `j{"b":[1,{"c":2}]} {"a":{"b":[1,{"c":2}]}}`}},
		{Array, "\n[\n {\n \"a\" : [ 1,\n 2 ] }\n,\n{}\n]\n", []string{"j[1,2] {\n \"a\" : [ 1,\n 2 ] }", "null {}"}},
		{Array, `[] [{"a":1}]` + "\n" + `[{"a":2}]`, []string{`n1 {"a":1}`, `n2 {"a":2}`}},
		{Array, "\ufeff[{\"a\":1}]\n\ufeff[{\"a\":2}]\ufeff\n\ufeff [{\"a\":3}]\ufeff", []string{`n1 {"a":1}`, `n2 {"a":2}`, `n3 {"a":3}`}},
		{Array, `[1,"x]",null,{"a":1},[{"a":2}],-1.5e3]`, []string{`bad BadJSON 1`, `bad BadJSON "x]"`, `bad BadJSON null`, `n1 {"a":1}`, `bad BadJSON [{"a":2}]`, `bad BadJSON -1.5e3`}},
		{Array, `[{"a":1,},{"a":2}]`, []string{`bad BadJSON {"a":1,}`, `n2 {"a":2}`}},
		{Objects, `{"a":1}{"a":2} {"a":3}` + "\r\n" + `{"a":4}`, []string{`n1 {"a":1}`, `n2 {"a":2}`, `n3 {"a":3}`, `n4 {"a":4}`}},
		{Objects, "{\n\t\"a\": \"x\",\n\t\"a\": 2\n}\n{\"a\":\n5}", []string{"bad BadJSON {\n\t\"a\": \"x\",\n\t\"a\": 2\n}", "n5 {\"a\":\n5}"}},
		{Objects, `{"a":1}[{"a":2}]7`, []string{`n1 {"a":1}`, `bad BadJSON [{"a":2}]`, `bad BadJSON 7`}},
	} {
		o.Layout = c.layout
		for range 50 {
			var chunks []int
			for range rnd.IntN(len(c.text) + 1) {
				chunks = append(chunks, 1+rnd.IntN(4))
			}
			got, err := cutAll(o, c.text, chunks...)
			conformance.MustTrue(t, err == nil && slices.Equal(got, c.want),
				"%q in chunks of %v: %q (%v)", c.text, chunks, got, err)
		}
	}
}

func FuzzLayouts(f *testing.F) {
	f.Add([]byte(`[{"a":1},{"a":"]"}]`), true, uint8(3))
	f.Add([]byte("{\n\"a\":1}{}"), false, uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, array bool, chunk uint8) {
		o := Options{Columns: []string{"a"}, Layout: Objects}
		if array {
			o.Layout = Array
		}
		want, wantErr := cutAll(o, string(text))
		chunks := slices.Repeat([]int{int(chunk) + 1}, len(text))
		got, err := cutAll(o, string(text), chunks...)
		conformance.MustTrue(t, slices.Equal(got, want) && (err == nil) == (wantErr == nil),
			"in chunks of %d: %q (%v), whole: %q (%v)", chunk+1, got, err, want, wantErr)
		Guess(text, array)
	})
}

// read returns the text of a file.
func read(t testing.TB, dir string, f conformance.File) []byte {
	t.Helper()
	data := conformance.Read(t, dir, f.Path)
	if f.Compression == "gzip" {
		z := conformance.Try(gzip.NewReader(bytes.NewReader(data))).Must(t)
		data = conformance.Try(io.ReadAll(z)).Must(t)
	}
	return bytes.TrimPrefix(data, []byte("\uFEFF"))
}

// TestJSONTestSuite reads each text of the suite as the value of a key, so that texts other than objects count too.
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
	must(t, err)
	conformance.True(t, counts["y_ accepted"] >= 40 && counts["n_ refused"] >= 90,
		"hardly anything was judged: %v", counts)
}

// TestManifestLinesAgreeWithEncodingJSON compares the lines of the collection with the result of encoding/json. The
// room above tests the number of records in each file.
func TestManifestLinesAgreeWithEncodingJSON(t *testing.T) {
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
	conformance.True(t, lines >= 500, "only %d lines were judged", lines)
}
