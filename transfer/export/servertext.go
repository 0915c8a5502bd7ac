package export

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"

	"example.com/tsimport/internal/tablestore/scan"
)

// serverText writes rows as servers of SQL read them with their defaults: LOAD DATA of MySQL and MariaDB, COPY of PostgreSQL. Columns have tabs
// between them and absent cells are \N. There is no header.
type serverText struct {
	w        *bufio.Writer
	postgres bool
	place    map[string]int
	fields   [][]byte // of the row
}

// Columns are those of the output of a format without a header, in their order.
func (c *Config) Columns(seen []Column) []string {
	var names []string
	for _, k := range c.Scan.Table.Key {
		names = append(names, k.Name)
	}
	if c.Scan.Columns != nil {
		return append(names, c.Scan.Columns...)
	}
	for i := range seen {
		names = append(names, seen[i].Name)
	}
	return names
}

func newServerText(w io.Writer, format string, columns []string) *serverText {
	f := &serverText{w: bufio.NewWriterSize(w, 1<<16), postgres: format == Postgres, place: map[string]int{}, fields: make([][]byte, len(columns))}
	for i, name := range columns {
		f.place[name] = i
	}
	return f
}

func (f *serverText) Write(r *scan.Row) error {
	for i := range f.fields {
		f.fields[i] = append(f.fields[i][:0], `\N`...)
	}
	for _, k := range r.PrimaryKey.PrimaryKeys {
		if err := f.field(k.ColumnName, k.Value); err != nil {
			return err
		}
	}
	for _, c := range r.Columns {
		if err := f.field(c.ColumnName, c.Value); err != nil {
			return err
		}
	}
	for i, field := range f.fields {
		_, _ = f.w.Write(field)
		end := byte('\t')
		if i == len(f.fields)-1 {
			end = '\n'
		}
		if err := f.w.WriteByte(end); err != nil { // which keeps what Write met
			return fmt.Errorf("write output: %w", err)
		}
	}
	return nil
}

func (f *serverText) field(name string, value any) error {
	i := f.place[name]
	dst := f.fields[i][:0]
	switch v := value.(type) {
	case int64:
		dst = strconv.AppendInt(dst, v, 10)
	case float64:
		dst = strconv.AppendFloat(dst, v, 'g', -1, 64)
	case bool:
		switch {
		case f.postgres:
			dst = strconv.AppendBool(dst, v)
		case v:
			dst = append(dst, '1')
		default:
			dst = append(dst, '0')
		}
	case string:
		if f.postgres && slices.Contains([]byte(v), 0) {
			return &CannotHold{fmt.Sprintf("column %q has a text with a zero byte, which PostgreSQL does not take: %.60q; leave the column out", name, v)}
		}
		dst = appendEscaped(dst, v)
	case []byte:
		if f.postgres {
			dst = hex.AppendEncode(append(dst, `\\x`...), v)
		} else {
			dst = appendEscaped(dst, string(v))
		}
	}
	f.fields[i] = dst
	return nil
}

func appendEscaped(dst []byte, text string) []byte {
	for i := range len(text) {
		switch c := text[i]; c {
		case '\\':
			dst = append(dst, `\\`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case 0:
			dst = append(dst, `\0`...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// Flush writes what is kept back.
func (f *serverText) Flush() error { return f.w.Flush() }
