package reader

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
)

// ErrEmpty is in the chain of an error about a source that has no record and no columns.
var ErrEmpty = errors.New("the file is empty")

// Skips returns what to tell the user when an input that could not be opened is to be passed over: an empty file that was found
// in a folder. Spark and Hive write such for parts without rows.
func Skips(item input.Item, err error) (warning string, ok bool) {
	if !item.Found || !errors.Is(err, ErrEmpty) {
		return "", false
	}
	return item.Name + " is empty and is skipped", true
}

// findFormat settles what the text means and what its columns are.
func (s *File) findFormat() error {
	s.Format = s.o.Format
	head := s.utf8Head()
	if s.Format == Auto {
		if s.Format = guessFormat(s.Name, head); s.Format == CSV {
			if err := s.refuseSQL(head); err != nil {
				return err
			}
		}
	}
	if s.o.Table != "" && !s.Format.isDump() {
		return fmt.Errorf("read %s: --source-table %s: it is not a dump of a database, but %v", s.Name, s.o.Table, s.Format)
	}
	switch s.Format {
	case JSONLines, DynamoDB, MongoDB:
		s.Dialect = csv.Dialect{Delimiter: ",", EOL: '\n'} // lines are cut as those of CSV without quotes are
		s.cutPlan()
		return s.discover(head)
	case CSV:
		if err := s.findDialect(head); err != nil {
			return err
		}
		s.cutPlan()
		err := s.readHeader()
		// An empty line of one column is a record without a value. Programs say themselves what it is.
		s.Dialect.Blank = s.Dialect.Blank || s.Dialect.Name == "" && len(s.Columns)-len(s.fixed) == 1
		return err
	case PGDump, MySQLDump:
		return s.readDump()
	}
	return fmt.Errorf("read %s: there is no parser for format %v", s.Name, s.Format)
}

// Extension returns what an input's name ends with, in lower case, without the endings of compression and what follows in
// an address: ".csv" of "http://host/a/Orders.CSV.gz?version=2".
func Extension(name string) string {
	if _, rest, address := strings.Cut(name, "://"); address {
		name, _, _ = strings.Cut(rest, "?")
		name, _, _ = strings.Cut(name, "#")
	}
	return path.Ext(input.Unpacked(strings.ToLower(path.Base(filepath.ToSlash(name)))))
}

// guessFormat tells dumps by their beginning, and JSON from CSV by its name, then by the first character; what is called CSV must be JSON
// for certain.
func guessFormat(name string, head []byte) Format {
	if f := guessDump(head); f != Auto {
		return f
	}
	table := false
	switch Extension(name) {
	case ".jsonl", ".ndjson", ".json":
		return JSONLines
	case ".csv", ".tsv", ".tab", ".psv":
		table = true
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	if len(text) > 1 && text[0] == '[' {
		text = bytes.TrimLeft(text[1:], " \t\r\n")
	}
	if len(text) > 1 && text[0] == '{' && bytes.IndexByte([]byte(" \t\"}\r\n"), text[1]) >= 0 {
		if object, _ := jsonl.First(head, jsonl.Guess(head, false)); object != nil || !table {
			return JSONLines
		}
	}
	return CSV
}

func (s *File) findDialect(head []byte) error {
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
			return fmt.Errorf("read %s: its first line %q names the delimiter, as Excel writes it: give --dialect excel", s.Name, firstLine(start))
		}
	}
	preamble, note, err := s.Dialect.Settle(start, !s.o.NoHeader)
	if err != nil {
		return fmt.Errorf("read %s: %w", s.Name, err)
	}
	if note != "" {
		s.Notes = append(s.Notes, fmt.Sprintf("%s is read %s", s.Name, note))
	}
	s.text.preamble = preamble
	s.Dialect.Trim = s.o.TrimNames
	if s.Dialect.EOL == 0 {
		s.Dialect.EOL = csv.DetectEOL(head, s.Dialect.Quote)
	}
	if err := s.Dialect.Check(); err != nil {
		return fmt.Errorf("read %s: %w", s.Name, err)
	}
	return nil
}

