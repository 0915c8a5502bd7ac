package reader

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
	"github.com/klauspost/compress/s2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

var dialectFiles = flag.Int("dialect-files", 150, "random files of each kind whose dialect is found")

// written is a text in a random dialect. Its cells come from no reader, so they can serve as the oracle.
type written struct {
	says    string // describes the dialect
	cells   [][]string
	records []string // each with its line end
}

func (w *written) text() string { return strings.Join(w.records, "") }

// writeRandom writes a random table in a random dialect. It quotes cells that need quotes, and perhaps others.
func writeRandom(r *rand.Rand) *written {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	delimiter, quote, escape := pick(",", ";", "\t", "|", "\x01"), pick(`"`, `"`, "'", ""), pick("", "", `\`)
	end, policy := pick("\n", "\n", "\r\n"), pick("minimal", "all", "texts", "any")
	w := &written{says: fmt.Sprintf("delimiter %q quote %q escape %q, %s", delimiter, quote, escape, policy)}
	kinds := make([]string, 1+r.IntN(6))
	for i := range kinds {
		kinds[i] = pick("integer", "decimal", "comma", "word", "text", "date", "rare")
	}
	for n := range 2 + r.IntN(1+r.IntN(40)) {
		var cells []string
		line := ""
		for i, kind := range kinds {
			cell := randomCell(r, kind)
			if n == 0 {
				cell = fmt.Sprintf("%s_%d", pick("name", "id", "v", "a b", "größe"), i)
			}
			isText := kind == "word" || kind == "text" || kind == "rare" || n == 0
			needs := strings.ContainsAny(cell, delimiter+quote+"\r\n")
			if quote == "" && escape == "" || quote == "" && strings.ContainsAny(cell, "\r\n") { // cannot be written
				cell = strings.NewReplacer(delimiter, " ", "\n", " ", "\r", " ").Replace(cell)
			}
			text := cell
			if escape != "" {
				text = strings.ReplaceAll(text, escape, escape+escape)
			}
			switch {
			case quote != "" && (needs || policy == "all" || policy == "texts" && isText || policy == "any" && r.IntN(2) == 0):
				text = quote + strings.ReplaceAll(text, quote, cmp.Or(escape, quote)+quote) + quote
			case escape != "":
				text = strings.ReplaceAll(text, delimiter, escape+delimiter)
			}
			if len(kinds) == 1 && text == "" {
				text, cell = "x", "x"
			}
			if i > 0 {
				line += delimiter
			}
			line, cells = line+text, append(cells, cell)
		}
		w.cells, w.records = append(w.cells, cells), append(w.records, line+end)
	}
	return w
}

func randomCell(r *rand.Rand, kind string) string {
	words := []string{"it's", "o'clock", "'tis", "a, b", "x; y", `5" disk`, `say "hi"`, `C:\data`, "line\nend", "plain",
		"tab\there", "a|b", "", "'q'", `"q"`, "Köln", "don't; won't"}
	switch kind {
	case "integer":
		return fmt.Sprint(r.IntN(1000))
	case "decimal":
		return fmt.Sprintf("%d.%02d", r.IntN(1000), r.IntN(100))
	case "comma":
		return fmt.Sprintf("%d,%02d", r.IntN(1000), r.IntN(100))
	case "date":
		return fmt.Sprintf("2024-%02d-%02d", 1+r.IntN(12), 1+r.IntN(28))
	case "word":
		return []string{"red", "green", "blue", "x"}[r.IntN(4)]
	case "rare":
		if r.IntN(8) > 0 {
			return "usual"
		}
	}
	var text []string
	for range 1 + r.IntN(3) {
		text = append(text, words[r.IntN(len(words))])
	}
	return strings.Join(text, " ")
}

