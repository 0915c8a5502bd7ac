package tablescan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

type part struct {
	source.Pages
	source.TableRows
	of       *Origin
	ctx      context.Context // ends the reading if cancelled
	name     string
	from, to []table.Value
	one      bool // whether the range is a single key of several

	begin  source.Place
	pager  *scan.Pager // nil before the first Next
	splits int         // number of splits so far
	bytes  int         // size of a split in bytes; 0 means the service's own page size
	row    int         // approximate size of a row in bytes; 0 if unknown
}

// pieceBytes is the approximate memory of a page: a response of up to 4 MB, and its rows packed.
const pieceBytes = 8 << 20

func (p *part) About() source.About {
	key := p.of.cfg.Table.Key
	return p.Keyed(key, source.About{
		Name: p.name, Bytes: -1, Live: true, Pieces: pieceBytes,
		ShowKey:  func(place []byte) string { return showPlace(key, place) },
		GiveBack: func(sp source.Split) { sp.Part.(*page).reuse() },
	})
}

func (p *part) Identity() (source.Identity, error) {
	c := &p.of.cfg
	var s strings.Builder
	for _, k := range c.Table.Key {
		fmt.Fprintf(&s, "%s %v, ", k.Name, k.Type)
	}
	fmt.Fprintf(&s, "created %d", c.Table.Created)
	show := func(name string, key []table.Value) {
		if key != nil {
			fmt.Fprintf(&s, ", %s %s", name, showPlace(c.Table.Key, appendPlace(nil, key)))
		}
	}
	show("from", p.from)
	show("to", p.to)
	if c.FilterText != "" {
		fmt.Fprintf(&s, ", filter %s", c.FilterText)
	}
	if c.Where != nil {
		fmt.Fprintf(&s, ", where %s", c.Where.Source())
	}
	if c.Since > 0 {
		fmt.Fprintf(&s, ", since %d", c.Since)
	}
	if c.Versions > 0 {
		fmt.Fprintf(&s, ", versions %d", c.Versions)
	}
	return source.Identity{Schema: s.String()}, nil
}

// sampleRows is the largest number of rows that a request of Sample reads.
const sampleRows = 200

func (p *part) Sample(budget int, _ []string, each func(*record.Record)) (read int, err error) {
	pager := p.newPager(p.from)
	parser := p.NewParser(nil)
	pg := &page{of: p}
	for read < budget {
		pager.Limit(sampleRows)
		err := pager.NextPacked(p.ctx, &pg.packed)
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		if err != nil {
			return max(read, 1), nil // the load will report the error
		}
		pg.take()
		if err := pg.Prepare(); err != nil {
			return max(read, 1), nil
		}
		if _, _, err := parser.Parse(source.Split{Part: pg}, each); err != nil {
			return max(read, 1), err
		}
		read += pg.size
	}
	return read, nil
}

// SetSplitBytes limits the rows of a page, by the size of earlier rows.
func (p *part) SetSplitBytes(n int) { p.bytes = n }

func (p *part) Seek(to source.Place, _ source.Chain) {
	p.begin, p.pager, p.splits = to, nil, 0
	if to.Record > 0 {
		p.splits = 1
	}
}

func (p *part) Begin() source.Place { return p.begin }

func (p *part) newPager(from []table.Value) *scan.Pager {
	c := &p.of.cfg
	return scan.NewPager(c.Client, c.Table.Name, c.Table.Key, p.of.Options(from, p.to, p.Added))
}

// Next reads the next page that is not empty.
func (p *part) Next() (source.Piece, error) {
	if p.pager == nil {
		from := p.from
		if p.begin.Key != nil {
			var err error
			if from, err = placeValues(p.begin.Key); err != nil {
				return nil, fmt.Errorf("read %s: %w", p.name, err)
			}
		}
		p.pager = p.newPager(from)
	}
	for {
		if err := p.of.same(p.ctx, false); err != nil {
			return nil, err
		}
		if p.bytes > 0 {
			p.pager.Limit(min(max(p.bytes/max(p.row, 64), 1), maxPageRows))
		}
		pg, _ := p.of.pages.Get().(*page)
		if pg == nil {
			pg = new(page)
		}
		pg.of = p
		err := p.pager.NextPacked(p.ctx, &pg.packed)
		if errors.Is(err, io.EOF) {
			if err := p.of.same(p.ctx, !p.one); err != nil {
				return nil, err
			}
			return nil, io.EOF
		}
		if err != nil {
			return nil, p.of.why(p.ctx, err)
		}
		if pg.take(); len(pg.rows) > 0 {
			p.row = pg.size / len(pg.rows)
			return pg, nil
		}
		pg.reuse()
	}
}

