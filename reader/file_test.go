package reader

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	tcsv "example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// itemOf writes a file and returns it as an item.
func itemOf(t *testing.T, name string, content []byte) input.Item {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, content, 0o644))
	return found(t, path)
}

// fileOf writes a file and returns a function that returns it as an item.
func fileOf(t *testing.T, name string, content []byte) func() input.Item {
	item := itemOf(t, name, content)
	return func() input.Item { return item }
}

func found(t *testing.T, path string) input.Item {
	t.Helper()
	return conformance.Try(input.Expand(t.Context(), []string{path}, input.Options{})).Must(t).Items[0]
}

// opened opens an item. The source is closed when the test ends.
func opened(t *testing.T, item input.Item, o Options) *File {
	t.Helper()
	s := conformance.Try(Open(t.Context(), item, o)).Must(t)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func streamOf(t *testing.T, content []byte) input.Item {
	t.Helper()
	in := input.Options{Stdin: bytes.NewReader(content)}
	return conformance.Try(input.Expand(t.Context(), []string{input.Stdin}, in)).Must(t).Items[0]
}

// valuesOf returns all records as values, in the order of the source's columns. A rejected record is its code.
func valuesOf(t *testing.T, item input.Item, o Options) (columns []string, rows [][]string) {
	t.Helper()
	columns, rows, err := tryValues(item, o)
	must(t, err)
	return columns, rows
}

func tryValues(item input.Item, o Options) (columns []string, rows [][]string, err error) {
	s, err := Open(context.Background(), item, o)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	if _, err := s.Sample(200, s.Columns, func(*record.Record) {}); err != nil { // as a load does
		return nil, nil, err
	}
	if err := s.Suspend(); err != nil {
		return nil, nil, err
	}
	decode := s.Decode()
	err = readEach(s, func(rec *record.Record) {
		if rec.Bad != nil {
			rows = append(rows, []string{rec.Bad.Code})
			return
		}
		row := []string{}
		for i := range rec.Fields {
			text := convert.Text(&rec.Fields[i])
			if decode != nil {
				out, _ := decode(nil, []byte(text))
				text = string(out)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	})
	if err != nil {
		return nil, nil, err
	}
	return s.Columns, rows, nil
}

// bgzf compresses a text into blocks that can be inflated independently.
func bgzf(text []byte, block int) []byte {
	var out bytes.Buffer
	for from := 0; ; from += block {
		part := text[min(from, len(text)):min(from+block, len(text))]
		var one bytes.Buffer
		w := gzip.NewWriter(&one)
		w.Extra = []byte{'B', 'C', 2, 0, 0, 0}
		w.Write(part)
		w.Close()
		size := one.Len() - 1
		packed := one.Bytes()
		packed[16], packed[17] = byte(size), byte(size>>8)
		out.Write(packed)
		if len(part) == 0 {
			return out.Bytes()
		}
	}
}

func zstdFrames(t *testing.T, text []byte, frame int) []byte {
	t.Helper()
	w := conformance.Try(zstd.NewWriter(nil)).Must(t)
	defer w.Close()
	var out []byte
	for from := 0; from < len(text); from += frame {
		out = w.EncodeAll(text[from:min(from+frame, len(text))], out)
	}
	return out
}

// inOrder is a dialect with a comment character, which makes files be cut in order.
var inOrder = tcsv.Dialect{Delimiter: ",", Quote: '"', Comment: "\x02"}

func TestRecordsDoNotDependOnWrapping(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("\xef\xbb\xbfid,\"na\nme\",v\r\n")
	for i := range 8_000 {
		fmt.Fprintf(&b, "%d,\"a \"\"quoted\"\" text,\nover %d lines\",%s\r\n", i, i%3, strings.Repeat("x", i%40))
	}
	text := b.Bytes()
	wantColumns, want := valuesOf(t, itemOf(t, "in.csv", text), Options{SplitBytes: 64 << 20})
	conformance.MustTrue(t, len(want) == 8_000 && wantColumns[1] == "na\nme", "%d records, %q", len(want), wantColumns)
	for name, tt := range map[string]struct {
		item input.Item
		o    Options
	}{
		"small splits":       {itemOf(t, "in.csv", text), Options{SplitBytes: 777}},
		"a stream":           {streamOf(t, text), Options{SplitBytes: 10_000}},
		"gzip":               {itemOf(t, "in.csv", gzipped(text)), Options{}}, // the name does not reveal the compression
		"gzip in a stream":   {streamOf(t, gzipped(text)), Options{SplitBytes: 5000}},
		"BGZF":               {itemOf(t, "in.gz", bgzf(text, 40_000)), Options{}},
		"zstd":               {itemOf(t, "in.zst", zstdFrames(t, text, len(text))), Options{}},
		"zstd frames":        {itemOf(t, "in.zst", zstdFrames(t, text, 50_000)), Options{}},
		"cut in order":       {itemOf(t, "in.csv", text), Options{SplitBytes: 999, Dialect: inOrder}},
		"found dialect":      {itemOf(t, "in.csv", text), Options{Sniff: true}},
		"a name that tricks": {itemOf(t, "in.jsonl", text), Options{Format: CSV}},
	} {
		t.Run(name, func(t *testing.T) {
			columns, got := valuesOf(t, tt.item, tt.o)
			conformance.Equal(t, cmp.Diff(wantColumns, columns), "", "(-want +got)")
			conformance.MustEqual(t, len(got), len(want), "records")
			for i := range want {
				conformance.MustEqual(t, strings.Join(got[i], "|"), strings.Join(want[i], "|"), "record %d: %q", i, got[i])
			}
		})
	}
}

func TestOtherEncodingsGiveSameRecords(t *testing.T) {
	want := [][]string{{"1", "中文"}, {"2", "a|\\é"}}
	text := "id,v\n1,中文\n2,a|\\é\n"
	gb := []byte("id,v\n1,\xd6\xd0\xce\xc4\n2,a|\\\xa8\xa6\n")
	for name, tt := range map[string]struct {
		data []byte
		o    Options
	}{
		"UTF-8":               {[]byte(text), Options{}},
		"UTF-16 with a mark":  {[]byte("\xff\xfe" + utf16le(text)), Options{}},
		"UTF-16 without":      {[]byte(utf16le(text)), Options{Encoding: "utf-16le"}},
		"GBK":                 {gb, Options{Encoding: "gbk"}},
		"GB18030 with a mark": {append([]byte{0x84, 0x31, 0x95, 0x33}, gb...), Options{}},
		"GBK, made UTF-8 to cut": {bytes.ReplaceAll(gb, []byte(","), []byte("\t")),
			Options{Encoding: "gbk", Dialect: tcsv.Dialect{Delimiter: "\t", Escape: '~'}}},
	} {
		t.Run(name, func(t *testing.T) {
			columns, got := valuesOf(t, itemOf(t, "in.csv", tt.data), tt.o)
			conformance.Equal(t, cmp.Diff(want, got), "", "rows")
			conformance.Equal(t, strings.Join(columns, ","), "id,v", "columns")
		})
	}
}

func TestHeadersGiveUsableNames(t *testing.T) {
	for text, want := range map[string]string{
		"a,b,c\n":     "a b c",
		"a,,c\n":      "a c2 c",
		"a,a,a\n":     "a a_2 a_3",
		"a,a_2,a\n":   "a a_2 a_3",
		"c2,,x\n":     "c2 c2_2 x",
		"a,a,a_2\n":   "a a_3 a_2",
		"\n\r\na,b\n": "a b",
	} {
		columns, _ := valuesOf(t, itemOf(t, "in.csv", []byte(text)), Options{})
		conformance.Equal(t, strings.Join(columns, " "), want, "%q", text)
	}
	for name, tt := range map[string]struct {
		o    Options
		want string
		rows int
	}{
		"a header on line 3":  {Options{HeaderLine: 3}, "id v", 1},
		"data from line 4 on": {Options{HeaderLine: 4, NoHeader: true}, "c1 c2", 1},
		"names given":         {Options{HeaderLine: 4, NoHeader: true, Names: []string{"x", "y"}}, "x y", 1},
	} {
		columns, rows := valuesOf(t, itemOf(t, "in.csv", []byte("a title\n\nid,v\n1,2\n")), tt.o)
		got := strings.Join(columns, " ")
		conformance.True(t, got == tt.want && len(rows) == tt.rows, "%s: %s, %q", name, got, rows)
	}
}

func TestUnreadableInputsAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		text, want string
		o          Options
	}{
		"empty":                        {"", "empty", Options{}},
		"a byte order mark only":       {"\xef\xbb\xbf", "empty", Options{}},
		"empty without a header":       {"", "--names", Options{NoHeader: true}},
		"zip":                          {"PK\x03\x04rest of it", "zip", Options{}},
		"UTF-32":                       {"\xff\xfe\x00\x00a\x00\x00\x00", "UTF-32", Options{}},
		"an array without objects":     {"[1, \"a\"]", "no element of the array", Options{Format: JSONLines}},
		"no JSON at all":               {"a,b\n1,2\n", "JSON", Options{Format: JSONLines}},
		"a header that never ends":     {"\"a,b\n", "quote", Options{}},
		"two readings":                 {"a,b;c,d\n1,2;3,4\n", "2 ways", Options{Sniff: true}},
		"names for another width":      {"1,2\n", "--names", Options{NoHeader: true, Names: []string{"a"}}},
		"an encoding nobody knows":     {"a\n", "encoding", Options{Encoding: "klingon"}},
		"no Parquet":                   {"a,b\n", "open", Options{Format: Parquet}},
		"fewer lines than are skipped": {"a\n", "line 5", Options{HeaderLine: 5}},
	} {
		_, _, err := tryValues(itemOf(t, "in", []byte(tt.text)), tt.o)
		conformance.InALine(t, err, tt.want, "%s", name)
	}
}

func TestDamagedFileStillGivesEarlierRecords(t *testing.T) {
	var b bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&b, "%d,some text\n", i)
	}
	whole := gzipped(b.Bytes())
	for name, data := range map[string][]byte{
		"gzip cut short": whole[:len(whole)/2],
		"BGZF cut short": bgzf(b.Bytes(), 30_000)[:100_000],
	} {
		got := readAll(itemOf(t, "in.gz", data), Options{NoHeader: true})
		conformance.True(t, got.err != nil && got.rows >= 1000 && got.bad == 0, "%s: %+v", name, got)
	}
	// A block with a wrong checksum must give no rows; here, they would have other digits.
	damaged := bgzf(b.Bytes(), 30_000)
	for i := range 5 {
		damaged[len(damaged)/2+i] ^= 0x15
	}
	_, rows, err := tryValues(itemOf(t, "in.gz", damaged), Options{NoHeader: true})
	conformance.Refused(t, err, "", "a damaged block: %d rows and no error", len(rows))
	s := opened(t, itemOf(t, "in.gz", damaged), Options{NoHeader: true})
	n := 0
	_, err = s.Sample(64<<20, s.Columns, func(rec *record.Record) {
		got := convert.Text(&rec.Fields[0])
		conformance.MustTrue(t, rec.Bad == nil && got == fmt.Sprint(n), "record %d: %q", n, got)
		n++
	})
	conformance.True(t, err == nil && n >= 1000, "%d records before the damaged block, %v", n, err)
}