// spoil damages a record. It returns the range of affected records, without to.
func (w *written) spoil(r *rand.Rand) (from, to int) {
	from = r.IntN(len(w.records))
	if len(w.records) < 3 {
		from = 1 // in a table of one record, nothing shows whether it or the header is damaged
	}
	to = from + 1
	text := w.records[from]
	body := strings.TrimRight(text, "\r\n")
	at := r.IntN(len(body))
	if quotes := indexesOf(text, `"'`); len(quotes) > 0 && r.IntN(2) == 0 {
		at = quotes[r.IntN(len(quotes))] // where it does the most damage
	}
	odd := string("\"',;|\\ x\n"[r.IntN(9)])
	switch r.IntN(8) {
	case 0:
		text = text[:at] + text[at+1:]
	case 1:
		text = text[:at] + odd + text[at:]
	case 2:
		text = text[:at+1] + odd + text[at+1:]
	case 3:
		text = text[:at] + odd + text[at+1:]
	case 4:
		text = text[:at+1] + " " + text[at+1:]
	case 5:
		text = body[:max(at, 1)] + text[len(body):] // cut off
	case 6:
		text = text[:at] + text[at:at+1] + text[at:]
	case 7:
		if from > 0 { // a header joined with a record would only name other columns
			text, to = body, min(to+1, len(w.records)) // no line end
		}
	}
	w.records[from] = text
	return from, to
}

func indexesOf(text, chars string) (at []int) {
	for i := range len(text) {
		if strings.IndexByte(chars, text[i]) >= 0 {
			at = append(at, i)
		}
	}
	return at
}

// readFound reads text in the detected dialect. It returns names and rows as one list, and the number of rejects.
func readFound(t *testing.T, text string) (rows [][]string, rejected int, found string, err error) {
	s, err := Open(t.Context(), streamOf(t, []byte(text)), Options{Sniff: true})
	if err != nil {
		return nil, 0, "", err
	}
	defer s.Close()
	rows = append(rows, s.Columns)
	err = readEach(s, func(rec *record.Record) {
		if rec.Bad != nil || len(rec.Fields) != len(s.Columns) {
			rejected++
			return
		}
		var row []string
		for _, f := range rec.Fields {
			row = append(row, string(f.Bytes))
		}
		rows = append(rows, row)
	})
	if err == io.EOF {
		err = nil
	}
	return rows, rejected, s.Dialect.String(), err
}

// TestFaultyRecordDoesNotChangeDialect checks that text read without rejects has its cells, except in faulty records.
func TestFaultyRecordDoesNotChangeDialect(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 24))
	for _, faults := range []bool{false, true} {
		exact, refused, rejects := 0, 0, 0
		for range *dialectFiles {
			w := writeRandom(r)
			for len(w.cells) < 2 || strings.TrimSpace(w.text()) == "" {
				w = writeRandom(r)
			}
			from, to := 0, 0
			if faults {
				from, to = w.spoil(r)
			}
			rows, rejected, found, err := readFound(t, w.text())
			switch {
			case err != nil:
				refused++
			case rejected > 0:
				rejects++
				conformance.True(t, faults, "rejects of a valid file of %s read with %s:\n%s", w.says, found, w.text())
			case sameButFor(rows, w.cells, from, to):
				exact++
			default:
				t.Errorf("%s, fault in record %d, read with %s without a reject:\n%s\nread %q", w.says, from, found, w.text(), rows)
			}
		}
		t.Logf("faults %v: %d exact, %d with rejects, %d refused, of %d", faults, exact, rejects, refused, *dialectFiles)
		conformance.True(t, faults || refused <= *dialectFiles/3, "%d of %d valid files were refused", refused, *dialectFiles)
	}
}

// sameButFor reports whether the rows are the written cells, apart from records from to to-1, which may differ.
func sameButFor(rows, cells [][]string, from, to int) bool {
	after := len(cells) - to
	return len(rows) >= from+after && (to > from || len(rows) == len(cells)) &&
		slices.EqualFunc(rows[:from], cells[:from], slices.Equal) &&
		slices.EqualFunc(rows[len(rows)-after:], cells[to:], slices.Equal)
}

