package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"

	"example.com/tsimport/reader/record"
)

// Options are options for a file. The zero value means defaults.
type Options struct {
	Flatten   bool  // structs become columns a.b.c instead of JSON text; lists and maps remain JSON
	SplitRows int64 // maximum number of rows in a split; 0 means 65,536
	MaxFooter int64 // maximum size of the footer in bytes; 0 means the size of the file
}

// Split is a range of rows of the row group Group. Splits are in row order.
type Split = record.Rows

// File is an open Parquet file. Any number of Parsers may read it concurrently.
type File struct {
	name   string
	r      io.ReaderAt
	footer *footer
	leaves []*leaf
	roots  []*node // by column: its node
	names  []string
	splits []Split
	rows   int64
}

// Open reads the footer of r, which has size bytes, and checks everything but the pages. Errors include name.
func Open(r io.ReaderAt, size int64, name string, o Options) (f *File, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("open %s: damaged file: %v", name, p)
		}
	}()
	f = &File{name: name, r: r}
	if f.footer, err = readFooter(r, size, o.MaxFooter); err == nil {
		err = f.prepare(o)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return f, nil
}

func (f *File) prepare(o Options) error {
	root, leaves, err := buildTree(f.footer.schema)
	if err != nil {
		return err
	}
	f.leaves = leaves
	for _, l := range leaves {
		l.settleCalendar(f.footer)
	}
	f.collect(root, "", o.Flatten)
	for i := range f.footer.groups {
		g := &f.footer.groups[i]
		if err := f.checkGroup(g); err != nil {
			return fmt.Errorf("row group %d: %w", i, err)
		}
		whole := Split{Group: i, Rows: g.rows, FirstRow: f.rows, Bytes: g.bytes}
		for _, s := range whole.Cut(o.SplitRows, min(g.bytes, f.footer.start)) {
			s.Number = len(f.splits)
			f.splits = append(f.splits, s)
		}
		f.rows += g.rows
	}
	// Streaming writers leave the total at 0. If any other total is not the sum, rows are missing.
	if f.footer.rows != f.rows && f.footer.rows != 0 {
		return fmt.Errorf("footer says %d rows, but its row groups have %d", f.footer.rows, f.rows)
	}
	return nil
}

// collect lists the columns: the schema's fields or, if flatten is set, the fields of its structs.
func (f *File) collect(n *node, prefix string, flatten bool) {
	for _, field := range n.fields {
		name := prefix + field.element.name
		group := field.leaf == nil && field.element.repetition != repeated && field.shape == shapeStruct && field.first != nil
		if flatten && group && field.element.ann == annNone && field.element.converted < 0 {
			f.collect(field, name+".", true)
			continue
		}
		f.roots = append(f.roots, field)
		f.names = append(f.names, name)
	}
}

func (f *File) checkGroup(g *rowGroup) error {
	if g.rows < 0 || g.rows > math.MaxInt64-f.rows {
		return fmt.Errorf("impossible number of rows: %d", g.rows)
	}
	if len(g.columns) != len(f.leaves) {
		return fmt.Errorf("%d columns, but the schema has %d", len(g.columns), len(f.leaves))
	}
	if g.rows == 0 {
		return nil // the columns of an empty row group may be anywhere
	}
	for i, l := range f.leaves {
		if err := f.checkChunk(&g.columns[i], l, g.rows); err != nil {
			return fmt.Errorf("column %s: %w", l.path, err)
		}
	}
	return nil
}

func (f *File) checkChunk(m *chunkMeta, l *leaf, rows int64) error {
	switch {
	case m.external:
		return errors.New("values are in another file, which is not supported")
	case m.physical != l.physical:
		return fmt.Errorf("values are %s, but the schema says %s", m.physical, l.physical)
	case m.values < rows || l.maxRep == 0 && m.values != rows:
		return fmt.Errorf("%d entries, but the row group has %d rows", m.values, rows)
	case m.data < 0 || m.data >= f.footer.start || m.bytes < 0 || m.bytes > f.footer.start:
		return fmt.Errorf("%d bytes at offset %d are not in the file", m.bytes, m.data)
	case m.dict < 0 || m.dict >= f.footer.start:
		return fmt.Errorf("dictionary at offset %d is not in the file", m.dict)
	}
	return nil
}

// mostLooked is the number of chunks that LargePages and CheckMemory examine.
const mostLooked = 16

