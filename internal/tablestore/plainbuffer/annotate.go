package plainbuffer

import (
	"encoding/binary"
	"errors"

	"example.com/tsimport/internal/table"
)

// The functions below change encoded rows. They continue existing checksums and so need not read names and values.

// AppendWithCell appends a put or updated row with one more cell at the end.
func AppendWithCell(dst, row []byte, n *Name, v table.Value) ([]byte, error) {
	w := walker{rest: row}
	if err := w.begin(); err != nil {
		return dst, err
	}
	for w.next() {
	}
	if w.err != nil {
		return dst, w.err
	}
	r := Row{buf: append(dst, row[:len(row)-len(w.rest)]...), crc: w.crc, data: w.data}
	r.Cell(n, v)
	return r.End(), nil
}

// AppendStamped appends a put or updated row, adding a timestamp to every cell that puts a value and has no timestamp.
func AppendStamped(dst, row []byte, ms int64) ([]byte, error) {
	w := walker{rest: row}
	if err := w.begin(); err != nil {
		return dst, err
	}
	r := Row{buf: append(dst, row[:len(row)-len(w.rest)]...)}
	data := false
	for w.next() {
		if w.data && !data {
			data = true
			r.buf = append(r.buf, tagRowData)
		}
		if !w.data || w.stamped || w.typed || !w.valued {
			r.buf = append(r.buf, w.cell...)
			r.crc = crcByte(r.crc, w.cellCRC)
			continue
		}
		r.buf = append(r.buf, w.cell[:len(w.cell)-2]...)
		r.closeCell(r.timestamp(w.cellCRC, ms))
	}
	if w.err != nil {
		return dst, w.err
	}
	return r.End(), nil
}

// AppendWithout appends a put or updated row without the attributes of the given name.
func AppendWithout(dst, row []byte, name string) ([]byte, error) {
	return appendKept(dst, row, func(w *walker) bool { return w.name() != name })
}

// Since describes what AppendSince left out of a row.
type Since struct {
	Dropped, Left int   // numbers of cells, not counting table.UnchangedColumn
	Newest        int64 // newest timestamp of a cell left out
}

// AppendSince appends a put or updated row without cells with timestamps earlier than before, in Unix milliseconds.
func AppendSince(dst, row []byte, before int64) (s Since, _ []byte, err error) {
	dst, err = appendKept(dst, row, func(w *walker) bool {
		if w.stamped && !w.typed && w.stamp < before {
			s.Dropped, s.Newest = s.Dropped+1, max(s.Newest, w.stamp)
			return false
		}
		if w.name() != table.UnchangedColumn {
			s.Left++
		}
		return true
	})
	return s, dst, err
}

// AppendDelete appends a deletion of row, which must be a put row without attributes.
func AppendDelete(dst, row []byte) []byte {
	w := walker{rest: row}
	if w.begin() == nil {
		for w.next() {
		}
	}
	r := Row{buf: append(dst, row[:len(row)-len(w.rest)]...), crc: w.crc}
	return r.EndDelete()
}

// appendKept appends the row with only the attributes that keep accepts.
func appendKept(dst, row []byte, keep func(*walker) bool) ([]byte, error) {
	w := walker{rest: row}
	if err := w.begin(); err != nil {
		return dst, err
	}
	r := Row{buf: append(dst, row[:len(row)-len(w.rest)]...)}
	data := false
	for w.next() {
		if w.data && !keep(&w) {
			continue
		}
		if w.data && !data {
			data = true
			r.buf = append(r.buf, tagRowData)
		}
		r.buf = append(r.buf, w.cell...)
		r.crc = crcByte(r.crc, w.cellCRC)
	}
	if w.err != nil {
		return dst, w.err
	}
	r.data = data
	return r.End(), nil
}

// StampBytes returns the number of bytes that AppendStamped adds to the row.
func StampBytes(row []byte) (n int) {
	w := walker{rest: row}
	if w.begin() != nil {
		return 0
	}
	for w.next() {
		if w.data && !w.stamped && !w.typed && w.valued {
			n += stampBytes
		}
	}
	return n
}

const stampBytes = 9 // a tag and eight bytes

type walker struct {
	rest []byte // bytes after the current cell
	data bool   // the current cell is an attribute
	crc  byte   // checksum of the cells so far
	err  error

	cell                   []byte // the current cell with its tag and checksum
	cellCRC                byte
	valued, typed, stamped bool
	stamp                  int64
}

var errAnnotate = errors.New("annotate PlainBuffer row: the row is not a put or an update")

func (w *walker) name() string {
	if len(w.cell) < 6 || w.cell[1] != tagCellName {
		return ""
	}
	n := binary.LittleEndian.Uint32(w.cell[2:])
	return string(w.cell[6:][:min(uint64(n), uint64(len(w.cell)-6))])
}

func (w *walker) begin() error {
	if len(w.rest) < 5 || binary.LittleEndian.Uint32(w.rest) != header || w.rest[4] != tagRowPK {
		return errAnnotate
	}
	w.rest = w.rest[5:]
	return nil
}

// next moves to the next cell. It returns false at the end or after an error.
func (w *walker) next() bool {
	if len(w.rest) > 0 && w.rest[0] == tagRowData && !w.data {
		w.data, w.rest = true, w.rest[1:]
	}
	if len(w.rest) == 2 && w.rest[0] == tagRowChecksum {
		return false
	}
	if len(w.rest) == 0 || w.rest[0] != tagCell {
		w.err = errAnnotate
		return false
	}
	w.valued, w.typed, w.stamped = false, false, false
	for at := 1; at+1 < len(w.rest); {
		switch w.rest[at] {
		case tagCellName, tagCellValue:
			w.valued = w.valued || w.rest[at] == tagCellValue
			if at+5 > len(w.rest) {
				at = len(w.rest)
				continue
			}
			n := binary.LittleEndian.Uint32(w.rest[at+1:])
			if uint64(n) > uint64(len(w.rest)) {
				at = len(w.rest)
				continue
			}
			at += 5 + int(n)
		case tagCellType:
			w.typed = true
			at += 2
		case tagCellTimestamp:
			w.stamped = true
			if at+9 <= len(w.rest) {
				w.stamp = int64(binary.LittleEndian.Uint64(w.rest[at+1:]))
			}
			at += 9
		case tagCellChecksum:
			w.cell, w.rest, w.cellCRC = w.rest[:at+2], w.rest[at+2:], w.rest[at+1]
			w.crc = crcByte(w.crc, w.cellCRC)
			return true
		default:
			at = len(w.rest)
		}
	}
	w.err = errAnnotate
	return false
}
