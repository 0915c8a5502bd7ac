package reader

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// The JSON formats, except those of changes.
var (
	JSONLines Format = &jsonFormat{name: "jsonl"}
	DynamoDB  Format = &jsonFormat{"dynamodb", jsonl.DynamoDB, "an item in DynamoDB JSON", // exports use this form
		`want {"Item":{"id":{"S":"x"}}} or {"id":{"S":"x"}}, as a full export or jq -c '.Items[]' after aws dynamodb scan writes them`}
	MongoDB Format = &jsonFormat{"mongodb", jsonl.MongoDB, "a document in MongoDB Extended JSON",
		"want lines or an array of mongoexport, or of bsondump"}
)

type jsonFormat struct {
	name string
	tags jsonl.Tags
	one  string // name of a record with type tags, for messages
	want string
}

type jsonText struct {
	*File
	as     *jsonFormat
	member map[string]string // by column: name of its member, if different
	keys   []string          // names for key values that Tablestore's own exports leave unnamed
	inItem bool              // whether DynamoDB items are inside {"Item":…}
}

func (f *jsonFormat) String() string { return f.name }

// Is recognises JSON by file name, then by the first character; a file named like CSV must be JSON beyond doubt. The
// first records show whether values have type tags.
func (f *jsonFormat) Is(name string, head []byte) bool {
	table := false
	switch Extension(name) {
	case ".jsonl", ".ndjson", ".json":
		return f.tags == jsonl.NoTags
	case ".csv", ".tsv", ".tab", ".psv":
		table = true
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	if len(text) > 1 && text[0] == '[' {
		text = bytes.TrimLeft(text[1:], " \t\r\n")
	}
	if f.tags != jsonl.NoTags || len(text) < 2 || text[0] != '{' || bytes.IndexByte([]byte(" \t\"}\r\n"), text[1]) < 0 {
		return false
	}
	object, _ := jsonl.First(head, jsonl.Guess(head, false))
	return object != nil || !table
}

func (f *jsonFormat) open(file *File) error {
	s := &jsonText{File: file, as: f}
	s.Dialect = csv.Dialect{Delimiter: ",", EOL: '\n'} // cut into lines, like CSV without quotes
	s.cutPlan(false)
	if err := s.discover(s.utf8Head()); err != nil {
		return err
	}
	t := &s.form
	t.lacks, t.rejects.End, t.rejects.Ended = true, s.Dialect.End(), s.Dialect.Ended
	if s.as.tags != jsonl.NoTags {
		t.rejects.Flags = []string{"--format", s.as.name}
	}
	t.broken = func(what string) []byte { return fmt.Appendf(nil, "<%s>\n", what) }
	if t.cutter = nil; s.Layout != jsonl.Lines {
		t.cutter = func(begun bool) recordCutter { return &jsonl.Cutter{Array: s.Layout == jsonl.Array, Begun: begun} }
		t.raw = oneLine
	}
	s.form.parser = s.parser
	return nil
}

// oneLine joins the lines of a record: a line end between JSON tokens is only white space.
func oneLine(record []byte) []byte { return []byte(lineEnds.Replace(string(record))) }

var lineEnds = strings.NewReplacer("\n", " ", "\r", " ")

type jsonParser struct {
	source.Plain
	s     *jsonText
	jsonl *jsonl.Parser
}

func (s *jsonText) parser([]int) source.Parser {
	own := slices.Clone(s.Columns[:len(s.Columns)-len(s.fixed)])
	for i, name := range own {
		if member, other := s.member[name]; other {
			own[i] = member
		}
	}
	return &jsonParser{s: s, jsonl: jsonl.NewParser(jsonl.Options{Columns: own, Flatten: s.o.Flatten, Strict: true,
		Keys: s.keys, Layout: s.Layout,
		Wide: s.form.wide, Tags: s.as.tags, Wrapped: s.inItem, Missing: s.o.Named.Missing, Untyped: s.mayHaveTags()})}
}

func (p *jsonParser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	if sp.Offset > p.s.text.offset {
		p.jsonl.Continue(sp.Data)
	} else {
		p.jsonl.Reset(sp.Data)
	}
	for rec, ok := p.jsonl.Next(); ok; rec, ok = p.jsonl.Next() {
		if rec.Bad != nil && rec.Bad.Code == table.CodeUTF8 {
			rec.Bad.Message += p.s.EncodingHint(sp.Data[rec.Span.Start:rec.Span.End])
		}
		if rec.Timestamps = nil; p.jsonl.Stamped() {
			rec.Timestamps = p.jsonl.Timestamps()
		}
		each(p.s.shorten(sp, rec))
	}
	return p.jsonl.Records(), p.jsonl.Lines(), nil
}

// discover finds the layout, the type tags and the columns in the head of the text.
func (s *jsonText) discover(head []byte) error {
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
		_ = json.Unmarshal(object, &members) // cannot fail: a stricter parser has accepted it
		of, _, _ := s.changesOf()
		switch c := s.o.Changes; {
		case c != nil && c.Column != "" && of != nil:
			return fmt.Errorf("read %s: omit --op-column %s: each record of %s has an operation", s.Name, c.Column, of.what)
		case c == nil:
			if err := s.refuseChanges(members); err != nil {
				return err
			}
		}
		if only && whole {
			s.noteEnvelope(members)
		}
	}
	s.findTags(head)
	typed := s.as.tags != jsonl.NoTags
	if typed && s.o.Flatten {
		return fmt.Errorf("read %s: --flatten does not apply to --format %v: nested values are JSON text; leave it out%s",
			s.Name, s.Format,
			map[bool]string{true: ", or give --format jsonl, which makes columns of the tags"}[s.o.Format == nil])
	}
	wide := !typed && jsonl.IsWide(head)
	if s.form.wide = wide; wide {
		s.Notes = append(s.Notes, fmt.Sprintf("the rows of %s describe themselves: each has cells of its own", s.Name))
	}
	var found jsonl.Columns
	records, bad := jsonl.Discover(head, jsonl.Options{Flatten: s.o.Flatten && !wide, Layout: s.Layout, Wide: wide,
		Tags: s.as.tags, Wrapped: s.inItem}, &found)
	switch {
	case records == 0 || records > bad:
	case typed:
		return fmt.Errorf("read %s: no record is %s (%s); %s", s.Name, s.as.one, found.Why, s.as.want)
	case s.Layout == jsonl.Array:
		return fmt.Errorf("read %s: no element of the array is an object (%s)", s.Name, cmp.Or(found.Why, "there is none"))
	default:
		return fmt.Errorf("read %s: no line is a JSON object (%s); want objects, one after the other or in an array%s",
			s.Name, cmp.Or(found.Why, "there is none"), s.looks)
	}
	s.keys = found.Keys()
	names := found.Names()
	for _, known := range s.o.Named.Known {
		if wide {
			break // all records have PK; a load names the cells it needs
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

// jsonHead detects the layout and returns the complete records of the head. It reads more until one is an object.
func (s *jsonText) jsonHead(head []byte) (records []byte, whole bool, err error) {
	for size, most := headBytes, max(s.o.Memory.record(), headBytes); ; {
		whole := s.wholeHead(size)
		if s.Layout = jsonl.Guess(head, whole); whole {
			return head, true, nil
		}
		n := wholeRecords(head, s.Layout)
		object, _ := jsonl.First(head[:n], s.Layout)
		switch {
		case object != nil, n > 0 && size == most:
			return head[:n], false, nil
		case size == most:
			return nil, false, fmt.Errorf("read %s: the first record is longer than %d MiB, so its members are not known; put "+
				"a shorter record first%s", s.Name, most>>20, moreMemory(", or", most))
		}
		size = min(2*size, most)
		if err := s.setHead(size); err != nil {
			return nil, false, err
		}
		head = s.utf8Head()
	}
}

func (s *jsonText) findTags(head []byte) {
	if s.o.Format == nil {
		tags := jsonl.GuessTags(head, s.Layout)
		for _, f := range Formats {
			if f, ok := f.(*jsonFormat); ok && f.tags == tags {
				s.as, s.Format = f, f
			}
		}
	}
	if s.o.Format == nil && s.as.tags != jsonl.NoTags {
		s.Notes = append(s.Notes, fmt.Sprintf("%s is read as --format %v: its values have type tags; with --format jsonl "+
			"they remain objects", s.Name, s.Format))
	}
	s.inItem = s.as.tags == jsonl.DynamoDB && jsonl.Wrapped(head, s.Layout)
}

// mayHaveTags reports whether no type tags were found, but only a sample was examined.
func (s *File) mayHaveTags() bool {
	return s.Format == JSONLines && s.o.Format == nil && !s.form.wide
}

// ShareTags reopens JSON files without type tags as files with tags if the sample of another file has tags.
func ShareTags(files []*File) error {
	at := slices.IndexFunc(files, func(s *File) bool {
		f, ok := s.Format.(*jsonFormat)
		return ok && f.tags != jsonl.NoTags
	})
	for i, s := range files {
		if at < 0 || !s.mayHaveTags() {
			continue
		}
		o, from := s.o, files[at]
		if o.Format = from.Format; s.Stream() {
			s.o, s.Format = o, o.Format
			if err := s.Format.open(s); err != nil {
				return err
			}
		} else if again, err := Open(s.ctx, s.item, o); err != nil {
			return fmt.Errorf("%w; %s has typed values: load them separately, or give --format jsonl", err, from.Name)
		} else if err := again.Suspend(); err != nil {
			return fmt.Errorf("close %s: %w", s.Name, err)
		} else {
			files[i] = again
		}
		files[i].Notes = append(files[i].Notes, fmt.Sprintf("%s is read as --format %v, as %s is", s.Name, o.Format,
			from.Name))
	}
	return nil
}

func wholeRecords(head []byte, l jsonl.Layout) int {
	if l == jsonl.Lines {
		return bytes.LastIndexByte(head, '\n') + 1
	}
	c := jsonl.Cutter{Array: l == jsonl.Array}
	n, _ := c.Cut(head) // errors are reported when the text is read
	return max(n, 0)
}