func TestEndlessEmptyLinesAreRefused(t *testing.T) {
	empty := gzipped([]byte(strings.Repeat("\r\n", maxBlank/4))) // one gzip member, because compressing it is slow
	text := slices.Concat(gzipped([]byte("a,b\n1,2\n")), empty, empty, empty)
	got := readAll(itemOf(t, "in.csv.gz", text), Options{Format: CSV})
	conformance.True(t, got.rows == 1 && got.err != nil && strings.Contains(got.err.Error(), "empty lines"), "%v", got)
	for name, tt := range map[string]struct {
		data    string
		o       tcsv.Dialect
		long    *longRecord
		counted int64 // counts from the end of the data, one byte below the limit; -1 if refused
	}{
		"the last byte":       {"\n", tcsv.Dialect{}, nil, maxBlank},
		"one more":            {"\r\n", tcsv.Dialect{}, nil, -1},
		"a record between":    {"\n1,2\n\n\n", tcsv.Dialect{}, nil, 0},
		"records of a column": {"\n\n\n", tcsv.Dialect{Blank: true}, nil, 0},
		"part of a record":    {"\n\n\n", tcsv.Dialect{}, new(longRecord), 0},
	} {
		r := &textReader{s: &File{Dialect: tt.o}, long: tt.long, blank: maxBlank - 1}
		err := r.checkBlank([]byte(tt.data))
		conformance.True(t, (err != nil) == (tt.counted < 0) && (err != nil || r.blank == tt.counted), "%s: %v", name, err)
	}
}

