package jsonl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// show formats a record for comparisons.
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
		{abc, "\ufeff {\"a\":1}", `n1 null null`}, // starts with a byte order mark, as where files were joined
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
		{`{"PK":{"Values":["k"]},"name":1}`, `null null n1 null null`}, // not in the format of an export
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

func TestSpansCountLinesAndCoverLineEnds(t *testing.T) {
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

func TestRefusalIncludesTextAndPosition(t *testing.T) {
	for _, c := range []struct{ line, code, column, message string }{
		{`{"a" 1}`, CodeJSON, "", `want ':' at byte 6, found '1'`},
		{`{"a":1`, CodeJSON, "", `want ',' or '}' at byte 7, the line ends`},
		{"{\"a\":\"x\xff\"}", table.CodeUTF8, "a", `invalid UTF-8 at byte 8`},
		{`{"a":"x\ud800"}`, table.CodeUTF8, "a", `half of a surrogate pair at byte 8`},
		{`{"b":1,"b":2}`, CodeJSON, "", `key "b" occurs twice, again at byte 12`},
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

// typedRecord parses a record with tagged values. It returns the value of its first column, or why it was refused.
func typedRecord(o Options, text string) string {
	var columns Columns
	Discover([]byte(text), o, &columns)
	o.Columns = columns.Names()
	if len(o.Columns) == 0 {
		o.Columns = []string{"a"}
	}
	p := NewParser(o)
	p.Reset([]byte(text))
	r, ok := p.Next()
	switch {
	case !ok:
		return "no record"
	case r.Bad != nil:
		return r.Bad.Code + " " + r.Bad.Column + ": " + r.Bad.Message
	}
	d := &r.Fields[0]
	switch d.Kind {
	case record.Null:
		return "null"
	case record.Integer:
		return fmt.Sprint("integer ", d.Int)
	case record.Timestamp:
		return fmt.Sprint("time ", d.Int, " ", d.Unit)
	case record.Boolean:
		return fmt.Sprint("boolean ", d.Int)
	case record.Double:
		return "double " + string(table.AppendDouble(nil, d.Double))
	}
	return fmt.Sprintf("%s %s", map[record.Kind]string{record.String: "string", record.Number: "number",
		record.Binary: "binary", record.JSON: "json"}[d.Kind], d.Bytes)
}

var spaced = strings.NewReplacer(`":`, `" : `, `{"`, `{ "`, `}`, ` }`)

func checkTyped(t *testing.T, o Options, cases [][2]string) {
	t.Helper()
	for _, c := range cases {
		for _, text := range []string{c[0], spaced.Replace(c[0])} {
			got := typedRecord(o, text)
			want, refused := strings.CutPrefix(c[1], "! ")
			conformance.True(t, (!refused || strings.HasPrefix(got, CodeTag) && strings.Contains(got, want)) &&
				(refused || got == c[1]), "%s\n got %s\nwant %s", text, got, c[1])
		}
	}
}

func TestDynamoDBValuesAreUnwrapped(t *testing.T) {
	cases := [][2]string{
		{`{"S":"x\u0041\"é"}`, `string xA"é`}, {`{"S":""}`, "string "},
		{`{"N":"7"}`, "number 7"}, {`{"N":"-12.50"}`, "number -12.50"}, {`{"N":"12345678901234567890123456789012345678"}`,
			"number 12345678901234567890123456789012345678"},
		{`{"N":"1E+2"}`, "number 1E+2"}, {`{"B":"AAEC/w=="}`, "binary \x00\x01\x02\xff"}, {`{"B":""}`, "binary "},
		{`{"BOOL":true}`, "boolean 1"}, {`{"BOOL":false}`, "boolean 0"}, {`{"NULL":true}`, "null"},
		{`{"M":{}}`, "json {}"}, {`{"L":[]}`, "json []"},
		{`{"M":{"k\"":{"S":"v\n"},"n":{"N":"1.50"},"m":{"M":{"l":{"L":[{"BOOL":true},{"NULL":true},{"B":"AQ=="}]}}}}}`,
			`json {"k\"":"v\n","n":1.50,"m":{"l":[true,null,"AQ=="]}}`},
		{`{"SS":["a","b\t"]}`, `json ["a","b\t"]`}, {`{"NS":["1","2.5"]}`, "json [1,2.5]"},
		{`{"BS":["AQ==","Ag=="]}`, `json ["AQ==","Ag=="]`},

		{`{"N":"abc"}`, "! N holds \"abc\", which is not a number"}, {`{"N":"007"}`, "! not a number"},
		{`{"N":""}`, "! not a number"}, {`{"N":"NaN"}`, "! not a number"}, {`{"N":7}`, "! N does not hold a string"},
		{`{"N":"1 "}`, "! not a number"}, {`{"S":"x","N":"1"}`, "! a member beside S"},
		{`{"S":null}`, "! S does not hold a string"}, {`{"B":"A"}`, "! not base64"}, {`{"B":"AQ==\n"}`, "! not base64"},
		{`{"BOOL":"true"}`, "! BOOL does not hold true or false"}, {`{"NULL":false}`, "! NULL does not hold true"},
		{`{"M":[]}`, "! M does not hold an object"}, {`{"L":{}}`, "! want an array"}, {`{"L":["x"]}`, "! want a typed value"},
		{`{"SS":[1]}`, "! SS holds an element that is not a string"}, {`{"NS":["x"]}`, "! not a number"},
		{`{"BS":["?"]}`, "! not base64"}, {`{"N":"1_0"}`, "! not a number"},
		{`{"X":"1"}`, "! \"X\" is not a type of DynamoDB"}, {`{}`, "! want a typed value"}, {`"x"`, "! want a typed value"},
		{`7`, "! want a typed value"}, {`[]`, "! want a typed value"}, {`{"M":{"a":{"S":1}}}`, "! S does not hold a string"},
	}
	for i := range cases {
		cases[i][0] = `{"a":` + cases[i][0] + `}`
	}
	checkTyped(t, Options{Tags: DynamoDB}, cases)
	for i := range cases {
		cases[i][0] = `{"Item":` + cases[i][0] + `}`
	}
	checkTyped(t, Options{Tags: DynamoDB, Wrapped: true}, append(cases,
		[2]string{`{"Item":{"a":{"S":"x"}},"b":1}`, "! nothing beside Item"},
		[2]string{`{"a":{"S":"x"}}`, "! want {\"Item\":{…}}"},
		[2]string{`{"Item":[]}`, "! want {\"Item\":{…}}"}, [2]string{`{}`, "! want {\"Item\":{…}}"}))
}

// TestMongoDBValuesAreUnwrapped has a record in each line. It is also read with spaces.
func TestMongoDBValuesAreUnwrapped(t *testing.T) {
	conformance.Golden(t, "mongodb.golden", func(text string) string {
		o := Options{Tags: MongoDB}
		return fmt.Sprintf("%q\n%q", typedRecord(o, text), typedRecord(o, spaced.Replace(text)))
	})
}

func TestMemberOutsideSampleIsRefusedUnlessNull(t *testing.T) {
	for text, want := range map[string]string{`{"a":{"N":"1"},"b":{"NULL":true}}`: "",
		`{"a":{"N":"1"},"b":{"N":"1"}}`: CodeUnknown} {
		p := NewParser(Options{Columns: []string{"a"}, Strict: true, Tags: DynamoDB})
		p.Reset([]byte(text))
		r, _ := p.Next()
		got := r.Bad
		conformance.True(t, (want != "" || got == nil) && (want == "" || got != nil && got.Code == want), "%s: %v", text, got)
	}
}

func TestUnsampledTagErrorNamesFlag(t *testing.T) {
	for text, want := range map[string]bool{
		`{"_id":{"$oid":"5d505646cf6d4fe581014ab2"}}`:                    true,
		`{"a":1,"_id":{ "at": [ {"$date" : "2020-01-01T00:00:00Z"} ] }}`: true, `{"_id":{"$set":{"b":1}}}`: false,
		`{"_id":{"$oid":"x"}}`: false, `{"_id":"$oid"}`: false, `{"_id":{"price":"$5"}}`: false,
	} {
		p := NewParser(Options{Columns: []string{"_id", "a"}, Untyped: true})
		p.Reset([]byte(text))
		r, _ := p.Next()
		refused := r.Bad != nil && r.Bad.Code == CodeTag && strings.Contains(r.Bad.Message, "--format mongodb")
		conformance.True(t, refused == want, "%s: %v", text, r.Bad)
	}
}

// FuzzTyped reads any line as DynamoDB JSON and as Extended JSON. White space must not matter, nested values must
// become JSON, and DynamoDB values must equal those that encoding/json reads.
func FuzzTyped(f *testing.F) {
	for _, line := range []string{
		`{"Item":{"a":{"M":{"b":{"NS":["1","2.5"]},"c":{"L":[{"S":"x"},{"BOOL":true},{"NULL":true},{"B":"AQ=="}]}}},"d":{"N":"1E+2"}}}`,
		`{"a":{"S":"\u00e9\n"},"b":{"SS":["x"]},"c":{"BS":["AQ=="]}}`,
		`{"_id":{"$oid":"5d505646cf6d4fe581014ab2"},"a":{"$date":{"$numberLong":"-1"}},"b":[{"$numberDecimal":"1.50"}],"c":{"$binary":{"base64":"AQI=","subType":"00"}}}`,
		`{"a":{"$timestamp":{"t":1,"i":2}},"b":{"$regularExpression":{"pattern":"x","options":"i"}},"c":{"$binary":"AQI=","$type":"00"},"d":{"$uuid":"73ffd264-44b3-4869-90e8-e7d1dfc035d4"}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsAny(line, "\n") {
			return
		}
		for _, o := range []Options{{Tags: DynamoDB}, {Tags: DynamoDB, Wrapped: true}, {Tags: MongoDB}} {
			var columns Columns
			records, bad := Discover(line, o, &columns)
			if records != 1 || bad != 0 {
				continue
			}
			o.Columns = columns.Names()
			fields := fieldsOf(t, o, line)
			var loose bytes.Buffer
			err := json.Indent(&loose, line, " ", "\t")
			conformance.MustTrue(t, err == nil, "%q is read, and is not JSON: %v", line, err)
			again := fieldsOf(t, o, bytes.ReplaceAll(loose.Bytes(), []byte("\n"), []byte(" ")))
			conformance.MustTrue(t, reflect.DeepEqual(again, fields) || hasNaN(fields), "%q: %v, or %v", line, fields, again)
			var item map[string]any
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			conformance.Must(t, d.Decode(&item))
			if o.Wrapped {
				item = item["Item"].(map[string]any)
			}
			for i, name := range o.Columns {
				conformance.MustTrue(t, fields[i].Kind != record.JSON || json.Valid(fields[i].Bytes),
					"%q: %s becomes %q, which is not JSON", line, name, fields[i].Bytes)
				if o.Tags == DynamoDB {
					same(t, line, &fields[i], item[name])
				}
			}
		}
	})
}

func fieldsOf(t *testing.T, o Options, line []byte) []record.Datum {
	p := NewParser(o)
	p.Reset(line)
	r, ok := p.Next()
	conformance.MustTrue(t, ok && r.Bad == nil, "%q was found to be good, and is not read: %v", line, r)
	return append([]record.Datum{}, r.Fields...)
}

func hasNaN(fields []record.Datum) bool {
	for _, d := range fields {
		if d.Double != d.Double {
			return true
		}
	}
	return false
}

// same compares a value with the one that encoding/json has read.
func same(t *testing.T, line []byte, d *record.Datum, value any) {
	want := plain(value)
	var got any
	switch d.Kind {
	case record.String:
		got = string(d.Bytes)
	case record.Number:
		got = json.Number(d.Bytes)
	case record.Binary:
		got = base64.StdEncoding.EncodeToString(d.Bytes)
	case record.Boolean:
		got = d.Int != 0
	case record.JSON:
		dec := json.NewDecoder(bytes.NewReader(d.Bytes))
		dec.UseNumber()
		conformance.Must(t, dec.Decode(&got))
	}
	conformance.MustEqual(t, reflect.DeepEqual(got, want), true, "%q: %#v, want %#v", line, got, want)
}

// plain returns the plain value of a DynamoDB value.
func plain(value any) any {
	for tag, held := range value.(map[string]any) {
		switch tag {
		case "N":
			return json.Number(held.(string))
		case "NULL":
			return nil
		case "M":
			out := map[string]any{}
			for name, v := range held.(map[string]any) {
				out[name] = plain(v)
			}
			return out
		case "L", "NS":
			out := []any{}
			for _, v := range held.([]any) {
				if tag == "NS" {
					v = map[string]any{"N": v}
				}
				out = append(out, plain(v))
			}
			return out
		}
		if s, is := held.(string); is {
			return strings.ToValidUTF8(s, "\uFFFD")
		}
		return held
	}
	return nil
}
