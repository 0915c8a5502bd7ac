package server

import (
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// crowd is a listener with at most so many open connections. When it is full, one gives way to a new one: that which is idle for longest, else
// the oldest of which no request has proven that it knows the access key. While all are at work for clients who do, a new one waits.
type crowd struct {
	net.Listener
	most int
	log  *log.Logger

	mu     sync.Mutex
	left   sync.Cond // a connection was closed, or may be closed
	places map[net.Conn]*place
	told   bool
	closed bool
}

// place is what is known of an open connection.
type place struct {
	crowd  *crowd
	opened time.Time
	idle   time.Time // since when; zero is not
	proven bool
}

func newCrowd(l net.Listener, most int, log *log.Logger) *crowd {
	c := &crowd{Listener: l, most: most, log: log, places: map[net.Conn]*place{}}
	c.left.L = &c.mu
	return c
}

// Accept returns the next connection that has a place.
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.places) >= c.most && !c.closed {
		old := c.givesWay()
		if old == nil {
			c.left.Wait()
			continue
		}
		delete(c.places, old)
		go old.Close()
		if !c.told {
			c.told = true
			c.log.Printf("%d connections are open, as many as may be (--max-connections): idle ones, and those that show no access key, are closed for new ones", c.most)
		}
	}
	if c.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	c.places[conn] = &place{crowd: c, opened: time.Now()}
	return &placed{conn, c}, nil
}

// givesWay returns the connection that is closed for another; nil is none.
func (c *crowd) givesWay() (conn net.Conn) {
	var first *place
	for of, p := range c.places {
		switch {
		case p.idle.IsZero() && p.proven:
		case first == nil, first.idle.IsZero() && !p.idle.IsZero(),
			!p.idle.IsZero() && p.idle.Before(first.idle), p.idle.IsZero() && first.idle.IsZero() && p.opened.Before(first.opened):
			conn, first = of, p
		}
	}
	return conn
}

// Close ends the listener, and who waits for a place.
func (c *crowd) Close() error {
	c.mu.Lock()
	c.closed = true
	c.left.Broadcast()
	c.mu.Unlock()
	return c.Listener.Close()
}

// placed is a connection that leaves its place when it is closed.
type placed struct {
	net.Conn
	crowd *crowd
}

func (p *placed) Close() error {
	p.crowd.mu.Lock()
	delete(p.crowd.places, p.Conn)
	p.crowd.left.Broadcast()
	p.crowd.mu.Unlock()
	return p.Conn.Close()
}

// NetConn is the connection below.
func (p *placed) NetConn() net.Conn { return p.Conn }

// of is the place of a connection of the server's; nil if it has none any more.
func (c *crowd) of(conn net.Conn) *place {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if p, ok := conn.(*placed); ok {
		conn = p.Conn
	}
	return c.places[conn]
}

// state notes when a connection becomes idle, and when a request comes.
func (c *crowd) state(conn net.Conn, now http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.of(conn)
	if p == nil {
		return
	}
	p.idle = time.Time{}
	if now == http.StateIdle {
		p.idle = time.Now()
		c.left.Broadcast()
	}
}

// placeKey is that of a connection's *place in the contexts of its requests.
type placeKey struct{}

func (c *crowd) context(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return context.WithValue(ctx, placeKey{}, c.of(conn))
}

// prove notes that a request's client knows the access key.
func prove(ctx context.Context) {
	if p, _ := ctx.Value(placeKey{}).(*place); p != nil {
		p.crowd.mu.Lock()
		p.proven = true
		p.crowd.mu.Unlock()
	}
}
