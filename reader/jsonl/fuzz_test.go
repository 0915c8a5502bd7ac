package jsonl

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/record"
)

func TestMain(m *testing.M) { conformance.Main(m) }

var escapes = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)

// strict reports whether a valid JSON text repeats no key, nests up to MaxDepth and has no half of a surrogate pair,
// which encoding/json replaces by U+FFFD.
func strict(line []byte) bool {
	d := json.NewDecoder(bytes.NewReader(line))
	replaced := -bytes.Count(line, []byte("\uFFFD"))
	for _, esc := range escapes.FindAll(line, -1) {
		if strings.EqualFold(string(esc), `\ufffd`) {
			replaced--
		}
	}
	var keys []map[string]bool // of each level; nil in an array
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

// check compares the parser with encoding/json on one line.
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
		// A split parses as its lines do, flattened or not, and never panics.
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
