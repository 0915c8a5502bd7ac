package scan

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Types counts values by their type.
type Types [table.Any + 1]int64

// Columns says of a column what counts its values, nil if it is left out, and whether WritePacked may write it.
type Columns func(name string) (types *Types, may bool)

// Written is what WritePacked has written of a row.
type Written struct {
	Cells int64
	Older int64 // versions that it has left out
}

// packedColumns is what is known of the columns of rows as they came.
type packedColumns struct {
	known  map[string]*packedColumn // by Opens
	first  *packedColumn            // of the row before
	types  []*Types                 // by the place of the field; nil for the key
	values []plainbuffer.Encoded    // of a row
}

// packedColumn is a column whose cells are written as they come.
type packedColumn struct {
	opens string        // the length of the name and the name: what a cell begins with
	place int           // of its field, negative for a column that is left out
	next  *packedColumn // which came after it in the last row that had it
}

// WritePacked is Write for a row as it came. It does nothing and returns false if it cannot be sure that the line would be that of Write and of
// the newest version of each cell: where a column has no place yet, where versions of a cell do not follow each other, and where a text is not UTF-8.
func (f *CSV) WritePacked(row []byte, columns Columns) (w Written, ok bool, err error) {
	p := &f.packed
	for len(p.values) < len(f.columns) {
		p.values, p.types = append(p.values, nil), append(p.types, nil)
	}
	clear(p.values)
	key := plainbuffer.KeyCells(row)
	for i := 0; key.Next(); i++ {
		p.values[i] = key.Encoded()
	}
	var last *packedColumn // that is not left out
	newest := int64(0)
	expected := &p.first
	for c := key.Attributes(); c.Next(); {
		of := *expected
		if of == nil || len(c.Content) < len(of.opens) || string(c.Content[:len(of.opens)]) != of.opens {
			if of = f.find(c.Content[:4+len(c.Name())], columns); of == nil {
				return w, false, nil
			}
			*expected = of
		}
		expected = &of.next
		at := max(c.Timestamp, 0)
		switch {
		case of.place < 0:
			continue
		case of == last:
			w.Older++
			if at <= newest {
				continue
			}
		case p.values[of.place] != nil:
			return w, false, nil
		default:
			w.Cells++
		}
		last, newest, p.values[of.place] = of, at, c.Encoded()
	}
	f.buf = f.buf[:0]
	for i, v := range p.values {
		if i > 0 {
			f.buf = append(f.buf, ',')
		}
		if v == nil {
			continue
		}
		if f.buf, ok = appendEncoded(f.buf, v); !ok {
			return w, false, nil
		}
	}
	if err := f.end(); err != nil {
		return w, true, err
	}
	for i, v := range p.values[f.keys:] {
		if v != nil {
			p.types[f.keys+i][v.Type()]++
		}
	}
	return w, true, nil
}

// find finds a column by what its cells begin with; nil is one that cannot be written here.
func (f *CSV) find(opens []byte, columns Columns) *packedColumn {
	p := &f.packed
	if of := p.known[string(opens)]; of != nil {
		return of
	}
	name := string(opens[4:])
	types, may := columns(name)
	if !may {
		return nil
	}
	of := &packedColumn{opens: string(opens), place: -1}
	if types != nil {
		place, ok := f.place[name]
		if !ok {
			return nil
		}
		of.place, p.types[place] = place, types
	}
	if p.known == nil {
		p.known = map[string]*packedColumn{}
	}
	p.known[of.opens] = of
	return of
}

// appendEncoded is appendField for a value as it came. It returns false for a text that is not UTF-8.
func appendEncoded(dst []byte, v plainbuffer.Encoded) ([]byte, bool) {
	switch v.Type() {
	case table.Integer:
		return strconv.AppendInt(dst, int64(v.Word()), 10), true
	case table.Double:
		return table.AppendDouble(dst, math.Float64frombits(v.Word())), true
	case table.Boolean:
		return strconv.AppendBool(dst, v.True()), true
	case table.String, table.Binary:
	default:
		return dst, false
	}
	b := v.Bytes()
	if len(b) == 0 {
		return append(dst, '"', '"'), true
	}
	if v.Type() == table.Binary {
		return base64.StdEncoding.AppendEncode(dst, b), true
	}
	quotes, ascii := lookThrough(b)
	switch {
	case !ascii && !utf8.Valid(b):
		return dst, false
	case !quotes:
		return append(dst, b...), true
	}
	dst = append(dst, '"')
	for _, c := range b {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"'), true
}

// PackedPage is a page of rows as bytes, and the memory for it. Its zero value is ready.
type PackedPage struct {
	client.PageMemory
	edges [2]client.PageMemory // of the first row, and the last
}

// check is checkPage. The order of the rows is that of their ordering keys, so the first and the last stand for all in a range.
func (p *PackedPage) check(c *tablestore.RangeRowQueryCriteria, page *tablestore.GetRangeResponse) error {
	for i := 1; i < p.Len(); i++ {
		if bytes.Compare(p.Key(i-1), p.Key(i)) >= 0 {
			return errOutside
		}
	}
	var ends []*tablestore.Row
	for i := range min(p.Len(), 2) { // the first and the last, or the only one
		r, err := p.edges[i].Unpack(p.Row(i * (p.Len() - 1)))
		if err != nil {
			return fmt.Errorf("unreadable answer: %w", err)
		}
		ends = append(ends, r)
	}
	return checkPage(c, &tablestore.GetRangeResponse{Rows: ends, NextStartPrimaryKey: page.NextStartPrimaryKey})
}
