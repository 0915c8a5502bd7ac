package reader

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	tcsv "example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// placesOf returns a line for each record: its position, its line number, and its values or its error and stored text.
func placesOf(t *testing.T, content string, o Options) (rows []string, err error) {
	t.Helper()
	name := "a.csv"
	if o.Format == JSONLines {
		name = "a.jsonl"
	}
	s := opened(t, itemOf(t, name, []byte(content)), o)
	parser := s.NewParser([]int{0, 1})
	defer parser.Close()
	line := 0
	err = eachSplit(s, func(sp source.Split) error {
		_, lines, err := parser.Parse(sp, func(rec *record.Record) {
			text := fmt.Sprintf("%d line %d ", sp.Offset+int64(rec.Span.Start), line+int(rec.Span.Line))
			if rec.Bad != nil {
				text += fmt.Sprintf("%s %s %q %s", rec.Bad.Code, rec.Bad.Message, rec.Bad.Value, s.Raw(sp, rec.Span))
			} else {
				text += fmt.Sprintf("%q %q", rec.Fields[0].Bytes, rec.Fields[1].Bytes)
			}
			rows = append(rows, text)
		})
		line += lines
		return err
	})
	return rows, err
}

func TestOnlyOverlongRecordIsRejected(t *testing.T) {
	const limit = 200 // longer than the part of a record that is shown
	escaped := tcsv.Default
	escaped.Quote, escaped.Escape = 0, '\\'
	crs := tcsv.Default
	crs.EOL = '\r'
	for name, o := range map[string]Options{
		"CSV": {}, "CSV without quotes": {Dialect: tcsv.Dialect{Delimiter: ",", EOL: '\n'}},
		"CSV with escapes": {Dialect: escaped}, "CSV of CRs": {Dialect: crs}, "JSON lines": {Format: JSONLines},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(len(name))))
			for round := range 8 {
				var b strings.Builder
				b.WriteString("id,v" + o.Dialect.End() + "0,x" + o.Dialect.End())
				if o.Format == JSONLines {
					b.Reset()
					b.WriteString(`{"id":0,"v":"x"}` + "\n")
				}
				ends := strings.NewReplacer("\n", o.Dialect.End())
				for i := range 30 {
					v := ""
					for range []int{0, 3, 3, 3, 60, 500}[random.IntN(6)] {
						v += []string{"a", "b", "é", "n"}[random.IntN(4)]
						if o.Format != JSONLines && (o.Dialect == tcsv.Dialect{} || o.Dialect == crs) && random.IntN(9) == 0 {
							v += []string{"\n", `""`, ","}[random.IntN(3)]
						}
						if o.Dialect.Escape != 0 && random.IntN(9) == 0 {
							v += []string{"\\\n", `\\`, `\,`}[random.IntN(3)]
						}
					}
					switch {
					case o.Format == JSONLines:
						fmt.Fprintf(&b, "{\"id\":%d,\"v\":\"%s\"}\n", i, v)
					case o.Dialect.Quote == 0 && o.Dialect.Delimiter != "":
						fmt.Fprint(&b, ends.Replace(fmt.Sprintf("%d,%s\n", i, v)))
					default:
						fmt.Fprint(&b, ends.Replace(fmt.Sprintf("%d,\"%s\"\n", i, v)))
					}
				}
				// A single split is parsed as a whole, so it shows what to expect.
				o.Memory.RecordBytes, o.SplitBytes = limit, 1<<20
				want, err := placesOf(t, b.String(), o)
				conformance.MustTrue(t, err == nil && len(want) >= 31, "%d records, %v", len(want), err)
				unlimited := o
				unlimited.Memory.RecordBytes = 0
				all, err := placesOf(t, b.String(), unlimited)
				conformance.MustTrue(t, err == nil && len(all) == len(want), "%d records, want %d: %v", len(all), len(want), err)
				for i := range all {
					long := strings.Contains(want[i], table.CodeRecordTooLong)
					conformance.MustTrue(t, (long || all[i] == want[i]) && (!long || len(all[i]) >= limit/2), "%d: %s", i, all[i])
				}
				for _, size := range []int{1, 7, 50, 199, 200, 201, 300, 1000} {
					if size < 50 && round > 0 {
						continue // it would be many pieces, each in a buffer that is too large
					}
					o.SplitBytes = size
					got, err := placesOf(t, b.String(), o)
					if diff := cmp.Diff(want, got); err != nil || diff != "" {
						t.Fatalf("pieces of %d bytes: %v (-want +got):\n%s\n%q", size, err, diff, b.String())
					}
				}
			}
		})
	}
}

