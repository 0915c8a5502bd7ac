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

// Growing writes rows as CSV before all columns are known: a table has no list of its columns, and CSV begins with one.
// The file begins with the first rows' columns. A later one begins a section with one more field. A file of one section
// is CSV; of several, Growth.Rewrite makes it. Growing is a Formatter: its output up to a Flush can be continued.
type Growing struct {
	Growth
	w    io.Writer
	keys []string
	csv  *CSV  // nil while rows are held back
	base int64 // bytes of the file before the first that csv writes

	held  []byte          // rows for the first section
	names map[string]bool // attributes of these
}

// Growth describes a file of Growing.
type Growth struct {
	Order    []string  `json:"order"` // of the attributes in its rows
	Sections []Section `json:"sections"`
}

// Section is a part of the file whose rows have the same columns.
type Section struct {
	At         int64 `json:"at"`         // its beginning; the first one's header is there
	Attributes int   `json:"attributes"` // its rows have the first of Order
}

// heldBytes is the bytes of rows from which the first section's columns are taken: rows of a table often lack some.
const heldBytes = 1 << 20

// NewGrowing writes a file to w, or continues one of size bytes.
func NewGrowing(w io.Writer, keys []string, g Growth, size int64) *Growing {
	f := &Growing{Growth: g, w: w, keys: keys, base: size, names: map[string]bool{}}
	if len(g.Sections) > 0 {
		f.csv = ContinueCSV(w, keys, g.Order)
	}
	return f
}

// Write writes a row with all its columns.
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

// begin writes the buffered rows, the first of the file.
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
	f.csv.places.known = nil // its numbers are of these columns
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

// Whole reports whether the file is CSV.
func (g *Growth) Whole() bool { return len(g.Sections) == 1 }

// Rewrite makes CSV of a file in in, with the attributes of Order in another order. The file must have that many rows.
func (g *Growth) Rewrite(w io.Writer, in io.Reader, keys, columns []string, rows int64) error {
	out, err := NewCSV(w, keys, columns)
	if err != nil {
		return err
	}
	from := make([]int, 0, len(keys)+len(columns)) // the place in the file of each field
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
					return fmt.Errorf("read rows whose columns were not known: %w", err)
				}
			}
		}
		err := lines.next()
		switch {
		case err == io.EOF && n == rows:
			return out.Flush()
		case err != nil:
			return fmt.Errorf("read rows whose columns were not known: %w", err)
		}
		if n++; n > rows || section < 0 || len(lines.fields) != len(keys)+g.Sections[section].Attributes {
			return fmt.Errorf("read rows whose columns were not known: row %d is not one that was written", n)
		}
		if err := out.raw(lines.fields, from); err != nil {
			return err
		}
	}
}

// fieldReader reads lines of CSV, and finds their raw fields.
type fieldReader struct {
	in     *bufio.Reader
	read   int64 // bytes
	line   []byte
	fields [][]byte
}

// next reads a line. It returns io.EOF only after the last one.
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
