package parquet

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

type output struct {
	index int
	flat  *column
	tree  *nested
}

// Parser reads splits of a File, one at a time. If the splits are consecutive, it opens no page twice.
type Parser struct {
	file    *File
	columns []*column
	outputs []output
	rec     record.Record
	group   int   // the row group that columns are in, or -1
	row     int64 // index of the next row in that group
	at      *column
	calling bool

	source.Memory // memory of pages and dictionaries
}

// NewParser returns a Parser for the columns with these indexes in Columns. Other columns are Null and are not read.
func (f *File) NewParser(columns []int) *Parser {
	p := &Parser{file: f, group: -1, Memory: source.Memory{What: "pages"}}
	p.rec.Fields = make([]record.Datum, len(f.names))
	byLeaf := make([]*column, len(f.leaves))
	for _, i := range slices.Compact(slices.Sorted(slices.Values(columns))) {
		n := f.roots[i]
		own := p.open(n, byLeaf, nil)
		o := output{index: i}
		if n.leaf != nil && n.rep == 0 {
			o.flat = own[0]
		} else {
			o.tree = &nested{root: n, columns: byLeaf, own: own}
		}
		p.outputs = append(p.outputs, o)
	}
	return p
}

func (p *Parser) open(n *node, byLeaf []*column, own []*column) []*column {
	if n.leaf != nil {
		if byLeaf[n.leaf.index] == nil {
			byLeaf[n.leaf.index] = newColumn(n.leaf, p)
			p.columns = append(p.columns, byLeaf[n.leaf.index])
		}
		return append(own, byLeaf[n.leaf.index])
	}
	for _, f := range n.fields {
		own = p.open(f, byLeaf, own)
	}
	return own
}

// Parse calls each for every row of a split and stops at its first error. It delivers exactly s.Rows records or fails.
func (p *Parser) Parse(s Split, each func(*record.Record) error) (err error) {
	defer func() {
		if p.calling { // each panicked, which is the caller's concern
			return
		}
		switch x := recover().(type) {
		case nil:
		case failure:
			err = p.where(s, x.error)
		default:
			err = fmt.Errorf("damaged page: %v", x)
			if p.at != nil {
				err = fmt.Errorf("column %s: %w", p.at.leaf.path, err)
			}
			err = p.where(s, err)
		}
		if err != nil {
			p.Release()
		}
	}()
	p.at = nil
	p.seek(s)
	for range s.Rows {
		p.rec.Bad = nil
		p.read()
		p.calling = true
		err := each(&p.rec)
		p.calling = false
		if err != nil {
			return err
		}
	}
	p.row += s.Rows
	if p.row == p.file.footer.groups[s.Group].rows {
		for _, c := range p.columns {
			c.check(c.done())
		}
	}
	return nil
}

func (p *Parser) where(s Split, err error) error {
	return fmt.Errorf("read %s: row group %d: %w", p.file.name, s.Group, err)
}

// seek moves all columns to the first row of the split.
func (p *Parser) seek(s Split) {
	g := &p.file.footer.groups[s.Group]
	if p.group != s.Group || p.row > s.First {
		p.group = -1
		for _, c := range p.columns {
			c.check(c.open(p.file.r, &g.columns[c.leaf.index], p.file.footer.start))
		}
		p.row = 0
	}
	for _, c := range p.columns {
		p.at = c
		c.skip(s.First - p.row)
	}
	p.group, p.row = s.Group, s.First
}

// read reads one record. After a bad value it continues, because all columns must move past the row.
func (p *Parser) read() {
	for i := range p.outputs {
		o := &p.outputs[i]
		d := &p.rec.Fields[o.index]
		var bad *table.Reason
		if c := o.flat; c != nil {
			if p.at = c; c.at == c.have {
				c.need(errShortColumn)
			}
			if k := c.next(); k < 0 {
				*d = record.Datum{}
			} else {
				bad = c.datum(d, k)
			}
		} else {
			p.at = nil
			bad = o.tree.datum(d)
		}
		p.rec.Bad = cmp.Or(p.rec.Bad, bad)
	}
}

// Release frees the memory kept between splits. The next split will be read from the start of its row group.
func (p *Parser) Release() {
	for _, c := range p.columns {
		c.release()
	}
	clear(p.rec.Fields) // they point into pages
	p.group = -1
}

// readAhead returns the number of bytes to read of a column at once. It is small if many columns share little memory.
func (p *Parser) readAhead() int {
	if p.Limit == 0 {
		return readAhead
	}
	return int(min(max(p.Limit/4/int64(len(p.columns)), 4<<10), readAhead))
}

// Close frees the Parser's memory. The File remains open.
func (p *Parser) Close() error {
	p.columns, p.outputs, p.group, p.Held = nil, nil, -1, 0
	return nil
}
