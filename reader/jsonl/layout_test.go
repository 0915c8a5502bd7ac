package jsonl

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/record"
)

// cutAll cuts a text into pieces as it arrives in chunks, and parses the pieces.
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
		{Array, `[{"a":1},{"a":"}]\"\\"} , {"a":{"b":[1,{"c":2}]}}]`, []string{`n1 {"a":1}`, `s"}]\"\\" {"a":"}]\"\\"}`,
			`j{"b":[1,{"c":2}]} {"a":{"b":[1,{"c":2}]}}`}},
		{Array, "\n[\n {\n \"a\" : [ 1,\n 2 ] }\n,\n{}\n]\n", []string{"j[1,2] {\n \"a\" : [ 1,\n 2 ] }", "null {}"}},
		{Array, `[] [{"a":1}]` + "\n" + `[{"a":2}]`, []string{`n1 {"a":1}`, `n2 {"a":2}`}},
		{Array, "\ufeff[{\"a\":1}]\n\ufeff[{\"a\":2}]\ufeff\n\ufeff [{\"a\":3}]\ufeff",
			[]string{`n1 {"a":1}`, `n2 {"a":2}`, `n3 {"a":3}`}},
		{Array, `[1,"x]",null,{"a":1},[{"a":2}],-1.5e3]`, []string{`bad BadJSON 1`, `bad BadJSON "x]"`, `bad BadJSON null`,
			`n1 {"a":1}`, `bad BadJSON [{"a":2}]`, `bad BadJSON -1.5e3`}},
		{Array, `[{"a":1,},{"a":2}]`, []string{`bad BadJSON {"a":1,}`, `n2 {"a":2}`}},
		{Objects, `{"a":1}{"a":2} {"a":3}` + "\r\n" + `{"a":4}`, []string{`n1 {"a":1}`, `n2 {"a":2}`, `n3 {"a":3}`,
			`n4 {"a":4}`}},
		{Objects, "{\n\t\"a\": \"x\",\n\t\"a\": 2\n}\n{\"a\":\n5}", []string{"bad BadJSON {\n\t\"a\": \"x\",\n\t\"a\": 2\n}",
			"n5 {\"a\":\n5}"}},
		{Objects, `{"a":1}[{"a":2}]7`, []string{`n1 {"a":1}`, `bad BadJSON [{"a":2}]`, `bad BadJSON 7`}},
	} {
		o.Layout = c.layout
		for range 50 {
			var chunks []int
			for range rnd.IntN(len(c.text) + 1) {
				chunks = append(chunks, 1+rnd.IntN(4))
			}
			got, err := cutAll(o, c.text, chunks...)
			conformance.MustTrue(t, err == nil && slices.Equal(got, c.want), "%q by %v: %q (%v)", c.text, chunks, got, err)
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

// read returns the content of a file, decompressed.
func read(t testing.TB, dir string, f conformance.File) []byte {
	t.Helper()
	data := conformance.Read(t, dir, f.Path)
	if f.Compression == "gzip" {
		z := conformance.Try(gzip.NewReader(bytes.NewReader(data))).Must(t)
		data = conformance.Try(io.ReadAll(z)).Must(t)
	}
	return bytes.TrimPrefix(data, []byte("\uFEFF"))
}

// TestJSONTestSuite reads each text of the suite as the value of a key, so that texts other than objects are tested.
func TestJSONTestSuite(t *testing.T) {
	dir := filepath.Join(conformance.Dir(t), "csv", "jsontestsuite")
	counts := map[string]int{}
	conformance.Must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		name := filepath.Base(path)
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".json") {
			return err
		}
		data := conformance.Try(os.ReadFile(path)).Must(t)
		// A line feed is only white space between tokens in these texts, and a JSON line cannot contain one.
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
	}))
	conformance.True(t, counts["y_ accepted"] >= 40 && counts["n_ refused"] >= 90, "judged: %v", counts)
}

// TestManifestLinesAgreeWithEncodingJSON compares the lines of the collection with encoding/json. The number of records
// in each file is tested in package reader.
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