func TestUnclosedQuoteEndsReading(t *testing.T) {
	o := Options{SplitBytes: 50, Memory: Memory{RecordBytes: 100}}
	rows, err := placesOf(t, "id,v\n1,x\n2,\""+strings.Repeat("3,y\n", 100), o)
	conformance.True(t, err != nil && strings.Contains(err.Error(), "the record at byte 9 does not end") && len(rows) == 1,
		"got %v, %v", rows, err)
}

func TestPlaceholderOfLongRecordIsNotARecord(t *testing.T) {
	for header, o := range map[string]Options{
		"id\n1\n": {}, "id,v\n1,x\n": {Dialect: tcsv.Dialect{Delimiter: ",", Quote: '\'', EOL: '\n'}},
		"{\"id\":1,\"v\":\"x\"}\n": {Format: JSONLines},
	} {
		s := conformance.Try(Open(t.Context(), itemOf(t, "a.csv", []byte(header)), o)).Must(t)
		raw := string((&longRecord{offset: 7, bytes: 1 << 24}).raw(s))
		must(t, s.Close())
		set := itemOf(t, "b.csv", []byte(header+raw+header))
		if o.Format == JSONLines {
			set = itemOf(t, "b.jsonl", []byte(header+raw))
		}
		_, rows := valuesOf(t, set, o)
		conformance.True(t, len(rows) >= 2 && len(rows[1]) == 1 && strings.HasPrefix(rows[1][0], "Bad"), "%q: %q", raw, rows)
	}
}

func TestSeamsOfJoinedFilesAreRejected(t *testing.T) {
	const mark, seam = "\xef\xbb\xbf", table.CodeSeam
	for name, tt := range map[string]struct {
		text string
		o    Options
		want []string // first fields of the records, or their reject codes
	}{
		"a header":        {"id,v\n1,a\nid,v\n2,b\n", Options{}, []string{"1", seam, "2"}},
		"in other quotes": {"id,v\n1,a\n\"id\",\"v\"\r\n2,b\n", Options{}, []string{"1", seam, "2"}},
		"gzip members":    {packed("id,v\n1,a\n") + packed("id,v\n2,b\n"), Options{}, []string{"1", seam, "2"}},
		"a mark": {mark + "id,v\n1,a\n" + mark + "id,v\n2,b\n" + mark + "3,c\n", Options{},
			[]string{"1", seam, "2", seam}},
		"a mark, no header": {"1,a\n" + mark + "2,b\n", Options{NoHeader: true}, []string{"1", seam}},
		"UTF-16":            {utf16le(mark+"id,v\n1,a\n") + utf16le(mark+"id,v\n2,b\n"), Options{}, []string{"1", seam, "2"}},
		"letters, no mark":  {"id,v\n\xef\xbb\xbf\xa1,b\n", Options{Encoding: "gbk"}, []string{"\xef\xbb\xbf\xa1"}},
		"half a header":     {"id,v\nid,a\nx,v\n", Options{}, []string{"id", "x"}},
		"one column":        {"id\n1\nid\n" + mark + "id\n", Options{}, []string{"1", "id", seam}},
		"ClickHouse's types": {"id\tv\nUInt8\tString\n1\ta\nid\tv\nUInt8\tString\n2\tb\n",
			dialect("clickhouse-types"), []string{"1", seam, seam, "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, itemOf(t, "in.csv", []byte(tt.text)), tt.o)
			conformance.Same(t, firstFields(t, s), tt.want, "first fields")
			conformance.Equal(t, strings.Contains(fmt.Sprint(s.Notes), "appears again"), name == "one column", "%q", s.Notes)
		})
	}
	var text strings.Builder
	for i := range 900 {
		if i%40 == 0 {
			text.WriteString("id,\"na\nme\",v\n")
		}
		fmt.Fprintf(&text, "%d,\"x\ny\",2\n", i)
	}
	for name, content := range map[string]string{"in.csv": text.String(), "in.gz": packed(text.String())} {
		keepsTheContract(t, fileOf(t, name, []byte(content)), Options{SplitBytes: 900})
	}
}

