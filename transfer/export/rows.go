package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/tablescan"
)

// rowWriter writes the rows of an export.
type rowWriter struct {
	*exporter
	to     scan.Formatter
	packed packedFormatter   // to, if it takes rows as they came, or nil
	names  scan.Columns      // columns, which would be made for each row
	before func() error      // each row; nil is not called
	done   []byte            // ordering key of the last row that was written before
	memory client.PageMemory // of a row that is made
}

// packedFormatter writes rows as they came, but for those that it cannot be sure of.
type packedFormatter interface {
	scan.Formatter
	WritePacked([]byte, scan.Columns) (scan.Written, bool, error)
}

func newRowWriter(e *exporter, to scan.Formatter, before func() error) *rowWriter {
	w := &rowWriter{exporter: e, to: to, before: before, done: slices.Clone(e.last)} // the range begins with that row
	w.packed, _ = to.(packedFormatter)
	w.names = w.columns
	return w
}

// row writes a row by its ordering key and its bytes.
func (w *rowWriter) row(key, row []byte) (err error) { return w.one(key, row, nil) }

// one writes a row that came as bytes, or was made.
func (w *rowWriter) one(key, row []byte, made *scan.Row) (err error) {
	if w.where != nil {
		if made == nil {
			if made, err = w.memory.Unpack(row); err != nil {
				return err
			}
		}
		if passes, err := w.passes(made); err != nil || !passes {
			w.result.LeftOut++ // with an error, nobody asks any more
			return err
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
	written, err := w.asItCame(row)
	if err == nil && !written {
		if made == nil {
			made, err = w.memory.Unpack(row)
		}
		if err == nil {
			err = w.write(made)
		}
	}
	if err != nil {
		return err
	}
	w.result.Rows++
	w.last = append(w.last[:0], key...)
	if w.Limit > 0 && w.result.Rows >= w.Limit {
		return errEnough
	}
	return nil
}

// asItCame writes a row as it came, unless it must be made.
func (w *rowWriter) asItCame(row []byte) (written bool, err error) {
	if w.packed == nil || row == nil {
		return false, nil
	}
	of, written, err := w.packed.WritePacked(row, w.names)
	if written && err == nil {
		w.seen.cells, w.seen.older = w.seen.cells+of.Cells, w.seen.older+of.Older
	}
	return written, err
}

// columns implements scan.Columns.
func (w *rowWriter) columns(name string) (*scan.Types, bool) {
	if w.wanted != nil && !w.wanted[name] {
		return nil, true
	}
	c := w.seen.named(name)
	return &c.types, c.text
}

// write writes a row that was made.
func (w *rowWriter) write(r *scan.Row) error {
	older, err := w.take(r)
	if err == nil {
		err = w.to.Write(r)
	}
	if err == nil {
		w.seen.count(r, older)
	}
	return err
}

// typed writes rows as lines that say of each value its column, type and timestamp; a load of them gives the same cells.
type typed struct {
	w       *bufio.Writer
	keys    []string
	records *tablescan.Records
	line    []byte
}

// longLine is less than the lines have in which AppendWide leaves something out.
const longLine = table.MaxRowBytes

// Write writes one row.
func (f *typed) Write(r *scan.Row) error {
	rec, err := f.records.Of(r)
	if err != nil {
		return err
	}
	f.line = jsonl.AppendWide(f.line[:0], f.keys, rec)
	if len(f.line) > longLine && !json.Valid(f.line) { // something was left out
		return &CannotHold{fmt.Sprintf("the row with the key %s is longer than a line can be that is loaded again; keep it with --format archive", tablescan.ShowKey(r))}
	}
	_, err = f.w.Write(f.line)
	return err
}

// Flush writes what is held back.
func (f *typed) Flush() error { return f.w.Flush() }
