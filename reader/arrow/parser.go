package arrow

import (
	"fmt"
	"slices"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Parser parses splits of a File or Stream, one at a time. Splits of the same batch share its decompressed buffers.
type Parser struct {
	layout *layout
	file   *File // nil for a stream
	used   []int
	wanted map[*field]bool
	rec    record.Record
	values []values // one per used column
	load   loader
	group  int  // the record batch in load, or -1
	begun  bool // the callback passed to Parse is running

	source.Memory // all memory except a stream's batches
}

// NewParser returns a Parser for the columns with these indexes in Columns. Other columns are Null and are not read.
func (f *File) NewParser(columns []int) *Parser {
	p := newParser(&f.layout, columns)
	p.file = f
	return p
}

// NewParser is like File.NewParser, for a stream's batches.
func (s *Stream) NewParser(columns []int) *Parser { return newParser(&s.layout, columns) }

func newParser(l *layout, columns []int) *Parser {
	p := &Parser{layout: l, group: -1, wanted: map[*field]bool{},
		used: slices.Compact(slices.Sorted(slices.Values(columns)))}
	p.rec.Fields = make([]record.Datum, len(l.names))
	p.values = make([]values, len(p.used))
	p.Memory = source.Memory{What: "columns", Also: ", or write smaller record batches"}
	for _, i := range p.used {
		path := l.columns[i]
		p.wanted[path[0]] = true
		p.wanted[path[len(path)-1]] = true
	}
	return p
}

// Parse calls each for every row of a split and stops at its first error. It delivers exactly s.Rows records or fails.
func (p *Parser) Parse(s Split, each func(*record.Record) error) error {
	return p.parse(s, each, func() error {
		if p.group == s.Group {
			return nil
		}
		at := p.file.batches[s.Group]
		m, err := p.file.message(at)
		if err != nil {
			return err
		}
		dicts, err := p.file.dictionaries()
		if err != nil {
			return err
		}
		meta, err := readBatch(m.head, m.body, p.layout.schema.version)
		if err != nil {
			return err
		}
		p.open(s.Group, meta, body{r: p.file.r, at: at.at + at.metadata}, dicts)
		return p.readAll(s, m.body)
	})
}

// maxAtOnce is the size in bytes of the largest body that is read at once if all of it is needed.
const maxAtOnce = 8 << 20

// readAll reads a batch's body at once if all of it is needed and memory allows: many reads of a remote file are slow.
func (p *Parser) readAll(s Split, size int64) error {
	if s.Rows != p.load.rows || len(p.used) < len(p.layout.names) || size > maxAtOnce || p.Hold(size) != nil {
		return nil
	}
	data := make([]byte, size)
	if n, err := p.load.body.r.ReadAt(data, p.load.body.at); n < len(data) {
		return unexpected(noEOF(err))
	}
	p.load.body = body{data: data}
	return nil
}

// ParseBatch is like Parse, for a split of a stream's batch.
func (p *Parser) ParseBatch(b *Batch, s Split, each func(*record.Record) error) error {
	return p.parse(s, each, func() error {
		if p.group != s.Group || p.load.batch != b.meta {
			p.open(s.Group, b.meta, body{data: b.body}, b.dicts)
		}
		return nil
	})
}

func (p *Parser) open(group int, meta *batch, b body, dicts map[int64]*dictionary) {
	p.Release()
	p.load = loader{batch: meta, body: b, dicts: dicts, wanted: p.wanted, unpacked: map[int][]byte{}, hold: p.Hold}
	p.group = group
}

func (p *Parser) parse(s Split, each func(*record.Record) error, open func() error) (err error) {
	fail := func(err error) error {
		p.Release()
		return fmt.Errorf("read %s: record batch %d: %w", p.layout.name, s.Group, err)
	}
	defer func() {
		if p.begun { // each panicked, which is the caller's concern
			return
		}
		switch x := recover().(type) {
		case nil:
		case failure:
			err = fail(x.error)
		default:
			err = fail(fmt.Errorf("damaged data: %v", x))
		}
	}()
	if err := open(); err != nil {
		return fail(err)
	}
	columns := p.vectors(s)
	for i := range s.Rows {
		p.rec.Bad = nil
		p.read(columns, i)
		p.begun = true
		err := each(&p.rec)
		p.begun = false
		if err != nil {
			return err
		}
	}
	p.Held = int64(len(p.load.body.data))
	if p.file == nil {
		p.Held = 0 // a stream's memory is not the parser's
	}
	for _, b := range p.load.unpacked { // these stay in memory for the next split
		p.Held += int64(len(b))
	}
	return nil
}

// column holds the vectors of a column: those of its enclosing structs, then its field's.
type column []*vector

func (p *Parser) vectors(s Split) []column {
	l := &p.load
	l.next, l.at = struct{ node, buffer, view int }{}, nil
	roots := map[*field]*vector{}
	for _, f := range p.layout.schema.fields {
		if !p.wanted[f] {
			l.skip(f)
			continue
		}
		if i := 2 * l.next.node; i+2 <= len(l.nodes) && l.nodes[i] != l.rows {
			f.failf("it has %d values, but the batch has %d rows", l.nodes[i], l.rows)
		}
		roots[f] = l.column(f, s.First, s.Rows)
	}
	if 2*l.next.node != len(l.nodes) || 2*l.next.buffer != len(l.buffers) || l.next.view != len(l.views) {
		l.failf("the batch has more fields or buffers than the schema")
	}
	all := make([]column, len(p.used))
	for k, i := range p.used {
		path := p.layout.columns[i]
		v := roots[path[0]]
		all[k] = column{v}
		for _, f := range path[1:] {
			v = v.fields[slices.Index(v.f.fields, f)]
			all[k] = append(all[k], v)
		}
	}
	return all
}

// read reads one record. After a bad value it continues with the next column.
func (p *Parser) read(columns []column, row int64) {
columns:
	for k, c := range columns {
		d := &p.rec.Fields[p.used[k]]
		last := len(c) - 1
		for _, in := range c[:last] {
			if in.null(row) {
				*d = record.Datum{}
				continue columns
			}
		}
		if bad := p.values[k].datum(d, c[last], row); p.rec.Bad == nil {
			p.rec.Bad = bad
		}
	}
}

// Release frees the memory that is kept between splits.
func (p *Parser) Release() { p.load, p.group, p.Held = loader{}, -1, 0 }

// Close frees the Parser's memory. The File remains open.
func (p *Parser) Close() error {
	p.Release()
	return nil
}
