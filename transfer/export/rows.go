package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/tablescan"
)

// rowWriter passes the rows of a scan to a formatter and counts the output.
type rowWriter struct {
	*exporter
	to     scan.Formatter
	before func() error // called before each row; may be nil
	done   []byte       // ordering key of the last row that an earlier attempt wrote
}

func newRowWriter(e *exporter, to scan.Formatter, before func() error) *rowWriter {
	return &rowWriter{exporter: e, to: to, before: before, done: slices.Clone(e.last)} // a resumed range repeats this row
}

func (w *rowWriter) row(key, row []byte) error {
	if w.where != nil {
		passes, why := w.where.Passes(func(name string) table.Value { return plainbuffer.Newest(row, name) })
		if why != nil || !passes {
			w.result.LeftOut++ // if there was an error, the count is not used
		}
		if why != nil {
			return fmt.Errorf("evaluate a row: %s", why.Message)
		}
		if !passes {
			return nil
		}
	}
	if w.done != nil && bytes.Equal(key, w.done) {
		return nil
	}
	if w.before != nil {
		if err := w.before(); err != nil {
			return err
		}
	}
	if err := w.write(row); err != nil {
		return err
	}
	w.result.Rows++
	w.last = append(w.last[:0], key...)
	if w.Limit > 0 && w.result.Rows >= w.Limit {
		return errEnough
	}
	return nil
}

func (w *rowWriter) write(row []byte) error {
	f := &w.fields
	f.Read(row)
	for i, v := range f.Key {
		if err := checkText(w.Format, w.keys[i], true, v); err != nil {
			return err
		}
	}
	for _, c := range f.Cells {
		if err := checkText(w.Format, c.Name, c.Text, c.Value); err != nil {
			return err
		}
	}
	if err := w.to.Write(f); err != nil {
		return err
	}
	f.Count()
	w.cells, w.older = w.cells+int64(len(f.Cells)), w.older+f.Older
	return nil
}

// typed writes rows as lines with the column, type and timestamp of each value. Loading the lines restores the cells.
type typed struct {
	w       *bufio.Writer
	keys    []string
	records *tablescan.Records
	line    []byte
}

// longLine is a length that every line shortened by AppendWide exceeds.
const longLine = table.MaxRowBytes

func (f *typed) Write(r *scan.Fields) error {
	rec := f.records.Of(r.Row)
	rec.Cells = slices.DeleteFunc(rec.Cells,
		func(c record.Cell) bool { return r.Wanted != nil && !r.Wanted[string(c.Name)] })
	f.line = jsonl.AppendWide(f.line[:0], f.keys, rec)
	if len(f.line) > longLine && !json.Valid(f.line) { // something was left out
		var key []table.Value
		for _, v := range r.Key {
			key = append(key, v.Value())
		}
		return &CannotHold{fmt.Sprintf("the row with the key %s is too long for a line that can be loaded again; keep it "+
			"with --format archive", scan.KeyText(key))}
	}
	_, err := f.w.Write(f.line)
	return err
}

func (f *typed) Flush() error { return f.w.Flush() }