func TestAcidTestFilesGiveStatedValues(t *testing.T) {
	const dir = "testdata/csv/csv-spectrum/csvs"
	files, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	conformance.MustTrue(t, err == nil && len(files) >= 10, "%d files: %v", len(files), err)
	for _, path := range files {
		expectation, err := os.ReadFile(filepath.Join(dir, "..", "json", strings.TrimSuffix(filepath.Base(path), ".csv")+
			".json"))
		must(t, err)
		var want []map[string]string
		if bytes.HasPrefix(expectation, []byte("{")) {
			expectation = append(append([]byte("["), expectation...), ']')
		}
		must(t, json.Unmarshal(expectation, &want))
		columns, rows := valuesOf(t, found(t, path), Options{})
		correct(filepath.Base(path), want)
		var got []map[string]string
		for _, row := range rows {
			object := map[string]string{}
			for i, v := range row {
				object[columns[i]] = v
			}
			got = append(got, object)
		}
		conformance.Equal(t, cmp.Diff(want, got), "", "%s (-want +got)", filepath.Base(path))
	}
}

// correct adapts the stated values to the stored files: one has lost its CRs, another lacks a telephone number.
func correct(name string, want []map[string]string) {
	for _, row := range want {
		switch name {
		case "newlines_crlf.csv":
			row["a"] = strings.ReplaceAll(row["a"], "\r", "")
		case "location_coordinates.csv":
			row["Contact Phone Number"] = "2095257564"
		}
	}
}