func TestTypedJSONIsDetectedByContent(t *testing.T) {
	const dynamo, mongo = `{"Item":{"id":{"N":"1"},"v":{"S":"x"}}}` + "\n",
		`{"_id":{"$oid":"5d505646cf6d4fe581014ab2"},"v":{"$numberInt":"7"}}` + "\n"
	for name, tt := range map[string]struct {
		text    string
		o       Options
		format  Format
		records string
	}{
		"a full export":      {dynamo, Options{}, DynamoDB, "1|x"},
		"items, named":       {`{"id":{"N":"1"},"v":{"S":"x"}}`, Options{Format: DynamoDB}, DynamoDB, "1|x"},
		"items without Item": {`{"id":{"N":"1"}}`, Options{}, JSONLines, `{"N":"1"}`},
		"mongoexport":        {mongo, Options{}, MongoDB, "5d505646cf6d4fe581014ab2|7"},
		"--jsonArray":        {"[" + strings.TrimSpace(mongo) + "]\n", Options{}, MongoDB, "5d505646cf6d4fe581014ab2|7"},
		"plain JSON, named":  {`{"a":1}`, Options{Format: MongoDB}, MongoDB, "1"},
		"--format jsonl": {mongo, Options{Format: JSONLines}, JSONLines,
			`{"$oid":"5d505646cf6d4fe581014ab2"}|{"$numberInt":"7"}`},
		"flattened":              {mongo, Options{Format: JSONLines, Flatten: true}, JSONLines, "5d505646cf6d4fe581014ab2|7"},
		"a wrong value after it": {dynamo + `{"Item":{"id":{"N":"x"},"v":{"S":"y"}}}` + "\n", Options{}, DynamoDB, "1|x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			item := itemOf(t, "in.json", []byte(tt.text))
			r, err := readFrom(item, tt.o, nil, source.Chain{})
			conformance.True(t, err == nil &&
				(strings.Join(r.records, "\n") == strings.TrimSuffix(tt.records, "\n") || strings.HasSuffix(tt.records, "\n")) &&
				r.records[0] == strings.TrimSpace(tt.records), "%q, %v, want %q", r.records, err, tt.records)
			s := opened(t, item, tt.o)
			conformance.True(t, s.Format == tt.format &&
				(tt.format != DynamoDB && tt.format != MongoDB || (tt.o.Format == nil) == (len(s.Notes) == 1)),
				"%v, %q", s.Format, s.Notes)
		})
	}
	for text, want := range map[string]string{
		`{"Items":[{"id":{"N":"1"}}],"Count":1}`:  "no record is an item in DynamoDB JSON",
		`{"Keys":{"id":{"N":"1"}},"NewImage":{}}`: "its records are an incremental export of DynamoDB",
		"$ion_1_0 {Item:{id:1.}}":                 "Amazon Ion",
		`{"Item":{"id":{"N":"1"}}}`:               "--flatten does not apply to --format dynamodb",
		`{"_id":"x"}` + "\n" + mongo:              "--flatten does not apply to --format mongodb: nested values",
	} {
		o := Options{Format: DynamoDB, Flatten: strings.HasPrefix(want, "--flatten")}
		if want == "Amazon Ion" || strings.Contains(want, "mongodb") {
			o.Format = nil
		}
		conformance.Refused(t, conformance.ErrorOf(Open(t.Context(), itemOf(t, "in.json", []byte(text)), o)), want,
			"%s", text)
	}
}

// wideLines returns the rows of a source in the format of stored rejects.
func wideLines(t *testing.T, rows *sourcetest.Wide) []byte {
	var text []byte
	must(t, readSource(rows, func(rec *record.Record) { text = jsonl.AppendWide(text, rows.Columns, rec) }))
	return text
}

// readSource calls each for every record of a source of pages.
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

func TestWideFilesKeepSourceContract(t *testing.T) {
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
			s, err := Open(t.Context(), item(), Options{})
			conformance.MustTrue(t, err == nil && s.About().Wide && slices.Contains(s.Columns, "id"), "%+v, %v", s, err)
			s.Close()
			keepsTheContract(t, item, Options{SplitBytes: 2_500, ChainBytes: 1_500})
		})
	}
}

