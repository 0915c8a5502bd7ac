package reader

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// CSV is the format of delimited text.
var CSV Format = &csvFormat{}

type csvFormat struct{}

type csvText struct {
	*File
	preamble int    // length of the line before the header that states the delimiter
	seams    []seam // headers, which are repeated where files were joined
}

func (*csvFormat) String() string { return "csv" }

// Is returns true, because CSV is tried last.
func (*csvFormat) Is(string, []byte) bool { return true }

func (*csvFormat) open(f *File) error {
	s := &csvText{File: f}
	head := s.utf8Head()
	if s.o.Format == nil {
		if err := s.refuseSQL(head); err != nil {
			return err
		}
	}
	if err := s.findDialect(head); err != nil {
		return err
	}
	s.cutPlan(!s.Dialect.Typed)
	if err := s.lengthenHead(); err != nil {
		return err
	}
	if err := s.readHeader(); err != nil {
		return err
	}
	d := &s.Dialect
	// With one column, an empty line is a record without a value. A program's dialect sets Blank itself.
	d.Blank = d.Blank || d.Name == "" && len(s.Columns)-len(s.fixed) == 1
	r := &s.form.rejects
	r.Kind, r.Flags, r.End, r.Ended = ".csv", d.Flags(), d.End(), d.Ended
	if d.Quote != 0 {
		s.form.broken = func(what string) []byte {
			return append(fmt.Appendf(nil, "%c%s%c<", d.Quote, what, d.Quote), d.End()...)
		}
	}
	s.form.found = []source.Found{{What: "dialect", As: d.String()}}
	if s.o.Sniff {
		s.Notes = append(s.Notes, fmt.Sprintf("%s is read with %v", s.Name, d))
	}
	s.form.parser = s.parser
	return nil
}

// lengthenHead makes the head up to 8 MiB long, until it has a whole record after a preamble, a header and types.
func (s *csvText) lengthenHead() error {
	for size := headBytes; len(s.text.head) == size && size < 8*headBytes; {
		p, records, ok := csv.NewParser(s.Dialect), 0, true
		p.MaxFields = 1
		for p.Reset(skipLines(s.utf8Head(), s.o.HeaderLine-1)); ok && records < 5; records++ { // the last may be cut
			_, ok = p.Next()
		}
		if ok {
			return nil
		}
		size *= 2
		if err := s.setHead(size); err != nil {
			return err
		}
	}
	return nil
}

// surplusFields is the number of fields beyond its columns that a CSV record keeps. More would take too much memory.
const surplusFields = 64 << 10

type csvParser struct {
	source.Plain
	s   *csvText
	csv *csv.Parser
}

func (s *csvText) parser([]int) source.Parser {
	p := &csvParser{s: s, csv: csv.NewParser(s.Dialect)}
	p.csv.MaxFields = len(s.Columns) + surplusFields
	return p
}

func (p *csvParser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	p.csv.Reset(sp.Data)
	limit := p.s.o.Memory.record()
	for rec, ok := p.csv.Next(); ok; rec, ok = p.csv.Next() {
		if int(rec.Span.End-rec.Span.Start) > limit {
			rec = p.s.shorten(sp, rec)
		}
		if rec.Bad == nil {
			rec.Bad = p.s.seamAt(sp.Data, rec)
		}
		each(rec)
	}
	return p.csv.Records(), p.csv.Lines(), nil
}

func (p *csvParser) EmptyLines() int { return p.csv.Empty() }

func (s *csvText) findDialect(head []byte) error {
	s.Dialect = s.o.Dialect
	start := skipLines(head, s.o.HeaderLine-1)
	switch {
	case s.o.Sniff:
		d, err := csv.Sniff(start, !s.o.NoHeader)
		if err != nil {
			return fmt.Errorf("read %s: %w", s.Name, err)
		}
		s.Dialect = d
	case s.Dialect == csv.Dialect{}:
		s.Dialect.Quote = '"'
	}
	if s.Dialect.Delimiter == "" && s.Dialect.Name == "" {
		s.Dialect.Delimiter = delimiterOf(s.Name)
		if _, _, says := csv.Separator(start); says {
			return fmt.Errorf("read %s: its first line %q names the delimiter, as Excel does: give --dialect excel", s.Name,
				firstLine(start))
		}
	}
	preamble, note, err := s.Dialect.Settle(start, !s.o.NoHeader)
	if err != nil {
		return fmt.Errorf("read %s: %w", s.Name, err)
	}
	if note != "" {
		s.Notes = append(s.Notes, fmt.Sprintf("%s is read %s", s.Name, note))
	}
	s.preamble = preamble
	s.Dialect.Trim = s.o.TrimNames
	if s.Dialect.EOL == 0 {
		s.Dialect.EOL = csv.DetectEOL(head, s.Dialect.Quote)
	}
	if err := s.Dialect.Check(); err != nil {
		return fmt.Errorf("read %s: %w", s.Name, err)
	}
	return nil
}

