package pipeline

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"tsimport/internal/table"
)

// gateway is a proxy that takes no body above a size: it answers a page with status 413.
type gateway struct {
	base    http.RoundTripper
	limit   int64
	refused *atomic.Int64
}

func (g gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.ContentLength <= g.limit {
		return g.base.RoundTrip(r)
	}
	_ = r.Body.Close()
	g.refused.Add(1)
	return &http.Response{StatusCode: http.StatusRequestEntityTooLarge, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<html>413</html>")), Request: r}, nil
}

func TestRequestsBecomeAsSmallAsAGatewayTakesThem(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		var b strings.Builder
		b.WriteString("id,n\n")
		for i := range 3000 {
			size := 50
			if i == 1234 {
				size = 20_000 // alone more than the gateway takes
			}
			fmt.Fprintf(&b, "k%04d,%s\n", i, strings.Repeat("x", size))
		}
		var refused atomic.Int64
		cfg := w.config(w.file("in.csv", b.String()))
		cfg.Target.Client.Transport = gateway{w.server.Transport(), 5000, &refused}
		cfg.Write.Concurrency = 4
		r := w.load(cfg)
		if r.Written != 2999 || r.Rejected != 1 || len(w.rows()) != 2999 {
			t.Errorf("%d written, %d rejected, %d rows", r.Written, r.Rejected, len(w.rows()))
		}
		if n := refused.Load(); n > 40 {
			t.Errorf("%d requests were refused: the size is not remembered", n)
		}
	})
}

func TestABatchKeepsTheSizesThatAreSet(t *testing.T) {
	w := newWorld(t)
	b := rowsOf("id,n\n", 1000, func(i int) string { return fmt.Sprintf("k%04d,%d\n", i, i) })
	var largest, most atomic.Int64
	cfg := w.config(w.file("in.csv", b))
	cfg.Target.Client.Transport = sizes{w.server.Transport(), &largest}
	cfg.onSend = func(rows []table.Ref) {
		for n := int64(len(rows)); ; {
			if was := most.Load(); n <= was || most.CompareAndSwap(was, n) {
				return
			}
		}
	}
	cfg.Write.BatchBytes, cfg.Write.BatchRows = 2000, 17
	w.load(cfg)
	if largest.Load() > 2000 || most.Load() > 17 || most.Load() < 10 {
		t.Errorf("a body of %d bytes, a request of %d rows", largest.Load(), most.Load())
	}
}

// sizes notes the largest body.
type sizes struct {
	base    http.RoundTripper
	largest *atomic.Int64
}

func (s sizes) RoundTrip(r *http.Request) (*http.Response, error) {
	if was := s.largest.Load(); r.URL.Path == "/BatchWriteRow" && r.ContentLength > was {
		s.largest.Store(r.ContentLength)
	}
	return s.base.RoundTrip(r)
}
