//go:build unix

package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

// servedStore asks the test binary to be a server: of the folder it names, or of memory when it is "memory".
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

// BenchmarkServedBatchPut is a load into a server that is a process of its own: 1,000 requests of 200 rows of ten columns, each row once
// and in no order, from four clients. It alternates between memory and a folder with syncs, and reports the rates of both, the processor
// time of the server's process and the ratios of memory to the folder.
func BenchmarkServedBatchPut(b *testing.B) {
	encoder := open(b, Options{NoSync: true})
	createTable(b, inProcess(encoder), "t", 1)
	bodies := make([][]byte, 1000)
	for n := range bodies {
		bodies[n] = batchBody(b, encoder, 200*n)
	}
	rows := float64(200*len(bodies)) * float64(b.N)
	var took, used [2]time.Duration // of memory, of the folder
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

// servedLoad sends the bodies to a new server and returns how long that took and the processor time of the server's process.
func servedLoad(b *testing.B, encoder *Server, store string, bodies [][]byte) (took, used time.Duration) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), servedStore+"="+store)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(b, err)
	stdout, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	url, err := bufio.NewReader(stdout).ReadString('\n')
	must(b, err)
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
