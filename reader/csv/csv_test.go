package csv

import (
	"bytes"
	stdcsv "encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// shown is a record in the form that tests compare.
type shown struct {
	Fields       []string
	Raw          string
	Offset, Line int
	Bad, Why     string
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
		s.Bad, s.Why = rec.Bad.Code, rec.Bad.Error()
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

// described returns everything that is known about a dialect and a text's records.
func described(d Dialect, text string) string {
	p := NewParser(d)
	p.Reset([]byte(text))
	lines := []string{fmt.Sprint(d, d.Flags())}
	for rec, ok := p.Next(); ok; rec, ok = p.Next() {
		s := show(rec, []byte(text), 0, 0)
		lines = append(lines, fmt.Sprintf("  %d, line %d, to %d %t %t: %q%s", s.Offset, s.Line, p.End(),
			d.Ended([]byte(s.Raw)), rec.ASCII, s.Fields, s.Why))
	}
	lines = append(lines, fmt.Sprintf("  %d records, %d lines, %d empty, the last ends at %d; first fields:", p.Records(),
		p.Lines(), p.Empty(), d.LastEnd([]byte(text))))
	p.MaxFields = 1
	p.Reset([]byte(text))
	for rec, ok := p.Next(); ok; rec, ok = p.Next() {
		lines = append(lines, fmt.Sprintf("%q", show(rec, []byte(text), 0, 0).Fields))
	}
	return strings.Join(lines, "\n")
}

func unquoted(t *testing.T, text string) string {
	return conformance.Try(strconv.Unquote(text)).Must(t)
}

func dialectOf(t *testing.T, text string) (d Dialect) {
	conformance.Must(t, json.Unmarshal([]byte(text), &d))
	return d
}

// TestTextsAreReadAsRecorded reads texts in dialects, which are in JSON or named, with the word true for a header.
func TestTextsAreReadAsRecorded(t *testing.T) {
	conformance.Golden(t, "readings.golden", func(input string) string {
		parts := strings.Split(input, "\t")
		text := unquoted(t, parts[2])
		program, header, named := strings.Cut(parts[1], " ")
		d, _, known := Named(program)
		if named && known {
			conformance.Must(t, conformance.ErrorOf(settled(&d, text, header == "true")))
		} else {
			d = dialectOf(t, parts[1])
		}
		conformance.Must(t, d.Check())
		checkScans(t, &d, []byte(text))
		checkScans(t, &d, nil)
		whole := recordsOf(d, []byte(text), 1000)
		for _, size := range []int{1, 2, 3, 5, 8} {
			conformance.Equal(t, cmp.Diff(whole, recordsOf(d, []byte(text), size)), "", "%s: chunks of %d", input, size)
		}
		return described(d, text)
	})
}

func settled(d *Dialect, text string, header bool) (string, error) {
	preamble, note, err := d.Settle([]byte(text), header)
	return fmt.Sprintf("%v, %d %s %v", d, preamble, note, err), err
}

// checkScans compares the scan of a text in one piece with that of its bytes, one after another, from every state.
func checkScans(t *testing.T, d *Dialect, text []byte) {
	if !d.Parallel() {
		return
	}
	for begin := range states {
		if begin == Escaped && d.Escape == 0 {
			continue
		}
		first, state := -1, begin
		for i := range text {
			one := d.Scan(text[i : i+1])
			if first < 0 && one.First[state] >= 0 {
				first = i + one.First[state]
			}
			state = one.End[state]
		}
		whole := d.Scan(text)
		conformance.True(t, whole.First[begin] == first && whole.End[begin] == state, "from %d: %v, bytewise %d, %d", begin,
			whole, first, state)
	}
	var s Stitcher
	first, ended := 0, false
	for i := 0; i < len(text) && !ended; i++ {
		n := 0
		n, ended = s.Pass(text[i:i+1], d.Scan(text[i:i+1]))
		first += n
	}
	g := general{d: d, end: d.End(), data: text}
	conformance.True(t, g.skip() == ended && first == g.pos && s.Pending() == 0, "%v: passed %d of %d bytes", ended, first,
		g.pos)
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

// TestMarkedLinesParseLikeUnmarked parses random texts, with lines across blocks and windows, with and without marks.
func TestMarkedLinesParseLikeUnmarked(t *testing.T) {
	if !marked {
		t.Skip("this processor marks nothing")
	}
	dialects := []Dialect{Default, {Delimiter: "\x00", Quote: '"'}, {Delimiter: "\x81"},
		{Delimiter: "|", Quote: '\'', Blank: true}, {Delimiter: ",", Quote: '"', EOL: '\r'},
		{Delimiter: "\t", Escape: '\\', Escapes: EscapesHive, Null: `\N`}, {Delimiter: ",", Quote: '"', RecordEnd: "\n"},
		{Delimiter: ",", Quote: '"', Null: "a"}}
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
		common, long, repeats := rnd.IntN(len(pieces)), rnd.IntN(len(pieces)), 90
		if n%8 == 0 { // long lines that begin in an earlier window
			long, repeats = len(pieces)-1, 250
		}
		var text []byte
		for range rnd.IntN([]int{8, 40, 150, 600}[n%4]) {
			switch rnd.IntN(12) {
			case 0, 1, 2, 3:
				text = append(text, pieces[rnd.IntN(len(pieces))]...)
			case 4:
				for range rnd.IntN(repeats) {
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

func grouped(texts map[string]string) string {
	var all strings.Builder
	for _, meaning := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&all, "%s:%s\n", meaning, texts[meaning])
	}
	return all.String()
}

func settlings(t *testing.T, name, header, delimiter string) string {
	texts := []string{"", "a\n", "a\r\n", "a\r\nb\n", "a\nb\r\n", "a\rb\r\n"}
	if name == excel {
		texts = append(texts, "sep=;\na", "\"sep=;\"\r\na", "SEP=,\n", "sep=;", "sep=\n", "sep=;;\n", "sap=;\n",
			"a;b\n1;2,5\n", "a,b\n1,2\n3", "a\tb\n1\t2\n", "a;b,c\n1;2,3\n", "a;b\n1,2", ";")
	}
	for _, before := range strings.Split("|a|\t|\x01|\n|\\", "|") {
		for _, c := range "Nntr\t\n\x01\b\x0b\x00a\\" {
			for _, after := range strings.Split("|a|\t|\x01|\r|\n", "|") {
				if name == mysql || name == hive {
					texts = append(texts, before+`\`+string(c)+after)
				}
			}
		}
	}
	found := map[string]string{}
	for _, text := range texts {
		d, _, _ := Named(name)
		d.Delimiter, d.RecordEnd = unquoted(t, delimiter), map[bool]string{true: "\n"}[name == mysql]
		result, _ := settled(&d, text, header == "true")
		found[result] += fmt.Sprintf(" %q", text)
	}
	return grouped(found)
}

// TestFactsAreAsRecorded tests the small functions of dialects.
func TestFactsAreAsRecorded(t *testing.T) {
	conformance.Golden(t, "facts.golden", func(input string) string {
		what, of, _ := strings.Cut(input, " ")
		words := strings.Fields(of)
		switch what {
		case "check":
			d := dialectOf(t, of)
			return fmt.Sprint(d.Check())
		case "flag":
			plain, err := Unescape(unquoted(t, of))
			return fmt.Sprintf("%q %v", plain, err)
		case "eol":
			text := []byte(unquoted(t, of))
			return fmt.Sprintf("%q %q %q", DetectEOL(text, '"'), DetectEOL(text, '\''), DetectEOL(text, 0))
		case "types":
			p := NewParser(Default)
			p.Reset([]byte(of + "\n"))
			rec, _ := p.Next()
			return fmt.Sprint(NamesTypes(rec))
		case "program":
			var all []string
			for _, escape := range []byte{0, '\\', '^'} {
				d, emptyIsText, _ := Named(of)
				d.SetEscape(escape)
				all = append(all, fmt.Sprint(d, d.Flags(), d.Escapes, d.Check(), emptyIsText))
			}
			return strings.Join(all, "\n")
		case "settle":
			return settlings(t, words[0], words[1], words[2])
		}
		d, _, _ := Named(words[0])
		d.Delimiter = ","
		found := map[string]string{}
		for c := range byte(0x82) {
			text := string(append([]byte(words[1]), c))
			got, n, why := d.pair(nil, []byte(text+"z"))
			meaning := map[string]string{text: "all", text[1:2]: "the second byte"}[string(got)]
			if meaning == "" {
				meaning = fmt.Sprintf("%q", got)
			}
			found[fmt.Sprintf("%s, %d bytes, doubtful: %t", meaning, n, why != "")] += fmt.Sprintf(" %q", c)
		}
		return grouped(found)
	})
}

func TestFlagsDescribeDialectExactly(t *testing.T) {
	for a := range 256 {
		for _, text := range []string{string([]byte{byte(a)}), string([]byte{byte(a), 'x'}), string([]byte{'x', byte(a)}),
			string([]byte{byte(a), byte(a)})} {
			again, err := Unescape(escaped(text))
			conformance.True(t, err == nil && again == text, "%q: %s, which is %q, %v", text, escaped(text), again, err)
		}
	}
}

// TestDialectIsDetectedOrRefused detects the dialects of texts with and without a header. A case "many" has files with
// the given header, quoted records, and other records; for 0, 1, 2, 8 and 20 quoted records, they have up to 3 records
// with quotes that are text, times up to 3 with a field too few.
func TestDialectIsDetectedOrRefused(t *testing.T) {
	signs := map[string]string{",\"\x00": ".", ",\"\\": "E", ",'\x00": "s", ",'\\": "S", ",\x00\x00": "n", ";\"\x00": ";"}
	conformance.Golden(t, "sniff.golden", func(input string) string {
		parts := strings.Split(input, "\t")
		text := unquoted(t, parts[1])
		if parts[0] != "many" {
			d, err := Sniff([]byte(text), true)
			bare, bareErr := Sniff([]byte(text), false)
			return fmt.Sprintf("with a header: %v %v\nwithout: %v %v", d, err, bare, bareErr)
		}
		quoted, others := unquoted(t, parts[2]), conformance.Try(strconv.Atoi(parts[3])).Must(t)
		var found strings.Builder
		for _, many := range []int{0, 1, 2, 8, 20} {
			found.WriteByte(' ')
			for at := range 16 {
				d, err := Sniff([]byte(text+strings.Repeat(quoted, many)+strings.Repeat("1,5\" '\n", at/4)+
					strings.Repeat("1\n", at%4)+strings.Repeat("1,b\n", others)), true)
				found.WriteString(signs[d.Delimiter+string([]byte{d.Quote, d.Escape})])
				if err != nil {
					found.WriteByte("?!"[min(strings.Count(err.Error(), "but not the first"), 1)])
				}
			}
		}
		return found.String()
	})
}
