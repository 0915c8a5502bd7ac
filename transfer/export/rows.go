package export

import (
	"bytes"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
)

// rowWriter writes the rows of an export.
type rowWriter struct {
	*exporter
	to     scan.Formatter
	packed packedFormatter // to, if it takes rows as they came, or nil
	names  scan.Columns    // columns, which would be made for each row
	before func() error    // each row; nil is not called
	done   []byte          // ordering key of the last row that was written before
	key    []byte
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

// made writes a row.
func (w *rowWriter) made(r *scan.Row) error {
	if passes, err := w.leave(r); err != nil || !passes {
		return err
	}
	w.key = w.key[:0]
	for _, k := range r.PrimaryKey.PrimaryKeys {
		w.key = table.AppendKey(w.key, client.ValueOf(k.Value))
	}
	if w.done != nil && bytes.Equal(w.key, w.done) {
		return nil
	}
	if err := w.look(); err != nil {
		return err
	}
	return w.written(w.key, w.write(r))
}

// asItCame writes a row as it came.
func (w *rowWriter) asItCame(key, row []byte) error {
	if w.where != nil {
		r, err := w.memory.Unpack(row)
		if err != nil {
			return err
		}
		if passes, err := w.leave(r); err != nil || !passes {
			return err
		}
	}
	if w.done != nil && bytes.Equal(key, w.done) {
		return nil
	}
	if err := w.look(); err != nil {
		return err
	}
	of, ok, err := w.packed.WritePacked(row, w.names)
	if !ok {
		r, err := w.memory.Unpack(row)
		if err == nil {
			err = w.write(r)
		}
		return w.written(key, err)
	}
	if err == nil {
		w.seen.cells, w.seen.older = w.seen.cells+of.Cells, w.seen.older+of.Older
	}
	return w.written(key, err)
}

// columns implements scan.Columns.
func (w *rowWriter) columns(name string) (*scan.Types, bool) {
	if w.wanted != nil && !w.wanted[name] {
		return nil, true
	}
	c := w.seen.named(name)
	return &c.types, c.text
}

// leave reports whether a row passes, and counts it if it does not.
func (w *rowWriter) leave(r *scan.Row) (passes bool, err error) {
	if passes, err = w.passes(r); err != nil || !passes {
		w.result.LeftOut++ // with an error, nobody asks any more
	}
	return passes, err
}

func (w *rowWriter) look() error {
	if w.before == nil {
		return nil
	}
	return w.before()
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

// written counts a row that was written, unless that has failed.
func (w *rowWriter) written(key []byte, err error) error {
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