// wideText returns everything in a self-describing record, as text.
func wideText(rec *record.Record) string {
	var s strings.Builder
	datum := func(d *record.Datum) {
		fmt.Fprintf(&s, "%d %t %t %d %d %d %x %q;", d.Kind, d.Quoted, d.Local, d.Scale, d.Unit, d.Int,
			math.Float64bits(d.Double), d.Bytes)
	}
	for i := range rec.Fields {
		datum(&rec.Fields[i])
	}
	for i := range rec.Cells {
		fmt.Fprintf(&s, " %q at %d ", rec.Cells[i].Name, rec.Cells[i].At)
		datum(&rec.Cells[i].Datum)
	}
	return s.String()
}

// readWide returns the only record in a line.
func readWide(t *testing.T, line []byte, columns ...string) *record.Record {
	conformance.MustTrue(t, IsWide(line), "%q is not taken for a row that describes itself", line)
	p := NewParser(Options{Columns: columns, Strict: true, Wide: true})
	p.Reset(line)
	rec, ok := p.Next()
	conformance.MustTrue(t, ok, "no record in %q", line)
	return rec
}

// anyWide returns a random value of any kind that a self-describing record can hold.
func anyWide(r *rand.Rand) record.Datum {
	text := func() []byte {
		b := make([]byte, r.IntN(6))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	d := record.Datum{Kind: record.Kind(r.IntN(int(record.Absent)))}
	switch d.Kind {
	case record.Null:
	case record.Integer, record.Unsigned:
		d.Int = int64(r.Uint64())
	case record.Boolean:
		d.Int = int64(r.IntN(2))
	case record.Double:
		d.Double = math.Float64frombits(r.Uint64())
	case record.Date, record.TimeOfDay, record.Timestamp:
		d.Int, d.Unit, d.Local = int64(r.Uint64()), record.Millis, r.IntN(2) == 0
	case record.Decimal:
		d.Scale, d.Bytes = int32(r.Uint32()), text()
	case record.Text:
		d.Quoted, d.Bytes = r.IntN(2) == 0, text()
	default:
		d.Bytes = text()
	}
	return d
}

// anyKey returns a random key value, often a limit of its range.
func anyKey(r *rand.Rand) record.Datum {
	text := [][]byte{{}, {0}, []byte("\xff\xfe"), []byte("\u2028\"\\<表"), {byte(r.Uint32()), byte(r.Uint32())}}[r.IntN(5)]
	n := []int64{math.MinInt64, math.MaxInt64, 0, int64(r.Uint64())}[r.IntN(4)]
	return []record.Datum{{Kind: record.Integer, Int: n}, {Kind: record.String, Bytes: text},
		{Kind: record.Binary, Bytes: text}}[r.IntN(3)]
}

// TestWideRowsRoundTrip reads rows back that were written as rejects and changes are, by AppendWide, or as archives
// are, by AppendWhole with known key columns.
func TestWideRowsRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.SmallestNonzeroFloat64,
		math.MaxFloat64, 1e21, 5, math.Float64frombits(0x7ff8000000000123)}
	names := []string{"a", "b\xff"}
	for n := range 3000 {
		rec := &record.Record{Fields: []record.Datum{anyKey(r), anyKey(r)}}
		if n%2 == 0 {
			rec.Fields[0] = anyWide(r)
		}
		for range r.IntN(5) {
			c := record.Cell{Name: fmt.Appendf(nil, "n%d \u2028<\"%s", r.IntN(3), []byte{byte(r.Uint32())}), Datum: anyWide(r),
				At: int64(r.IntN(5)) - 1}
			if n%3 == 0 {
				c.Datum = anyKey(r)
			}
			if c.Kind == record.Double {
				c.Double = special[n%len(special)]
			}
			rec.Cells = append(rec.Cells, c)
		}
		line := AppendWide(nil, names, rec)
		back := readWide(t, line, names...)
		conformance.MustTrue(t, back.Bad == nil && wideText(back) == wideText(rec), "%s\ngave %s", line, wideText(back))
		back = readArchived(AppendWhole(nil, names, rec), names...)
		conformance.MustTrue(t, back.Bad == nil && wideText(back) == wideText(rec), "%s\ngave %s", line, wideText(back))
	}
}

