package writer

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// annotateWhen gives each row its column condition, at every attempt, so that a late attempt overwrites no newer data.
func (w *Writer) annotateWhen(rows []table.Ref) error {
	d := &w.sent
	for _, r := range rows {
		row, err := plainbuffer.Decode(r.Body())
		if err != nil {
			return fmt.Errorf("write to table %s: %w", w.table, err)
		}
		filter := w.options.When.Filter(func(column string) table.Value { return newValue(row, column) }).Serialize()
		d.conds = append(d.conds, tagRowExistence, expectations[w.existence], tagColumnCondition)
		d.conds = binary.AppendUvarint(d.conds, uint64(len(filter)))
		d.conds = append(d.conds, filter...)
		d.condEnds = append(d.condEnds, len(d.conds))
	}
	return nil
}

// newValue returns a row's newest value of a column.
func newValue(row *plainbuffer.Decoded, column string) (v table.Value) {
	for _, k := range row.Key {
		if k.Name == column {
			return k.Value
		}
	}
	at := int64(math.MinInt64)
	for i := range row.Cells {
		if c := &row.Cells[i]; c.Name == column && stampOf(c) > at {
			v, at = c.Value, stampOf(c)
		}
	}
	return v
}

// stampOf returns the timestamp that orders a column's versions. One without gets the time of its write, the latest.
func stampOf(c *plainbuffer.Cell) int64 {
	if !c.Stamped {
		return math.MaxInt64
	}
	return c.Stamp
}

// unmet returns the outcome of a row whose condition is not met, perhaps because an unanswered attempt has written it.
func (w *Writer) unmet(row table.Ref, o table.Outcome, repeated bool) (table.Outcome, error) {
	if !repeated {
		o.Unmet = true
		return o, nil
	}
	return w.readBack(row, o, w.stands, func(o *table.Outcome) { o.Unmet = true })
}

// stands reports whether the stored row has the newest versions of row and, if it is to be put, no other cells.
func (w *Writer) stands(row table.Ref) (stands bool, err error) {
	defer unreadable(&err)
	decoded, err := plainbuffer.Decode(row.Body())
	if err != nil {
		return false, err
	}
	decoded.Cells = slices.DeleteFunc(decoded.Cells,
		func(c plainbuffer.Cell) bool { return c.Name == table.UnchangedColumn })
	stored, err := w.get(decoded, math.MaxInt32)
	if err != nil || len(stored.PrimaryKey.PrimaryKeys) == 0 {
		return false, err
	}
	newest := map[string]*plainbuffer.Cell{}
	for i := range decoded.Cells {
		c := &decoded.Cells[i]
		if n := newest[c.Name]; n == nil || stampOf(c) > stampOf(n) {
			newest[c.Name] = c
		}
	}
	found := map[string]bool{}
	for _, s := range stored.Columns {
		ours := false
		for i := range decoded.Cells {
			c := &decoded.Cells[i]
			if c.Name == s.ColumnName && sameValue(s.Value, c.Value) && (!c.Stamped || c.Stamp == s.Timestamp) {
				ours = true
				found[c.Name] = found[c.Name] || c == newest[c.Name]
			}
		}
		if !ours && w.mode == table.Put {
			return false, nil
		}
		if c := newest[s.ColumnName]; c != nil && c.Value.Type == table.Null {
			return false, nil // the column should have been deleted
		}
	}
	for name, c := range newest {
		if c.Value.Type != table.Null && !found[name] {
			return false, nil
		}
	}
	return true, nil
}

func (w *Writer) get(decoded *plainbuffer.Decoded, versions int32) (*tablestore.GetRowResponse, error) {
	key := new(tablestore.PrimaryKey)
	for _, c := range decoded.Key {
		key.AddPrimaryKeyColumn(c.Name, client.SDKValue(c.Value))
	}
	return w.reader.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{
		TableName: w.table, PrimaryKey: key, MaxVersion: versions,
	}})
}
