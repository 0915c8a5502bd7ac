//go:build unix

package server

import (
	"bytes"
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
	must(b, err)
	target.Header = r.Header
	resp, err := client.Do(target)
	must(b, err)
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp.StatusCode, err)
	}
}

// processorTime is what the process has used, in nanoseconds.
func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
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
			s := reopen(b, dir, o)
			defer s.Close()
			createTable(b, inProcess(s), "t", 1)
			loopback(b, s, "BatchWriteRow", batchBody(b, s, 0), 200)
		})
	}
}

// BenchmarkLoopbackGetRange reads pages of 5,000 rows of ten columns.
func BenchmarkLoopbackGetRange(b *testing.B) {
	s := reopen(b, b.TempDir(), Options{NoSync: true})
	defer s.Close()
	c := inProcess(s)
	createTable(b, c, "t", 1)
	const rows = 5000
	for from := 0; from < rows; from += 200 {
		batchBody(b, s, from)
	}
	tap := &taps{s.Transport(), map[string][][]byte{}}
	if n := len(scan(b, sdk("http://localhost", tap), "t", tablestore.FORWARD, 0)); n != rows {
		b.Fatal(n)
	}
	loopback(b, s, "GetRange", tap.bodies["GetRange"][0], rows)
}