// readArchived returns the only row in an archive's line whose key columns are strings.
func readArchived(line []byte, names ...string) *record.Record {
	p := NewParser(Options{Columns: names, Archive: len(names)})
	p.Reset(line)
	rec, _ := p.Next()
	return rec
}

func TestArchiveLinesAreRead(t *testing.T) {
	cell := func(name string, at int64, d record.Datum) record.Cell {
		return record.Cell{Name: []byte(name), Datum: d, At: at}
	}
	want := &record.Record{Fields: []record.Datum{{Kind: record.String, Bytes: []byte("a")},
		{Kind: record.String, Bytes: []byte("\xff")}}, Cells: []record.Cell{
		cell("i", 2, record.Datum{Kind: record.Integer, Int: math.MinInt64}),
		cell("i", 1, record.Datum{Kind: record.String, Bytes: []byte("x")}),
		cell("d", 1, record.Datum{Kind: record.Double, Double: math.Copysign(0, -1)}),
		cell("n", 1, record.Datum{Kind: record.Double, Double: math.Float64frombits(0x7ff8000000000123)}),
		cell("t", 1, record.Datum{Kind: record.Boolean, Int: 1}),
		cell("\xff", 1, record.Datum{Kind: record.Binary, Bytes: []byte{0, 255}}),
		cell("e", 1, record.Datum{Kind: record.String}),
	}}
	line := AppendWhole(nil, []string{"a", "b"}, want)
	back := readArchived(line, "a", "b")
	conformance.True(t, back.Bad == nil && wideText(back) == wideText(want), "%s\ngave %s", line, wideText(back))
	for _, line := range []string{`{"PK":{"Values":["a","b"]},"Attr":{"Values":[]}}`,
		`{"Wide":true,"PK":{"Values":["a"]},"Attr":{"Values":[]}}`, `{"a":1}`,
		`{"Wide":true,"PK":{"Values":[{"C":"a","V":"x"}]}}`, `{"Wide":true,"PK":{"Values":["a","b"]}}`} {
		rec := readArchived([]byte(line), "a", "b")
		conformance.True(t, rec.Bad != nil, "%s is read: %s", line, wideText(rec))
	}
}

