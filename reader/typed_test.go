package reader

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
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
			if s.Format != tt.format || (tt.format == DynamoDB || tt.format == MongoDB) && (tt.o.Format == nil) != (len(s.Notes) == 1) {
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
			o.Format = nil
		}
		if _, err := Open(context.Background(), itemOf(t, "in.json", []byte(text)), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// wideLines are the rows of a source, as rejects of them are kept.
func wideLines(t *testing.T, rows *sourcetest.Wide) []byte {
	t.Helper()
	var text []byte
	must(t, readSource(rows, func(rec *record.Record) { text = jsonl.AppendWide(text, rows.Columns, rec) }))
	return text
}

// readSource reads a source of pages to its end.
func readSource(s *sourcetest.Wide, each func(*record.Record)) error {
	p := s.NewParser([]int{0})
	for {
		piece, err := s.Next()
		if err != nil {
			return nil
		}
		splits, _ := s.Add(piece)
		for _, sp := range splits {
			if _, _, err := p.Parse(sp, each); err != nil {
				return err
			}
		}
	}
}

func TestFilesOfRowsThatDescribeThemselvesKeepTheContractOfSources(t *testing.T) {
	text := wideLines(t, sourcetest.NewWide("wide", 200, time.UnixMilli(1e12)))
	pretty := bytes.ReplaceAll(text, []byte(`},"Attr"`), []byte("},\n  \"Attr\""))
	for name, item := range map[string]func() input.Item{
		"lines":    fileOf(t, "in.ndjson", text),
		"objects":  fileOf(t, "in.json", pretty),
		"a stream": func() input.Item { return streamOf(t, text) },
		"in folder": func() input.Item {
			i := itemOf(t, "in.ndjson", text)
			i.Columns = []input.Column{{Name: "day", Value: "1"}}
			return i
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(context.Background(), item(), Options{})
			if err != nil || !s.About().Wide || !slices.Contains(s.Columns, "id") {
				t.Fatalf("%+v, %v", s, err)
			}
			s.Close()
			keepsTheContract(t, item, Options{SplitBytes: 2_500, ChainBytes: 1_500})
		})
	}
}

