package scan

import (
	"bytes"
	"errors"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// PackedPage is a page of rows as bytes, with reusable memory. Its zero value is ready to use.
type PackedPage struct{ client.PageMemory }

// errOutside means that a page does not belong to its request. If a network repeats the response to an earlier request,
// rows would occur twice or be missing, and nothing else would show it. The page is requested again.
var errOutside = errors.New("the response does not belong to its request: rows are outside the range, or out of order")

// check checks that the rows are in order and within the requested range.
func (p *PackedPage) check(c *tablestore.RangeRowQueryCriteria, page *tablestore.GetRangeResponse) error {
	least, _ := orderingKey(c.StartPrimaryKey)
	end, open := orderingKey(c.EndPrimaryKey)
	for i := range p.Len() {
		key := p.Key(i)
		if order := bytes.Compare(key, least); order < 0 || order == 0 && i > 0 || !open && bytes.Compare(key, end) >= 0 {
			return errOutside
		}
		least = key
	}
	if next := page.NextStartPrimaryKey; next != nil && len(next.PrimaryKeys) > 0 {
		from, _ := orderingKey(next)
		if order := bytes.Compare(from, least); order < 0 || order == 0 && p.Len() > 0 {
			return errOutside
		}
	}
	return nil
}

// orderingKey returns a bound's ordering key up to the first column without a value; open if that is the maximum.
func orderingKey(bound *tablestore.PrimaryKey) (key []byte, open bool) {
	for _, c := range bound.PrimaryKeys {
		if c.PrimaryKeyOption == tablestore.MIN || c.PrimaryKeyOption == tablestore.MAX {
			return key, c.PrimaryKeyOption == tablestore.MAX
		}
		key = table.AppendKey(key, client.ValueOf(c.Value))
	}
	return key, false
}
