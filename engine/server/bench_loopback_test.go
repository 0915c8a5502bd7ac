//go:build unix

package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

func post(b *testing.B, s *Server, client *http.Client, url, op string, body []byte) {
	r := signed(s, op, body)
	target := conformance.Try(http.NewRequest(http.MethodPost, url+"/"+op, bytes.NewReader(body))).Must(b)
	target.Header = r.Header
	resp := conformance.Try(client.Do(target)).Must(b)
	defer resp.Body.Close()
	_, err := io.Copy(io.Discard, resp.Body)
	conformance.MustTrue(b, err == nil && resp.StatusCode == http.StatusOK, "%v %v", resp.StatusCode, err)
}

func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u.Utime.Nano() + u.Stime.Nano()
}

// loopback sends a request, which has rows rows, again and again from one client per processor.
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

// BenchmarkLoopbackBatchPut writes 200 rows of ten columns per request, in memory or in a folder, with or without sync.
func BenchmarkLoopbackBatchPut(b *testing.B) {
	for name, o := range map[string]Options{"sync=always": {}, "sync=none": {NoSync: true},
		"memory": {InMemory: true, NoSync: true}} {
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
	n := len(scan(b, sdk("http://localhost", tap), "t", tablestore.FORWARD, 0))
	conformance.MustTrue(b, n == rows, "%v", n)
	loopback(b, s, "GetRange", tap.bodies["GetRange"][0], rows)
}

// servedStore is the environment variable that makes the test binary serve the folder that it names, or "memory".
const servedStore = "TSIMPORT_BENCHMARK_SERVES"

func TestMain(m *testing.M) {
	if store := os.Getenv(servedStore); store != "" {
		if err := serveUntilStdinEnds(store); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	conformance.Main(m)
}

func serveUntilStdinEnds(store string) error {
	o := Options{}
	if store == "memory" {
		store, o = "", Options{InMemory: true, NoSync: true}
	}
	s, err := Open(store, o)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Printf("http://%s\n", l.Addr())
	return s.ServeListener(ctx, l, Limits{})
}

// BenchmarkServedBatchPut sends a server process 1,000 requests of 200 random rows of ten columns from four clients. It
// alternates between a store in memory and a synced folder, and reports rates, processor time and ratios.
func BenchmarkServedBatchPut(b *testing.B) {
	encoder := open(b, Options{NoSync: true})
	createTable(b, inProcess(encoder), "t", 1)
	bodies := make([][]byte, 1000)
	for n := range bodies {
		bodies[n] = batchBody(b, encoder, 200*n)
	}
	rows := float64(200*len(bodies)) * float64(b.N)
	var took, used [2]time.Duration // with memory, with the folder
	b.ResetTimer()
	for n := range b.N {
		for i := range 2 {
			kind := (n + i) % 2 // A B B A
			store := "memory"
			if kind == 1 {
				store = b.TempDir()
			}
			t, u := servedLoad(b, encoder, store, bodies)
			took[kind] += t
			used[kind] += u
		}
	}
	for kind, name := range []string{"memory", "disk"} {
		b.ReportMetric(rows/took[kind].Seconds(), name+"-rows/s")
		b.ReportMetric(float64(used[kind].Nanoseconds())/rows, name+"-cpu-ns/row")
	}
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "faster")
	b.ReportMetric(used[1].Seconds()/used[0].Seconds(), "less-cpu")
}

// servedLoad sends the bodies to a new server process. It returns the duration and the server's processor time.
func servedLoad(b *testing.B, encoder *Server, store string, bodies [][]byte) (took, used time.Duration) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), servedStore+"="+store)
	cmd.Stderr = os.Stderr
	stdin := conformance.Try(cmd.StdinPipe()).Must(b)
	stdout := conformance.Try(cmd.StdoutPipe()).Must(b)
	must(b, cmd.Start())
	url := conformance.Try(bufio.NewReader(stdout).ReadString('\n')).Must(b)
	url = strings.TrimSpace(url)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	createTable(b, tablestore.NewClient(url, DefaultInstance, DefaultAccessKeyID, DefaultAccessKeySecret), "t", 1)
	client := &http.Client{Transport: transport}
	var next atomic.Int64
	var clients sync.WaitGroup
	start := time.Now()
	for range 4 {
		clients.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(bodies) {
					return
				}
				post(b, encoder, client, url, "BatchWriteRow", bodies[n])
			}
		})
	}
	clients.Wait()
	took = time.Since(start)
	transport.CloseIdleConnections()
	stdin.Close()
	must(b, cmd.Wait())
	return took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