// TestRowsInsideSomethingElseAreNamedWithTheWayToThem is about texts that were read as what they are not, or as one row, without a word.
func TestRowsInsideSomethingElseAreNamedWithTheWayToThem(t *testing.T) {
	const statements = "\n/*!40101 SET NAMES utf8 */;\nCREATE TABLE `t` (\n  `id` int\n);\nINSERT INTO `t` (`id`) VALUES\n\t(1);\n"
	for name, c := range map[string]struct{ file, text, want string }{
		"phpMyAdmin":                {"t.sql", "-- phpMyAdmin SQL Dump\n-- version 5" + statements, "SQL statements of phpMyAdmin, which are not CSV: give --format mysqldump"},
		"HeidiSQL":                  {"t.sql", "-- ------\n-- Host: localhost\n-- HeidiSQL Version: 11" + statements, "SQL statements of HeidiSQL, "},
		"mydumper":                  {"db.t.00000.sql", "/*!40101 SET NAMES binary*/;\nINSERT INTO `t` VALUES\n(1),\n(2);\n", "SQL statements of mydumper, which are not CSV: give --format mysqldump, or"},
		"DataGrip":                  {"t.sql", "insert into t (id) values (1);\ninsert into t (id) values (2);\n", "the file is SQL statements, which are not CSV"},
		"no statement in a comment": {"t.csv", "-- a,b\n1,insert into x\n", ""},
		"a statement in a field":    {"t.csv", "id,v\n1,\"\nINSERT INTO t VALUES (1)\"\n", ""},
		"Debezium":                  {"t.jsonl", `{"before":null,"after":{"id":1},"source":{"table":"t"},"op":"c","ts_ms":1}`, "its records are changes as Debezium writes them, not rows"},
		"Debezium with its schema":  {"t.json", `{"schema":{"type":"struct"},"payload":{"before":{"id":1},"after":null,"source":{},"op":"d"}}`, "changes as Debezium"},
		"incremental export":        {"t.json", `{"Metadata":{"WriteTimestampMicros":{"N":"1"}},"Keys":{"id":{"S":"x"}},"NewImage":{"id":{"S":"x"}}}`, "an incremental export of DynamoDB, not rows"},
		"deletions":                 {"t.json", `{"Metadata":{"WriteTimestampMicros":{"N":"1"}},"Keys":{"id":{"S":"x"}},"OldImage":{"id":{"S":"x"}}}`, "an incremental export of DynamoDB, not rows"},
		"Canal":                     {"t.json", `{"data":[{"id":"1"}],"database":"d","isDdl":false,"table":"t","type":"INSERT"}`, "changes as Canal"},
		"Debezium without a source": {"t.json", `{"before":{"id":1},"after":{"id":1},"op":"u"}`, "changes as Debezium"},
		"a row of an audit":         {"t.json", `{"before":{"id":1},"after":{"id":1},"op":"update","source":"web"}`, ""},
		"a row with such names":     {"t.json", `{"before":1,"after":2,"op":"x"}`, ""},
		"GeoJSON":                   {"t.geojson", "{\"type\":\"FeatureCollection\",\n\"features\":[\n{\"type\":\"Feature\"},\n{\"type\":\"Feature\"}\n]}", "note: t.geojson is one record, whose member features is an array of objects; if those are the rows: jq -c '.features[]' t.geojson | tsimport load -"},
		"an answer":                 {"t.json", `{"data":[{"id":1}],"count":3}`, "note: t.json is one record, whose member data is an array of objects; if those are the rows: jq -c '.data[]' t.json"},
		"a scan of DynamoDB":        {"t.json", `{"Items":[{"id":{"S":"x"}}],"Count":1,"ScannedCount":1}`, "note: t.json is one record, whose member Items is an array of objects; if those are the rows: jq -c '.Items[]' t.json | tsimport load - --format dynamodb"},
		"two of them":               {"t.json", "{\"data\":[{\"id\":1}]}\n{\"data\":[{\"id\":1}]}\n", ""},
		"JSON that is called CSV":   {"t.csv", "{\"id\":1,\"v\":\"a\"}\n{\"id\":2,\"v\":\"b\"}\n", "format jsonl"},
		"an array called CSV":       {"t.csv", "[{\"id\":1,\"v\":\"a\"},\n {\"id\":2}]\n", "format jsonl"},
		"CSV with a bracket":        {"t.csv", "{\"a\":1},b\n1,2\n", "format csv"},
		"broken lines":              {"t.jsonl", "{\"a\" 1}\n{'a':1}\n", "no line is a JSON object (the first record, on line 1: want ':' at byte 6, found '1')"},
		"a comment":                 {"t.csv", "# exported today\nid,v\n1,a\n", "hint: the first line of t.csv begins with #: if such lines are comments, give --comment '#'"},
		"two comments":              {"t.csv", "# exported\n# today\nid\n", "hint: the first line of t.csv begins with #"},
		"a header with #":           {"t.csv", "#id,v\n1,a\n", "format csv"},
	} {
		item := itemOf(t, c.file, []byte(c.text))
		item.Name = c.file
		got := ""
		if s, err := Open(context.Background(), item, Options{}); err != nil {
			got = err.Error()
		} else {
			got = "format " + s.Format.String()
			if s.Hint != "" {
				got += "\nhint: " + s.Hint
			}
			for _, note := range s.Notes {
				got += "\nnote: " + note
			}
			s.Close()
		}
		if c.want == "" && !strings.HasPrefix(got, "format ") || !strings.Contains(got, c.want) || strings.Contains(got, "\n") != strings.Contains(c.want, ":") && !strings.Contains(got, "read ") {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