func delimiterOf(name string) string {
	if ext := Extension(name); ext == ".tsv" || ext == ".tab" {
		return "\t"
	}
	return ","
}

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	return string(bytes.TrimRight(line, "\r"))
}

func skipLines(text []byte, n int) []byte {
	for ; n > 0; n-- {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return nil
		}
		text = text[i+1:]
	}
	return text
}

// readHeader reads the column names from the header, which must be in the head, and finds the start of the data.
func (s *csvText) readHeader() error {
	text := s.text.head[min(s.text.bom, len(s.text.head)):]
	at := int64(s.text.bom)
	if s.text.transcode {
		text, at = s.utf8Head(), 0
	}
	end := []byte(s.Dialect.End())
	for line := 1; line < s.o.HeaderLine; line++ {
		i := bytes.Index(text, end)
		if i < 0 {
			return fmt.Errorf("read %s: the text ends before line %d, where the header should be", s.Name, s.o.HeaderLine)
		}
		n := i + len(end)
		s.text.lines += s.Dialect.Lines(text[:n])
		text, at = text[n:], at+int64(n)
	}
	if n := s.preamble; n > 0 {
		s.form.rejects.Header = bytes.Clone(text[:n])
		s.text.lines += s.Dialect.Lines(text[:n])
		text, at = text[n:], at+int64(n)
	}
	s.text.offset = at
	p := csv.NewParser(s.Dialect)
	p.Reset(text)
	first, ok := p.Next()
	switch {
	case !ok && len(text) >= headBytes-int(at):
		return fmt.Errorf("read %s: no record within the first %d bytes", s.Name, len(text))
	case !ok && !s.o.NoHeader:
		return fmt.Errorf("read %s: %w: it has no header; give --no-header and --names if that is intended", s.Name, ErrEmpty)
	case !ok && s.o.Names == nil:
		return fmt.Errorf("read %s: %w; give its columns with --names if that is intended", s.Name, ErrEmpty)
	case !ok:
		s.nameColumns(s.o.Names)
		return nil
	case s.o.NoHeader:
		if int(first.Span.End) == len(text) {
			if err := s.refuseLoneCR(first, text); err != nil {
				return err
			}
		}
		return s.numberColumns(p, first)
	case first.Bad != nil:
		return fmt.Errorf("read header of %s: %s", s.Name, first.Bad.Message)
	case int(first.Span.End) == len(text) && len(s.text.head) >= headBytes && !s.Dialect.Ended(text):
		return fmt.Errorf("read header of %s: it does not end within %d bytes; look for a quote that never closes, or use "+
			"--quote none", s.Name, len(s.text.head))
	}
	if err := s.refuseLoneCR(first, text); err != nil {
		return err
	}
	names, err := s.headerNames(first)
	if err != nil {
		return err
	}
	p.MaxFields = len(names) + 1 // limits the memory for a record of a million delimiters
	s.nameColumns(names)
	s.hintAtDelimiter(names)
	s.addSeam(first)
	if strings.HasPrefix(names[0], "#") {
		s.hintAtComment(text[first.Span.End:], len(names))
	}
	from, to := first.Span.Start, first.Span.End
	types, err := s.typesRow(p, len(names))
	if err != nil {
		return err
	}
	if types {
		to = p.End()
	}
	s.form.rejects.Header = append(s.form.rejects.Header, text[from:to]...)
	s.lookAtRecords(p, text, names)
	if len(names) == 1 {
		s.noteRepeated(text[from:to], text[to:])
	}
	s.text.lines += s.Dialect.Lines(text[:to])
	s.text.offset += int64(to)
	return nil
}