// TestWrappedRowsAreRefusedWithAdvice tries texts that were once misread without an error, or as one row.
func TestWrappedRowsAreRefusedWithAdvice(t *testing.T) {
	const statements = "\n/*!40101 SET NAMES utf8 */;\nCREATE TABLE `t` (\n  `id` int\n);\nINSERT INTO `t` (`id`) " +
		"VALUES\n\t(1);\n"
	for name, c := range map[string]struct{ file, text, want string }{
		"phpMyAdmin": {"t.sql", "-- phpMyAdmin SQL Dump\n-- version 5" + statements,
			"SQL statements of phpMyAdmin, which are not CSV: give --format mysqldump"},
		"HeidiSQL": {"t.sql", "-- ------\n-- Host: localhost\n-- HeidiSQL Version: 11" + statements,
			"SQL statements of HeidiSQL, "},
		"mydumper": {"db.t.00000.sql", "/*!40101 SET NAMES binary*/;\nINSERT INTO `t` VALUES\n(1),\n(2);\n",
			"SQL statements of mydumper, which are not CSV: give --format mysqldump, or"},
		"DataGrip": {"t.sql", "insert into t (id) values (1);\ninsert into t (id) values (2);\n",
			"the file holds SQL statements, which are not CSV"},
		"no statement in a comment": {"t.csv", "-- a,b\n1,insert into x\n", ""},
		"a statement in a field":    {"t.csv", "id,v\n1,\"\nINSERT INTO t VALUES (1)\"\n", ""},
		"Debezium": {"t.jsonl", `{"before":null,"after":{"id":1},"source":{"table":"t"},"op":"c","ts_ms":1}`,
			"its records are Debezium changes: --mode changes applies them"},
		"Debezium with its schema": {"t.json",
			`{"schema":{"type":"struct"},"payload":{"before":{"id":1},"after":null,"source":{},"op":"d"}}`,
			"Debezium changes"},
		"incremental export": {"t.json",
			`{"Metadata":{"WriteTimestampMicros":{"N":"1"}},"Keys":{"id":{"S":"x"}},"NewImage":{"id":{"S":"x"}}}`,
			"an incremental export of DynamoDB: --mode changes applies them"},
		"deletions": {"t.json",
			`{"Metadata":{"WriteTimestampMicros":{"N":"1"}},"Keys":{"id":{"S":"x"}},"OldImage":{"id":{"S":"x"}}}`,
			"an incremental export of DynamoDB: --mode changes applies them"},
		"Canal": {"t.json",
			`{"data":[{"id":"1"}],"database":"d","isDdl":false,"table":"t","type":"INSERT"}`, "Canal changes"},
		"Debezium without a source": {"t.json", `{"before":{"id":1},"after":{"id":1},"op":"u"}`, "Debezium changes"},
		"a row of an audit":         {"t.json", `{"before":{"id":1},"after":{"id":1},"op":"update","source":"web"}`, ""},
		"a row with such names":     {"t.json", `{"before":1,"after":2,"op":"x"}`, ""},
		"GeoJSON": {"t.geojson",
			"{\"type\":\"FeatureCollection\",\n\"features\":[\n{\"type\":\"Feature\"},\n{\"type\":\"Feature\"}\n]}",
			"note: t.geojson is one record, whose member features is an array of objects; if those are the rows: jq -c " +
				"'.features[]' t.geojson | tsimport load -"},
		"an answer": {"t.json", `{"data":[{"id":1}],"count":3}`,
			"t.json is one record, whose member data is an array of objects; if those are the rows: jq -c '.data[]' t.json"},
		"a scan of DynamoDB": {"t.json", `{"Items":[{"id":{"S":"x"}}],"Count":1,"ScannedCount":1}`,
			"t.json is one record, whose member Items is an array of objects; if those are the rows: jq -c '.Items[]' " +
				"t.json | tsimport load - --format dynamodb"},
		"two of them":             {"t.json", "{\"data\":[{\"id\":1}]}\n{\"data\":[{\"id\":1}]}\n", ""},
		"JSON that is called CSV": {"t.csv", "{\"id\":1,\"v\":\"a\"}\n{\"id\":2,\"v\":\"b\"}\n", "format jsonl"},
		"an array called CSV":     {"t.csv", "[{\"id\":1,\"v\":\"a\"},\n {\"id\":2}]\n", "format jsonl"},
		"CSV with a bracket":      {"t.csv", "{\"a\":1},b\n1,2\n", "format csv"},
		"broken lines": {"t.jsonl", "{\"a\" 1}\n{'a':1}\n",
			"no line is a JSON object (the first record, on line 1: want ':' at byte 6, found '1')"},
		"a comment": {"t.csv", "# exported today\nid,v\n1,a\n",
			"hint: the first line of t.csv begins with #: if such lines are comments, give --comment '#'"},
		"two comments":    {"t.csv", "# exported\n# today\nid\n", "hint: the first line of t.csv begins with #"},
		"a header with #": {"t.csv", "#id,v\n1,a\n", "format csv"},
	} {
		item := itemOf(t, c.file, []byte(c.text))
		item.Name = c.file
		got := ""
		if s, err := Open(t.Context(), item, Options{}); err != nil {
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
		conformance.True(t, (c.want != "" || strings.HasPrefix(got, "format ")) && strings.Contains(got, c.want) &&
			(strings.Contains(got, "\n") == strings.Contains(c.want, ":") || strings.Contains(got, "read ")),
			"%s: %s, want %s", name, got, c.want)
	}
}

func packed(text string) string { return string(gzipped([]byte(text))) }

func deflated(text string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func tarred(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&tar.Header{Name: "a.csv", Size: int64(len(text)), Mode: 0o644}))
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func zipped(t *testing.T, name, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	conformance.Try(w.Create(name)).Must(t).Write([]byte(text))
	w.Close()
	return b.String()
}

// hadoop returns a snappy block framed as by Hadoop's codec.
func hadoop(text string) string {
	block := s2.EncodeSnappy(nil, []byte(text))
	b := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	return string(append(binary.BigEndian.AppendUint32(b, uint32(len(block))), block...))
}

func utf16(t *testing.T, text string, order unicode.Endianness) string {
	t.Helper()
	return conformance.Try(unicode.UTF16(order, unicode.IgnoreBOM).NewEncoder().String(text)).Must(t)
}

const someRows = "id,v\n1,a\n2,b\n3,c\n"

func TestFilesWithoutRowsAreRefusedByName(t *testing.T) {
	bson := "\x16\x00\x00\x00\x02id\x00\x06\x00\x00\x00hello\x00\x00\x00"
	bson = string(binary.LittleEndian.AppendUint32(nil, uint32(len(bson)))) + bson[4:]
	lzmaHead := "\x5d\x00\x00\x80\x00" + strings.Repeat("\xff", 8) // as written by all encoders
	random := strings.Repeat("\x00\x9c\x13\xfe\x01abc\x00\x00\x17", 50)
	for name, tt := range map[string]struct{ content, want, way string }{
		"a.db":            {"SQLite format 3\x00\x10\x00" + random, "a SQLite database", "?table=NAME"},
		"a.avro":          {"Obj\x01\x04\x14avro.codec" + random, "an Avro file", "avro-tools tojson"},
		"a.orc":           {"ORC\x0a\x0b\x00" + random, "an ORC file", "pyarrow.orc"},
		"a.arrow":         {"ARROW1\x00\x00" + random, "its end marker is missing", "truncated"},
		"a.feather":       {"FEA1\x00\x00" + random, "a Feather file of version 1", "pyarrow"},
		"a.arrows":        {"\xff\xff\xff\xff\x80\x00\x00\x00" + random, "open ", "damaged metadata"},
		"a.bson":          {bson, "BSON", "bsondump"},
		"secret.parquet":  {"PARE\x15\x04" + random, "encrypted Parquet", "unencrypted"},
		"damaged.parquet": {"XAR1\x15\x04" + random, "its name says Parquet", "--format csv"},
		"a.parquet.gz":    {packed("PAR1\x15\x04" + random), "Parquet inside a compressed file", "unpack it"},
		"a.pdf":           {"%PDF-1.7\n%\xe2\xe3", "a PDF document", "CSV"},
		"a.png":           {"\x89PNG\r\n\x1a\n\x00\x00", "a PNG picture", "CSV"},
		"a.xls":           {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("\x00", 500), ".xls workbook", "soffice"},
		"a.xlsx":          {zipped(t, "[Content_Types].xml", "<Types/>"), ".xlsx workbook", "save the sheet as CSV"},
		"a.zip":           {zipped(t, "a.csv", someRows), "zip", "unzip -p"},
		"a.deflate":       {deflated(someRows), "zlib data", "zlib.decompress"},
		"a.snappy":        {hadoop(someRows), "framing of Hadoop", "hadoop fs -text"},
		"a.csv.lz":        {"LZIP\x01\x0c\x00\x34\x99\x8b" + random, "lzip", "decompress it: lzip -dc "},
		"a.csv.lzma":      {lzmaHead + random, "lzma", "decompress it: xz --format=lzma -dc "},
		"a.csv.lzma.gz":   {packed(lzmaHead + random), "lzma inside gzip", "decompress it first; then decompress it: xz"},
		"a.tar.gz":        {packed(tarred(t, someRows)), "tar inside gzip", "tar -xf"},
		"a.tar":           {tarred(t, someRows), "tar", "tar -xf"},
		"a.dump": {strings.Replace(tarred(t, someRows), "a.csv\x00\x00", "toc.dat", 1), "a pg_dump archive (tar)",
			"pg_restore -f dump.sql"},
		"a.csv.gz.gz": {packed(packed(someRows)), "gzip inside gzip", "decompress it once"},
		"a.db.gz":     {packed("SQLite format 3\x00" + random), "a SQLite database inside gzip", "decompress it first"},
		"a.json-seq":  {"\x1e{\"id\":1}\n\x1e{\"id\":2}\n", "a JSON text sequence", "tr -d"},
		"le.csv":      {utf16(t, someRows, unicode.LittleEndian), "looks like utf-16le", "--encoding utf-16le"},
		"be.csv": {utf16(t, "编号,名称\n1,学生卡\n2,中国移动北京\n3,苹果\n", unicode.BigEndian), "looks like utf-16be",
			"--encoding utf-16be"},
		"le.csv.gz":     {packed(utf16(t, someRows, unicode.LittleEndian)), "looks like utf-16le", "--encoding utf-16le"},
		"a.bin":         {random, "the file is not text", "--format csv"},
		"bin.gz":        {packed(random), "the file is not text", "--format csv"},
		"a.xml":         {"<?xml version=\"1.0\"?><a/>", "XML", "convert"},
		"404.csv":       {"\n<!DOCTYPE html>\n<html></html>", "a web page", "error"},
		"in a space.db": {"SQLite format 3\x00\x10\x00" + random, "a SQLite database", "'sqlite:FILE?"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), itemOf(t, name, []byte(tt.content)), Options{})
			if err == nil {
				s.Close()
				t.Fatalf("it is read as %v with columns %q", s.Format, s.Columns)
			}
			conformance.True(t, strings.Contains(err.Error(), tt.want) && strings.Contains(err.Error(), tt.way), "%v", err)
			conformance.True(t, !strings.Contains(err.Error(), "\n"), "more than a line: %v", err)
		})
	}
}

