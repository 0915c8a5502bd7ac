//go:build unix

package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// post sends a prepared request over the loopback interface and reads the answer to its end.
func post(b *testing.B, s *Server, client *http.Client, url, op string, body []byte) {
	r := signed(s, op, body)
	target, err := http.NewRequest(http.MethodPost, url+"/"+op, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	target.Header = r.Header
	resp, err := client.Do(target)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp.StatusCode, err)
	}
}

// processorTime is what the process has used, in nanoseconds.
func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// loopback runs requests of so many rows from as many clients as there are processors. The clients' own work, which
// is little as their bodies are ready, is in the processor time.
func loopback(b *testing.B, s *Server, op string, body []byte, rows int) {
	h := httptest.NewServer(s)
	defer h.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	before := processorTime(b)
	b.SetParallelism(2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			post(b, s, client, h.URL, op, body)
		}
	})
	n := float64(b.N) * float64(rows)
	b.ReportMetric(n/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(processorTime(b)-before)/n, "cpu-ns/row")
}

// BenchmarkLoopbackBatchPut is 200 rows of ten columns a request, to a directory with and without syncs, and to memory.
func BenchmarkLoopbackBatchPut(b *testing.B) {
	for name, o := range map[string]Options{"sync=always": {}, "sync=none": {NoSync: true}, "memory": {InMemory: true, NoSync: true}} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			if o.InMemory {
				dir = ""
			}
			s, err := Open(dir, o)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			createTable(b, inProcess(s), "t", 1)
			loopback(b, s, "BatchWriteRow", batchBody(b, s, false), 200)
		})
	}
}

// BenchmarkLoopbackGetRange reads pages of 5,000 rows of ten columns.
func BenchmarkLoopbackGetRange(b *testing.B) {
	s, err := Open(b.TempDir(), Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c := inProcess(s)
	createTable(b, c, "t", 1)
	const rows = 5000
	for from := 0; from < rows; from += 200 {
		q := &tablestore.BatchWriteRowRequest{}
		for i := from; i < from+200; i++ {
			p := put("t", key(fmt.Sprintf("user-%08d", i), int64(i)))
			for j := range 10 {
				p.AddColumn(fmt.Sprintf("column%d", j), "a value of some length")
			}
			q.AddRowChange(p)
		}
		if _, err := c.BatchWriteRow(q); err != nil {
			b.Fatal(err)
		}
	}
	rec := &recorder{RoundTripper: s.Transport()}
	q := &tablestore.RangeRowQueryCriteria{TableName: "t", StartPrimaryKey: &tablestore.PrimaryKey{}, EndPrimaryKey: &tablestore.PrimaryKey{}, MaxVersion: 1}
	for _, name := range []string{"pk1", "pk2"} {
		q.StartPrimaryKey.AddPrimaryKeyColumnWithMinValue(name)
		q.EndPrimaryKey.AddPrimaryKeyColumnWithMaxValue(name)
	}
	page, err := sdk("http://localhost", rec).GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: q})
	if err != nil || len(page.Rows) != rows {
		b.Fatal(err, len(page.Rows))
	}
	loopback(b, s, "GetRange", rec.body, rows)
}
