package reader

import (
	"context"
	"strings"
	"testing"

	"tsimport/reader/source"
)

func TestTypedJSONIsFoundByItsContent(t *testing.T) {
	const dynamo, mongo = `{"Item":{"id":{"N":"1"},"v":{"S":"x"}}}` + "\n", `{"_id":{"$oid":"5d505646cf6d4fe581014ab2"},"v":{"$numberInt":"7"}}` + "\n"
	for name, tt := range map[string]struct {
		text    string
		o       Options
		format  Format
		records string
	}{
		"a full export":                       {dynamo, Options{}, DynamoDB, "1|x"},
		"items without Item, named":           {`{"id":{"N":"1"},"v":{"S":"x"}}`, Options{Format: DynamoDB}, DynamoDB, "1|x"},
		"items without Item":                  {`{"id":{"N":"1"}}`, Options{}, JSONLines, `{"N":"1"}`},
		"mongoexport":                         {mongo, Options{}, MongoDB, "5d505646cf6d4fe581014ab2|7"},
		"mongoexport --jsonArray":             {"[" + strings.TrimSpace(mongo) + "]\n", Options{}, MongoDB, "5d505646cf6d4fe581014ab2|7"},
		"plain JSON said to be of MongoDB":    {`{"a":1}`, Options{Format: MongoDB}, MongoDB, "1"},
		"with --format jsonl objects stay":    {mongo, Options{Format: JSONLines}, JSONLines, `{"$oid":"5d505646cf6d4fe581014ab2"}|{"$numberInt":"7"}`},
		"its objects as columns":              {mongo, Options{Format: JSONLines, Flatten: true}, JSONLines, "5d505646cf6d4fe581014ab2|7"},
		"a wrong value beside a right record": {dynamo + `{"Item":{"id":{"N":"x"},"v":{"S":"y"}}}` + "\n", Options{}, DynamoDB, "1|x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			item := itemOf(t, "in.json", []byte(tt.text))
			r, err := readFrom(item, tt.o, nil, source.Chain{})
			if err != nil || strings.Join(r.records, "\n") != strings.TrimSuffix(tt.records, "\n") && !strings.HasSuffix(tt.records, "\n") || r.records[0] != strings.TrimSpace(tt.records) {
				t.Errorf("%q, %v, want %q", r.records, err, tt.records)
			}
			s := opened(t, item, tt.o)
			if s.Format != tt.format || (tt.format == DynamoDB || tt.format == MongoDB) && tt.o.Format == Auto != (len(s.Notes) == 1) {
				t.Errorf("%v, %q", s.Format, s.Notes)
			}
		})
	}
	for text, want := range map[string]string{
		`{"Items":[{"id":{"N":"1"}}],"Count":1}`:  "no record is an item in DynamoDB JSON",
		`{"Keys":{"id":{"N":"1"}},"NewImage":{}}`: "its records are an incremental export of DynamoDB",
		"$ion_1_0 {Item:{id:1.}}":                 "Amazon Ion",
		`{"Item":{"id":{"N":"1"}}}`:               "--flatten has no meaning for --format dynamodb",
		`{"_id":"x"}` + "\n" + mongo:              "--flatten has no meaning for --format mongodb: nested values are JSON text; leave it out, or give --format jsonl",
	} {
		o := Options{Format: DynamoDB, Flatten: strings.HasPrefix(want, "--flatten")}
		if want == "Amazon Ion" || strings.Contains(want, "mongodb") {
			o.Format = Auto
		}
		if _, err := Open(context.Background(), itemOf(t, "in.json", []byte(text)), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
