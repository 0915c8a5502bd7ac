package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// linkAge is how long a link is used before it is replaced, so that a load follows a service that moves.
const linkAge = 5 * time.Minute

// Waits before the limit on links is raised, by one, then two, four and so on. A wait that was too short is doubled.
const (
	firstRaise = 5 * time.Second
	lastRaise  = 10 * time.Minute
)

// alive is how recent the last response on any link must be for the service to count as up.
const alive = time.Second

var errNoLink = errors.New("no connection to the service became free, and it accepts no more")

// pool holds the links of a connection. A request uses a link until its response is read.
//
// A service, a gateway or this machine may allow fewer links than there are senders. Then some link cannot be made or
// gets no response while others do, and the limit becomes the number of links that have had a response. Senders share
// them. If no link gets a response, the service is down.
type pool struct {
	route *route
	most  int

	mu      sync.Mutex
	free    []*link // most recently used last
	open    int     // number of links, including links being dialed
	proven  int     // number of links that have had a response
	waiting int     // number of senders waiting for a link
	freed   chan struct{}
	unused  bool // all senders are closed, so no link is kept

	limit    int // limit of open; most if the limit is unknown
	raise    time.Time
	wait     time.Duration
	step     int
	tight    bool      // links have been limited before
	answered time.Time // time of the last response on any link
}

func newPool(r *route, most int) *pool {
	return &pool{route: r, most: most, limit: most, freed: make(chan struct{}), wait: firstRaise, step: 1}
}

// take returns a link ready for use, or an error if none became free in time.
func (p *pool) take(run context.Context, timeout time.Duration) (*link, error) {
	ctx, cancel := context.WithTimeout(run, timeout)
	defer cancel()
	var failed error
	for {
		p.mu.Lock()
		l := p.pop()
		p.raised(time.Now())
		mayDial := failed == nil && p.open < p.limit
		if l == nil && mayDial {
			p.open++
		}
		if l != nil && failed != nil {
			p.short(max(p.proven, 1)) // other links work
		}
		alone, freed := p.open == 0, p.freed
		if l == nil && !mayDial {
			p.waiting++
		}
		p.mu.Unlock()
		switch {
		case l != nil:
			return l, nil
		case mayDial:
			if l, failed = p.dial(run); failed == nil {
				return l, nil
			}
			p.gone(nil)
			continue
		}
		var ended bool
		if !alone || failed == nil {
			select {
			case <-freed:
			case <-ctx.Done():
				ended = true
			}
		}
		p.mu.Lock()
		p.waiting--
		p.mu.Unlock()
		switch {
		case run.Err() != nil:
			return nil, context.Cause(run)
		case failed != nil && (ended || alone):
			return nil, failed
		case ended:
			return nil, &notSent{fmt.Errorf("%w (after %v)", errNoLink, timeout)}
		}
	}
}

// dial makes a link and checks that it is not closed at once. Gateways accept a link beyond their limit and then close
// it. A request sent on it would have an unknown outcome, although nobody read it, and its rows would have to wait.
func (p *pool) dial(run context.Context) (*link, error) {
	begun := time.Now()
	l, err := p.route.dial(run)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	first, within := p.open == 1, p.closesWithin()
	p.mu.Unlock()
	if first {
		return l, nil // the only link cannot exceed a limit
	}
	select {
	case <-time.After(time.Since(begun) + within):
	case <-run.Done():
	}
	if !l.usable() {
		l.close()
		return nil, &notSent{errClosedAtOnce}
	}
	return l, nil
}

// How long a new link is watched after a round trip.
const (
	closesAtOnce = 20 * time.Millisecond
	closesLater  = 500 * time.Millisecond // after a link was refused; other links work meanwhile
)

// closesWithin returns how long a gateway may take to close an excess link.
func (p *pool) closesWithin() time.Duration {
	if p.tight {
		return closesLater
	}
	return closesAtOnce
}