func TestUnusualTextsAreRead(t *testing.T) {
	for name, content := range map[string]string{
		"orc.csv": "ORC,v\n1,2\n", "pare.csv": "PARE,v\n", "gif.csv": "GIF89a,v\n1,2\n", "fea.csv": "FEA1,b\n1,2\n",
		"obj.csv": "Obj,b\n", "nul.csv": "id,v\n1,a\x00b and so on\n2,c\n3,d\n", "hive.txt": "x\x01y\n\x02\x03\x01z\n",
		"zip.csv": "PK,v\n1,2\n", "minus.csv": "-- a,b\n1,2\n", "xls.xls": "a\tb\n1\t2\n",
	} {
		opened(t, itemOf(t, name, []byte(content)), Options{})
	}
}

func TestTextsInOtherEncodingsAreNotBinaryFiles(t *testing.T) {
	latin := func(text string) string {
		return conformance.Try(charmap.Windows1252.NewEncoder().String(text)).Must(t)
	}
	pretty := "[\n\t{\"id\": 1},\n\t{\"id\": 2}\n]\n"
	for name, tt := range map[string]struct{ content, encoding string }{
		"pretty.json":     {"\xff\xfe" + utf16(t, pretty, unicode.LittleEndian), ""},
		"said.json":       {utf16(t, pretty, unicode.LittleEndian), "utf-16le"},
		"short.csv":       {"\xff\xfe" + utf16(t, "i\nO\n", unicode.LittleEndian), ""},
		"be.csv":          {utf16(t, "i\nO\n是学\n间\n的的不\n", unicode.BigEndian), "utf-16be"},
		"orcamento.csv":   {latin("ORCAMENTO;DESCRIÇÃO\n1;2\n"), "windows-1252"},
		"pares.csv":       {latin("PARES;NÃO\n1;2\n"), "windows-1252"},
		"gif.csv":         {latin("GIF8;ÇÇ\n"), "windows-1252"},
		"hive.txt":        {"ORC\x01a\n1\x012\n", ""},
		"duck.csv":        {"id,name\nDUCK,Donald and his nephews\n", ""},
		"squares.csv":     {"x^2,y\n" + strings.Repeat("\x83J,\x82\xa4\x82\xa2\x83R\n", 20), "shift-jis"},
		"squares.utf8.gz": {packed("x^2,y\n1,2\n"), ""},
	} {
		opened(t, itemOf(t, name, []byte(tt.content)), Options{Encoding: tt.encoding})
	}
}