// LargePages reports whether a column's first data page is larger than most bytes, so that reading its rows is slow.
func (f *File) LargePages(most int64) bool {
	looked := 0
	for i := range f.footer.groups {
		g := &f.footer.groups[i]
		for k := range g.columns {
			m := &g.columns[k]
			if max(m.bytes, m.unpacked) <= most {
				continue
			}
			if looked++; looked > mostLooked {
				return false
			}
			if h := f.pageAt(f.r, m, m.data); h != nil && int64(h.size) > most {
				return true
			}
		}
	}
	return false
}

// CheckMemory returns the ErrMemory of a Parser limited to limit bytes if the first pages of a row group need more. It
// examines the first row group or, if whole is set, all. Through the reader that open returns, it reads page headers of
// chunks that are large according to the footer. If it returns nil, the columns may still not fit.
func (f *File) CheckMemory(columns []int, limit int64, whole bool, open func() (io.ReaderAt, error)) (err error) {
	var r io.ReaderAt
	p, looked := f.NewParser(columns), 0
	chunks := p.columns
	p.LimitMemory(limit)
	for i := range f.footer.groups {
		g := &f.footer.groups[i]
		if i > 0 && !whole {
			break
		}
		var all, needs int64
		for _, c := range chunks {
			all += g.columns[c.leaf.index].most()
		}
		if g.rows == 0 || all <= limit {
			continue
		}
		for _, c := range chunks {
			m := &g.columns[c.leaf.index]
			if m.most() <= limit/int64(len(chunks)) {
				continue
			}
			if looked == 0 {
				if r, err = open(); err != nil {
					return err
				}
			}
			if looked++; looked > mostLooked {
				return nil
			}
			needs += f.firstPages(r, m)
		}
		if needs > limit {
			return fmt.Errorf("read %s: row group %d: %w", f.name, i, p.Exceeded(needs))
		}
	}
	return nil
}

// most returns an upper limit of the memory for a chunk's pages, according to the footer.
func (m *chunkMeta) most() int64 { return m.bytes + max(m.bytes, m.unpacked) }

// firstPages returns the memory that a Parser needs at least for the dictionary and the first page of a chunk.
func (f *File) firstPages(r io.ReaderAt, m *chunkMeta) (n int64) {
	stored := int64(0)
	for _, at := range [...]int64{m.dict, m.data} {
		if at == 0 {
			continue
		}
		if h := f.pageAt(r, m, at); h != nil && h.values > 0 {
			n += h.needs(m.codec)
			stored = max(stored, int64(h.stored))
		}
	}
	return n + stored
}

// pageAt reads the header of a page. It returns nil if it cannot read it.
func (f *File) pageAt(r io.ReaderAt, m *chunkMeta, at int64) *pageHeader {
	w := &window{r: r, off: at, end: min(f.footer.start, at+m.bytes+100), want: headerBytes, owner: &Parser{}}
	h, err := readHeader(w)
	if err != nil {
		return nil
	}
	return h
}

// Columns returns the column names in schema order. Names may repeat.
func (f *File) Columns() []string { return f.names }

// ArrowSchema returns the Arrow schema with which the file was written, in base64, or "" if it has none.
func (f *File) ArrowSchema() string { return f.footer.arrow }

// Measures returns the kind, unit, scale and zone of each column and of the parts of nested ones, from the schema.
func (f *File) Measures() []record.Measures {
	all := make([]record.Measures, len(f.roots))
	for i, n := range f.roots {
		all[i] = record.Measures{}
		n.measure(all[i], "")
	}
	return all
}

func (n *node) measure(all record.Measures, path string) {
	if n.element.repetition == repeated || n.shape == shapeList && n.item.element.repetition != repeated {
		path += record.Elements
	}
	switch l := n.leaf; {
	case l == nil && n.shape == shapeList:
		n.item.measure(all, path)
	case l == nil && n.shape == shapeMap:
		n.item.fields[0].measure(all, path+record.Keys)
		for _, value := range n.item.fields[1:] {
			value.measure(all, path+record.Elements)
		}
	case l == nil:
		for _, f := range n.fields {
			f.measure(all, path+"."+f.element.name)
		}
	case l.ann == annNull: // the column has no values
	case l.physical == physInt96:
		all[path] = record.Datum{Kind: record.Timestamp, Unit: record.Nanos, Local: true}
	default:
		all[path] = record.Datum{Kind: l.kind, Unit: l.unit, Local: l.local, Scale: l.scale}
	}
}

// Rows returns the total number of rows in all row groups, according to the footer.
func (f *File) Rows() int64 { return f.rows }

// Splits returns the splits in row order.
func (f *File) Splits() []Split { return f.splits }