var errClosedAtOnce = errors.New("the service, or a gateway, closes new connections at once: it accepts no more")

// pop takes the most recently used link. It closes unusable links.
func (p *pool) pop() *link {
	for len(p.free) > 0 && time.Since(p.free[0].used) >= idleTimeout {
		p.closed(p.free[0])
		p.free = p.free[1:]
	}
	for n := len(p.free); n > 0; n = len(p.free) {
		l := p.free[n-1]
		p.free = p.free[:n-1]
		if l.usable() {
			return l
		}
		p.closed(l)
	}
	return nil
}

func (p *pool) closed(l *link) {
	p.open--
	if l.answers > 0 {
		p.proven--
	}
	if p.proven == 0 {
		p.limit, p.wait = p.most, firstRaise // the service is down; its limit is unknown
	}
	l.close()
}

// put takes a link back, and closes it if it is unusable or old.
func (p *pool) put(l *link, usable bool) {
	if !usable || time.Now().After(l.until) {
		p.gone(l)
		return
	}
	l.used = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unused {
		p.closed(l)
	} else {
		p.free = append(p.free, l)
	}
	p.tell()
}

// gone closes a link. nil stands for a link that could not be dialed, which is no longer counted.
func (p *pool) gone(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l == nil {
		p.open--
	} else {
		p.closed(l)
		if l.answers == 0 && p.proven > 0 && p.answered.After(l.born.Add(-alive)) {
			p.short(p.proven)
		}
	}
	p.tell()
}

// tell wakes waiting senders.
func (p *pool) tell() {
	if p.waiting > 0 {
		close(p.freed)
		p.freed = make(chan struct{})
	}
}

// note records that a response has arrived on the link.
func (p *pool) note(l *link, now time.Time) {
	l.used = now
	l.answers++
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = now
	if l.answers == 1 {
		p.proven++
	}
}

// short lowers the limit to the number of working links.
func (p *pool) short(links int) {
	now := time.Now()
	if p.limit < p.most && now.Before(p.raise) && links >= p.limit {
		return // the request was in flight when the limit was lowered
	}
	if p.limit < p.most {
		p.wait = min(2*p.wait, lastRaise)
	}
	p.tight = true
	p.limit, p.step, p.raise = min(max(links, 1), p.limit), 1, now.Add(p.wait)
}

func (p *pool) raised(now time.Time) {
	if p.limit < p.most && !now.Before(p.raise) {
		p.limit = min(p.limit+p.step, p.most)
		p.step *= 2
		p.raise = now.Add(p.wait)
	}
}

func (p *pool) room() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.raised(time.Now())
	return p.limit
}

// use makes the pool keep links until close.
func (p *pool) use() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unused = false
}

// close closes unused links now, and the others when they are put back.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unused = true
	for _, l := range p.free {
		p.closed(l)
	}
	p.free = nil
}

// repeatable is the set of small operations on tables before a load's first row. Their requests are hedged.
var repeatable = map[string]bool{"/DescribeTable": true, "/ListTable": true, "/ComputeSplitPointsBySize": true}

const (
	hedgeAfter = 2 * time.Second
	mostHedges = 16 // limit of simultaneous requests; the first one usually times out earlier
)

// hedged sends a request, and again after each hedgeAfter without a response. The first response or error counts.
func (t *transport) hedged(r *http.Request) (*http.Response, error) {
	type answer struct {
		res *http.Response
		err error
	}
	answers := make(chan answer, mostHedges)
	again := time.NewTimer(hedgeAfter)
	defer again.Stop()
	for sent := 0; ; {
		if sent < mostHedges {
			sent++
			one := r.Clone(r.Context())
			var err error
			if one.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
			go func() {
				res, err := t.once(one)
				answers <- answer{res, err}
			}()
		}
		select {
		case a := <-answers:
			return a.res, a.err
		case <-again.C:
			again.Reset(hedgeAfter)
		}
	}
}
