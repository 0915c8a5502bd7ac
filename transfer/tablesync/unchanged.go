package tablesync

import (
	"slices"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/transfer/verify"
)

// was makes conditions of the service from former rows of the table: each column that existed has the value that was
// compared, and each new column does not exist. The condition of an update names only the columns that it writes.
type was struct {
	nothing []byte // a value that no column has
}

const (
	mostParts     = 32       // maximum number of parts of a condition, including operators
	mostCondition = 64 << 10 // maximum size of a condition, in bytes
)

// cell returns the condition for a row, or nil if no row may exist. ok is false if the service cannot check it.
func (w *was) cell(c *verify.Change, row *plainbuffer.Decoded) (cell *record.Cell, ok bool) {
	if c.Stored == nil {
		return nil, true
	}
	var parts []tablestore.ColumnFilter
	compare := func(column string, v any, absent bool) {
		part := tablestore.NewSingleColumnCondition(column, tablestore.CT_EQUAL, v)
		part.FilterIfMissing, part.LatestVersionOnly = !absent, true
		parts = append(parts, part)
	}
	newest := map[string]*tablestore.AttributeColumn{}
	var columns []string
	for _, s := range c.Stored.Columns {
		switch n := newest[s.ColumnName]; {
		case n == nil:
			columns = append(columns, s.ColumnName)
			newest[s.ColumnName] = s
		case s.Timestamp > n.Timestamp:
			newest[s.ColumnName] = s
		}
	}
	for _, name := range columns {
		if c.Differs == nil || c.Differs([]byte(name)) {
			compare(name, newest[name].Value, false)
		}
	}
	for i := range row.Cells {
		if name := row.Cells[i].Name; newest[name] == nil && !slices.Contains(columns, name) {
			columns = append(columns, name)
			compare(name, w.nothing, true)
		}
	}
	cell = &record.Cell{Name: []byte(table.UnchangedColumn), Datum: record.Datum{Kind: record.Binary}, At: -1}
	switch n := len(parts); {
	case n == 1:
		cell.Datum.Bytes = parts[0].Serialize()
	case n > 1:
		all := tablestore.NewCompositeColumnCondition(tablestore.LO_AND)
		for _, p := range parts {
			all.AddFilter(p)
		}
		cell.Datum.Bytes = all.Serialize()
	}
	return cell, len(parts) < mostParts && len(cell.Datum.Bytes) <= mostCondition
}

// checkConditions returns an error, before the first row is written, if rows need a condition that is not possible.
func (r *run) checkConditions(c *changes) error {
	if n := c.total.unconditional; n > 0 {
		return plan.Usagef("--if-unchanged: %d of the rows to put would need a condition with more than %d columns, with "+
			"values of more than %d KiB, or for several updates, which the service does not accept; --mode update compares "+
			"only the columns that it writes; nothing was written",
			n, mostParts-1, mostCondition>>10)
	}
	return nil
}
