package reader

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tsimport/table"
)

// shown is a record as tests compare it.
type shown struct {
	Fields []string
	Raw    string
	Offset int64
	Line   int
	Bad    string
}

// records reads a whole source, split by split.
func records(t testing.TB, path string, d Dialect, splitBytes int) []shown {
	t.Helper()
	s, err := Open(path, Options{Dialect: d, SplitBytes: splitBytes})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var all []shown
	p := NewParser(d)
	lines := s.HeaderLines()
	for {
		sp, err := s.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Reset(sp.Data)
		for {
			rec, ok := p.Next()
			if !ok {
				break
			}
			all = append(all, show(rec, sp, lines))
		}
		lines += p.Lines()
	}
}

func show(rec Record, sp Split, lines int) shown {
	sh := shown{
		Raw: string(sp.Data[rec.Mark.Start:rec.Mark.End]), Offset: sp.Offset + int64(rec.Mark.Start),
		Line: lines + int(rec.Mark.Line) + 1,
	}
	if rec.Bad != nil {
		sh.Bad = rec.Bad.Code
		return sh
	}
	for _, f := range rec.Fields {
		text := string(f.Text)
		if f.Quoted {
			text = "“" + text + "”"
		}
		sh.Fields = append(sh.Fields, text)
	}
	return sh
}

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func fields(all []shown) (got [][]string) {
	for _, r := range all {
		if r.Bad != "" {
			got = append(got, []string{r.Bad})
			continue
		}
		got = append(got, r.Fields)
	}
	return got
}