// firstFields returns the first field of each record, or its reject code.
func firstFields(t *testing.T, s *File) (got []string) {
	t.Helper()
	must(t, readEach(s, func(rec *record.Record) {
		if rec.Bad != nil {
			got = append(got, rec.Bad.Code)
			return
		}
		got = append(got, string(rec.Fields[0].Bytes))
	}))
	return got
}

func utf16le(text string) string {
	var out []byte
	for _, r := range text {
		out = append(out, byte(r), byte(r>>8))
	}
	return string(out)
}

func TestFolderValueDoesNotReplaceRecordValue(t *testing.T) {
	const city, other, bad = "\xb1\xb1\xbe\xa9", "\xc9\xcf\xba\xa3", table.CodeFolder // the names of cities are in GBK
	for name, tt := range map[string]struct {
		folder, file, text string
		want               []string
		o                  Options
	}{
		"CSV": {"dt=2024-01-02", "in.csv", "dt,id\n2024-01-02,1\n2023-12-31,2\n,3\n\"\",4\n",
			[]string{"2024-01-02", bad, "", bad}, Options{}},
		"a null folder": {"dt=__HIVE_DEFAULT_PARTITION__", "in.csv", "dt,id\n,1\n2023,2\n", []string{"", bad}, Options{}},
		"JSON numbers":  {"m=01", "in.jsonl", "{\"m\":1}\n{\"m\":2}\n", []string{"1", bad}, Options{}},
		"CSV numbers":   {"m=01", "in.csv", "m,id\n1,1\n1.0,2\n10,3\n", []string{"1", "1.0", bad}, Options{}},
		"large numbers": {"m=9007199254740993", "in.csv", "m,id\n9007199254740992,1\n9007199254740993.0,2\n",
			[]string{bad, "9007199254740993.0"}, Options{}},
		"a fraction":  {"m=1%2F2", "in.csv", "m,id\n0.5,1\n1/2,2\n", []string{bad, "1/2"}, Options{}},
		"an exponent": {"m=100", "in.csv", "m,id\n1e2,1\n", []string{bad}, Options{}},
		"GBK": {"m=北京", "in.csv", "m,id\n" + city + ",1\n" + other + ",2\n", []string{city, bad},
			Options{Encoding: "gbk"}},
		"blanks":      {"m=a", "in.csv", "m,id\n a,1\n", []string{bad}, Options{}},
		"trimmed":     {"m=a", "in.csv", "m,id\n a\t,1\n\" a\",2\n", []string{" a\t", bad}, Options{TrimNames: true}},
		"two folders": {"k=x/m=y", "in.csv", "k,m,id\nx,y,1\nz,y,2\nx,z,3\n", []string{"x", bad, bad}, Options{}},
		"Spark's times": {"t=2024-01-02 00%3A00%3A00", "in.csv",
			"t,id\n2024-01-02T00:00:00.000,1\n2024-01-02T00:00:01,2\n2024-01-02 00:00:00.5,3\n",
			[]string{"2024-01-02T00:00:00.000", bad, bad}, Options{}},
		"JSON, absent": {"m=01", "in.jsonl", "{\"m\":1}\n{\"k\":2}\n", []string{"1", ""}, Options{}},
		"others":       {"x=1", "in.csv", "dt,id\n1,2\n", []string{"1"}, Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, tt.folder)
			must(t, os.MkdirAll(dir, 0o755))
			must(t, os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.text), 0o644))
			set := conformance.Try(input.Expand(t.Context(), []string{root}, input.Options{PathColumns: true})).Must(t)
			s := opened(t, set.Items[0], tt.o)
			conformance.Same(t, firstFields(t, s), tt.want, "first fields")
			both := s.inBoth([]int{0})
			conformance.True(t, len(both) == 0, "%v are compared, of which the folder's are not loaded", both)
			conformance.Equal(t, len(s.Notes) > 0, name != "others", "notes %q", s.Notes)
		})
	}
}

