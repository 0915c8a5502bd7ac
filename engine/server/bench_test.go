package server

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
)

// batchBody returns the SDK's BatchWriteRow of 200 rows of ten columns, numbered from first and not in key order.
func batchBody(b testing.TB, s *Server, first int) []byte {
	tap := &taps{s.Transport(), map[string][][]byte{}}
	req := &tablestore.BatchWriteRowRequest{}
	for i := range 200 {
		p := put("t", key(fmt.Sprintf("user-%08d", (first+i)*7919%100000), int64(first+i)))
		for j := range 5 {
			p.AddColumn(fmt.Sprintf("column%d", 2*j), "a value of some length")
			p.AddColumn(fmt.Sprintf("column%d", 2*j+1), int64(i*(2*j+1)))
		}
		req.AddRowChange(p)
	}
	must(b, conformance.ErrorOf(sdk("http://localhost", tap).BatchWriteRow(req)))
	return tap.bodies["BatchWriteRow"][0]
}

func benchmarkBatch(b *testing.B, s *Server, prepare func()) {
	createTable(b, inProcess(s), "t", 1)
	body := batchBody(b, s, 0)
	prepare()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	rt := s.Transport()
	for b.Loop() {
		resp, err := rt.RoundTrip(signed(s, "BatchWriteRow", body))
		conformance.MustTrue(b, err == nil && resp.StatusCode == http.StatusOK, "%v %v", resp, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200, "ns/row")
}

func BenchmarkBatchPutInMemory(b *testing.B) {
	benchmarkBatch(b, open(b, Options{NoSync: true}), func() {})
}

func BenchmarkBatchPutOnDiskSynced(b *testing.B) {
	s := reopen(b, b.TempDir(), Options{})
	defer s.Close()
	benchmarkBatch(b, s, func() {})
}

func BenchmarkSimulatedBatchPut(b *testing.B) {
	s := open(b, Options{NoSync: true})
	benchmarkBatch(b, s, func() {
		must(b, s.Sim().Simulate("", Simulation{Config: sim.Config{PartitionUnits: 1e9}}))
		must(b, s.Sim().Split(testContext, "t", Cut{Even: 32}))
	})
}
