package pipeline

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"tsimport/engine/faults"
	"tsimport/pipeline/plan"
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
	cfg.Write.Concurrency, cfg.Write.BatchRows, cfg.Write.Order = 64, 20, plan.OrderNone
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
			cfg.Write.Concurrency, cfg.Write.BatchRows, cfg.Write.RetryFor = 8, 10, time.Minute
			w.fail(faults.Fault{Action: faults.DropAfter}, func(r faults.Request) bool { return r.N%5 == 1 && r.N < 40 })
			if r := w.load(cfg); r.Written != 300 || r.Found == 0 {
				t.Errorf("%d written, %d found", r.Written, r.Found)
			}
			w.wantNumbered(text, cfg)
		})
	}
}
