package scan

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Growing writes rows as CSV before all columns are known. CSV begins with a list of columns, but a table has none. The
// header has the columns of the first rows. A row with other columns begins a section of lines with more fields. A file
// with one section is CSV; Growth.Rewrite makes CSV of several sections. Output up to a Flush can be continued.
type Growing struct {
	Growth
	w    io.Writer
	keys []string
	csv  *CSV  // nil while rows are held
	base int64 // size of the file before csv's first line

	held  []byte          // rows for the first section
	names map[string]bool // attributes of the held rows
}

// Growth describes a file that Growing wrote.
type Growth struct {
	Order    []string  `json:"order"` // attributes in the order of fields
	Sections []Section `json:"sections"`
}

// Section is a part of the file whose lines have the same columns.
type Section struct {
	At         int64 `json:"at"`         // offset of its start; the first section begins with the header
	Attributes int   `json:"attributes"` // number of attributes in its lines, from the beginning of Order
}

// heldBytes is the size of the rows that determine the first section's columns. Single rows often lack some columns.
const heldBytes = 1 << 20

// NewGrowing makes a Growing that writes a new file to w, or continues the file of size bytes that g describes.
func NewGrowing(w io.Writer, keys []string, g Growth, size int64) *Growing {
	f := &Growing{Growth: g, w: w, keys: keys, base: size, names: map[string]bool{}}
	if len(g.Sections) > 0 {
		f.csv = ContinueCSV(w, keys, g.Order)
	}
	return f
}

// Write writes a row with all of its columns.
func (f *Growing) Write(r *Fields) error {
	if f.csv == nil {
		for _, c := range r.Cells {
			f.names[c.Name] = true
		}
		if f.held = appendRow(f.held, r.Row); len(f.held) < heldBytes {
			return nil
		}
		return f.begin()
	}
	known := len(f.Order)
	for _, c := range r.Cells {
		if f.csv.places.Of(c.Column) < 0 {
			f.csv.add(c.Name)
			f.Order = append(f.Order, c.Name)
		}
	}
	if len(f.Order) > known {
		f.Sections = append(f.Sections, Section{f.base + f.csv.written, len(f.Order)})
	}
	return f.csv.Write(r)
}

func (f *Growing) begin() (err error) {
	f.Order = append(f.Order, slices.Sorted(maps.Keys(f.names))...)
	f.Sections = []Section{{0, len(f.Order)}}
	if f.csv, err = NewCSV(f.w, f.keys, f.Order); err != nil {
		return err
	}
	fields := new(Fields)
	for rest := f.held; len(rest) > 0; {
		n := 4 + binary.LittleEndian.Uint32(rest)
		fields.Read(rest[4:n])
		if err := f.csv.Write(fields); err != nil {
			return err
		}
		rest = rest[n:]
	}
	f.csv.places.known = nil // it was indexed by column numbers of fields
	f.held, f.names = nil, nil
	return nil
}

func (f *Growing) Flush() error {
	if f.csv == nil {
		if len(f.held) == 0 {
			return nil
		}
		if err := f.begin(); err != nil {
			return err
		}
	}
	return f.csv.Flush()
}

// Whole reports whether the file is CSV as it is.
func (g *Growth) Whole() bool { return len(g.Sections) == 1 }

// Rewrite writes the file in as CSV, with the attributes in the order of columns. rows is the number of its rows.
func (g *Growth) Rewrite(w io.Writer, in io.Reader, keys, columns []string, rows int64) error {
	out, err := NewCSV(w, keys, columns)
	if err != nil {
		return err
	}
	from := make([]int, 0, len(keys)+len(columns)) // index of each field in the file
	for i := range keys {
		from = append(from, i)
	}
	for _, c := range columns {
		from = append(from, len(keys)+slices.Index(g.Order, c))
	}
	lines := fieldReader{in: bufio.NewReaderSize(in, 1<<16)}
	section := -1
	for n := int64(0); ; {
		for section+1 < len(g.Sections) && g.Sections[section+1].At <= lines.read {
			if section++; section == 0 {
				if err := lines.next(); err != nil { // the header
					return fmt.Errorf("read back rows whose columns were unknown: %w", err)
				}
			}
		}
		err := lines.next()
		switch {
		case err == io.EOF && n == rows:
			return out.Flush()
		case err != nil:
			return fmt.Errorf("read back rows whose columns were unknown: %w", err)
		}
		if n++; n > rows || section < 0 || len(lines.fields) != len(keys)+g.Sections[section].Attributes {
			return fmt.Errorf("read back rows whose columns were unknown: row %d is damaged", n)
		}
		if err := out.raw(lines.fields, from); err != nil {
			return err
		}
	}
}

// fieldReader reads lines of CSV and splits them into raw fields.
type fieldReader struct {
	in     *bufio.Reader
	read   int64 // number of bytes read
	line   []byte
	fields [][]byte
}

// next reads a line. It returns io.EOF only after the last line.
func (r *fieldReader) next() error {
	r.line = r.line[:0]
	for quotes := 0; ; {
		part, err := r.in.ReadSlice('\n')
		r.line = append(r.line, part...)
		quotes += bytes.Count(part, []byte{'"'})
		if err == nil && quotes%2 == 0 {
			break
		}
		if err == io.EOF && len(r.line) > 0 {
			return io.ErrUnexpectedEOF
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	r.read += int64(len(r.line))
	r.fields = r.fields[:0]
	start, quoted := 0, false
	for i, c := range r.line {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',', c == '\n':
			r.fields = append(r.fields, r.line[start:i])
			start = i + 1
		}
	}
	return nil
}
