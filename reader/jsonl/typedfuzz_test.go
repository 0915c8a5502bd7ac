package jsonl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"tsimport/reader/record"
)

// FuzzTyped reads any line as DynamoDB JSON and as Extended JSON: white space changes nothing, what nested values become is JSON, and values of DynamoDB
// are what a second reading of the line by encoding/json makes of them.
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
			if err := json.Indent(&loose, line, " ", "\t"); err != nil {
				t.Fatalf("%q is read, and is not JSON: %v", line, err)
			}
			if again := fieldsOf(t, o, bytes.ReplaceAll(loose.Bytes(), []byte("\n"), []byte(" "))); !reflect.DeepEqual(again, fields) && !hasNaN(fields) {
				t.Fatalf("%q: %v, and with white space %v", line, fields, again)
			}
			var item map[string]any
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			if err := d.Decode(&item); err != nil {
				t.Fatal(err)
			}
			if o.Wrapped {
				item = item["Item"].(map[string]any)
			}
			for i, name := range o.Columns {
				if fields[i].Kind == record.JSON && !json.Valid(fields[i].Bytes) {
					t.Fatalf("%q: %s becomes %q, which is not JSON", line, name, fields[i].Bytes)
				}
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
	if !ok || r.Bad != nil {
		t.Fatalf("%q was found to be good, and is not read: %v", line, r)
	}
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

// same compares a value with what encoding/json says.
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
		if err := dec.Decode(&got); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: %#v, want %#v", line, got, want)
	}
}

// plain is what a value of DynamoDB stands for.
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
