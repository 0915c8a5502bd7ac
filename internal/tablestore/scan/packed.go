package scan

import (
	"bytes"
	"fmt"
	"math"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/plainbuffer"
)

// PackedPage is a page of rows as bytes, and the memory for it. Its zero value is ready.
type PackedPage struct {
	memory client.PageMemory
	edges  [2]client.PageMemory // of the first row, and the last
	keys   []byte               // ordering keys
	ends   []int                // of each of them
	// How many columns the keys of rows have: all the same, but in a broken answer.
	least, most int
}

// Len is how many rows there are.
func (p *PackedPage) Len() int { return p.memory.Packed.Len() }

// Bytes is about how much memory the rows take.
func (p *PackedPage) Bytes() int { return p.memory.Packed.Bytes() + len(p.keys) }

// Row returns the bytes of a row.
func (p *PackedPage) Row(i int) []byte { return p.memory.Packed.Row(i) }

// Key returns the ordering key of a row.
func (p *PackedPage) Key(i int) []byte {
	if i == 0 {
		return p.keys[:p.ends[0]]
	}
	return p.keys[p.ends[i-1]:p.ends[i]]
}

// check is checkPage. The order of the rows is that of their ordering keys, so the first and the last stand for all in a range.
func (p *PackedPage) check(c *tablestore.RangeRowQueryCriteria, page *tablestore.GetRangeResponse) error {
	p.keys, p.ends, p.least, p.most = p.keys[:0], p.ends[:0], math.MaxInt, 0
	begun := 0 // of the key before
	for i := range p.Len() {
		from := len(p.keys)
		var columns int
		p.keys, columns, _ = plainbuffer.CutKey(p.keys, p.Row(i))
		if i > 0 && bytes.Compare(p.keys[from:], p.keys[begun:from]) <= 0 {
			return errOutside
		}
		begun = from
		p.ends, p.least, p.most = append(p.ends, len(p.keys)), min(p.least, columns), max(p.most, columns)
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
