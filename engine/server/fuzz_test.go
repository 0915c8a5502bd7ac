package server

import (
	"net/http"
	"slices"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

func FuzzHandler(f *testing.F) {
	s := open(f, Options{NoSync: true})
	rec := &recorder{RoundTripper: s.Transport()}
	c := sdk("http://engine", rec)
	var bodies [][]byte
	keep := func() { bodies = append(bodies, rec.body) }
	createTable(f, c, "t", 1)
	keep()
	c.BatchWriteRow(batchOf(2))
	keep()
	get(f, c, "t", key("k", 1))
	keep()
	scan(f, c, "t", tablestore.FORWARD, 3)
	keep()
	conditional := put("t", key("k", 1), "c", int64(1))
	conditional.SetColumnCondition(tablestore.NewSingleColumnCondition("c", tablestore.CT_LESS_EQUAL, int64(1)))
	c.PutRow(&tablestore.PutRowRequest{PutRowChange: conditional})
	keep()
	c.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{TableName: "t", PrimaryKey: key("k", 1), MaxVersion: 1,
		Filter: &tablestore.PaginationFilter{Offset: 0, Limit: 1}}})
	keep()
	var ops []string
	for name := range operations {
		if name != "DeleteTable" { // or the other operations would soon have nothing to work on
			ops = append(ops, name)
		}
	}
	slices.Sort(ops)
	for i := range ops {
		for _, b := range bodies {
			f.Add(uint8(i), b)
		}
	}
	f.Fuzz(func(t *testing.T, op uint8, body []byte) {
		name := ops[int(op)%len(ops)]
		if a := raw(s, name, body, nil); a.status >= http.StatusInternalServerError {
			t.Errorf("%s: %d %q", name, a.status, a.body)
		}
	})
}
