package jsonl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// typedRecord parses one record with tagged values, and shows the value of its first column, or why the record is
// refused.
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

func checkTyped(t *testing.T, o Options, cases [][2]string) {
	t.Helper()
	for _, c := range cases {
		for _, text := range []string{c[0], strings.NewReplacer(`":`, `" : `, `{"`, `{ "`, `}`, ` }`).Replace(c[0])} {
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

func TestMongoDBValuesAreUnwrapped(t *testing.T) {
	cases := [][2]string{
		{`{"$oid":"5d505646cf6d4fe581014ab2"}`, "string 5d505646cf6d4fe581014ab2"}, {`{"$symbol":"s"}`, "string s"},
		{`{"$code":"f()"}`, "string f()"}, {`{"$numberInt":"-2147483648"}`, "integer -2147483648"},
		{`{"$numberLong":"9223372036854775807"}`, "integer 9223372036854775807"}, {`{"$numberDouble":"1.0"}`, "double 1"},
		{`{"$numberDouble":"-0.0"}`, "double -0"}, {`{"$numberDouble":"5e-324"}`, "double 5e-324"},
		{`{"$numberDouble":"1.7976931348623157E+308"}`, "double 1.7976931348623157e+308"},
		{`{"$numberDouble":"NaN"}`, "double NaN"}, {`{"$numberDouble":"-Infinity"}`, "double -Inf"},
		{`{"$numberDecimal":"10.50"}`, "string 10.50"}, {`{"$numberDecimal":"1E+6144"}`, "string 1E+6144"},
		{`{"$numberDecimal":"NaN"}`, "string NaN"}, {`{"$date":{"$numberLong":"-1"}}`, "time -1 1000"},
		{`{"$date":"1970-01-01T00:00:01.5Z"}`, "time 1500 1000"}, {`{"$date":"1970-01-01T01:00:00.001+0100"}`, "time 1 1000"},
		{`{"$date":"1970-01-01T00:00:00Z"}`, "time 0 1000"}, {`{"$date":17}`, "time 17 1000"},
		{`{"$binary":{"base64":"AQI=","subType":"00"}}`, "binary \x01\x02"},
		{`{"$binary":{"subType":"80","base64":""}}`, "binary "}, {`{"$binary":"AQI=","$type":"00"}`, "binary \x01\x02"},
		{`{"$binary":{"base64":"c//SZESzSGmQ6OfR38A11A==","subType":"04"}}`, "string 73ffd264-44b3-4869-90e8-e7d1dfc035d4"},
		{`{"$uuid":"73FFD264-44b3-4869-90e8-e7d1dfc035d4"}`, "string 73ffd264-44b3-4869-90e8-e7d1dfc035d4"},
		{`{"$timestamp":{"t":4294967295,"i":1}}`, `json {"t":4294967295,"i":1}`},
		{`{"$regularExpression":{"pattern":"a\"","options":"i"}}`, `json {"pattern":"a\"","options":"i"}`},
		{`{"$undefined":true}`, "null"},
		{`null`, "null"}, {`"x"`, "string x"}, {`7`, "number 7"}, {`1.0`, "number 1.0"}, {`true`, "boolean 1"},
		{`{"b":{"$numberLong":"7"},"c":[{"$oid":"5d505646cf6d4fe581014ab2"},1.50,"x\n",null,{"$date":{"$numberLong":"1500"}},{"$numberDouble":"1.0"},{"$numberDecimal":"2.50"}]}`,
			`json {"b":7,"c":["5d505646cf6d4fe581014ab2",1.50,"x\n",null,"1970-01-01T00:00:01.5Z",1.0,2.50]}`},
		{`{"$ref":"c","$id":{"$oid":"5d505646cf6d4fe581014ab2"}}`, `json {"$ref":"c","$id":"5d505646cf6d4fe581014ab2"}`},
		{`{}`, "json {}"}, {`[]`, "json []"}, {`[{"$binary":{"base64":"AQI=","subType":"00"}}]`, `json ["AQI="]`},
		{`{"$set":{"a":{"$numberInt":"1"}}}`, `json {"$set":{"a":1}}`},

		{`{"$oid":"5d50"}`, "! not 24 hexadecimal digits"}, {`{"$oid":7}`, "! $oid does not hold a string"},
		{`{"$oid":"5d505646cf6d4fe581014ab2","$numberInt":"1"}`, "! a member beside $oid"},
		{`{"b":1,"$oid":"5d505646cf6d4fe581014ab2"}`, "! $oid beside other members"},
		{`{"$numberInt":"2147483648"}`, "! not an integer of 32 bits"}, {`{"$numberLong":"9223372036854775808"}`,
			"! not an integer of 64 bits"},
		{`{"$numberLong":"+1"}`, "! not an integer"}, {`{"$numberLong":1}`, "! does not hold a string"},
		{`{"$numberDouble":"0.1000000000000000055"}`, "! not a double"},
		{`{"$numberDouble":"1e400"}`, "! not a double"}, {`{"$numberDouble":"1e-400"}`, "! not a double"},
		{`{"$numberDouble":"0x1p3"}`, "! not a double"}, {`{"$numberDouble":"1_0"}`, "! not a double"},
		{`{"$numberDecimal":"1,5"}`, "! not a number"}, {`{"$date":"yesterday"}`, "! not a time in milliseconds"},
		{`{"$date":"1970-01-01T00:00:00.0001Z"}`, "! not a time in milliseconds"},
		{`{"$date":{"$numberInt":"1"}}`, "! $date holds neither"}, {`{"$date":1.5}`, "! not milliseconds"},
		{`{"$date":[]}`, "! $date holds neither"}, {`{"$date":{"$numberLong":"1","b":1}}`, "! a member beside $numberLong"},
		{`{"$binary":{"base64":"?","subType":"00"}}`, "! not base64"},
		{`{"$binary":{"base64":""}}`, "! base64 and subType"}, {`{"$binary":{"base64":"","subType":"xyz"}}`, "! subtype"},
		{`{"$binary":{"base64":"","subType":"04"}}`, "! not a UUID"}, {`{"$binary":""}`, "! no $type"},
		{`{"$binary":{"base64":"","subType":"00","c":""}}`, "! base64 and subType"},
		{`{"$binary":{"base64":1,"subType":"00"}}`, "! does not hold a string"}, {`{"$binary":7}`, "! base64 and subType"},
		{`{"$uuid":"73ffd26444b3486990e8e7d1dfc035d4"}`, "! not a UUID"}, {`{"$timestamp":{"t":4294967296,"i":1}}`,
			"! $timestamp"}, {`{"$timestamp":{"i":1,"t":1}}`, "! $timestamp"},
		{`{"$timestamp":{"t":1}}`, "! $timestamp"}, {`{"$timestamp":{"t":1,"i":1,"j":1}}`, "! $timestamp"},
		{`{"$regularExpression":"a"}`, "! pattern and options"}, {`{"$undefined":false}`, "! $undefined"},
		{`{"$minKey":1}`, "! $minKey has no value"}, {`{"$code":"f","$scope":{}}`, "! a member beside"},
		{`[{"$numberDouble":"NaN"}]`, "! which JSON cannot hold"}, {`{"b":{"$numberDecimal":"Infinity"}}`,
			"! which JSON cannot hold"}, {`[{"$oid":"x"}]`, "! not 24 hexadecimal"},
	}
	for i := range cases {
		cases[i][0] = `{"a":` + cases[i][0] + `}`
	}
	checkTyped(t, Options{Tags: MongoDB}, append(cases, [2]string{`{"$oid":"5d505646cf6d4fe581014ab2"}`,
		"! the record is not a document"}))
}

func TestMemberMissingInSampleIsRefusedUnlessNull(t *testing.T) {
	for text, want := range map[string]string{`{"a":{"N":"1"},"b":{"NULL":true}}`: "",
		`{"a":{"N":"1"},"b":{"N":"1"}}`: CodeUnknown} {
		p := NewParser(Options{Columns: []string{"a"}, Strict: true, Tags: DynamoDB})
		p.Reset([]byte(text))
		r, _ := p.Next()
		got := r.Bad
		conformance.True(t, (want != "" || got == nil) && (want == "" || got != nil && got.Code == want), "%s: %v", text, got)
	}
}

func TestRefusalOfATagMissingFromTheSampleNamesTheFlag(t *testing.T) {
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

// FuzzTyped reads any line as DynamoDB JSON and as Extended JSON: white space changes nothing, nested values become
// JSON, and DynamoDB values equal a second reading of the line by encoding/json.
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

// same compares a value with the result of encoding/json.
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

// plain returns the value that a DynamoDB value stands for.
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