func FuzzWide(f *testing.F) {
	f.Add(
		[]byte(`{"Wide":true,"PK":{"Values":[{"C":"id","V":1,"IsInt":true}]},"Attr":{"Values":[{"C64":"/w==","V":"AA==","T":"binary","TS":5}]}}`))
	f.Add(
		[]byte(
			`{"Wide":true,"PK":{"Values":[{"C":"id","V":7,"T":"timestamp","Unit":1000,"Local":true},{"C":"a","V":null}]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return
		}
		read := func(line []byte) (*record.Record, bool) {
			p := NewParser(Options{Columns: []string{"id", "a"}, Wide: true})
			p.Reset(line)
			rec, ok := p.Next()
			return rec, ok && rec.Bad == nil
		}
		rec, ok := read(line)
		if !ok {
			return
		}
		want := wideText(rec)
		var names []string
		for i, name := range []string{"id", "a"} {
			if rec.Fields[i].Kind == record.Absent {
				name = ""
			}
			names = append(names, name)
		}
		again, ok := read(AppendWide(nil, names, rec))
		conformance.True(t, ok && wideText(again) == want, "%s, want %s", wideText(again), want)
	})
}

func TestMain(m *testing.M) { conformance.Main(m) }

var escapes = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)

// strict reports whether a valid JSON text has no repeated key, no nesting beyond MaxDepth and no unpaired surrogate,
// which encoding/json replaces by U+FFFD.
func strict(line []byte) bool {
	d := json.NewDecoder(bytes.NewReader(line))
	replaced := -bytes.Count(line, []byte("\uFFFD"))
	for _, esc := range escapes.FindAll(line, -1) {
		if strings.EqualFold(string(esc), `\ufffd`) {
			replaced--
		}
	}
	var keys []map[string]bool // by level; nil for an array
	isKey := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return replaced == 0
		}
		top := len(keys) - 1
		if name, ok := token.(string); ok {
			replaced += strings.Count(name, "\uFFFD")
			if isKey {
				if keys[top][name] {
					return false
				}
				keys[top][name], isKey = true, false
				continue
			}
		}
		switch token {
		case json.Delim('{'):
			keys = append(keys, map[string]bool{})
		case json.Delim('['):
			keys = append(keys, nil)
		case json.Delim('}'), json.Delim(']'):
			keys = keys[:top]
		}
		if len(keys) > MaxDepth {
			return false
		}
		isKey = len(keys) > 0 && keys[len(keys)-1] != nil
	}
}

// check compares the parser with encoding/json for one line.
func check(t *testing.T, line []byte) {
	trimmed := bytes.Trim(line, " \t\r")
	want := json.Valid(line) && trimmed[0] == '{' && utf8.Valid(line) && strict(line)
	var columns Columns
	records, bad := Discover(line, Options{}, &columns)
	if len(trimmed) == 0 {
		conformance.MustEqual(t, records, 0, "%q: a blank line is a record", line)
		return
	}
	export := len(columns.Keys()) > 0 || bytes.Contains(line, []byte(`"PK"`)) || bytes.Contains(line, []byte(`"Attr"`))
	if export {
		return
	}
	conformance.MustTrue(t, records == 1 && (bad == 0) == want, "%q: %d, %d bad, want good: %v", line, records, bad, want)
	if !want {
		return
	}
	var values map[string]json.RawMessage
	conformance.Must(t, json.Unmarshal(line, &values))
	conformance.MustEqual(t, len(values), len(columns.Names()), "%q: columns %q", line, columns.Names())
	p := NewParser(Options{Columns: columns.Names()})
	p.Reset(line)
	r, _ := p.Next()
	conformance.MustTrue(t, r.Bad == nil, "%q: %v", line, r.Bad)
	for i, name := range columns.Names() {
		compare(t, name, r.Fields[i], values[name])
	}
}

func compare(t *testing.T, name string, d record.Datum, raw json.RawMessage) {
	ok := false
	switch d.Kind {
	case record.Null:
		ok = string(raw) == "null"
	case record.Boolean:
		ok = string(raw) == strconv.FormatBool(d.Int != 0)
	case record.Number:
		ok = string(raw) == string(d.Bytes)
	case record.String:
		var s string
		ok = json.Unmarshal(raw, &s) == nil && s == string(d.Bytes)
	case record.JSON:
		var b bytes.Buffer
		ok = json.Compact(&b, raw) == nil && bytes.Equal(b.Bytes(), d.Bytes)
	}
	conformance.MustTrue(t, ok, "%q: kind %d %q, encoding/json has %q", name, d.Kind, d.Bytes, raw)
}

func FuzzJSONLines(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":"x","c":[1,{"d":null}]}`, `{"a":"\ud83d\ude00\u00e9\n"}`, `{"a":1,"a":2}`, " {} \r",
		`{"a": -0.5e+7 , "b" : {"x" : [ true ] } }`,
		`{"PK":{"Values":["k",0]},"Attr":{"Values":[{"C":"n","V":1,"TS":5,"IsInt":true}]}}`, "{\"a\":\"\xff\"}",
		`{"a":"\ud800"}`, "{}\n{}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			if len(line) > 0 {
				check(t, line)
			}
		}
		// Parsing a split must give the same as parsing its lines, flattened or not, and must never panic.
		for _, flatten := range []bool{false, true} {
			var columns Columns
			records, bad := Discover(data, Options{Flatten: flatten}, &columns)
			p := NewParser(Options{Columns: columns.Names(), Flatten: flatten})
			p.Reset(data)
			n := 0
			for r, ok := p.Next(); ok; r, ok = p.Next() {
				if r.Bad != nil {
					n++
				}
			}
			conformance.MustTrue(t, p.Records() == records && n == bad,
				"%q flatten %v: %d records, %d bad; discovered %d, %d", data, flatten, p.Records(), n, records, bad)
		}
	})
}