func TestGivenFormatIsTrusted(t *testing.T) {
	opened(t, itemOf(t, "a.parquet", []byte("SQLite format 3\x00,b\n1,2\n")), Options{Format: CSV})
}

func TestRawSnappyOfJSONLinesIsRead(t *testing.T) {
	text := strings.Repeat("{\"id\":1,\"v\":\"some text\"}\n", 40)
	for _, name := range []string{"log_1453.snappy", "log", "a.json.snappy"} {
		got := readAll(itemOf(t, name, s2.EncodeSnappy(nil, []byte(text))), Options{})
		conformance.True(t, got.err == nil && got.rows == 40 && got.bad == 0, "%s: %+v", name, got)
	}
}

// reasonsOf returns why values of a source are refused as strings.
func reasonsOf(t *testing.T, name, content string, o Options) (reasons []string) {
	s, err := Open(t.Context(), itemOf(t, name, []byte(content)), o)
	if err != nil {
		return []string{err.Error()}
	}
	defer s.Close()
	var columns []table.Column
	for _, c := range s.Columns {
		columns = append(columns, table.Column{Name: c, Source: c, Type: table.String})
	}
	c, err := convert.New(s.Columns, columns, convert.Options{Decode: s.Decode(), EncodingHint: s.EncodingHint})
	must(t, err)
	must(t, conformance.ErrorOf(s.Sample(1<<20, s.Columns, func(rec *record.Record) {
		if _, why := c.Convert(rec); why != nil {
			reasons = append(reasons, why.Error())
		}
	})))
	return reasons
}