func TestRecordsOfADialect(t *testing.T) {
	noQuote := Dialect{Delimiter: ';'}
	for name, tt := range map[string]struct {
		d    Dialect
		text string
		want [][]string
	}{
		"plain":                           {DefaultDialect, "1,2\n3,4\n", [][]string{{"1", "2"}, {"3", "4"}}},
		"no line end at the end":          {DefaultDialect, "1,2\n3,4", [][]string{{"1", "2"}, {"3", "4"}}},
		"CR LF":                           {DefaultDialect, "1,2\r\n3,\"4\"\r\n", [][]string{{"1", "2"}, {"3", "“4”"}}},
		"empty fields":                    {DefaultDialect, ",\n\"\",\n", [][]string{{"", ""}, {"“”", ""}}},
		"empty lines are no records":      {DefaultDialect, "\n1,2\n\r\n\n3,4\n\n", [][]string{{"1", "2"}, {"3", "4"}}},
		"line ends inside quotes":         {DefaultDialect, "\"a\nb\",\"c\r\nd\"\n1,2\n", [][]string{{"“a\nb”", "“c\r\nd”"}, {"1", "2"}}},
		"doubled quotes":                  {DefaultDialect, "\"a\"\"b\",\"\"\"\"\n", [][]string{{"“a\"b”", "“\"”"}}},
		"delimiter inside quotes":         {DefaultDialect, "\"a,b\",c\n", [][]string{{"“a,b”", "c"}}},
		"a quote inside a field is text":  {DefaultDialect, "5\" disk,a\"b\"\n1,2\n", [][]string{{"5\" disk", "a\"b\""}, {"1", "2"}}},
		"text behind the closing quote":   {DefaultDialect, "\"a\"b,c\n1,2\n", [][]string{{table.CodeQuote}, {"1", "2"}}},
		"a quote that never closes":       {DefaultDialect, "1,2\n\"a,b\n3,4\n", [][]string{{"1", "2"}, {table.CodeQuote}}},
		"quotes off":                      {noQuote, "\"a;b\"\n", [][]string{{"\"a", "b\""}}},
		"NUL and bad UTF-8 are kept":      {DefaultDialect, "a\x00b,\xff\n", [][]string{{"a\x00b", "\xff"}}},
		"ragged records":                  {DefaultDialect, "1\n1,2,3\n", [][]string{{"1"}, {"1", "2", "3"}}},
		"space before a quote":            {DefaultDialect, "a, \"b\"\n", [][]string{{"a", " \"b\""}}},
		"a quoted field at the very end":  {DefaultDialect, "a,\"b\"", [][]string{{"a", "“b”"}}},
		"a quoted field before CR at end": {DefaultDialect, "a,\"b\"\r", [][]string{{"a", "“b”"}}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.d.NoHeader = true
			for _, size := range []int{1, 2, 3, 5, 8, 0} {
				got := fields(records(t, write(t, tt.text), tt.d, size))
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("split size %d (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

func TestErrorsNameTheRightLineAndByte(t *testing.T) {
	text := "\xef\xbb\xbfid,\"na\nme\"\n\n1,\"a\nb\"\r\n\n2,c\n"
	want := []shown{
		{Fields: []string{"1", "“a\nb”"}, Raw: "1,\"a\nb\"\r\n", Offset: 15, Line: 4},
		{Fields: []string{"2", "c"}, Raw: "2,c\n", Offset: 25, Line: 7},
	}
	for size := 1; size < 40; size++ {
		if diff := cmp.Diff(want, records(t, write(t, text), DefaultDialect, size)); diff != "" {
			t.Fatalf("split size %d (-want +got):\n%s", size, diff)
		}
	}
}

// FuzzSplits checks that records do not depend on where a source is cut, that they cover it, and that valid CSV is read
// as the standard library reads it.
func FuzzSplits(f *testing.F) {
	for _, seed := range []string{"a,b\n1,\"x\ny\"\n", "\"\"\"\"\n", "\"a\"b\n\"", "\r\n\n,\r\n\"\r\"", "a\"b,\"c\n\"d\"", "\"a,\n\"\"b\"\n,\"\"\n"} {
		f.Add([]byte(seed), uint16(1), byte(','), byte('"'))
		f.Add([]byte(seed), uint16(3), byte(';'), byte(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint16, delimiter, quote byte) {
		d := Dialect{Delimiter: delimiter, Quote: quote, NoHeader: true}
		if delimiter == quote || delimiter == 0 || delimiter == '\n' || delimiter == '\r' || quote == '\n' || quote == '\r' || len(text) > 4096 {
			return
		}
		if refuseFormat("", text) != nil {
			return
		}
		path := write(t, string(text))
		whole := records(t, path, d, 1<<20)
		if diff := cmp.Diff(whole, records(t, path, d, 1+int(size)%64)); diff != "" {
			t.Fatalf("records depend on the splits (-whole +cut):\n%s", diff)
		}
		checkCover(t, text, whole)
		if d.Quote == '"' {
			compareWithStandard(t, text, d, whole)
		}
	})
}

// checkCover checks that nothing but empty lines lies between records.
func checkCover(t *testing.T, text []byte, all []shown) {
	at := int64(0)
	if bytes.HasPrefix(text, byteOrderMark) {
		at = int64(len(byteOrderMark))
	}
	for _, r := range all {
		if gap := text[at:r.Offset]; strings.Trim(string(gap), "\r\n") != "" {
			t.Fatalf("%q is in no record", gap)
		}
		at = r.Offset + int64(len(r.Raw))
	}
	if rest := text[at:]; strings.Trim(string(rest), "\r\n") != "" {
		t.Fatalf("%q is in no record", rest)
	}
}

func compareWithStandard(t *testing.T, text []byte, d Dialect, all []shown) {
	text = bytes.TrimPrefix(text, byteOrderMark)
	if d.Delimiter >= 0x80 || bytes.Contains(text, []byte{'\r'}) {
		return // the standard library rewrites CR LF inside quotes, and its delimiter is a rune
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord = rune(d.Delimiter), -1
	want, err := r.ReadAll()
	if err != nil {
		return
	}
	var got [][]string
	for _, rec := range all {
		var plain []string
		for _, f := range rec.Fields {
			plain = append(plain, strings.TrimSuffix(strings.TrimPrefix(f, "“"), "”"))
		}
		got = append(got, plain)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) && !strings.ContainsAny(string(text), "“”") {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
}

func TestHeadersGetUsableNames(t *testing.T) {
	for header, want := range map[string][]string{
		"a,b,c":     {"a", "b", "c"},
		"a,,c":      {"a", "c2", "c"},
		"a,a,a":     {"a", "a_2", "a_3"},
		"a,a_2,a":   {"a", "a_2", "a_3"},
		"c2,,x":     {"c2", "c2_2", "x"},
		"\"a,b\",c": {"a,b", "c"},
		"a,a,a_2":   {"a", "a_3", "a_2"},
	} {
		s, err := Open(write(t, header+"\n"), Options{Dialect: DefaultDialect})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.Columns); diff != "" {
			t.Errorf("%s (-want +got):\n%s", header, diff)
		}
		s.Close()
	}
}

func TestInputsThatAreNoCSVAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "only a byte order mark": "\xef\xbb\xbf", "gzip": "\x1f\x8b\x08\x00", "Parquet": "PAR1\x15\x04", "UTF-16": "\xff\xfea\x00",
		"zstd": "\x28\xb5\x2f\xfd\x04", "a quote that never closes": "\"a,b\n",
	} {
		if s, err := Open(write(t, text), Options{Dialect: DefaultDialect}); err == nil {
			t.Errorf("%s: accepted with columns %q", name, s.Columns)
			s.Close()
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none.csv"), Options{Dialect: DefaultDialect}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Open(t.TempDir(), Options{Dialect: DefaultDialect}); err == nil {
		t.Error("a folder was accepted")
	}
}

func TestASuspendedSourceReadsOnFromItsFirstRecord(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,v\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "%d,value\n", i)
	}
	path := write(t, b.String())
	s, err := Open(path, Options{Dialect: DefaultDialect, SplitBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 3 {
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Suspend(); err != nil {
		t.Fatal(err)
	}
	var data []byte
	for n := 0; ; n++ {
		sp, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if sp.Number != n || sp.Offset != s.HeaderEnd+int64(len(data)) {
			t.Fatalf("split %d at %d, want %d at %d", sp.Number, sp.Offset, n, s.HeaderEnd+int64(len(data)))
		}
		data = append(data, sp.Data...)
	}
	if string(data) != strings.TrimPrefix(b.String(), "id,v\n") {
		t.Error("the splits are not the file")
	}
}

func BenchmarkParse(b *testing.B) {
	line := "2000000360,C791,928087,100001,21.58,2024-01-01T00:00:00Z,notebook\n"
	data := []byte(strings.Repeat(line, 10000))
	b.Run("ours", func(b *testing.B) {
		p := NewParser(DefaultDialect)
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			p.Reset(data)
			for _, ok := p.Next(); ok; _, ok = p.Next() {
			}
		}
	})
	b.Run("encoding/csv", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			r := csv.NewReader(bytes.NewReader(data))
			r.ReuseRecord = true
			for _, err := r.Read(); err == nil; _, err = r.Read() {
			}
		}
	})
}