func TestAllLayoutsOfJSONAreRead(t *testing.T) {
	const array = "[{\"id\":1,\"v\":\"a\"},\n {\"id\":2,\"v\":{\"b\": [1,\n2]}},{\"id\":3}\n]\n"
	const pretty = "{\n  \"id\": 1,\n  \"v\": \"a\"\n}\n{\n  \"id\": 2,\n  \"v\": {\"b\": [1,\n2]}\n}{\"id\":3}"
	want := [][]string{{"1", "a"}, {"2", `{"b":[1,2]}`}, {"3", ""}}
	for name, item := range map[string]input.Item{
		"an array":             itemOf(t, "a.json", []byte(array)),
		"an array by its text": itemOf(t, "a", []byte(array)),
		"objects":              itemOf(t, "a.json", []byte(pretty)),
		"objects in .jsonl":    itemOf(t, "a.jsonl", []byte(pretty)),
		"a stream":             streamOf(t, []byte(array)),
		"gzip":                 itemOf(t, "a.json.gz", gzipped([]byte(array))),
		"UTF-16":               itemOf(t, "a.json", []byte("\xff\xfe"+utf16le(array))),
	} {
		for _, split := range []int{1, 7, 20, 1000} {
			if name == "a stream" && split != 1000 {
				continue
			}
			_, rows := valuesOf(t, item, Options{SplitBytes: split})
			conformance.Equal(t, cmp.Diff(want, rows), "", "%s in splits of %d", name, split)
		}
	}
}

