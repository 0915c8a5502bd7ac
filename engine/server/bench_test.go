package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/engine/sim"
)

// recorder keeps the last request's body.
type recorder struct {
	http.RoundTripper
	body []byte
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.body, _ = io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(r.body))
	return r.RoundTripper.RoundTrip(req)
}

// batchBody is a BatchWriteRow of 200 rows with ten columns, as the SDK encodes it.
func batchBody(b testing.TB, s *Server, update bool) []byte { return batchBodyOf(b, s, update, 0) }

// batchBodyOf is one whose rows have the numbers from first on, in an order that is not that of their keys.
func batchBodyOf(b testing.TB, s *Server, update bool, first int) []byte {
	rec := &recorder{RoundTripper: s.Transport()}
	c := sdk("http://localhost", rec)
	req := &tablestore.BatchWriteRowRequest{}
	for i := range 200 {
		k := key(fmt.Sprintf("user-%08d", (first+i)*7919%100000), int64(first+i))
		p := put("t", k)
		u := &tablestore.UpdateRowChange{TableName: "t", PrimaryKey: k}
		u.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
		for j := range 10 {
			name := fmt.Sprintf("column%d", j)
			if j%2 == 0 {
				p.AddColumn(name, "a value of some length")
				u.PutColumn(name, "a value of some length")
			} else {
				p.AddColumn(name, int64(i*j))
				u.PutColumn(name, int64(i*j))
			}
		}
		if update {
			req.AddRowChange(u)
		} else {
			req.AddRowChange(p)
		}
	}
	if _, err := c.BatchWriteRow(req); err != nil {
		b.Fatal(err)
	}
	return rec.body
}

func benchmarkBatch(b *testing.B, s *Server, body []byte) {
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	rt := s.Transport()
	for b.Loop() {
		resp, err := rt.RoundTrip(signed(s, "BatchWriteRow", body))
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200, "ns/row")
}

func BenchmarkBatchPutInMemory(b *testing.B) {
	s := open(b, Options{NoSync: true})
	createTable(b, inProcess(s), "t", 1)
	benchmarkBatch(b, s, batchBody(b, s, false))
}

func BenchmarkBatchUpdateInMemory(b *testing.B) {
	s := open(b, Options{NoSync: true})
	createTable(b, inProcess(s), "t", 1)
	benchmarkBatch(b, s, batchBody(b, s, true))
}

func BenchmarkBatchPutOnDiskSynced(b *testing.B) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	createTable(b, inProcess(s), "t", 1)
	benchmarkBatch(b, s, batchBody(b, s, false))
}

// BenchmarkBatchDecode is the engine without its store: headers, checksums, decoding, checks.
func BenchmarkBatchDecode(b *testing.B) {
	s := open(b, Options{NoSync: true})
	createTable(b, inProcess(s), "t", 1)
	body := batchBody(b, s, false)
	b.ReportAllocs()
	for b.Loop() {
		c, err := s.batchWrite(body)
		if err != nil {
			b.Fatal(err)
		}
		c.release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200, "ns/row")
}

func BenchmarkSimulatedBatchPut(b *testing.B) {
	s := open(b, Options{NoSync: true})
	createTable(b, inProcess(s), "t", 1)
	body := batchBody(b, s, false)
	if err := s.Sim().Simulate("", Simulation{Config: sim.Config{PartitionUnits: 1e9}}); err != nil {
		b.Fatal(err)
	}
	if err := s.Sim().Split(testContext, "t", Cut{Even: 32}); err != nil {
		b.Fatal(err)
	}
	benchmarkBatch(b, s, body)
}
