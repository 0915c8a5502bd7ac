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

// connectionLimit is a listener with a limited number of open connections. At the limit, a new connection replaces the
// one that has been idle longest, or else the oldest without a known access key. If there is neither, it waits.
type connectionLimit struct {
	net.Listener
	most int
	log  *log.Logger

	mu     sync.Mutex
	left   sync.Cond // signals that a connection was or may be closed
	places map[*placed]bool
	told   bool // the limit was logged
	closed bool
}

// placed is a connection that frees its place when closed.
type placed struct {
	net.Conn
	limit  *connectionLimit
	opened time.Time
	idle   time.Time // start of idle time; zero if busy
	proven bool      // its client knows the access key
}

func newConnectionLimit(l net.Listener, most int, log *log.Logger) *connectionLimit {
	c := &connectionLimit{Listener: l, most: most, log: log, places: map[*placed]bool{}}
	c.left.L = &c.mu
	return c
}

// Accept accepts a connection. If all places are taken, it closes a connection that may give way, or waits.
func (c *connectionLimit) Accept() (net.Conn, error) {
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
		go old.Conn.Close()
		if !c.told {
			c.told = true
			c.log.Printf("%d connections are open, all that --max-connections allows: idle ones, and those without a known "+
				"access key, are closed for new ones", c.most)
		}
	}
	if c.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	p := &placed{Conn: conn, limit: c, opened: time.Now()}
	c.places[p] = true
	return p, nil
}

// givesWay returns the connection to close for a new one, or nil.
func (c *connectionLimit) givesWay() (first *placed) {
	for p := range c.places {
		switch {
		case p.idle.IsZero() && p.proven:
		case first == nil, first.idle.IsZero() && !p.idle.IsZero(),
			!p.idle.IsZero() && p.idle.Before(first.idle), p.idle.IsZero() && first.idle.IsZero() &&
				p.opened.Before(first.opened):
			first = p
		}
	}
	return first
}

// Close closes the listener and ends the wait for a place.
func (c *connectionLimit) Close() error {
	c.mu.Lock()
	c.closed = true
	c.left.Broadcast()
	c.mu.Unlock()
	return c.Listener.Close()
}

func (p *placed) Close() error {
	p.limit.mu.Lock()
	delete(p.limit.places, p)
	p.limit.left.Broadcast()
	p.limit.mu.Unlock()
	return p.Conn.Close()
}

// state records whether a connection is idle, and since when.
func (c *connectionLimit) state(conn net.Conn, now http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := placeOf(conn)
	if p.idle = (time.Time{}); now == http.StateIdle {
		p.idle = time.Now()
		c.left.Broadcast()
	}
}

func placeOf(conn net.Conn) *placed {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	return conn.(*placed)
}

// placeKey is the key of a connection's *placed in the contexts of its requests.
type placeKey struct{}

func (c *connectionLimit) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, placeKey{}, placeOf(conn))
}

func prove(ctx context.Context) {
	if p, _ := ctx.Value(placeKey{}).(*placed); p != nil {
		p.limit.mu.Lock()
		p.proven = true
		p.limit.mu.Unlock()
	}
}
