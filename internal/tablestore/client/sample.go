package client

import (
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
)

// samplePatience is how long a sample is tried for. What it says helps, but nothing depends on it: a partition that does not
// serve for longer is waited for when rows are written.
const samplePatience = 2 * time.Second

// CellTypes returns the types that the values of a table's columns have, in the first and the last n rows, and how many rows
// were looked at.
func (a *Admin) CellTypes(name string, key []table.KeyColumn, n int32) (types map[string]map[table.Type]bool, rows int, err error) {
	types = map[string]map[table.Type]bool{}
	for _, direction := range []tablestore.Direction{tablestore.FORWARD, tablestore.BACKWARD} {
		low, high := new(tablestore.PrimaryKey), new(tablestore.PrimaryKey)
		for _, k := range key {
			low.AddPrimaryKeyColumnWithMinValue(k.Name)
			high.AddPrimaryKeyColumnWithMaxValue(k.Name)
		}
		if direction == tablestore.BACKWARD {
			low, high = high, low
		}
		var res *tablestore.GetRangeResponse
		err := a.tryFor(samplePatience, func() (err error) {
			res, err = a.Client.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
				TableName: name, StartPrimaryKey: low, EndPrimaryKey: high, Direction: direction, MaxVersion: 1, Limit: n,
			}})
			return err
		})
		if err != nil {
			return nil, 0, a.wrap("read", name, err)
		}
		for _, row := range res.Rows {
			rows++
			for _, c := range row.Columns {
				if types[c.ColumnName] == nil {
					types[c.ColumnName] = map[table.Type]bool{}
				}
				types[c.ColumnName][ValueOf(c.Value).Type] = true
			}
		}
		if res.NextStartPrimaryKey == nil { // these were all
			break
		}
	}
	return types, rows, nil
}
