package sqltable

import (
	"context"
	"sync"
	"time"

	"example.com/tsimport/ratelimit"
)

// pace keeps reading to a number of rows a second, over all sessions. What a load writes is held to it elsewhere; but a load reads ahead, as
// far as memory allows, and the server is to be spared that.
type pace struct {
	perSecond float64

	mu   sync.Mutex
	free time.Time // when the next page may be asked for
}

// wait returns when a page may be asked for.
func (p *pace) wait(ctx context.Context) error {
	p.mu.Lock()
	d := time.Until(p.free)
	p.mu.Unlock()
	return ratelimit.Wait(ctx, d)
}

// took notes that a page of so many rows was read.
func (p *pace) took(rows int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(rows) / p.perSecond * float64(time.Second)))
}

// limit is how many rows a page has at most: those of a tenth of a second.
func (p *pace) limit() int { return int(max(p.perSecond/10, 1)) }
