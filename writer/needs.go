package writer

import (
	"fmt"
	"math"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// TryReadBack checks that rows can be read back, if that may be needed. Only a missing permission is an error.
func TryReadBack(r Reader, name string, key []table.KeyColumn, mode table.Mode, existence table.Existence) error {
	if existence != table.ExpectNotExist || mode == table.Delete {
		return nil
	}
	return denied("GetRow", name, func() error {
		_, err := r.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{
			TableName: name, PrimaryKey: nobody(key), MaxVersion: 1,
		}})
		return err
	})
}

// Try checks, before the first row is written, that rows can be found and deleted. It deletes a row that cannot exist.
func (n *AutoIncrement) Try(key []table.KeyColumn) error {
	if n == nil || n.Mark == "" {
		return nil
	}
	from := nobody(key)
	to := nobody(key)
	to.PrimaryKeys[n.Column].Value = int64(0) // assigned numbers are above 0
	if err := denied("GetRange", n.Table, func() error {
		_, err := n.page(&tablestore.RangeRowQueryCriteria{
			TableName: n.Table, StartPrimaryKey: from, EndPrimaryKey: to, Direction: tablestore.FORWARD, MaxVersion: 1,
			ColumnsToGet: []string{n.Mark}, Limit: 1,
		})
		return err
	}); err != nil {
		return err
	}
	return denied("DeleteRow", n.Table, func() error { return n.deleteOnce(from) })
}

// Try checks, before the first row is written, that the marks of rows can be read back.
func (c *Increments) Try(name string, key []table.KeyColumn) error {
	if c == nil {
		return nil
	}
	return denied("BatchGetRow", name, func() error {
		q := &tablestore.MultiRowQueryCriteria{TableName: name, ColumnsToGet: []string{c.Mark}, MaxVersion: 1}
		q.AddRow(nobody(key))
		_, err := c.reader.BatchGetRow(&tablestore.BatchGetRowRequest{
			MultiRowQueryCriteria: []*tablestore.MultiRowQueryCriteria{q}})
		return err
	})
}

// nobody returns a key that no row of this load has, and probably no other row.
func nobody(key []table.KeyColumn) *tablestore.PrimaryKey {
	const name = "tsimport: may this be read?"
	pk := new(tablestore.PrimaryKey)
	for _, k := range key {
		switch k.Type {
		case table.Integer:
			pk.AddPrimaryKeyColumn(k.Name, int64(math.MinInt64))
		case table.Binary:
			pk.AddPrimaryKeyColumn(k.Name, []byte(name))
		default:
			pk.AddPrimaryKeyColumn(k.Name, name)
		}
	}
	return pk
}

// denied returns an error if the access key may not perform an operation.
func denied(operation, name string, op func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = nil // an answer that the SDK cannot read is not a denial
		}
	}()
	if err := op(); client.Denied(err) {
		return fmt.Errorf("before the first row is written: %w", client.Needed(operation, name, err))
	}
	return nil
}