// delimiterOf returns the delimiter that an input's name promises.
func delimiterOf(name string) string {
	switch Extension(name) {
	case ".tsv", ".tab":
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

// readHeader takes the names from the header, which must be in the head, and finds where the data begin.
func (s *File) readHeader() error {
	text := s.text.head[min(s.text.bom, len(s.text.head)):]
	at := int64(s.text.bom)
	if s.text.transcode {
		text, at = s.utf8Head(), 0
	}
	end := []byte(s.Dialect.End())
	for line := 1; line < s.o.HeaderLine; line++ {
		i := bytes.Index(text, end)
		if i < 0 {
			return fmt.Errorf("read %s: the text ends before line %d, where it is said to begin", s.Name, s.o.HeaderLine)
		}
		n := i + len(end)
		s.text.lines += s.Dialect.Lines(text[:n])
		text, at = text[n:], at+int64(n)
	}
	if n := s.text.preamble; n > 0 {
		s.Header = bytes.Clone(text[:n])
		s.text.lines += s.Dialect.Lines(text[:n])
		text, at = text[n:], at+int64(n)
	}
	s.text.offset = at
	p := csv.NewParser(s.Dialect)
	p.Reset(text)
	first, ok := p.Next()
	switch {
	case !ok && len(text) >= headBytes-int(at):
		return fmt.Errorf("read %s: no record within %d bytes", s.Name, len(text))
	case !ok && !s.o.NoHeader:
		return fmt.Errorf("read %s: %w, not even a header; use --no-header if that is meant", s.Name, ErrEmpty)
	case !ok && s.o.Names == nil:
		return fmt.Errorf("read %s: %w; give its columns with --names if that is meant", s.Name, ErrEmpty)
	case !ok:
		s.nameColumns(s.o.Names)
		return nil
	case s.o.NoHeader:
		if int(first.Span.End) == len(text) {
			if err := s.refuseLoneCR(first); err != nil {
				return err
			}
		}
		return s.numberColumns(p, first)
	case first.Bad != nil:
		return fmt.Errorf("read header of %s: %s", s.Name, first.Bad.Message)
	case int(first.Span.End) == len(text) && len(s.text.head) == headBytes && !s.Dialect.Ended(text):
		return fmt.Errorf("read header of %s: it does not end within %d bytes; look for a quote that never closes, or use --quote none", s.Name, headBytes)
	}
	if err := s.refuseLoneCR(first); err != nil {
		return err
	}
	names, err := s.headerNames(first)
	if err != nil {
		return err
	}
	p.MaxFields = len(names) + 1 // a record of a million delimiters must not take memory for each
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
	s.Header = append(s.Header, text[from:to]...)
	s.lookAtRecords(p, text, names)
	if len(names) == 1 {
		s.noteRepeated(text[from:to], text[to:])
	}
	s.text.lines += s.Dialect.Lines(text[:to])
	s.text.offset += int64(to)
	return nil
}

// typesRow reports whether the record after the header names types and is not data.
func (s *File) typesRow(p *csv.Parser, columns int) (bool, error) {
	if s.Dialect.Types == csv.NoTypes {
		return false, nil
	}
	second, ok := p.Next()
	named := ok && len(second.Fields) == columns && csv.NamesTypes(second)
	switch {
	case s.Dialect.Types == csv.WithTypes && !named:
		return false, fmt.Errorf("read %s: the line after the header does not name a ClickHouse type for each of its %d columns; leave -types out of --dialect", s.Name, columns)
	case !named && s.Dialect.Types == csv.FindTypes:
		s.Dialect.Name, s.Dialect.Types = s.Dialect.Name+"-names", csv.NoTypes
		return false, nil
	case s.Dialect.Types == csv.FindTypes && columns == 1:
		return false, fmt.Errorf("read %s: %q after the header of one column may be its type or a value: give --dialect %s-types or %s-names",
			s.Name, second.Fields[0].Bytes, s.Dialect.Name, s.Dialect.Name)
	}
	if s.Dialect.Types == csv.FindTypes {
		s.Notes = append(s.Notes, fmt.Sprintf("%s: the line after the header names types and is not data; else give --dialect %s-names", s.Name, s.Dialect.Name))
		s.Dialect.Name += "-types"
	}
	s.addSeam(second)
	return true, nil
}

// hintAtDelimiter notes that the one column there is looks like several.
func (s *File) hintAtDelimiter(names []string) {
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
		s.Hint = fmt.Sprintf("%s has one column, %q; its fields may stand between %q: give --delimiter %s, or --dialect auto", s.Name, names[0], delimiter, shellText(delimiter))
		return
	}
}

// hintAtComment notes that the header, which begins with #, seems to be a comment: what follows has other fields, or begins so too.
func (s *File) hintAtComment(after []byte, names int) {
	p := csv.NewParser(s.Dialect)
	p.Reset(after)
	if next, ok := p.Next(); ok && next.Bad == nil && (len(next.Fields) != names || bytes.HasPrefix(next.Fields[0].Bytes, []byte("#"))) {
		s.Hint = fmt.Sprintf("the first line of %s begins with #: if such lines are comments, give --comment '#'", s.Name)
	}
}

// shellText writes a delimiter as a user types it in a shell.
func shellText(delimiter string) string {
	return "'" + strings.Trim(fmt.Sprintf("%q", delimiter), `"`) + "'"
}

func (s *File) headerNames(first *record.Record) (names []string, err error) {
	for i, f := range first.Fields {
		text := f.Bytes
		if decode := s.Decode(); decode != nil {
			var bad int
			if text, bad = decode(nil, text); bad >= 0 {
				return nil, fmt.Errorf("read header of %s: name %d is not %s%s", s.Name, i+1, s.Encoding.Name(), s.EncodingHint(f.Bytes))
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

// refuseLoneCR returns an error if the first record, which is a header or all there is, has a carriage return outside quotes.
// Then most lines probably end with CR, but one with LF, and all that come before it would be one record.
func (s *File) refuseLoneCR(first *record.Record) error {
	for _, f := range first.Fields {
		if f.Quoted || s.Dialect.RecordEnd != "" || bytes.IndexByte(f.Bytes, '\r') < 0 {
			continue
		}
		return fmt.Errorf("read %s: %.60q in the first line holds a carriage return: lines seem to end with CR, but not all; make them line feeds: tr '\\r' '\\n' <%s | tsimport load -",
			s.Name, f.Bytes, s.shellName())
	}
	return nil
}

// numberColumns finds how many columns there are without a header. A bad first record will be rejected when it is
// loaded; if it can, a later one tells the number of fields.
func (s *File) numberColumns(p *csv.Parser, first *record.Record) error {
	width := len(first.Fields)
	for rec, ok := first, true; ok; rec, ok = p.Next() {
		if rec.Bad == nil {
			width = len(rec.Fields)
			break
		}
	}
	if s.o.Names != nil {
		if len(s.o.Names) != width {
			return fmt.Errorf("read %s: --names gives %d names, the first record has %d fields", s.Name, len(s.o.Names), width)
		}
		s.nameColumns(s.o.Names)
		return nil
	}
	names := make([]string, width)
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i+1)
	}
	s.nameColumns(names)
	return nil
}

// discover finds the columns of JSON lines in the head.
func (s *File) discover(head []byte) error {
	s.text.offset = int64(s.text.bom)
	if s.text.transcode {
		s.text.offset = 0
	}
	head, whole, err := s.jsonHead(head)
	if err != nil {
		return err
	}
	if object, only := jsonl.First(head, s.Layout); object != nil && s.o.Format != JSONLines {
		var members map[string]json.RawMessage
		_ = json.Unmarshal(object, &members) // it was parsed by stricter rules
		if err := s.refuseChanges(members); err != nil {
			return err
		}
		if only && whole {
			s.noteEnvelope(members)
		}
	}
	s.findTags(head)
	if s.Format != JSONLines && s.o.Flatten {
		return fmt.Errorf("read %s: --flatten has no meaning for --format %v: nested values are JSON text; leave it out%s", s.Name, s.Format,
			map[bool]string{true: ", or give --format jsonl, which makes columns of the tags"}[s.o.Format == Auto])
	}
	if s.wide = s.Format == JSONLines && jsonl.IsWide(head); s.wide {
		s.Notes = append(s.Notes, fmt.Sprintf("the rows of %s describe themselves: beside the columns of PK each has cells of its own", s.Name))
	}
	var found jsonl.Columns
	records, bad := jsonl.Discover(head, jsonl.Options{Flatten: s.o.Flatten && !s.wide, Layout: s.Layout, Wide: s.wide, Tags: s.Format.tags(), Wrapped: s.inItem}, &found)
	switch {
	case records == 0 || records > bad:
	case s.Format != JSONLines:
		return fmt.Errorf("read %s: no record is %s (%s); %s", s.Name, map[Format]string{DynamoDB: "an item in DynamoDB JSON", MongoDB: "a document in MongoDB Extended JSON"}[s.Format], found.Why,
			map[Format]string{DynamoDB: `want {"Item":{"id":{"S":"x"}}} or {"id":{"S":"x"}}, as a full export or jq -c '.Items[]' after aws dynamodb scan writes them`, MongoDB: "want lines or an array of mongoexport, or of bsondump"}[s.Format])
	case s.Layout == jsonl.Array:
		return fmt.Errorf("read %s: no element of the array is a JSON object (%s); want objects", s.Name, cmp.Or(found.Why, "there is none"))
	default:
		return fmt.Errorf("read %s: no line is a JSON object (%s); want objects, one a line or one after the other, or an array of them%s",
			s.Name, cmp.Or(found.Why, "there is none"), s.looks)
	}
	s.keys = found.Keys()
	names := found.Names()
	for _, known := range s.o.Known {
		if s.wide {
			break // all records have what PK has; of their cells the load asks for those that it needs
		}
		if !slices.Contains(names, known) {
			names = append(names, known)
		}
	}
	s.nameColumns(names)
	s.member = map[string]string{}
	for i, name := range names {
		if s.Columns[i] != name {
			s.member[s.Columns[i]] = name
		}
	}
	return nil
}

// jsonHead finds the layout and returns the whole records of the beginning, which is read on until one of them is an object.
func (s *File) jsonHead(head []byte) (records []byte, whole bool, err error) {
	for size, most := headBytes, max(s.o.Memory.record(), headBytes); ; {
		whole := len(s.text.head) < size
		if s.Layout = jsonl.Guess(head, whole); whole {
			return head, true, nil
		}
		n := wholeRecords(head, s.Layout)
		object, _ := jsonl.First(head[:n], s.Layout)
		switch {
		case object != nil, n > 0 && size == most:
			return head[:n], false, nil
		case size == most:
			return nil, false, fmt.Errorf("read %s: the first record is longer than %d MiB, so its members are not known; put a shorter record first, or give more memory with --memory",
				s.Name, most>>20)
		}
		size = min(2*size, most)
		raw, err := s.rawHead(size)
		if err == nil {
			err = s.readHead(raw, size)
		}
		if err != nil {
			return nil, false, err
		}
		head = s.utf8Head()
	}
}

// findTags finds out whether values say their types.
func (s *File) findTags(head []byte) {
	formats := map[jsonl.Tags]Format{jsonl.NoTags: JSONLines, jsonl.DynamoDB: DynamoDB, jsonl.MongoDB: MongoDB}
	if s.o.Format == Auto {
		s.Format = formats[jsonl.GuessTags(head, s.Layout)]
	}
	if s.o.Format == Auto && s.Format != JSONLines {
		s.Notes = append(s.Notes, fmt.Sprintf("%s is read as --format %v: its values say their types; with --format jsonl they stay objects", s.Name, s.Format))
	}
	s.inItem = s.Format == DynamoDB && jsonl.Wrapped(head, s.Layout)
}

// mayHaveTags reports whether the source is JSON of which only the sample says that values have no type tags.
func (s *File) mayHaveTags() bool {
	return s.Format == JSONLines && s.o.Format == Auto && !s.wide
}

// ShareTags has all JSON of a load be read with type tags if a sample of one of its files has them.
func ShareTags(files []*File) error {
	at := slices.IndexFunc(files, func(s *File) bool { return s.Format.tags() != jsonl.NoTags })
	for _, s := range files {
		if at < 0 || !s.mayHaveTags() {
			continue
		}
		o, from := s.o, files[at]
		if o.Format = from.Format; s.Stream() {
			s.o, s.Format = o, o.Format
			if err := s.discover(s.utf8Head()); err != nil {
				return err
			}
		} else if again, err := Open(s.ctx, s.item, o); err != nil {
			return fmt.Errorf("%w; %s has values that say their types: load them separately, or give --format jsonl", err, from.Name)
		} else if *s = *again; s.Suspend() != nil {
			return fmt.Errorf("close %s", s.Name)
		}
		s.Notes = append(s.Notes, fmt.Sprintf("%s is read as --format %v, as %s is", s.Name, s.Format, from.Name))
	}
	return nil
}

// wholeRecords returns how much of a text's beginning is whole records.
func wholeRecords(head []byte, l jsonl.Layout) int {
	if l == jsonl.Lines {
		return bytes.LastIndexByte(head, '\n') + 1
	}
	c := jsonl.Cutter{Array: l == jsonl.Array}
	n, _ := c.Cut(head) // what is wrong is found when it is read
	return max(n, 0)
}

// nameColumns sets the names. A column without a name is named for its place, a name that comes again gets a number, so
// that no column hides another; both are reported. Columns of partition folders come last.
func (s *File) nameColumns(given []string) {
	taken, used := make(map[string]bool, len(given)), make(map[string]bool, len(given))
	for _, name := range given {
		used[name] = true
	}
	s.Columns = nil
	for i, name := range given {
		base := cmp.Or(name, fmt.Sprintf("c%d", i+1))
		unique := base
		for n := 2; taken[unique] || unique != name && used[unique]; n++ {
			unique = fmt.Sprintf("%s_%d", base, n)
		}
		if unique != name {
			s.Renamed = append(s.Renamed, fmt.Sprintf("%s: column %d, %q in the header, is called %q", s.Name, i+1, name, unique))
		}
		taken[unique] = true
		s.Columns = append(s.Columns, unique)
	}
	for _, c := range s.fixed {
		if taken[c.Name] {
			s.Notes = append(s.Notes, fmt.Sprintf("column %s comes from the folders of --path-columns; a record whose own value differs is rejected", c.Name))
		}
		s.Columns = append(s.Columns, c.Name)
	}
}
