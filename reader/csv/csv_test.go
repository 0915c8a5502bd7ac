package csv

import (
	"bytes"
	stdcsv "encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// rows holds the fields of records.
type rows = [][]string

// shown is a record in the form that tests compare.
type shown struct {
	Fields       []string
	Raw          string
	Offset, Line int
	Bad          string
}

// splitsOf cuts a text into splits as a reader would, in chunks of size bytes.
func splitsOf(d Dialect, text []byte, size int) [][]byte {
	var splits [][]byte
	keep := func(split []byte) {
		if len(split) > 0 {
			splits = append(splits, bytes.Clone(split))
		}
	}
	if d.Parallel() {
		var s Stitcher
		for from := 0; from < len(text); from += size {
			chunk := bytes.Clone(text[from:min(from+size, len(text))])
			keep(s.Add(chunk, d.Scan(chunk)))
		}
		keep(s.Rest())
		return splits
	}
	var pending []byte
	for from := 0; from < len(text); from += size {
		pending = append(pending, text[from:min(from+size, len(text))]...)
		n := d.LastEnd(pending)
		keep(pending[:n])
		pending = bytes.Clone(pending[n:])
	}
	keep(pending)
	return splits
}

func recordsOf(d Dialect, text []byte, size int) []shown {
	var all []shown
	p := NewParser(d)
	offset, lines := 0, 0
	for _, split := range splitsOf(d, text, size) {
		p.Reset(split)
		for rec, ok := p.Next(); ok; rec, ok = p.Next() {
			all = append(all, show(rec, split, offset, lines))
		}
		offset += len(split)
		lines += p.Lines()
	}
	return all
}

func show(rec *record.Record, split []byte, offset, lines int) shown {
	s := shown{Raw: string(split[rec.Span.Start:rec.Span.End]), Offset: offset + int(rec.Span.Start),
		Line: lines + int(rec.Span.Line) + 1}
	if rec.Bad != nil {
		s.Bad = rec.Bad.Code
		return s
	}
	for _, f := range rec.Fields {
		switch {
		case f.Kind == record.Null:
			s.Fields = append(s.Fields, "∅")
		case f.Kind == record.Binary:
			s.Fields = append(s.Fields, fmt.Sprintf("<%x>", f.Bytes))
		case f.Kind == record.Number:
			s.Fields = append(s.Fields, "#"+string(f.Bytes))
		case f.Kind == record.String:
			s.Fields = append(s.Fields, "‘"+string(f.Bytes)+"’")
		case f.Quoted:
			s.Fields = append(s.Fields, "“"+string(f.Bytes)+"”")
		default:
			s.Fields = append(s.Fields, string(f.Bytes))
		}
	}
	return s
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

func TestDialectSplitsRecords(t *testing.T) {
	const bad = table.CodeEscape
	mac := Dialect{Delimiter: ",", Quote: '"', EOL: '\r'}
	escaping := Dialect{Delimiter: ",", Quote: '"', Escape: '\\'}
	long := Dialect{Delimiter: "+|", Quote: '\''}
	comments := Dialect{Delimiter: ",", Quote: '"', Comment: "#"}
	for name, tt := range map[string]struct {
		d    Dialect
		text string
		want [][]string
	}{
		"plain":                           {Default, "1,2\n3,4\n", rows{{"1", "2"}, {"3", "4"}}},
		"no line end at the end":          {Default, "1,2\n3,4", rows{{"1", "2"}, {"3", "4"}}},
		"CR LF":                           {Default, "1,2\r\n3,\"4\"\r\n", rows{{"1", "2"}, {"3", "“4”"}}},
		"a lone CR is text":               {Default, "a\rb,c\n", rows{{"a\rb", "c"}}},
		"CR ends records":                 {mac, "1,\"a\rb\"\r2,c\r\r3,\n", rows{{"1", "“a\rb”"}, {"2", "c"}, {"3", "\n"}}},
		"empty fields":                    {Default, ",\n\"\",\n", rows{{"", ""}, {"“”", ""}}},
		"empty lines are no records":      {Default, "\n1,2\n\r\n\n3,4\n\n", rows{{"1", "2"}, {"3", "4"}}},
		"line ends inside quotes":         {Default, "\"a\nb\",\"c\r\nd\"\n1,2\n", rows{{"“a\nb”", "“c\r\nd”"}, {"1", "2"}}},
		"doubled quotes":                  {Default, "\"a\"\"b\",\"\"\"\"\n", rows{{"“a\"b”", "“\"”"}}},
		"delimiter inside quotes":         {Default, "\"a,b\",c\n", rows{{"“a,b”", "c"}}},
		"a quote inside a field is text":  {Default, "5\" disk,a\"b\"\n1,2\n", rows{{"5\" disk", "a\"b\""}, {"1", "2"}}},
		"text behind the closing quote":   {Default, "\"a\"b,c\n1,2\n", rows{{table.CodeQuote}, {"1", "2"}}},
		"a quote that never closes":       {Default, "1,2\n\"a,b\n3,4\n", rows{{"1", "2"}, {table.CodeQuote}}},
		"quotes off":                      {Dialect{Delimiter: ";"}, "\"a;b\"\n", rows{{"\"a", "b\""}}},
		"control character":               {Dialect{Delimiter: "\x01", Quote: '"'}, "a\x01b\n", rows{{"a", "b"}}},
		"NUL and bad UTF-8 are kept":      {Default, "a\x00b,\xff\n", rows{{"a\x00b", "\xff"}}},
		"ragged records":                  {Default, "1\n1,2,3\n", rows{{"1"}, {"1", "2", "3"}}},
		"space before a quote":            {Default, "a, \"b\"\n", rows{{"a", " \"b\""}}},
		"a quoted field at the very end":  {Default, "a,\"b\"", rows{{"a", "“b”"}}},
		"a quoted field before CR at end": {Default, "a,\"b\"\r", rows{{"a", "“b”"}}},

		"escapes": {escaping, "a\\,b,\"c\\\"d\"\"e\",\\\\\nx\\\ny,z\n",
			rows{{"a,b", "“c\"d\"e”", "\\"}, {"x\ny", "z"}}},
		"an escaped N": {escaping, "\\N,N,\"N\"\n", rows{{"∅", "N", "“N”"}}},
		"escaped letters": {escaping, "a\\n\n\"\\N\"\n\\NN\nC:\\temp\n\\0\nb\n",
			rows{{bad}, {bad}, {bad}, {bad}, {bad}, {"b"}}},
		"another escape": {Dialect{Delimiter: ",", Escape: '^'}, "a^nb,^N,^^\n", rows{{"anb", "N", "^"}}},
		"CR CR LF": {Default, "a,b\r\r\n1,\"2\"\r\r\r\n\r\r\n3,\"4\r\r\n\"\r\r\n5,6\r\r",
			rows{{"a", "b"}, {"1", "“2”"}, {"3", "“4\r\r\n”"}, {"5", "6"}}},
		"CR CR LF, careful": {escaping, "a,b\r\r\n1,\"2\"\r\r\r\n3,4\\\r\r\n",
			rows{{"a", "b"}, {"1", "“2”"}, {"3", "4\r"}}},
		"a record end": {Dialect{Delimiter: "+|", RecordEnd: "&|\n"}, "1+|a\nb\r&|\n2+|&||&|\n3+|c",
			rows{{"1", "a\nb\r"}, {"2", "&||"}, {"3", "c"}}},
		"one byte ends": {Dialect{Delimiter: "\x01", Quote: '"', RecordEnd: "\x02"},
			"1\x01a\r\n\x02\x022\x01\"b\x02\"\x02", rows{{"1", "a\r\n"}, {"2", "“b\x02”"}}},
		"an editor's end": {Dialect{Delimiter: "\t", RecordEnd: ";", Blank: true}, "1\t2;;3\t4;\r\n",
			rows{{"1", "2"}, {""}, {"3", "4"}}},
		"an exact record end": {Dialect{Delimiter: ",", RecordEnd: "\n"}, "a,b\r\n\r\n", rows{{"a", "b\r"}, {"\r"}}},
		"an exact CR LF": {Dialect{Delimiter: ",", RecordEnd: "\r\n"}, "a,b\nc\r\r\nd,e\r\n",
			rows{{"a", "b\nc\r"}, {"d", "e"}}},
		"a last delimiter":   {Dialect{Delimiter: "|", RecordEnd: "|\n"}, "1|a|\n2||\n", rows{{"1", "a"}, {"2", ""}}},
		"a last escape":      {escaping, "a,b\\", rows{{bad}}},
		"a delimiter of two": {long, "a+|'b+|c'+|d+e|\n+|+|x\n", rows{{"a", "“b+|c”", "d+e|"}, {"", "", "x"}}},
		"comments":           {comments, "#c,\"\n1,\"#2\n3\"\n#x\n4,#5\n#end", rows{{"1", "“#2\n3”"}, {"4", "#5"}}},
		"errors, careful":    {escaping, "\"a\"b,c\n1,\"2\n", rows{{table.CodeQuote}, {table.CodeQuote}}},
		"CR LF, careful":     {escaping, "a,b\r\nc,\"d\r\n\"\r\n", rows{{"a", "b"}, {"c", "“d\r\n”"}}},
		"empty, careful":     {comments, "\n\r\n1,2\n\n#\n", rows{{"1", "2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Must(t, tt.d.Check())
			for _, size := range []int{1, 2, 3, 5, 8, 1000} {
				conformance.Equal(t, cmp.Diff(tt.want, fields(recordsOf(tt.d, []byte(tt.text), size))), "", "chunks of %d", size)
			}
		})
	}
}

func TestUnreadableDialectsAreRefused(t *testing.T) {
	for _, d := range []Dialect{
		{}, {Delimiter: ",", Quote: ','}, {Delimiter: "\n"}, {Delimiter: ",", Quote: '\r'}, {Delimiter: ",", Escape: ','},
		{Delimiter: ",", Quote: '"', Escape: '"'}, {Delimiter: ",", Comment: "#\n"},
		{Delimiter: ",", RecordEnd: ",\n", Quote: ','}, {Delimiter: ",", RecordEnd: ","},
		{Delimiter: ",", Quote: '"', RecordEnd: "\"\n"}, {Delimiter: "x", Escape: '\\', Escapes: EscapesPostgres},
	} {
		conformance.True(t, d.Check() != nil, "%+v was accepted", d)
	}
}

// FuzzDialects checks, for any text and dialect, that records cover the text and do not depend on where it is cut, and
// that valid CSV is read as encoding/csv reads it.
func FuzzDialects(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,\"x\ny\"\n", "\"\"\"\"\n", "\"a\"b\n\"", "\r\n\n,\r\n\"\r\"", "a\"b,\"c\n\"d\"", "\"a,\n\"\"b\"\n,\"\"\n",
		"#\"\n\\\n,#", "a+|b\n'+|'\n", "\\N\ta\\\\\n\\\n\\.\n", "1\tNULL\r\n\r\r\n\\", "a\x01\\x41\\0\\101\x01\n\\\r\n",
		"sep=;\n'a''b',X'0g',NULL\n", "a&&|b&|c&", "\\\\\\\n\\\\\n",
	} {
		f.Add([]byte(seed), uint8(1), ",", byte('"'), byte(0), "", "")
		f.Add([]byte(seed), uint8(3), "+|", byte('\''), byte('\\'), "#", "")
		f.Add([]byte(seed), uint8(2), ";", byte(0), byte(0), "", "\r")
		f.Add([]byte(seed), uint8(2), ";", byte(0), byte('\\'), "", "&|")
		f.Add([]byte(seed), uint8(1), "\t", byte(0), byte('\\'), "", "\x02")
		for i := range Programs {
			f.Add([]byte(seed), uint8(i%4), "", byte(i), byte(0), "", "")
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8, delimiter string, quote, escape byte, comment, recordEnd string) {
		d := Dialect{Delimiter: delimiter, Quote: quote, Escape: escape, Comment: comment, RecordEnd: recordEnd}
		if recordEnd == "\r" && size%2 == 0 {
			d.EOL, d.RecordEnd = '\r', ""
		}
		if delimiter == "" { // use the dialect of a program
			d, _, _ = Named(Programs[int(quote)%len(Programs)])
			d.RecordEnd = recordEnd
			if _, _, err := d.Settle(text, escape%2 == 0); err != nil {
				return
			}
		}
		if d.Check() != nil || len(text) > 2048 {
			return
		}
		whole := recordsOf(d, text, len(text)+1)
		cut := recordsOf(d, text, 1+int(size)%40)
		conformance.MustEqual(t, fmt.Sprint(whole), fmt.Sprint(cut),
			"records depend on the splits (-whole +cut):\n%s", cmp.Diff(whole, cut))
		checkCover(t, d, text, whole)
		checkAgain(t, d, whole)
		if d.Quote == '"' && d.simple() && d.End() == "\n" && d.Name == "" && d.dropsCR() {
			compareWithStandard(t, text, d, whole)
		}
	})
}

// checkAgain checks that rejected records, stored one after another, are read back unchanged.
func checkAgain(t *testing.T, d Dialect, all []shown) {
	var kept []byte
	var want []shown
	for _, r := range all {
		if !d.Ended([]byte(r.Raw)) && len(d.Delimiter+d.End()) > 2 {
			continue // its last bytes and its end could together be a delimiter
		}
		if r.Bad == table.CodeQuote || r.Bad != "" && !d.Ended([]byte(r.Raw)) {
			continue // after an unclosed quote or a final escape, the next record would be part of it
		}
		kept = append(kept, r.Raw...)
		if !d.Ended([]byte(r.Raw)) {
			kept = append(kept, d.End()...)
		}
		want = append(want, r)
	}
	again := recordsOf(d, kept, len(kept)+1)
	conformance.MustEqual(t, fmt.Sprint(fields(again)), fmt.Sprint(fields(want)),
		"kept records are read differently (-once +again):\n%s", cmp.Diff(fields(want), fields(again)))
}

// checkCover checks that nothing but empty lines and comments is between records.
func checkCover(t *testing.T, d Dialect, text []byte, all []shown) {
	at := 0
	check := func(gap []byte) {
		for line := range bytes.SplitSeq(gap, []byte(d.End())) {
			if d.dropsCR() {
				line = bytes.TrimRight(line, "\r")
			}
			if string(line) == d.EndMark || !strings.ContainsAny(d.End(), "\r\n") && len(bytes.Trim(line, "\r\n")) == 0 {
				continue
			}
			conformance.MustTrue(t, len(line) == 0 || d.Comment != "" && bytes.HasPrefix(line, []byte(d.Comment)),
				"%q is in no record", line)
		}
	}
	for _, r := range all {
		check(text[at:r.Offset])
		at = r.Offset + len(r.Raw)
	}
	check(text[at:])
}

func compareWithStandard(t *testing.T, text []byte, d Dialect, all []shown) {
	if d.Delimiter[0] >= 0x80 || d.Delimiter[0] == 0 || bytes.Contains(text, []byte{'\r'}) ||
		strings.ContainsAny(string(text), "“”") {
		return // encoding/csv changes CR LF inside quotes, and its delimiter is a rune
	}
	r := stdcsv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord = rune(d.Delimiter[0]), -1
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
	conformance.MustEqual(t, fmt.Sprint(got), fmt.Sprint(want), "got")
}

func TestUnquotedLineIsSplitAtDelimiters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delimiter := rapid.SampledFrom([]string{",", "\x01", "\x81", "\t"}).Draw(t, "delimiter")
		line := rapid.SliceOfN(rapid.SampledFrom([]byte("\x00\x01\x02,-\x80\x81\xfd\xffab")), 1, 40).Draw(t, "line")
		p := NewParser(Dialect{Delimiter: delimiter, Quote: '"'})
		p.Reset(append(slices.Clone(line), "\nnext,\x81\x01"...))
		rec, ok := p.Next()
		conformance.MustTrue(t, ok && rec.Bad == nil, "%v", rec)
		var got [][]byte
		for i := range rec.Fields {
			got = append(got, rec.Fields[i].Bytes)
		}
		conformance.True(t, slices.EqualFunc(got, bytes.Split(line, []byte(delimiter)), bytes.Equal), "%q as %q", line, got)
		ascii := bytes.IndexFunc(line, func(r rune) bool { return r > 127 }) < 0
		conformance.True(t, rec.ASCII == ascii, "%q is ASCII: %v", line, rec.ASCII)
	})
}

