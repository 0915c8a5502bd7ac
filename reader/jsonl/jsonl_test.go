package jsonl

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// show writes a record as the tests compare it.
func show(p *Parser, r *record.Record) string {
	if r.Bad != nil {
		return "bad " + r.Bad.Code
	}
	var out []string
	for i, d := range r.Fields {
		s := ""
		switch d.Kind {
		case record.Null:
			s = "null"
		case record.String:
			s = fmt.Sprintf("s%q", d.Bytes)
		case record.Number:
			s = "n" + string(d.Bytes)
		case record.Boolean:
			s = fmt.Sprint(d.Int != 0)
		case record.JSON:
			s = "j" + string(d.Bytes)
		case record.Integer:
			s = fmt.Sprintf("i%d", d.Int)
		case record.Double:
			s = fmt.Sprintf("d%v", d.Double)
		case record.Binary:
			s = fmt.Sprintf("b%x", d.Bytes)
		}
		if ts := p.Timestamps(); ts != nil && ts[i] != NoTimestamp {
			s += fmt.Sprintf("@%d", ts[i])
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func parse(o Options, text string) (out []string) {
	p := NewParser(o)
	p.Reset([]byte(text))
	for r, ok := p.Next(); ok; r, ok = p.Next() {
		out = append(out, show(p, r))
	}
	return out
}

func TestLineBecomesTypedRecord(t *testing.T) {
	abc := Options{Columns: []string{"a", "b", "c"}}
	flat := Options{Columns: []string{"a", "a.b", "a.b.c", "d"}, Flatten: true}
	deep := strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1)
	for _, c := range []struct {
		options    Options
		line, want string
	}{
		{abc, `{"a":1,"b":"x","c":true}`, `n1 s"x" true`},
		{abc, ` { "c" : false , "z":[1], "a":null}` + "\r", `null null false`},
		{abc, `{}`, `null null null`},
		{abc, "\ufeff {\"a\":1}", `n1 null null`}, // where files were joined
		{Options{Columns: []string{"a"}, Layout: Objects}, "\ufeff", `bad SeamOfFiles`},
		{abc, `{"a":9007199254740993,"b":-0.10e+400,"c":1E5}`, `n9007199254740993 n-0.10e+400 n1E5`},
		{abc, `{"a":"\u00e9\n\"\\\/\ud83d\ude00","b":"é😀","c":""}`, `s"é\n\"\\/😀" s"é😀" s""`},
		{abc, `{"\u0061":1,"b":"\ufffd","c":"` + "\uFFFD" + `"}`, `n1 s"�" s"�"`},
		{abc, `{"a":{"x": [1 ,2.50, "a b\" c"] },"b":[ ],"c":[[],{}]}`, `j{"x":[1,2.50,"a b\" c"]} j[] j[[],{}]`},
		{abc, `{"a":"\ud83d"}`, `bad InvalidUTF8`},
		{abc, `{"a":"\ude00\ud83d"}`, `bad InvalidUTF8`},
		{abc, `{"a":["\ud83dx"]}`, `bad InvalidUTF8`},
		{abc, "{\"a\":\"x\xffy\"}", `bad InvalidUTF8`},
		{abc, "{\"zz\xed\xa0\x80\":1}", `bad InvalidUTF8`},
		{abc, `{"a":1,"a":2}`, `bad BadJSON`},
		{abc, `{"z":1,"\u007a":2}`, `bad BadJSON`},
		{abc, `{"b":{"z":1,"z":2}}`, `bad BadJSON`},
		{abc, `{"b":{"z":1},"c":[{"z":1},{"z":1}]}`, `null j{"z":1} j[{"z":1},{"z":1}]`},
		{abc, `[1]`, `bad BadJSON`},
		{abc, `{"a":1} x`, `bad BadJSON`},
		{abc, `{"a":1}{"a":1}`, `bad BadJSON`},
		{abc, `{"a":01}`, `bad BadJSON`},
		{abc, `{"a":1,}`, `bad BadJSON`},
		{abc, `{"a":"` + "\t" + `"}`, `bad BadJSON`},
		{abc, `{"a":"x`, `bad BadJSON`},
		{abc, `{"a":nulL}`, `bad BadJSON`},
		{abc, `{"a":` + deep + `}`, `j` + deep + ` null null`},
		{abc, `{"a":[` + deep + `]}`, `bad BadJSON`},
		{abc, `{"a":` + strings.Repeat("[", 1<<20), `bad BadJSON`},
		{flat, `{"a":{"b":{"c":1,"x":2}},"d":{}}`, `j{"b":{"c":1,"x":2}} j{"c":1,"x":2} n1 j{}`},
		{flat, `{"a":5,"d":[{"b":1}]}`, `n5 null null j[{"b":1}]`},
		{flat, `{"a.b.c":7}`, `null null n7 null`},
		{flat, `{"a":{"b":{"c":1}},"a.b.c":7}`, `bad BadJSON`},
		{flat, `{"x":{"y":1},"x.y":7}`, `bad BadJSON`},
		{flat, `{"":{"d":1},"d":2}`, `null null null n2`},
	} {
		got := parse(c.options, c.line)
		conformance.True(t, len(got) == 1 && got[0] == c.want, "%.80s: got %.200q, want %.200s", c.line, got, c.want)
	}
}

func TestVendorExportsBecomeRowsWithTimestamps(t *testing.T) {
	o := Options{Columns: []string{"uid", "pk2", "name", "age", "w"}, Keys: []string{"uid"}}
	lines := []struct{ line, want string }{
		{`{"PK":{"Values":["redchen",0]},"Attr":{"Values":[{"C":"name","V":"x","TS":1626860469000},{"C":"age","V":9007199254740993,"TS":1626860469001,"IsInt":true},{"C":"w","V":9007199254740992}]}}`,
			`s"redchen" n0 s"x"@1626860469000 i9007199254740993@1626860469001 d9.007199254740992e+15`},
		{`{"PK":{"Values":["k"]},"Attr":{"Values":[{"C":"w","V":9007199254740993}]}}`, `bad OutOfRange`},
		{`{"PK":{"Values":["k"]},"Attr":{"Values":[{"C":"w","V":0.1000000000000000055}]}}`, `bad OutOfRange`},
		{` {"PK":{"Values":[{"C":"pk2","V":"a"},{"C":"uid","V":7,"IsInt":true}]}}`, `i7 s"a" null null null`},
		{`{"Attr":{"Values":[{"c":"name","v":"AQID","t":"binary","ts":0}]},"PK":{"Values":["k"]}}`,
			`s"k" null b010203 null null`},
		{`{"PK":{"Values":["k"]},"Attr":{"Values":[{"C":"age","V":1.5,"IsInt":true}]}}`, `bad WrongType`},
		{`{"PK":{"Values":["k"]},"Attr":{"Values":[{"C":"age","V":9223372036854775808,"IsInt":true}]}}`, `bad OutOfRange`},
		{`{"PK":{"Values":["k"]},"Attr":{"Values":[{"C":"age","V":1e999}]}}`, `bad OutOfRange`},
		{`{"PK":{"Values":["k"]},"Attr":{"Values":[{"C":"age","V":1,"TS":-5}]}}`, `bad WrongType`},
		{`{"PK":{"Values":["k"]},"Attr":{"Values":[{"C":"age","V":1},{"C":"age","V":2}]}}`, `bad BadJSON`},
		{`{"PK":{"Values":["k"]},"Attr":{"Values":[{"C":"q","V":1},{"C":"q","V":2}]}}`, `bad BadJSON`},
		{`{"PK":{"Values":["k"]},"Attr":{"Values":[{"C":"q"}]}}`, `bad BadJSON`},
		{`{"PK":{"Values":["k"]},"Attr":{"Values":[{"C":"q","V":1,"New":1}]}}`, `bad BadJSON`},
		{`{"PK":{"Values":["k"]},"Attr":{"Values":[7]}}`, `bad BadJSON`},
		{`{"PK":{"Values":["k"]},"Attr":{"Values":[]}}`, `s"k" null null null null`},
		{`{"PK":{"Values":["k"]},"name":1}`, `null null n1 null null`}, // not the shape
		{`{"PK":7,"name":1}`, `null null n1 null null`},
	}
	for _, c := range lines {
		got := parse(o, c.line)
		conformance.True(t, len(got) == 1 && got[0] == c.want, "%s: got %q, want %s", c.line, got, c.want)
	}
	var c Columns
	n, bad := Discover([]byte(lines[0].line+"\n"+lines[5].line), Options{}, &c)
	conformance.True(t, n == 2 && bad == 1, "%d records, %d bad", n, bad)
	conformance.Same(t, c.Names(), []string{"pk1", "pk2", "name", "age", "w"}, "names")
	conformance.Same(t, c.Keys(), []string{"pk1", "pk2"}, "keys")
}

func TestMarksCountLinesAndRecordsAndCoverTheLineEnd(t *testing.T) {
	text := "{\"a\":1}\n\n  \r\n{\"a\":2}\r\nx\n{\"a\":3}"
	p := NewParser(Options{Columns: []string{"a"}})
	for range 2 {
		p.Reset([]byte(text))
		var got []string
		for r, ok := p.Next(); ok; r, ok = p.Next() {
			got = append(got, fmt.Sprintf("%d/%d %q", r.Span.Record, r.Span.Line, text[r.Span.Start:r.Span.End]))
		}
		want := []string{`0/0 "{\"a\":1}\n"`, `1/3 "{\"a\":2}\r\n"`, `2/4 "x\n"`, `3/5 "{\"a\":3}"`}
		conformance.True(t, slices.Equal(got, want) && p.Records() == 4 && p.Lines() == 6, "%q, %d", got, p.Records())
	}
}

func TestRefusalNamesTextAndPlace(t *testing.T) {
	for _, c := range []struct{ line, code, column, message string }{
		{`{"a" 1}`, CodeJSON, "", `want ':' at byte 6, found '1'`},
		{`{"a":1`, CodeJSON, "", `want ',' or '}' at byte 7, the line ends`},
		{"{\"a\":\"x\xff\"}", table.CodeUTF8, "a", `invalid UTF-8 at byte 8 of the line`},
		{`{"a":"x\ud800"}`, table.CodeUTF8, "a", `half of a surrogate pair at byte 8 of the line`},
		{`{"b":1,"b":2}`, CodeJSON, "", `key "b" occurs twice, at byte 12 again`},
		{`{"a":"\x"}`, CodeJSON, "", `want an escape sequence at byte 8, found 'x'`},
	} {
		p := NewParser(Options{Columns: []string{"a"}})
		p.Reset([]byte(c.line))
		r, _ := p.Next()
		conformance.True(t, r.Bad != nil && r.Bad.Code == c.code && r.Bad.Column == c.column && r.Bad.Message == c.message,
			"%s: %+v", c.line, r.Bad)
	}
}

func TestColumnsAreDiscoveredInOrderOfAppearance(t *testing.T) {
	text := `{"b":1,"a":null,"e":{}}` + "\n" + `{"a":{"x":1,"y":{"z":[]}},"c":2}` + "\n" + `{"d":1,"d":2}` + "\nx\n"
	for _, c := range []struct {
		flatten bool
		want    []string
	}{{false, []string{"b", "a", "e", "c"}}, {true, []string{"b", "e", "a.x", "a.y.z", "c"}}} {
		var got Columns
		n, bad := Discover([]byte(text), Options{Flatten: c.flatten}, &got)
		conformance.True(t, n == 4 && bad == 2 && slices.Equal(got.Names(), c.want), "%d, %d: %q", n, bad, got.Names())
	}
}

func TestParsingDoesNotAllocateInSteadyState(t *testing.T) {
	text := []byte(strings.Repeat(`{"a":1,"b":"x\ny","u":"unknown","c":{"k": [1, 2]},"d":true}`+"\n", 100) +
		`{"PK":{"Values":["k",1]},"Attr":{"Values":[{"C":"a","V":1.5,"TS":5}]}}` + "\n")
	for _, flatten := range []bool{false, true} {
		p := NewParser(Options{Columns: []string{"a", "b", "c", "d", "c.k"}, Flatten: flatten})
		n := testing.AllocsPerRun(20, func() {
			p.Reset(text)
			for r, ok := p.Next(); ok; r, ok = p.Next() {
				if r.Bad != nil {
					t.Fatal(r.Bad)
				}
			}
		})
		conformance.True(t, n == 0, "%v allocations, flatten %v", n, flatten)
	}
}

func TestManyKeysAreCheckedInLinearTime(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"k0":0`)
	for i := 1; i < 200000; i++ {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	got := parse(Options{Columns: []string{"k199999"}}, b.String()+"}\n"+b.String()+`,"k77":1}`+"\n"+`{"k199999":1}`)
	conformance.True(t, slices.Equal(got, []string{"n0", "bad BadJSON", "n1"}), "%v", got)
}

func TestUnknownMemberRejectsRecordIfStrict(t *testing.T) {
	p := NewParser(Options{Columns: []string{"a", "o.b"}, Flatten: true, Strict: true})
	p.Reset(
		[]byte(
			"{\"a\":1,\"o\":{\"b\":2}}\n{\"a\":1,\"x\":2}\n{\"a\":1,\"x\":null}\n{\"o\":{\"c\":3}}\n{\"PK\":{\"Values\":[{\"C\":\"a\",\"V\":1},{\"C\":\"z\",\"V\":1}]}}\n"))
	for i, want := range []string{"", CodeUnknown + " x", "", CodeUnknown + " o.c", CodeUnknown + " z"} {
		rec, ok := p.Next()
		got := ""
		if ok && rec.Bad != nil {
			got = rec.Bad.Code + " " + rec.Bad.Column
		}
		conformance.True(t, ok && got == want, "line %d: %q, want %q", i+1, got, want)
	}
}
