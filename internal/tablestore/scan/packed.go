package scan

import (
	"bytes"
	"fmt"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// PackedPage is a page of rows as bytes, and the memory for it. Its zero value is ready.
type PackedPage struct {
	memory client.PageMemory
	edges  [2]client.PageMemory // of the first row, and the last
}

// Sums has sums made of rows, as plainbuffer.Hasher.Row makes them. It is called before the page is used.
func (p *PackedPage) Sums(h *plainbuffer.Hasher) { p.memory.Sums(h) }

// Len is how many rows there are.
func (p *PackedPage) Len() int { return p.memory.Packed.Len() }

// Bytes is about how much memory the rows take.
func (p *PackedPage) Bytes() int { return p.memory.Packed.Bytes() }

// Row returns the bytes of a row.
func (p *PackedPage) Row(i int) []byte { return p.memory.Packed.Row(i) }

// Key returns the ordering key of a row.
func (p *PackedPage) Key(i int) []byte { return p.memory.Packed.Key(i) }

// Sum returns the sum of a row, if the page has been told to make it.
func (p *PackedPage) Sum(i int) uint64 { return p.memory.Packed.Sum(i) }

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
