package reader

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Formats of change records. Each record describes a change of a row.
var (
	Debezium       Format = &changeFormat{"debezium", jsonl.DebeziumChanges, "Debezium changes"}
	Canal          Format = &changeFormat{"canal", jsonl.CanalChanges, "canal changes"}
	Maxwell        Format = &changeFormat{"maxwell", jsonl.MaxwellChanges, "Maxwell changes"}
	DynamoDBExport Format = &changeFormat{"dynamodb-changes", jsonl.DynamoDBChanges, "an incremental export of DynamoDB"}
)

// Changes holds the options for reading changes.
type Changes struct {
	Column  string                   // names the column with each record's operation; "" for change formats
	Values  map[string]table.Mode    // operations by that column's values
	Typed   func(column string) bool // reports whether the user gave a column's type
	Without func(column string) bool // reports whether a column is not loaded
	Whole   jsonl.TableOnce          // name of the loaded table
}

type changeFormat struct {
	name string
	form jsonl.ChangeForm
	what string
}

func (f *changeFormat) String() string { return f.name }

// Is always returns false: loads of changes detect these formats themselves.
func (*changeFormat) Is(string, []byte) bool { return false }

// changesOf returns the format of the changes at the start of a text. If there is none, why says what is wrong.
func (s *File) changesOf() (f *changeFormat, table, why string) {
	head := s.utf8Head()
	form, name, why := s.guessChanges(head, jsonl.Guess(head, s.wholeHead(headBytes)))
	for _, of := range Formats {
		if of, ok := of.(*changeFormat); ok && of.form == form {
			return of, name, ""
		}
	}
	return nil, "", why
}

func (s *File) guessChanges(text []byte, layout jsonl.Layout) (form jsonl.ChangeForm, name, why string) {
	given := jsonl.NoChanges
	if of, ok := s.o.Format.(*changeFormat); ok {
		given = of.form
	}
	return jsonl.GuessChanges(text, layout, given)
}

func (s *File) holdsChange(lines []byte) bool {
	form, _, _ := s.guessChanges(lines, jsonl.Lines)
	return form != jsonl.NoChanges
}

// liveWait is the time for reading a pipe after its first change: most of a piped file's head then gets examined.
const liveWait = 200 * time.Millisecond

// fill reads a stream's head and returns how many of its bytes may be examined. It does not wait for more live changes.
func (s *File) fill(head []byte) (n, looked int, err error) {
	pipe, stoppable := s.text.headStream.(interface{ Soon(<-chan time.Time) bool })
	if !stoppable || s.o.Changes == nil || s.o.Changes.Column != "" {
		n, err = io.ReadFull(s.text.headStream, head)
		return n, n, err
	}
	var late <-chan time.Time
	lines := 0 // length of the complete lines
	for n < len(head) && err == nil {
		if !pipe.Soon(late) {
			s.text.live = true
			return n, lines, nil
		}
		var more int
		more, err = s.text.headStream.Read(head[n:])
		n += more
		if end := bytes.LastIndexByte(head[:n], '\n') + 1; end > lines {
			if late == nil && s.holdsChange(head[lines:end]) && !bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("[")) {
				late = time.After(liveWait)
			}
			lines = end
		}
	}
	return n, n, err
}