// maxPageRows is the service's limit for the rows of a page.
const maxPageRows = 5000

func (p *part) Add(piece source.Piece) ([]source.Split, error) {
	pg := piece.(*page)
	p.of.left.Add(pg.left) // not when sampling, because those rows are read again
	if say := p.of.cfg.OnRows; say != nil {
		say(len(pg.rows))
	}
	if len(pg.rows) == 0 {
		pg.reuse()
		return nil, nil
	}
	number := p.splits
	p.splits++
	return []source.Split{{Number: number, Bytes: int64(pg.size), Part: pg, Key: appendPlace(nil, keyOf(pg.rows[0].row))}},
		nil
}

// keyOf returns a copy of a row's primary key, which remains valid after the page is reused.
func keyOf(row []byte) (key []table.Value) {
	for c := plainbuffer.KeyCells(row); c.Next(); {
		v := c.Value()
		v.Bytes = bytes.Clone(v.Bytes)
		key = append(key, v)
	}
	return key
}

// KeyOf returns the primary key of a row.
func KeyOf(r *scan.Row) (key []table.Value) {
	for _, c := range r.PrimaryKey.PrimaryKeys {
		key = append(key, client.ValueOf(c.Value))
	}
	return key
}

func (p *part) Suspend() error {
	p.Seek(p.begin, source.Chain{})
	return nil
}

// page holds rows as they were when read.
type page struct {
	of     *part
	packed scan.PackedPage
	rows   []judged
	size   int   // approximate size in bytes, as the service counts it
	left   int64 // number of rows that Where has excluded
}

// judged is a row. bad says why it cannot be loaded; nil if it can.
type judged struct {
	row []byte
	bad *table.Reason
}

func (pg *page) take() {
	pg.rows, pg.left = slices.Grow(pg.rows[:0], pg.packed.Len()), 0
	size, looked, all := 0, 0, 0
	for i := range pg.packed.Len() {
		row := pg.packed.Row(i)
		if pg.of.of.cfg.Since > 0 {
			if c := plainbuffer.CellsOf(row); !c.Next() {
				continue
			}
		}
		if len(pg.rows)%sizedRows == 0 {
			size, looked = size+sizeOf(row), looked+len(row)
		}
		pg.rows, all = append(pg.rows, judged{row: row}), all+len(row)
	}
	pg.size = int(float64(all) * float64(size) / float64(max(looked, 1)))
}

// sizedRows is the number of rows of which one is measured. Its ratio of size to encoded bytes is assumed for the others.
const sizedRows = 16

// reuse makes the memory of the page available to later pages.
func (pg *page) reuse() { pg.of.of.pages.Put(pg) }

func sizeOf(row []byte) (n int) {
	c := plainbuffer.KeyCells(row)
	for c.Next() {
		n += len(c.Name()) + 8 + len(c.Value().Bytes)
	}
	for c = c.Attributes(); c.Next(); {
		n += len(c.Name()) + 8 + len(c.Value().Bytes)
	}
	return n
}

// Prepare removes the rows that do not pass Where.
func (pg *page) Prepare() error {
	o := pg.of.of
	if o.cfg.Where == nil {
		return nil
	}
	test := o.cfg.Where.NewTest()
	kept := pg.rows[:0]
	for _, r := range pg.rows {
		passes, why := test.Passes(func(name string) table.Value { return plainbuffer.Newest(r.row, name) })
		if r.bad = why; passes || why != nil {
			kept = append(kept, r)
		}
	}
	pg.left = int64(len(pg.rows) - len(kept))
	pg.rows = kept
	return nil
}

func (pg *page) Bytes() int64 { return int64(pg.packed.Bytes()) }
