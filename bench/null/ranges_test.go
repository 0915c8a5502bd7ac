package null

import (
	"fmt"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
)

// Rows that were added in any order are read in that of their keys, a page at a time, from a bound to a bound.
func TestStoredRowsAreReadInPages(t *testing.T) {
	stored := NewStored([]string{"id", "text", "none"})
	const rows = 2*pageRows + 7
	for i := range int64(rows) {
		id := (i * 7919) % rows
		stored.Add([]table.Value{{Type: table.Integer, Int: id}, {Type: table.String, Bytes: fmt.Append(nil, "row ", id)}, {}})
	}
	stored.Sort()
	_, endpoint := start(t, Options{Rows: stored, AccessKeyID: "id", AccessKeySecret: "secret"})
	c, err := client.New(t.Context(), client.Target{Endpoint: "http://" + endpoint, Instance: "i",
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: "id", AccessKeySecret: "secret"}}, nil)
	must(t, err)
	read := func(from, to any, limit int32) (ids []int64, pages int) {
		criteria := &tablestore.RangeRowQueryCriteria{TableName: "t", StartPrimaryKey: new(tablestore.PrimaryKey), EndPrimaryKey: new(tablestore.PrimaryKey), MaxVersion: 1, Limit: limit}
		if from == nil {
			criteria.StartPrimaryKey.AddPrimaryKeyColumnWithMinValue("id")
		} else {
			criteria.StartPrimaryKey.AddPrimaryKeyColumn("id", from)
		}
		if to == nil {
			criteria.EndPrimaryKey.AddPrimaryKeyColumnWithMaxValue("id")
		} else {
			criteria.EndPrimaryKey.AddPrimaryKeyColumn("id", to)
		}
		for criteria.StartPrimaryKey != nil {
			page, err := client.GetRange(c, criteria, nil)
			must(t, err)
			for _, r := range page.Rows {
				id := r.PrimaryKey.PrimaryKeys[0].Value.(int64)
				if len(r.Columns) != 1 || r.Columns[0].Value != fmt.Sprint("row ", id) {
					t.Fatalf("row %d is %v", id, r.Columns)
				}
				ids = append(ids, id)
			}
			pages++
			criteria.StartPrimaryKey = page.NextStartPrimaryKey
		}
		return ids, pages
	}
	for _, c := range []struct {
		from, to    any
		limit       int32
		first, last int64
		pages       int
	}{{nil, nil, 0, 0, rows - 1, 3}, {int64(10), int64(5000), 0, 10, 4999, 1}, {int64(3), int64(10), 2, 3, 9, 4}} {
		ids, pages := read(c.from, c.to, c.limit)
		if len(ids) != int(c.last-c.first)+1 || ids[0] != c.first || ids[len(ids)-1] != c.last || pages != c.pages {
			t.Errorf("from %v to %v: %d rows in %d pages, want %d to %d in %d", c.from, c.to, len(ids), pages, c.first, c.last, c.pages)
		}
	}
}