func (f *changeFormat) open(s *File) error {
	if s.o.Changes == nil {
		return fmt.Errorf("read %s: --format %s is for --mode changes", s.Name, f.name)
	}
	s.Dialect = csv.Dialect{Delimiter: ",", EOL: '\n'}
	s.cutPlan(false)
	if s.text.offset = int64(s.text.bom); s.text.transcode {
		s.text.offset = 0
	}
	found, of, why := s.changesOf()
	if found != f {
		return s.noChanges(why)
	}
	s.Layout = jsonl.Guess(s.utf8Head(), s.wholeHead(headBytes))
	if f.form == jsonl.CanalChanges || f.form == jsonl.MaxwellChanges {
		if s.Layout != jsonl.Lines || !s.Encoding.IsUTF8() {
			return fmt.Errorf("read %s: %s messages must be in UTF-8, one per line", s.Name, f.name)
		}
		s.text.unfold = func(r io.Reader) io.Reader { return jsonl.UnfoldCanal(r, s.o.Memory.record()) }
		head, _ := io.ReadAll(s.text.unfold(bytes.NewReader(s.utf8Head()))) // reading from memory cannot fail
		s.text.transcode, s.text.offset = true, 0
		s.text.head = append(slices.Clone(s.text.head[:s.text.bom]), head...)
	}
	c := s.o.Changes
	options := jsonl.Options{Layout: s.Layout, Changes: jsonl.Changes{Form: f.form, Table: s.o.Named.Table,
		Whole: &c.Whole, Typed: c.Typed, Without: c.Without}}
	switch named := s.o.Named.Table; {
	case named != "" && f.form == jsonl.DynamoDBChanges:
		return fmt.Errorf("read %s: --source-table %s: a DynamoDB export has only one table; leave it out", s.Name, named)
	case of != "" && (named == "" || jsonl.IsTable(named, strings.Split(of, "."))): // true also when a load is resumed
		c.Whole.Is(of)
	}
	s.text.named = true
	s.nameColumns(nil)
	t := &s.form
	t.wide, t.lacks, t.rejects.End, t.rejects.Ended = true, true, s.Dialect.End(), s.Dialect.Ended
	t.rejects.Flags = []string{"--format", f.name}
	t.broken = func(what string) []byte { return fmt.Appendf(nil, "<%s>\n", what) }
	if s.Layout != jsonl.Lines {
		t.cutter = func(begun bool) recordCutter { return &jsonl.Cutter{Array: s.Layout == jsonl.Array, Begun: begun} }
		t.raw = oneLine
	}
	t.parser = func([]int) source.Parser {
		o := options
		o.Columns = s.Columns[:len(s.Columns)-len(s.fixed)]
		return &changeParser{jsonParser{s: &jsonText{File: s}, jsonl: jsonl.NewParser(o)}}
	}
	if of != "" {
		s.Notes = append(s.Notes, fmt.Sprintf("%s is %s to table %s", s.Name, f.what, of))
	}
	return nil
}

// checkChanges refuses an input for --mode changes whose records do not state an operation.
func (s *File) checkChanges() error {
	c := s.o.Changes
	if c == nil {
		return nil
	}
	_, says := s.Format.(*changeFormat)
	switch {
	case says && c.Column != "":
		return fmt.Errorf("read %s: --op-column %s: %v states operations itself; leave it out", s.Name, c.Column, s.Format)
	case !says && c.Column == "" && len(bytes.TrimSpace(s.text.head)) == 0:
		return fmt.Errorf("read %s: %w", s.Name, ErrEmpty)
	case !says && c.Column == "":
		_, _, why := s.changesOf()
		return s.noChanges(why)
	case !says && !slices.Contains(s.Columns, c.Column):
		return fmt.Errorf("read %s: --op-column %s: no such column, only %s", s.Name, c.Column, strings.Join(s.Columns, ", "))
	}
	return nil
}

// noChanges returns the error that none of the first records is a change. why is the reason, or "" if unknown.
func (s *File) noChanges(why string) error {
	if why != "" {
		return fmt.Errorf("read %s: --mode changes: its first change cannot be read: %s", s.Name, why)
	}
	return fmt.Errorf("read %s: --mode changes: its records do not say how rows have changed; %s", s.Name, wantChanges)
}

type changeParser struct{ jsonParser }

// maxMillis is the last millisecond that RFC 3339 can represent.
const maxMillis = 253_402_300_799_999

func (p *changeParser) Followed() source.Followed {
	others, at := p.jsonl.Followed()
	of := source.Followed{Others: others}
	if at.Millis > maxMillis {
		at.Millis = 0
	}
	if at.Millis > 0 {
		of.Made = time.UnixMilli(at.Millis)
	}
	switch {
	case at.LSN > 0:
		of.Last = &source.Resume{LSN: fmt.Sprintf("%X/%X", at.LSN>>32, uint32(at.LSN))}
	case at.File != "":
		of.Last = &source.Resume{File: at.File, Position: at.Position}
	case at.Millis > 0:
		of.Last = source.ResumeAt(of.Made)
	}
	return of
}

const wantChanges = "want JSON as canal, Maxwell, a connector of Debezium or an incremental export of DynamoDB " +
	"writes it, or name the column that says what each record does with --op-column"

type opColumn struct {
	field int // -1 if there is no such field
	of    *Changes
}

// opOf sets a record's operation, or rejects the record.
func (o *opColumn) opOf(rec *record.Record) {
	if rec.Bad != nil || o.field >= len(rec.Fields) {
		return
	}
	d := &rec.Fields[o.field]
	text := strings.TrimSpace(string(d.Bytes))
	mode, known := o.of.Values[text]
	if known = known && (d.Kind == record.Text || d.Kind == record.String); known {
		rec.Mode = mode
		return
	}
	rec.Bad = &table.Reason{Column: o.of.Column, Code: jsonl.CodeChange, Value: table.Show(d.Bytes),
		Message: fmt.Sprintf("the value does not name an operation; --op-column %s:VALUE=put|update|delete,… says what "+
			"each value means", o.of.Column)}
}