// TestMarkedLinesParseLikeUnmarked parses random texts, with lines across blocks and windows, with and without marks.
func TestMarkedLinesParseLikeUnmarked(t *testing.T) {
	if !marked {
		t.Skip("this processor marks nothing")
	}
	dialects := []Dialect{Default, {Delimiter: "\x00", Quote: '"'}, {Delimiter: "\x81"},
		{Delimiter: "|", Quote: '\'', Blank: true}, {Delimiter: ",", Quote: '"', EOL: '\r'},
		{Delimiter: "\t", Escape: '\\', Escapes: EscapesHive, Null: `\N`}, {Delimiter: ",", Quote: '"', RecordEnd: "\n"}}
	pieces := []string{"a", "b7", "é", "\x80", "\xff", ",", "|", "\t", "\x00", "\x81", ",,", "\r", "\r\n", "\n", "\n\n",
		"\r\n\r\n", `"`, `""`, "'", `\`, `\N`, "a word that is longer than others"}
	rnd := rand.New(rand.NewPCG(3, 5))
	all := func(p *Parser, text []byte) string {
		p.Reset(text)
		var out strings.Builder
		for rec, ok := p.Next(); ok; rec, ok = p.Next() {
			fmt.Fprintf(&out, "%+v %v ascii %v:", rec.Span, rec.Bad, rec.ASCII)
			for i := range rec.Fields {
				d := &rec.Fields[i]
				fmt.Fprintf(&out, " %v %v %q", d.Kind, d.Quoted, d.Bytes)
			}
			out.WriteByte('\n')
		}
		return out.String() + fmt.Sprint(p.Records(), p.Lines(), p.pos)
	}
	parsers := map[int][2]*Parser{}
	for i, d := range dialects {
		parsers[i] = [2]*Parser{NewParser(d), NewParser(d)}
		conformance.MustTrue(t, parsers[i][0].window.used, "%v is not read by marks", d)
		parsers[i][1].window.used = false
	}
	for n := range 1_000 {
		common, long := rnd.IntN(len(pieces)), rnd.IntN(len(pieces))
		var text []byte
		for range rnd.IntN([]int{8, 40, 150, 600}[n%4]) {
			switch rnd.IntN(12) {
			case 0, 1, 2, 3:
				text = append(text, pieces[rnd.IntN(len(pieces))]...)
			case 4:
				for range rnd.IntN(90) {
					text = append(text, pieces[long]...)
				}
			default:
				text = append(text, pieces[common]...)
			}
		}
		if n%3 == 0 { // put a record end at the end of a block
			text = append(text, make([]byte, 63-len(text)%64)...)
		}
		pair := parsers[n%len(dialects)]
		for k := range pair {
			pair[k].MaxFields = []int{0, 5}[n/7%2]
		}
		conformance.MustEqual(t, all(pair[0], text), all(pair[1], text), "%v, %q", dialects[n%len(dialects)], text)
	}
}

// settled returns a program's dialect after Settle.
func settled(t *testing.T, name, text string, header bool) Dialect {
	d, _, ok := Named(name)
	conformance.MustTrue(t, ok, "%s is not known", name)
	_, _, err := d.Settle([]byte(text), header)
	conformance.MustTrue(t, err == nil, "%v", err)
	conformance.Must(t, d.Check())
	return d
}

func TestDumpsAgreeWithTheirPrograms(t *testing.T) {
	const bad = table.CodeEscape
	for name, tt := range map[string]struct {
		program string
		header  bool
		text    string
		want    [][]string
	}{
		"MySQL's client": {mysql, true, "a\tb\n1\tx\\ty\\nz\\0\\\\\r\n2\tNULL\n\\\\N\t\n",
			rows{{"a", "b"}, {"1", "x\ty\nz\x00\\\r"}, {"2", "∅"}, {"\\N", ""}}},
		"MySQL's server": {mysql, false, "1\tx\\\ty\\\nz\\0\\\\\r\n2\tNULL\n3\t\\N\n",
			rows{{"1", "x\ty\nz\x00\\\r"}, {"2", "NULL"}, {"3", "∅"}}},
		"client, no header":  {mysql, false, "1\tNULL\n2\t\\\\N\n3\tx\\ny\n", rows{{"1", "∅"}, {"2", "\\N"}, {"3", "x\ny"}}},
		"server, NULL first": {mysql, false, "\\N\tNULL\n", rows{{"∅", "NULL"}}},
		"server with header": {mysql, true, "a\tb\n1\tNULL\n2\t\\N\n", rows{{"a", "b"}, {"1", "NULL"}, {"2", "∅"}}},
		"signs of both":      {mysql, true, "1\tNULL\n2\tx\\ny\n3\tx\\\ty\n", rows{{bad}, {"2", "x\ny"}, {"3", "x\ty"}}},
		"MySQL, no sign":     {mysql, false, "1\tNULL\n2\t\\\\N\n", rows{{bad}, {"2", "\\N"}}},
		"\\N of the client":  {mysqlBatch, false, "\\N\n", rows{{bad}}},
		"other escapes":      {mysqlTab, false, "\\b\\r\\Z\\q\\N\n", rows{{"\b\r\x1aqN"}}},
		"MySQL on Windows":   {mysql, true, "a\tb\r\n1\tx\r\r\n", rows{{"a", "b"}, {"1", "x\r"}}},
		"empty lines":        {mysql, true, "a\n\nb\n", rows{{"a"}, {""}, {"b"}}},

		"PostgreSQL": {postgres, false, "1\ta\\tb\\nc\\r\\\\\\b\\f\\v\n2\t\\N\n3\tNULL\n\\.\n",
			rows{{"1", "a\tb\nc\r\\\b\f\v"}, {"2", "∅"}, {"3", "NULL"}}},
		"PostgreSQL's digits": {postgres, false, "\\101\\1018\\x41\\x4G\\xg\\q\\\tb\n", rows{{"AA8A\x04Gxgq\tb"}}},
		"PostgreSQL, CR LF":   {postgres, false, "1\ta\\r\r\n\\.\r\n", rows{{"1", "a\r"}}},
		"an escaped end mark": {postgres, false, "\\\\.\n\\.\n", rows{{"\\."}}},
		"a line end as data":  {postgres, false, "a\\\nb\tc\n", rows{{"a\nb", "c"}}},
		"CSV of PostgreSQL": {postgresCSV, false, "1,,\"\",\"\\.\",\\N,\"a\nb\"\n\"\\.\"\n\n\\.\n",
			rows{{"1", "", "“”", "“\\.”", "\\N", "“a\nb”"}, {"“\\.”"}, {""}}},
		"ClickHouse": {clickHouse, true, "1\ta\\tb\\nc\\'d\\\\e\\0\\b\\f\\r\n\\N\t\n",
			rows{{"1", "a\tb\nc'd\\e\x00\b\f\r"}, {"∅", ""}}},
		"ClickHouse, more": {clickHouse, true, "100\\%\\d\\x41\\a\\e\\v\\/\\\"\n\\xZZ\na\\Nb\n",
			rows{{"100\\%\\dA\a\x1b\v/\""}, {bad}, {bad}}},
		"CSV of ClickHouse": {clickHouseCSV, true, "1,\"a\"\"b\\n\",\\N,\"\\N\"\n", rows{{"1", "“a\"b\\n”", "∅", "“\\N”"}}},

		"Hive": {hive, false, "1\x01a\\\\b\\nc\\rd\\\x01\x01\\N\n\\\\N\x01\n",
			rows{{"1", "a\\b\nc\rd\x01", "∅"}, {"\\N", ""}}},
		"Hive, CR LF": {hive, false, "1\x01\\N\r\n\\N\x01a\\\\b\r\n", rows{{"1", "∅"}, {"∅", "a\\b"}}},
		"Hive, unescaped": {hive, false, "1\x01C:\\new\\temp\x01\\N\n2\x01x\\\x01y\\\n",
			rows{{"1", "C:\\new\\temp", "∅"}, {"2", "x\\", "y\\"}}},
		"Hive, no sign": {hive, false, "1\x01C:\\new\n2\x01\\N\n", rows{{bad}, {"2", "∅"}}},
		"not Hive's":    {hiveEscaped, false, "a\\tb\nc\\\n", rows{{bad}, {"c\\"}}},

		"Excel":       {excel, true, "sep=;\r\na;b\r\n1,5;\"x\ny\"\r\n", rows{{"sep=", ""}, {"a", "b"}, {"1,5", "“x\ny”"}}},
		"Excel, bare": {excel, true, "a;b\r\n1,5;2\r\n3,5;4\r\n", rows{{"a", "b"}, {"1,5", "2"}, {"3,5", "4"}}},
		"SQLite's CSV": {sqlite, true, "a,b\r\n,\"\"\r\n\"x\r\ny\",'\r\n\r\n",
			rows{{"a", "b"}, {"", "“”"}, {"“x\r\ny”", "'"}, {""}}},
		"SQLite quotes": {sqliteQuote, true, "'a','b'\n1,NULL\n-2.5,'NULL'\nX'00ff','it''s\n\\n'\nX'',''\n",
			rows{{"‘a’", "‘b’"}, {"#1", "∅"}, {"#-2.5", "‘NULL’"}, {"<00ff>", "‘it's\n\\n’"}, {"<>", "‘’"}}},
		"half a digit": {sqliteQuote, true, "X'0'\nX'zz'\n1\n", rows{{bad}, {bad}, {"#1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := settled(t, tt.program, tt.text, tt.header)
			for _, size := range []int{1, 2, 3, 5, 8, 1000} {
				conformance.Equal(t, cmp.Diff(tt.want, fields(recordsOf(d, []byte(tt.text), size))), "", "chunks of %d", size)
			}
		})
	}
}

func TestBadRecordIsNotTypesRow(t *testing.T) {
	conformance.True(t, !NamesTypes(&record.Record{Bad: &table.Reason{}}), "a line that cannot be read is taken for types")
}

func TestAmbiguousLineEndIsRefused(t *testing.T) {
	d, _, _ := Named(mysql)
	_, _, err := d.Settle([]byte("1\ta\r\n2\tb\r\n"), false)
	conformance.Refused(t, err, "--record-end", "error")
}

func TestFlagsDescribeDialectExactly(t *testing.T) {
	for _, name := range Programs {
		d, _, _ := Named(name)
		if d.Delimiter == "" {
			d.Delimiter = ";"
		}
		flags := strings.Join(d.Flags(), " ")
		conformance.True(t, strings.HasPrefix(flags, "--dialect "+name+" --delimiter ") &&
			!strings.ContainsAny(flags, "\t\n\x01"), "%s: %q", name, flags)
	}
	got := strings.Join((&Dialect{Delimiter: "\x01", Quote: '\'', Comment: "#", RecordEnd: "~\n"}).Flags(), " ")
	conformance.True(t, got == `--delimiter \x01 --quote ' --escape none --comment # --record-end ~\n`, "%s", got)
	for a := range 256 {
		for _, text := range []string{string([]byte{byte(a)}), string([]byte{byte(a), 'x'}), string([]byte{'x', byte(a)}),
			string([]byte{byte(a), byte(a)})} {
			again, err := Unescape(escaped(text))
			conformance.True(t, err == nil && again == text, "%q: %s, which is %q, %v", text, escaped(text), again, err)
		}
	}
}

func TestDialectIsDetectedOrRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		text, delimiter string
		quote, escape   byte
		refused         string // part of the error, if detection fails
	}{
		"commas":                      {"a,b\n1,2\n3,4\n", ",", '"', 0, ""},
		"semicolons":                  {"a;b\n1;2\n", ";", '"', 0, ""},
		"tabs":                        {"a\tb\n1\t2,5\n", "\t", '"', 0, ""},
		"bars with commas in text":    {"a|b\nx, y|2\nz|3\n", "|", '"', 0, ""},
		"control A":                   {"a\x01b\n1\x012\n", "\x01", '"', 0, ""},
		"quoted delimiters":           {"a;b\n\"1;2\";3\n", ";", '"', 0, ""},
		"single quotes":               {"a,b\n'1,2',3\n'4',5\n", ",", '\'', 0, ""},
		"backslash escapes":           {"a,b\n\"x\\\",y\",3\n\"z\",4\n", ",", '"', '\\', ""},
		"one column":                  {"a\nb\nc\n", ",", '"', 0, ""},
		"empty":                       {"", ",", '"', 0, ""},
		"a cut last record":           {"a,b\n1,2\n3", ",", '"', 0, ""},
		"a cut quoted record":         {"id;a;b\r\n1;\"x;\n1\";y,1\r\n2;\"x;\n2\";y,2\r\n3;\"x;\n", ";", '"', 0, ""},
		"decimal commas or semicolon": {"a,b;c,d\n1,2;3,4\n", "", 0, 0, "2 ways"},
		"quotes that may be text":     {"a,b\n'x',1\n'y',2\n", "", 0, 0, "2 ways"},
		"a column in quotes":          {"id,v\n1,\"a\"\n2,\"b\"\n", ",", '"', 0, ""},
		"names in quotes":             {"\"id\";\"v\"\n1;2,5\n2;3,5\n", ";", '"', 0, ""},
		"apostrophes":                 {"id,v\n1,it's\n2,'tis o'clock\n", ",", '"', 0, ""},
		"a fault beside one quote":    {"id,v\n1,\"a\" \n2,\"b\"\n", "", 0, 0, "2 ways"},
		"a fault beside many quotes":  {"id,v\n1,\"a\" \n" + strings.Repeat("2,\"b\"\n", 10), ",", '"', 0, ""},
		"a title before the header":   {"report\na,b\n1,2\n3,4\n", "", 0, 0, "most records have 2 fields, but not the first"},
		"escaped quotes in two":       {"a,b\n\"x\\\",y\",3\n\"z\\\",w\",4\n\"q\",5\n", ",", '"', '\\', ""},
		"apostrophes, one at edges":   {"id,v\n" + strings.Repeat("1,it's\n", 9) + "2,'q'\n", ",", '"', 0, ""},
		"two kinds of quotes":         {"id,v\n" + strings.Repeat("\"a\",'b'\n", 9), "", 0, 0, "2 ways"},
		"quotes here and there":       {"id,v\n" + strings.Repeat("1,\"a\"\n2,b\n", 8), ",", '"', 0, ""},
		"single quotes in half":       {"id,v\n" + strings.Repeat("1,'a'\n2,b\n", 8), "", 0, 0, "2 ways"},
		"single quotes throughout":    {"'a','b'\n'1','2'\n", ",", '\'', 0, ""},
		"names in quotes, and inches": {"\"id\",\"v\"\n" + strings.Repeat("1,5\" disk\n", 5), "", 0, 0, "2 ways"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Sniff([]byte(tt.text), true)
			conformance.MustTrue(t, (err != nil) == (tt.refused != "") &&
				(err == nil || strings.Contains(err.Error(), tt.refused)), "%v, %v", d, err)
			conformance.True(t, err != nil || d.Delimiter == tt.delimiter && d.Quote == tt.quote && d.Escape == tt.escape,
				"%v", d)
		})
	}
}

func TestLineEndsAreDetected(t *testing.T) {
	for text, want := range map[string]byte{"": '\n', "a": '\n', "a\nb": '\n', "a\r\nb\r\n": '\n', "a\rb\rc": '\r',
		"\"a\nb\"\rc\rd": '\r', "a\rb\nc": '\n', "a\r": '\n'} {
		conformance.Equal(t, DetectEOL([]byte(text), '"'), want, "%q", text)
	}
	conformance.Equal(t, DetectEOL([]byte("a\r'b\nc'\r"), '\''), '\r', "a line feed in single quotes")
	conformance.Equal(t, DetectEOL([]byte("a\r5\"\nc\n"), 0), '\n', "a quote that is text")
}
