package export

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
)

// serverText writes rows for LOAD DATA (MySQL, MariaDB) and COPY (PostgreSQL): tab-separated, with \N for absent cells.
type serverText struct {
	w        *bufio.Writer
	postgres bool
	columns  []string
	places   scan.Places
	fields   [][]byte // of the current row
}

// Columns returns the output columns of a format without a header, in order.
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
	f := &serverText{w: bufio.NewWriterSize(w, 1<<16), postgres: format == Postgres, fields: make([][]byte, len(columns)),
		columns: columns}
	for i, name := range columns {
		f.places.Set(name, i)
	}
	return f
}

func (f *serverText) Write(r *scan.Fields) error {
	for i := range f.fields {
		f.fields[i] = append(f.fields[i][:0], `\N`...)
	}
	for i, v := range r.Key {
		if err := f.field(i, v.Value()); err != nil {
			return err
		}
	}
	for _, c := range r.Cells {
		if err := f.field(f.places.Of(c.Column), c.Value.Value()); err != nil {
			return err
		}
	}
	for i, field := range f.fields {
		_, _ = f.w.Write(field)
		end := byte('\t')
		if i == len(f.fields)-1 {
			end = '\n'
		}
		if err := f.w.WriteByte(end); err != nil { // reports errors of Write
			return fmt.Errorf("write output: %w", err)
		}
	}
	return nil
}

func (f *serverText) field(i int, v table.Value) error {
	dst := f.fields[i][:0]
	switch {
	case v.Type == table.Integer:
		dst = strconv.AppendInt(dst, v.Int, 10)
	case v.Type == table.Double:
		dst = strconv.AppendFloat(dst, v.Double, 'g', -1, 64)
	case v.Type == table.Boolean && f.postgres:
		dst = strconv.AppendBool(dst, v.Int != 0)
	case v.Type == table.Boolean:
		dst = strconv.AppendInt(dst, v.Int, 10)
	case v.Type == table.Binary && f.postgres:
		dst = hex.AppendEncode(append(dst, `\\x`...), v.Bytes)
	case f.postgres && slices.Contains(v.Bytes, 0):
		return &CannotHold{fmt.Sprintf("column %q has a string with a zero byte, which PostgreSQL does not accept: %.60q; "+
			"leave the column out", f.columns[i], v.Bytes)}
	default:
		dst = appendEscaped(dst, v.Bytes)
	}
	f.fields[i] = dst
	return nil
}

func appendEscaped(dst, text []byte) []byte {
	for _, c := range text {
		switch c {
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

func (f *serverText) Flush() error { return f.w.Flush() }