func TestContradictedEncodingIsRefused(t *testing.T) {
	const mark, few, many = "\xef\xbb\xbf", "id,v\n1,\u4e00\u4e8c\n",
		"id,v\n1,\u4e00\u4e8c\u4e09\u56db\n2,\u4e94\u516d\u4e03\u516b\n"
	for name, tt := range map[string]struct {
		text, encoding string
		want, note     string // parts of the error and of a note
	}{
		"UTF-8's mark":         {mark + "id\n1\n", "latin1", "byte order mark of utf-8", ""},
		"UTF-8's mark and GBK": {mark + "id\n1\n", "gbk", "byte order mark of utf-8", ""},
		"UTF-16's mark":        {"\xff\xfe" + utf16le("id\n1\n"), "gbk", "byte order mark of utf-16le", ""},
		"the other order":      {"\xff\xfe" + utf16le("id\n1\n"), "utf-16be", "byte order mark of utf-16le", ""},
		"UTF-8 as GBK":         {many, "gbk", "valid UTF-8 with 8 non-ASCII characters", ""},
		"UTF-8 as Big5":        {many, "big5", "valid UTF-8 with 8 non-ASCII characters", ""},
		"beyond the head":      {"id,v\n1,ab" + strings.Repeat("\u4e00", headBytes/2) + "\n", "gbk", "valid UTF-8 with", ""},
		"few characters":       {few, "gb18030", "", "also valid UTF-8"},
		"ASCII":                {"id,v\n1,a\n", "gbk", "", ""},
		"one byte a character": {many, "latin1", "", ""},
		"forced":               {many, "gbk!", "", ""},
		"forced over a mark":   {mark + "id\n1\n", "latin1!", "", ""},
		"a mark that fits":     {"\xff\xfe" + utf16le("id\n1\n"), "utf-16", "", ""},
		"really GBK":           {"id,v\n" + strings.Repeat("1,\xd6\xd0\xce\xc4\n", 9), "gbk", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), itemOf(t, "in.csv", []byte(tt.text)), Options{Encoding: tt.encoding})
			conformance.MustTrue(t, (err != nil) == (tt.want != "") && (err == nil || strings.Contains(err.Error(), tt.want)),
				"%v", err)
			if err != nil {
				return
			}
			defer s.Close()
			notes := strings.Join(s.Notes, " ")
			conformance.True(t, (notes != "") == (tt.note != "") && strings.Contains(notes, tt.note), "notes %q", notes)
		})
	}
}

