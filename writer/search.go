package writer

import (
	"slices"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// firstPage is the number of rows in a search's first page. It is small, as the row is usually its key's newest or
// missing.
const firstPage = 8

// maxPage limits the rows of an answer.
const maxPage = 5000

// clockSpread is the largest difference between the clocks of the service's machines. The load's beginning is by the
// clock of one of them, the cells' timestamps are by the clocks of others.
const clockSpread = 10_000 // milliseconds

// marked is a row with a mark, found by a search.
type marked struct {
	mark   string
	number int64
	stamp  int64 // timestamp of the mark, in milliseconds of the service's clock
	key    *tablestore.PrimaryKey
}

// search calls each with the marked rows of an ordering key whose numbers are at least from, newest first, until each
// returns false. The first page has limit rows; pages grow.
func (n *AutoIncrement) search(key []plainbuffer.Cell, from int64, limit int32, each func(marked) (more bool)) error {
	c := n.criteria(tablestore.BACKWARD)
	for i, k := range key {
		switch {
		case i < n.Column:
			c.StartPrimaryKey.AddPrimaryKeyColumn(k.Name, client.SDKValue(k.Value))
			c.EndPrimaryKey.AddPrimaryKeyColumn(k.Name, client.SDKValue(k.Value))
		case i == n.Column && from > 0:
			// The end is not part of the range.
			c.StartPrimaryKey.AddPrimaryKeyColumnWithMaxValue(k.Name)
			c.EndPrimaryKey.AddPrimaryKeyColumn(k.Name, from-1)
		case from > 0:
			c.StartPrimaryKey.AddPrimaryKeyColumnWithMaxValue(k.Name)
			c.EndPrimaryKey.AddPrimaryKeyColumnWithMaxValue(k.Name)
		default:
			c.StartPrimaryKey.AddPrimaryKeyColumnWithMaxValue(k.Name)
			c.EndPrimaryKey.AddPrimaryKeyColumnWithMinValue(k.Name)
		}
	}
	for ; ; limit = min(8*limit, maxPage) {
		c.Limit = limit
		page, err := n.page(c)
		if err != nil {
			return err
		}
		if !n.each(page, each) || !continues(c, page) {
			return nil
		}
	}
}

func (n *AutoIncrement) criteria(d tablestore.Direction) *tablestore.RangeRowQueryCriteria {
	return &tablestore.RangeRowQueryCriteria{
		TableName: n.Table, StartPrimaryKey: new(tablestore.PrimaryKey), EndPrimaryKey: new(tablestore.PrimaryKey),
		Direction: d, MaxVersion: 1, ColumnsToGet: []string{n.Mark},
	}
}

// each calls f with the marked rows of a page, until f returns false, and reports whether it never did.
func (n *AutoIncrement) each(page *tablestore.GetRangeResponse, f func(marked) (more bool)) bool {
	return !slices.ContainsFunc(page.Rows, func(r *tablestore.Row) bool {
		m, ok := n.marked(r)
		return ok && !f(m)
	})
}

// continues cuts the range to what remains after a page, and reports whether anything remains.
func continues(c *tablestore.RangeRowQueryCriteria, page *tablestore.GetRangeResponse) bool {
	c.StartPrimaryKey = page.NextStartPrimaryKey
	return c.StartPrimaryKey != nil && len(c.StartPrimaryKey.PrimaryKeys) > 0
}

// marked decodes a row's mark; ok is false if the row has none.
func (n *AutoIncrement) marked(r *tablestore.Row) (m marked, ok bool) {
	if r.PrimaryKey == nil || n.Column >= len(r.PrimaryKey.PrimaryKeys) {
		return m, false
	}
	m.key = r.PrimaryKey
	m.number, _ = r.PrimaryKey.PrimaryKeys[n.Column].Value.(int64)
	for _, cell := range r.Columns {
		if cell.ColumnName == n.Mark {
			m.stamp = cell.Timestamp
			m.mark, ok = cell.Value.(string)
		}
	}
	return m, ok
}

// older reports whether a row, and so every row of its key with a lower number, was written before the load began.
func (n *AutoIncrement) older(m marked) bool { return n.Begun > 0 && m.stamp < n.Begun-clockSpread }

func (n *AutoIncrement) page(c *tablestore.RangeRowQueryCriteria) (page *tablestore.GetRangeResponse, err error) {
	defer unreadable(&err)
	n.Requests.Add(1)
	return n.searcher.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: c})
}
