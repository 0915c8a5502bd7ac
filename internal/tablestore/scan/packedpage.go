package scan

import (
	"bytes"
	"fmt"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/tablestore/client"
)

// PackedPage is a page of rows as bytes, and the memory for it. Its zero value is ready.
type PackedPage struct {
	client.PageMemory
	edges [2]client.PageMemory // of the first row, and the last
}

// check compares the page with the range that was asked for. The order of the rows is that of their ordering keys, so the first and the last stand for all in a range.
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
