package pipeline

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
)

// crowded is a listener that closes connections beyond a number at once.
type crowded struct {
	net.Listener
	most int64
	open atomic.Int64
	many atomic.Int64 // that were closed
}

func (l *crowded) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &counted{Conn: c, open: &l.open}, nil
		}
		l.open.Add(-1)
		l.many.Add(1)
		c.Close()
	}
}

type counted struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// serveFew serves the store over the network, with so many connections at most.
func (w *world) serveFew(most int64) (url string, few *crowded) {
	web := httptest.NewUnstartedServer(w.server)
	few = &crowded{Listener: web.Listener, most: most}
	web.Listener = few
	web.Start()
	w.t.Cleanup(web.Close)
	return web.URL, few
}

func TestALoadGetsAlongWithFewerConnectionsThanWorkers(t *testing.T) {
	w := newWorld(t)
	url, few := w.serveFew(10)
	b := rowsOf("id,n\n", 20_000, func(i int) string { return fmt.Sprintf("k%d,1\n", i) })
	cfg := w.config(w.file("in.csv", b))
	cfg.Target.Client.Transport, cfg.Target.Client.Endpoint = nil, url
	cfg.Lanes.Concurrency, cfg.Lanes.BatchRows, cfg.Write.Order = 64, 20, plan.OrderNone
	r := w.load(cfg)
	if r.Written != 20_000 || len(w.rows()) != 20_000 {
		t.Errorf("%d written, %d rows", r.Written, len(w.rows()))
	}
	if n := few.many.Load(); n > 3*64 {
		t.Errorf("%d connections were one too many", n)
	}
	t.Logf("%d connections closed at once, %d requests, %d sent again", few.many.Load(), r.Requests, r.Retried)
}

// Rows whose answer was lost are looked for over the connections that the writing workers use: where few are allowed, a pool of
// the workers' own would leave none to ask with, and the load would never continue.
// The time is real, as virtual time stands still while connections of the network are read.
func TestLookUpsNeedNoConnectionsOfTheirOwn(t *testing.T) {
	for most := range int64(3) {
		t.Run(fmt.Sprint(most+1, " connections"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			url, _ := w.serveFew(most + 1)
			text := users(rand.New(rand.NewPCG(1, 1)), 300, 20)
			cfg := w.numbered(w.file("in.csv", text))
			cfg.Target.Client.Transport, cfg.Target.Client.Endpoint = nil, url
			cfg.Lanes.Concurrency, cfg.Lanes.BatchRows, cfg.Lanes.RetryFor = 8, 10, time.Minute
			w.fail(faults.Fault{Action: faults.DropAfter}, func(r faults.Request) bool { return r.N%5 == 1 && r.N < 40 })
			if r := w.load(cfg); r.Written != 300 || r.Found == 0 {
				t.Errorf("%d written, %d found", r.Written, r.Found)
			}
			w.wantNumbered(text, cfg)
		})
	}
}

// refusing is a service that refuses, as a whole, every request whose body holds a word.
type refusing struct {
	base  http.RoundTripper
	word  []byte
	count *atomic.Int64
}

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(body))
	if req.URL.Path != "/BatchWriteRow" || !bytes.Contains(body, r.word) {
		return r.base.RoundTrip(req)
	}
	r.count.Add(1)
	var answer []byte
	answer = protowire.AppendTag(answer, 1, protowire.BytesType)
	answer = protowire.AppendString(answer, "OTSParameterInvalid")
	answer = protowire.AppendTag(answer, 2, protowire.BytesType)
	answer = protowire.AppendString(answer, "A row is bad.")
	return enginetest.Sign(&http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Request: req}, req.URL.Path, answer), nil
}

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
		text := rowsOf("id,n\n", 3000, func(i int) string {
			size := 50
			if i == 1234 {
				size = 20_000 // alone more than the gateway takes
			}
			return fmt.Sprintf("k%04d,%s\n", i, strings.Repeat("x", size))
		})
		var refused atomic.Int64
		cfg := w.config(w.file("in.csv", text))
		cfg.Target.Client.Transport = gateway{w.server.Transport(), 5000, &refused}
		cfg.Lanes.Concurrency = 4
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
	cfg.Lanes.BatchBytes, cfg.Lanes.BatchRows = 2000, 17
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
