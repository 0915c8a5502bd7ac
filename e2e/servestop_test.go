package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

// TestSIGTERMLetsARequestInFlightFinish sends the awaited body of a request after the signal has closed the port.
func TestSIGTERMLetsARequestInFlightFinish(t *testing.T) {
	p := startServe(t)
	config := tablestore.NewDefaultTableStoreConfig()
	config.RetryTimes = 0
	config.Transport = &inParts{between: func() {
		must(t, p.Process.Signal(syscall.SIGTERM))
		for { // until the port refuses: the server stops
			c, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
			if err != nil {
				return
			}
			c.Close()
		}
	}}
	client := tablestore.NewClientWithConfig(p.URL, p.Instance, p.AccessKeyID, p.AccessKeySecret, "", config)
	_, err := client.DescribeTable(&tablestore.DescribeTableRequest{TableName: "no_such_table"})
	conformance.Equal(t, codeOf(err), "OTSObjectNotExist", "%v", err)
	p.stopped = true
	conformance.Equal(t, p.wait(), 0, "exit code; stderr:\n%s", p.said.String())
}

// inParts sends the headers, waits until the server asks for the body, and sends it after between.
type inParts struct{ between func() }

func (p *inParts) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Expect", "100-continue")
	r.Body = &lateBody{ReadCloser: r.Body, between: sync.OnceFunc(p.between)}
	return (&http.Transport{ExpectContinueTimeout: processTimeout, DisableKeepAlives: true}).RoundTrip(r)
}

type lateBody struct {
	io.ReadCloser
	between func()
}

func (b *lateBody) Read(into []byte) (int, error) {
	b.between()
	return b.ReadCloser.Read(into)
}

// TestKilledServersLoseNothingAcknowledged: after each kill only acknowledged rows and rows in flight may exist.
func TestKilledServersLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	const writers, rows = 4, 10
	store := filepath.Join(t.TempDir(), "store")
	s := startServe(t, "--quiet", "--store", store)
	name := s.newTable(t, "t", 1).name
	var acknowledged [writers]int // batches of each: rows of its own, and one that is overwritten
	for round := range *kills {
		tb := s.table(name)
		news := make(chan struct{}, 1<<16)
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for ; ; acknowledged[w]++ {
					changes := []tablestore.RowChange{tb.put(tb.key(fmt.Sprint("w", w), -1), c("n", acknowledged[w]))}
					for i := range rows {
						key := tb.key(fmt.Sprint("w", w), acknowledged[w]*rows+i)
						changes = append(changes, tb.put(key, c("b", []byte{0, byte(i)}), c("n", acknowledged[w])))
					}
					r, err := tb.batch(changes...)
					if err != nil {
						return
					}
					for _, row := range r.TableToRowsResult[name] {
						conformance.Equal(t, row.IsSucceed, true, "a row was refused: %+v", row.Error)
					}
					news <- struct{}{}
				}
			})
		}
		for range 1 + round*7%30 {
			<-news
		}
		s.kill()
		all.Wait()
		s = startServe(t, "--quiet", "--store", store)
		found := [writers]int{}
		for r := range rowsOf(t, s.client(), name) {
			var w int
			key, cells := keyValues(r.PrimaryKey), cellsOf(r.Columns)
			fmt.Sscanf(key[0].(string), "w%d", &w)
			at, n := key[1].(int64), cells[len(cells)-1].Value.(int64)
			switch last := int64(acknowledged[w]); {
			case at < 0 && n != last && n != last-1, at >= 0 && (len(cells) != 2 || n != at/rows || n > last):
				t.Errorf("round %d: row %v of %d batches", round, r, last)
			case at >= 0 && n < last:
				found[w]++
			}
		}
		for w, batches := range acknowledged {
			conformance.Equal(t, found[w], batches*rows, "round %d: writer %d: rows of %d batches", round, w, batches)
		}
	}
}