func TestErrorNamesLikelyEncoding(t *testing.T) {
	gb := func(text string) string {
		return conformance.Try(simplifiedchinese.GB18030.NewEncoder().String(text)).Must(t)
	}
	const advice = "looks like gb18030: --encoding gb18030"
	long := "id,name\n" + strings.Repeat("1,plain\n", headBytes/8)
	for name, tt := range map[string]struct {
		content string
		o       Options
		want    int
	}{
		"header.csv":    {gb("编号,姓名\n1,张伟\n"), Options{}, 1},
		"values.csv":    {gb("id,name\n1,张伟\n2,李娜\n"), Options{}, 2},
		"values.jsonl":  {gb("{\"id\":0,\"n\":\"x\"}\n{\"id\":1,\"n\":\"张伟\"}\n{\"id\":2,\"n\":\"李娜\"}\n"), Options{}, 2},
		"late.csv":      {long + gb("2,张伟\n"), Options{}, 0},
		"misstated.csv": {gb("id,name\n1,学生卡充值\n"), Options{Encoding: "shift-jis"}, 0},
	} {
		reasons := reasonsOf(t, name, tt.content, tt.o)
		conformance.True(t, len(reasons) == tt.want || tt.want <= 0, "%s: %q", name, reasons)
		for _, r := range reasons {
			conformance.Contains(t, r, advice, "%s", name)
		}
	}
}