// typesRow reports whether the record after the header contains types rather than data.
func (s *csvText) typesRow(p *csv.Parser, columns int) (bool, error) {
	if s.Dialect.Types == csv.NoTypes {
		return false, nil
	}
	second, ok := p.Next()
	named := ok && len(second.Fields) == columns && csv.NamesTypes(second)
	switch {
	case s.Dialect.Types == csv.WithTypes && !named:
		return false, fmt.Errorf("read %s: the line after the header does not name a ClickHouse type for each of its %d "+
			"columns; leave -types out of --dialect", s.Name, columns)
	case !named && s.Dialect.Types == csv.FindTypes:
		s.Dialect.Name, s.Dialect.Types = s.Dialect.Name+"-names", csv.NoTypes
		return false, nil
	case s.Dialect.Types == csv.FindTypes && columns == 1:
		return false,
			fmt.Errorf("read %s: %q after a one-column header may be a type or value: give --dialect %s-types or %s-names",
				s.Name, second.Fields[0].Bytes, s.Dialect.Name, s.Dialect.Name)
	}
	if s.Dialect.Types == csv.FindTypes {
		s.Notes = append(s.Notes, fmt.Sprintf("%s: the line after the header names types and is not data; else give "+
			"--dialect %s-names", s.Name, s.Dialect.Name))
		s.Dialect.Name += "-types"
	}
	s.addSeam(second)
	return true, nil
}

// hintAtDelimiter sets a hint if the record end or the delimiter seems to be another one.
func (s *csvText) hintAtDelimiter(names []string) {
	if end := s.o.Dialect.RecordEnd; end != "" && !bytes.Contains(s.utf8Head(), []byte(end)) {
		s.Hint = fmt.Sprintf("the record end %q of --record-end does not occur in the beginning of %s", end, s.Name)
		return
	}
	if len(names) != 1 || s.o.Dialect.Delimiter != "" || s.o.Sniff {
		return
	}
	for _, delimiter := range []string{";", "\t", "|", "\x01", ","} {
		if delimiter == s.Dialect.Delimiter || !strings.Contains(names[0], delimiter) {
			continue
		}
		s.Hint = fmt.Sprintf("%s has one column, %q; its fields may be separated by %q: give --delimiter '%s', or "+
			"--dialect auto", s.Name, names[0], delimiter, strings.Trim(fmt.Sprintf("%q", delimiter), `"`))
		return
	}
}

// hintAtComment sets a hint if a header that begins with # is probably a comment, judging by the next line.
func (s *csvText) hintAtComment(after []byte, names int) {
	p := csv.NewParser(s.Dialect)
	p.Reset(after)
	if next, ok := p.Next(); ok && next.Bad == nil && (len(next.Fields) != names ||
		bytes.HasPrefix(next.Fields[0].Bytes, []byte("#"))) {
		s.Hint = fmt.Sprintf("the first line of %s begins with #: if such lines are comments, give --comment '#'", s.Name)
	}
}

func (s *csvText) headerNames(first *record.Record) (names []string, err error) {
	for i, f := range first.Fields {
		text := f.Bytes
		if decode := s.Decode(); decode != nil {
			var bad int
			if text, bad = decode(nil, text); bad >= 0 {
				return nil, fmt.Errorf("read header of %s: name %d is not %s%s", s.Name, i+1, s.Encoding.Name(),
					s.EncodingHint(f.Bytes))
			}
		} else if !utf8.Valid(text) {
			return nil, fmt.Errorf("read header of %s: name %d is not UTF-8%s", s.Name, i+1, s.EncodingHint(text))
		}
		if s.o.TrimNames && !f.Quoted {
			text = bytes.Trim(text, " \t")
		}
		names = append(names, string(text))
	}
	return names, nil
}

// refuseLoneCR returns an error if the first record of a text has a CR outside quotes, but not as an escape: lines then
// probably end with CR.
func (s *csvText) refuseLoneCR(first *record.Record, text []byte) error {
	line := bytes.TrimRight(text[:first.Span.End], "\r\n")
	for _, f := range first.Fields {
		if f.Quoted || s.Dialect.RecordEnd != "" || bytes.IndexByte(line, '\r') < 0 || bytes.IndexByte(f.Bytes, '\r') < 0 {
			continue
		}
		return fmt.Errorf("read %s: %.60q in the first line holds a carriage return: lines seem to end with CR, but not "+
			"all do; convert them to line feeds: tr '\\r' '\\n' <%s | tsimport load -",
			s.Name, f.Bytes, s.shellName())
	}
	return nil
}

// numberColumns names the columns of a text without a header, by --names or by number. The first valid record has all.
func (s *csvText) numberColumns(p *csv.Parser, first *record.Record) error {
	width := len(first.Fields)
	for rec, ok := first, true; ok; rec, ok = p.Next() {
		if rec.Bad == nil {
			width = len(rec.Fields)
			break
		}
	}
	names := s.o.Names
	if names != nil && len(names) != width {
		return fmt.Errorf("read %s: --names has %d names, but the first valid record has %d fields", s.Name,
			len(names), width)
	}
	for i := len(names); i < width; i++ {
		names = append(names, fmt.Sprintf("c%d", i+1))
	}
	s.nameColumns(names)
	return nil
}