func TestBrokenJSONTextEndsReading(t *testing.T) {
	for text, want := range map[string]string{
		`[{"id":1},{"id":2}`:      `it ends at byte 18: the array has no end`,
		`[{"id":1},{"id":2}]]`:    `at byte 20: want the '[' of an array, found ']'`,
		`[{"id":1} {"id":2}]`:     `at byte 11: want ',' or ']', found '{'`,
		`[{"id":1},{"id":[2}]`:    `at byte 19: want ']', found '}'`,
		"{\n\"id\":1}\n{\"id\":2": `it ends at byte 17: the last record has no end`,
		`["a", 1]`:                `no element of the array is an object`,
	} {
		_, _, err := tryValues(itemOf(t, "a.json", []byte(text)), Options{})
		conformance.Refused(t, err, want, "%s", text)
		conformance.True(t, !strings.Contains(want, "at byte") || errors.As(err, new(*source.Lasting)),
			"%s: trying again would help, says %v", text, err)
	}
}

func TestRejectedJSONIsKeptOnOneLine(t *testing.T) {
	text := []byte("[\n{\n\"id\": 1},\n  {\"id\": 2,\n\"id\":\r\n3}\n]")
	s := opened(t, itemOf(t, "a.json", text), Options{})
	p := s.NewParser([]int{0})
	sp := source.Split{Data: text}
	var got []string
	_, lines, err := p.Parse(sp, func(rec *record.Record) {
		got = append(got, fmt.Sprintf("%d:%d bad %v: %s", rec.Span.Line, rec.Span.Start, rec.Bad != nil, s.Raw(sp, rec.Span)))
	})
	conformance.True(t, err == nil && lines == 6, "%d lines, %v", lines, err)
	want := []string{`1:2 bad false: { "id": 1}`, `3:16 bad true: {"id": 2, "id":  3}`}
	conformance.Equal(t, cmp.Diff(want, got), "", "(-want +got)")
}

// benchmarkText returns lines of student-card payments.
func benchmarkText(lines int) []byte {
	return []byte("CardID,SellerID,DeviceID,OrderNumber,Amount,OrderTime,Item\n" +
		strings.Repeat("2000000360,C791,928087,100001,21.58,2024-01-01T00:00:00Z,notebook\n", lines))
}

// BenchmarkCSV measures parsing, with and without conversion to typed values, and encoding/csv for comparison.
func BenchmarkCSV(b *testing.B) {
	const lines = 50_000
	data := benchmarkText(lines)
	report := func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lines, "ns/row")
	}
	b.Run("encoding-csv", func(b *testing.B) {
		for b.Loop() {
			r := csv.NewReader(bytes.NewReader(data))
			r.ReuseRecord = true
			for _, err := r.Read(); err == nil; _, err = r.Read() {
			}
		}
		report(b)
	})
	b.Run("parse", func(b *testing.B) {
		p := tcsv.NewParser(tcsv.Default)
		for b.Loop() {
			p.Reset(data)
			for _, ok := p.Next(); ok; _, ok = p.Next() {
			}
		}
		report(b)
	})
	b.Run("parse-and-convert", func(b *testing.B) {
		types := []table.Type{table.Integer, table.String, table.Integer, table.Integer, table.Double, table.String,
			table.String}
		names := []string{"CardID", "SellerID", "DeviceID", "OrderNumber", "Amount", "OrderTime", "Item"}
		var columns []table.Column
		for i, name := range names {
			columns = append(columns, table.Column{Source: name, Name: name, Type: types[i], Exact: true})
		}
		c := conformance.Try(convert.New(names, columns, convert.Options{})).Must(b)
		p := tcsv.NewParser(tcsv.Default)
		for b.Loop() {
			p.Reset(data)
			p.Next()
			for rec, ok := p.Next(); ok; rec, ok = p.Next() {
				_, why := c.Convert(rec)
				conformance.MustTrue(b, why == nil, "%v", why)
			}
		}
		report(b)
	})
}

