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
