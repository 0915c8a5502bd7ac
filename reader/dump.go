package reader

import (
	"fmt"
	"io"
	"os"
	"strings"

	"example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/mysqldump"
	"example.com/tsimport/reader/pgdump"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqldump"
)

// dumped is a table of a dump. Its rows are a part of the text, which the data of the source are.
type dumped struct {
	table     *sqldump.Table
	truncated error
	newParser func() rowParser
	cutter    func(begun bool) recordCutter // of rows that are cut in order; nil is lines
}

// rowParser reads the rows of a dump, split by split.
type rowParser interface {
	Reset(data []byte, begun bool) // begun says that the split is not the first
	Next() (*record.Record, bool)
	Records() int
	Lines() int
}

// isDump reports whether the text is statements of SQL.
func (f Format) isDump() bool { return f == PGDump || f == MySQLDump }

// readDump goes through the dump once, to find its tables, and takes the one that is meant.
func (s *File) readDump() error {
	switch {
	case s.Stream():
		return fmt.Errorf("read %s: a dump is read twice, which a stream does not allow; save it as a file first", s.Name)
	case s.text.bom > 0 || !s.Encoding.IsUTF8():
		return fmt.Errorf("read %s: a dump is UTF-8 without a byte order mark; if the > of PowerShell wrote it, let the dump program write the file itself (pg_dump -f, mysqldump --result-file)", s.Name)
	}
	text, err := s.unpacked()
	if err != nil {
		return err
	}
	defer text.Close()
	readable := &upToError{r: text}
	d, err := s.indexDump(readable)
	if err != nil {
		return fmt.Errorf("read %s: %w", s.Name, err)
	}
	if readable.err != nil { // the load meets it after the rows before
		d.Truncated = readable.err
	}
	t, err := d.Choose(s.o.Table)
	if err != nil && d.Truncated != nil {
		return fmt.Errorf("read %s: %w; and %w", s.Name, d.Truncated, err)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", s.Name, err)
	}
	if err := s.refuseTab(t); err != nil {
		return err
	}
	s.dump.table, s.dump.truncated = t, d.Truncated
	if d.Truncated != nil && t.Key == nil { // pg_dump writes keys after the rows
		s.Hint = fmt.Sprintf("%s does not say the key of its table: %v", s.Name, d.Truncated)
	}
	s.text.offset, s.text.lines = t.From, int(t.Lines)
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	s.nameColumns(names)
	s.Notes = append(s.Notes, fmt.Sprintf("%s: %s", s.Name, d.Describe(t)))
	return nil
}

// indexDump finds the tables.
func (s *File) indexDump(text io.Reader) (*sqldump.Dump, error) {
	if s.Format == MySQLDump {
		s.dump = &dumped{
			newParser: func() rowParser { return mysqldump.NewParser(s.dump.table.Columns) },
			cutter:    func(begun bool) recordCutter { return &mysqldump.Cutter{Begun: begun} },
		}
		return mysqldump.Index(text)
	}
	d, err := pgdump.Index(text)
	s.Dialect = csv.Dialect{Delimiter: "\t", EOL: '\n'} // rows are lines
	s.dump = &dumped{newParser: func() rowParser { return pgdump.NewParser(s.dump.table.Columns) }}
	return d, err
}

// refuseTab refuses the schema that mysqldump --tab writes: the rows are in a file beside it.
func (s *File) refuseTab(t *sqldump.Table) error {
	stem, is := strings.CutSuffix(s.item.Name, ".sql")
	if t.Rows > 0 || !is || s.Format != MySQLDump || !s.item.Local() {
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
	return fmt.Errorf("read %s: it is the schema that mysqldump --tab writes, and the rows are in %s; load that with --dialect mysql-tab --no-header --names '%s', and --type for what the sample does not show",
		s.Name, rows, strings.Join(names, ","))
}

// upToError is a text that ends where it cannot be read further.
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

// textEnd is where the data end in the text of a source that is a file as it is.
func (s *File) textEnd() int64 {
	if s.dump != nil {
		return s.dump.table.To
	}
	return s.Size
}

// upToEnd is a text without what follows its data.
func (s *File) upToEnd(text io.ReadCloser) io.ReadCloser {
	if s.dump == nil {
		return text
	}
	return &closing{io.LimitReader(text, s.dump.table.To), text}
}

// declared is what a dump says of its table, nil for other sources.
func (s *File) declared() *source.Declared {
	if s.dump == nil {
		return nil
	}
	d := &source.Declared{Key: s.dump.table.Key}
	for i := range s.dump.table.Columns {
		d.Types = append(d.Types, s.dump.table.Columns[i].Type())
	}
	for range s.fixed {
		d.Types = append(d.Types, 0)
	}
	return d
}

// guessDump tells a dump by its beginning.
func guessDump(head []byte) Format {
	switch {
	case pgdump.Is(head):
		return PGDump
	case mysqldump.Is(head):
		return MySQLDump
	}
	return Auto
}