func TestLongFirstJSONRecordIsReadWhole(t *testing.T) {
	value := strings.Repeat("x", headBytes+headBytes/8)
	long := `{"a":"` + value + "\"}\n"
	pretty := "{\n \"a\": \"" + value + "\",\n \"items\": [\n{\"a\":1}\n,\n{\"a\":2}\n]\n}\n"
	for name, tt := range map[string]struct {
		text string
		rows int
	}{
		"lines":                       {long + "{\"a\":\"y\"}\n", 2},
		"after a blank line":          {"\n" + long, 1},
		"after a broken line":         {"{\"a\n" + long, 2},
		"an array":                    {"[" + long + ",{\"a\":1}]", 2},
		"an object over many lines":   {pretty + pretty, 2},
		"one with a short one before": {"{\"a\":\"y\"}\n" + long, 2},
	} {
		for form, item := range map[string]func() input.Item{
			"a file":          func() input.Item { return itemOf(t, "in.jsonl", []byte(tt.text)) },
			"a packed stream": func() input.Item { return streamOf(t, gzipped([]byte(tt.text))) },
		} {
			f := conformance.Try(Open(t.Context(), item(), Options{})).Must(t)
			sampled := 0
			_, err := f.Sample(200, f.Columns, func(*record.Record) { sampled++ })
			conformance.True(t, err == nil && sampled != 0, "%s, %s: %d records sampled, %v", name, form, sampled, err)
			f.Close()
			_, rows := valuesOf(t, item(), Options{})
			conformance.True(t, len(rows) == tt.rows && slices.ContainsFunc(rows,
				func(r []string) bool { return r[0] == value }), "%s, %s: %d rows, or none has the value", name, form, len(rows))
		}
	}
	_, err := Open(t.Context(), itemOf(t, "in.jsonl", []byte(long)), Options{Memory: Memory{RecordBytes: headBytes}})
	conformance.Refused(t, err, "the first record is longer than 1 MiB", "result")
	_, err = Open(t.Context(), itemOf(t, "in.jsonl", []byte(`{"a":"`+strings.Repeat("x", MaxRecordBytes))), Options{})
	conformance.True(t, err != nil && !strings.Contains(err.Error(), "--memory"), "beyond the limit: %v", err)
}

func TestLongFirstCSVRecordIsReadWhole(t *testing.T) {
	row := strings.Repeat("x", headBytes+headBytes/8) + ",1\n"
	for text, o := range map[string]Options{"a,b\n" + row: {}, row + row: {NoHeader: true}} {
		f := conformance.Try(Open(t.Context(), streamOf(t, gzipped([]byte(text))), o)).Must(t)
		sampled := 0
		_, err := f.Sample(200, f.Columns, func(*record.Record) { sampled++ })
		conformance.True(t, err == nil && sampled > 0 && len(f.Columns) == 2, "%t: %d records sampled, columns %q, %v",
			o.NoHeader, sampled, f.Columns, err)
		f.Close()
	}
}

// TestSmallFileTakesLittleMemory reads files as a load of thousands would, and measures the memory that each takes.
func TestSmallFileTakesLittleMemory(t *testing.T) {
	text := []byte("id,name,price\n1,tea,2\n2,coffee,3\n")
	item := itemOf(t, "small.csv", text)
	const files = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range files {
		s := conformance.Try(Open(t.Context(), item, Options{})).Must(t)
		must(t, conformance.ErrorOf(s.Identity()))
		rows := 0
		err := readEach(s, func(*record.Record) { rows++ })
		conformance.MustTrue(t, err == nil && rows == 2, "%d rows, %v", rows, err)
		must(t, s.Close())
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / files
	conformance.True(t, each <= 64<<10, "a file of %d bytes takes %d bytes of memory", len(text), each)
}

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }
