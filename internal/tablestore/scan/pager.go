package scan

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// Pager reads a table, or a range of it, in pages in primary-key order. It is not safe for concurrent use.
type Pager struct {
	service  Service
	name     string
	columns  int // number of key columns
	options  Options
	criteria *tablestore.RangeRowQueryCriteria
	ended    bool
}

// NewPager makes a Pager. It ignores Options.Limit; see Limit.
func NewPager(s Service, name string, key []table.KeyColumn, o Options) *Pager {
	o.RetryFor = cmp.Or(o.RetryFor, client.Patience)
	p := &Pager{service: s, name: name, columns: len(key), options: o, criteria: &tablestore.RangeRowQueryCriteria{
		TableName:       name,
		StartPrimaryKey: bound(key, o.From, (*tablestore.PrimaryKey).AddPrimaryKeyColumnWithMinValue),
		EndPrimaryKey:   bound(key, o.To, (*tablestore.PrimaryKey).AddPrimaryKeyColumnWithMaxValue),
		Direction:       tablestore.FORWARD,
		MaxVersion:      int32(max(o.Versions, 1)),
		Filter:          o.Filter,
	}}
	if o.Columns != nil {
		// With a key column in the list, the service also returns rows that have none of the attributes.
		p.criteria.ColumnsToGet = append([]string{key[0].Name}, o.Columns...)
	}
	if o.Since > 0 || o.Until > 0 {
		p.criteria.TimeRange = &tablestore.TimeRange{Start: o.Since, End: cmp.Or(o.Until, table.MaxTimestamp)}
	}
	return p
}

// Limit limits the number of rows of the next pages; 0 leaves it to the service.
func (p *Pager) Limit(rows int) { p.criteria.Limit = int32(rows) }

// Next returns the next page, which may be empty, or io.EOF after the last page.
func (p *Pager) Next(ctx context.Context) ([]*Row, error) {
	page := new(PackedPage)
	if err := p.NextPacked(ctx, page); err != nil {
		return nil, err
	}
	return page.Unpacked()
}

// NextPacked is like Next for callers that use rows as bytes, which are valid until the page is used again.
func (p *Pager) NextPacked(ctx context.Context, to *PackedPage) error {
	if p.ended {
		return io.EOF
	}
	page, err := readPage(ctx, p.service, p.criteria, &p.options, to)
	if err != nil {
		return fmt.Errorf("read table %s: %w", p.name, err)
	}
	if to.Len() > 0 {
		least, most := to.KeyColumns()
		if err := cmp.Or(p.keyOf(least), p.keyOf(most)); err != nil {
			return err
		}
	}
	return p.take(page, to.Len())
}

func (p *Pager) keyOf(columns int) error {
	if columns != p.columns {
		return fmt.Errorf("read table %s: malformed response: a row with %d key columns, not %d", p.name, columns, p.columns)
	}
	return nil
}

// take moves past a page with the given number of rows.
func (p *Pager) take(page *tablestore.GetRangeResponse, rows int) error {
	p.options.charge(page.ConsumedCapacityUnit)
	if limit := int(p.criteria.Limit); limit > 0 && rows > limit {
		return fmt.Errorf("read table %s: malformed response: %d rows, but at most %d were requested", p.name, rows, limit)
	}
	if p.ended = page.NextStartPrimaryKey == nil || len(page.NextStartPrimaryKey.PrimaryKeys) == 0; !p.ended {
		p.criteria.StartPrimaryKey = page.NextStartPrimaryKey
	}
	return nil
}
