package server

import (
	"fmt"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// numberedBody is batchBody with a placeholder in each row, whose keys are those it returns or one alone.
func numberedBody(b testing.TB, s *Server, atomic bool) []byte {
	rec := &recorder{RoundTripper: s.Transport()}
	req := &tablestore.BatchWriteRowRequest{IsAtomic: atomic}
	for i := range 200 {
		p := numbering("user")
		if !atomic {
			p = numbering(fmt.Sprintf("user-%08d", i*7919%100000))
		}
		for j := range 10 {
			p.AddColumn(fmt.Sprintf("column%d", j), "a value of some")
		}
		req.AddRowChange(p)
	}
	if _, err := sdk("http://localhost", rec).BatchWriteRow(req); err != nil {
		b.Fatal(err)
	}
	return rec.body
}

func BenchmarkNumberedBatchPut(b *testing.B) {
	s := open(b, Options{NoSync: true})
	createNumbered(b, s)
	benchmarkBatch(b, s, numberedBody(b, s, false))
}

func BenchmarkAtomicBatchPut(b *testing.B) {
	s := open(b, Options{NoSync: true})
	createNumbered(b, s)
	benchmarkBatch(b, s, numberedBody(b, s, true))
}
