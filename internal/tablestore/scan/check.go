package scan

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// errOutside says that a page is not the answer to its request: a network that repeats the answer to an earlier one gives
// rows twice, or leaves out what comes between. Nothing else in such an answer is wrong, so that it is asked for again.
var errOutside = errors.New("the answer does not belong to its request: its rows are outside the range, or out of order")

// checkPage compares a page with the range that was asked for.
func checkPage(c *tablestore.RangeRowQueryCriteria, page *tablestore.GetRangeResponse) error {
	var last *tablestore.PrimaryKey
	for _, r := range page.Rows {
		if compare(r.PrimaryKey, c.StartPrimaryKey) < 0 || compare(r.PrimaryKey, c.EndPrimaryKey) >= 0 || last != nil && compare(r.PrimaryKey, last) <= 0 {
			return errOutside
		}
		last = r.PrimaryKey
	}
	if next := page.NextStartPrimaryKey; next != nil && len(next.PrimaryKeys) > 0 {
		if compare(next, c.StartPrimaryKey) < 0 || last != nil && compare(next, last) <= 0 {
			return errOutside
		}
	}
	return nil
}

// compare compares two keys, or bounds, by the columns that both have.
func compare(a, b *tablestore.PrimaryKey) int {
	for i := range min(len(a.PrimaryKeys), len(b.PrimaryKeys)) {
		x, y := a.PrimaryKeys[i], b.PrimaryKeys[i]
		if by := rank(x) - rank(y); by != 0 {
			return by
		}
		if rank(x) != 0 {
			continue
		}
		if by := compareValues(x.Value, y.Value); by != 0 {
			return by
		}
	}
	return 0
}

// compareValues compares two values of a key column as their ordering keys compare, without making these: a scan compares
// each row three times.
func compareValues(x, y any) int {
	switch x := x.(type) {
	case int64:
		if y, ok := y.(int64); ok {
			return cmp.Compare(x, y)
		}
	case string:
		if y, ok := y.(string); ok {
			return cmp.Compare(x, y)
		}
	case []byte:
		if y, ok := y.([]byte); ok {
			return bytes.Compare(x, y)
		}
	}
	return bytes.Compare(table.AppendKey(nil, client.ValueOf(x)), table.AppendKey(nil, client.ValueOf(y)))
}

// rank orders what stands for the least and the greatest value around values.
func rank(c *tablestore.PrimaryKeyColumn) int {
	switch c.PrimaryKeyOption {
	case tablestore.MIN:
		return -1
	case tablestore.MAX:
		return 1
	}
	return 0
}
