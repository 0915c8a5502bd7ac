package reader

import (
	"fmt"
	"io"
	"os"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/mysqldump"
	"example.com/tsimport/reader/pgdump"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqldump"
)

// Formats of dumps: the plain format of pg_dump, and SQL from mysqldump or mariadb-dump.
var (
	PGDump Format = &dumpFormat{
		name: "pg_dump", is: pgdump.Is, index: pgdump.Index,
		parser: func(columns []sqldump.Column) dumpRows { return pgdump.NewParser(columns) },
	}
	MySQLDump Format = &dumpFormat{
		name: "mysqldump", is: mysqldump.Is, index: mysqldump.Index,
		parser: func(columns []sqldump.Column) dumpRows { return mysqldump.NewParser(columns) },
		cutter: func(begun bool) recordCutter { return &mysqldump.Cutter{Begun: begun} },
		tab:    true,
	}
)

// dumpFormat is a format of SQL dumps. A source's data is the part of the text with the rows of one table.
type dumpFormat struct {
	name   string
	is     func(head []byte) bool
	index  func(text io.Reader) (*sqldump.Dump, error) // finds the tables
	parser func([]sqldump.Column) dumpRows
	cutter func(begun bool) recordCutter // cuts rows in order; nil if each row is a line
	tab    bool                          // may be written with --tab: the rows are in a file beside the schema
}

func (f *dumpFormat) String() string { return f.name }

// Is reports whether head begins like a dump of the format.
func (f *dumpFormat) Is(_ string, head []byte) bool { return f.is(head) }

type dumpRows interface {
	Reset(data []byte, begun bool) // begun: this is not the first split
	Next() (*record.Record, bool)
	Records() int
	Lines() int
}

// open reads the whole dump to find its tables, and selects the one to load.
func (f *dumpFormat) open(s *File) error {
	switch {
	case s.Stream():
		return fmt.Errorf("read %s: a dump is read twice, so it cannot be a stream; save it to a file first", s.Name)
	case s.text.bom > 0 || !s.Encoding.IsUTF8():
		return fmt.Errorf("read %s: a dump must be UTF-8 without a byte order mark; if PowerShell's > wrote it, let the "+
			"dump program write the file itself (pg_dump -f, mysqldump --result-file)", s.Name)
	}
	text, err := s.unpacked()
	if err != nil {
		return err
	}
	defer text.Close()
	readable := &upToError{r: text}
	d, err := f.index(readable)
	if err != nil {
		return fmt.Errorf("read %s: %w", s.Name, err)
	}
	if readable.err != nil { // the load will fail there, after the rows before it
		d.Truncated = readable.err
	}
	t, err := d.Choose(s.o.Named.Table)
	if err != nil && d.Truncated != nil {
		return fmt.Errorf("read %s: %w; and %w", s.Name, d.Truncated, err)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", s.Name, err)
	}
	if err := f.refuseTab(s, t); err != nil {
		return err
	}
	if d.Truncated != nil && t.Key == nil { // the key may be missing: pg_dump writes keys after the rows
		s.Hint = fmt.Sprintf("%s does not state the key of its table: %v", s.Name, d.Truncated)
	}
	s.text.offset, s.text.lines, s.text.part, s.text.end, s.text.truncated = t.From, int(t.Lines), true, t.To, d.Truncated
	names, declared := make([]string, len(t.Columns)), &source.Declared{Key: t.Key}
	for i := range t.Columns {
		names[i] = t.Columns[i].Name
		declared.Types = append(declared.Types, t.Columns[i].Type())
	}
	s.nameColumns(names)
	declared.Types = append(declared.Types, make([]table.Type, len(s.fixed))...)
	s.form.declared, s.form.cutter = declared, f.cutter
	if f.cutter == nil {
		s.Dialect = csv.Dialect{Delimiter: "\t", EOL: '\n'} // each row is a line
	}
	s.form.parser = func([]int) source.Parser { return &dumpParser{s: s, rows: f.parser(t.Columns)} }
	s.Notes = append(s.Notes, fmt.Sprintf("%s: %s", s.Name, d.Describe(t)))
	return nil
}

type dumpParser struct {
	source.Plain
	s    *File
	rows dumpRows
}

func (p *dumpParser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	p.rows.Reset(sp.Data, sp.Offset > p.s.text.offset)
	for rec, ok := p.rows.Next(); ok; rec, ok = p.rows.Next() {
		each(p.s.shorten(sp, rec))
	}
	return p.rows.Records(), p.rows.Lines(), nil
}

// refuseTab refuses a schema written by mysqldump --tab, whose rows are in another file.
func (f *dumpFormat) refuseTab(s *File, t *sqldump.Table) error {
	stem, is := strings.CutSuffix(s.item.Name, ".sql")
	if t.Rows > 0 || !is || !f.tab || !s.item.Local() {
		return nil
	}
	rows := stem + ".txt"
	if _, err := os.Stat(rows); err != nil {
		return nil
	}
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return fmt.Errorf("read %s: it is a schema written by mysqldump --tab, and the rows are in %s; load that with "+
		"--dialect mysql-tab --no-header --names '%s', and --type for columns whose types the sample does not show",
		s.Name, rows, strings.Join(names, ","))
}

// upToError reads a text up to its first read error. It keeps the error in err and returns io.EOF instead.
type upToError struct {
	r   io.Reader
	err error
}

func (u *upToError) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && err != io.EOF {
		u.err, err = err, io.EOF
	}
	return n, err
}

// textEnd returns the offset of the end of the data in a text that needs no decoding.
func (s *File) textEnd() int64 {
	if s.text.part {
		return s.text.end
	}
	return s.Size
}

func (s *File) upToEnd(text io.ReadCloser) io.ReadCloser {
	if !s.text.part {
		return text
	}
	return &closing{io.LimitReader(text, s.text.end), text}
}