func TestHeaderThatMayBeDataIsNotedOrRefused(t *testing.T) {
	const nothing, noted, refused = "", "noted", "refused"
	for name, tt := range map[string]struct {
		text string
		o    Options
		want string
	}{
		"names":                       {"id,v\n1,a\n", Options{}, nothing},
		"a number":                    {"1,Smith\n2,Jones\n", Options{}, noted},
		"numbers and a date":          {"1,Smith,2006-02-15\n2,Jones,2006-02-16\n", Options{}, refused},
		"said to be data":             {"1,Smith,2006-02-15\n2,Jones,2006-02-16\n", Options{NoHeader: true}, nothing},
		"a number twice":              {"1,1,x\n2,3,y\n", Options{}, refused},
		"a decimal":                   {"x,1.5\ny,2.5\n", Options{}, refused},
		"a date over text":            {"x,2006-02-15\ny,none\n", Options{}, nothing},
		"a date beside a named count": {"n,2006-02-15\n1,2006-02-16\n", Options{}, noted},
		"a number without others":     {"1,Unknown,\\N\n2,x,y\n", Options{}, refused},
		"integers among decimals":     {"x,7\na,1\nb,2.5\nc,3\n", Options{}, noted},
		"a number over words":         {"x,7\na,1\nb,word\n", Options{}, nothing},
		"years":                       {",2010,2011\nChina,1,2\n", Options{}, nothing},
		"a year":                      {",2019\nChina,1.5\n", Options{}, nothing},
		"rising numbers":              {"name,1,2,3\nx,4,5,6\n", Options{}, noted},
		"an index without a name":     {",a\n0,1.5\n1,2.5\n", Options{}, nothing},
		"an empty name over gaps":     {"a,,c\nx,,1\ny,z,2\n", Options{}, noted},
		"an empty name over words":    {"a,,c\nx,,y\ny,z,w\n", Options{}, noted},
		"null in the first line":      {"-1,Unknown,\\N,2.5\n1,x,\\N,3.5\n", Options{}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, itemOf(t, "in.csv", []byte(tt.text)), tt.o)
			got := nothing
			if strings.Contains(strings.Join(s.Notes, " "), "--no-header") {
				got = noted
			}
			if s.Doubt != "" {
				got = refused
			}
			conformance.Equal(t, got, tt.want, "%q, %q", s.Notes, s.Doubt)
		})
	}
}

func TestTrimDropsBlanksAroundQuotes(t *testing.T) {
	text := "id, \"v\" ,w\n1, \"a, \"\"b\"\"\nc\"\t,2\n\"3\" ,  x\"y\" , \" \" \r\n4,\t, \"d\" e\n"
	columns, rows := valuesOf(t, itemOf(t, "in.csv", []byte(text)), Options{TrimNames: true})
	want := [][]string{{"1", "a, \"b\"\nc", "2"}, {"3", "  x\"y\" ", " "}, {"BadQuote"}}
	conformance.True(t, slices.Equal(columns, []string{"id", "v", "w"}) && slices.EqualFunc(rows, want, slices.Equal),
		"%q, %q", columns, rows)
	tabs := Options{TrimNames: true, Dialect: tcsv.Dialect{Delimiter: "\t", Quote: '"'}}
	_, rows = valuesOf(t, itemOf(t, "in.csv", []byte("a\tb\n \"x\ty\" \t\n")), tabs)
	conformance.True(t, slices.EqualFunc(rows, [][]string{{"x\ty", ""}}, slices.Equal), "%q", rows)
	for text, hint := range map[string]bool{
		"id,v\n1, \"a\"\n": true, "id,v\n1, \"a,b\"\n": true, "id, \"v\"\n1,a\n": true, "id,v\n1, \"a\" b\n": false,
		"id,v\n1,\" \"\"a\"\"\"\n": false,
	} {
		s, err := Open(t.Context(), itemOf(t, "in.csv", []byte(text)), Options{})
		conformance.True(t, err == nil && strings.Contains(s.Hint, "--trim") == hint, "%q: hint %q, %v", text, s.Hint, err)
	}
	item := fileOf(t, "in.csv", []byte("id,v\n"+strings.Repeat("1, \"a\nb\" \n2,c\n", 900)))
	keepsTheContract(t, item, Options{TrimNames: true, SplitBytes: 900})
}

func TestEmptyLineInOneColumnIsNull(t *testing.T) {
	_, rows := valuesOf(t, itemOf(t, "in.csv", []byte("\na\n1\n\n2\r\n\r\n")), Options{})
	conformance.True(t, slices.EqualFunc(rows, [][]string{{"1"}, {""}, {"2"}, {""}}, slices.Equal), "%q", rows)
	_, rows = valuesOf(t, itemOf(t, "in.csv", []byte("a,b\n1,2\n\n3,4\n")), Options{})
	conformance.Equal(t, len(rows), 2, "of two columns: %q", rows)
	_, rows = valuesOf(t, itemOf(t, "in.csv", []byte("a\\r\\nb\r\n")), dialect("postgres", bare)) // no line end in the row
	conformance.Equal(t, rows[0][0], "a\r\nb", "an escaped line end")
}
