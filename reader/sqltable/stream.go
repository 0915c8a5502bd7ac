package sqltable

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"example.com/tsimport/ratelimit"
)

// Stream serves pages from a single long result, for a query that is run only once.
type Stream struct {
	// Ask requests the rows from Lower on, without a limit.
	Ask func(context.Context, Query) (Rows, error)

	rows Rows     // the rest of the result; nil if there is none
	at   [][]byte // key of the last row read
	over bool     // whether the result ended after that row
}

// Page continues the result if the page begins where the last one ended. Otherwise it runs the query again.
func (s *Stream) Page(ctx context.Context, t *Table, q Query) (Rows, error) {
	p := &streamed{of: s, t: t, left: q.Limit}
	if (s.rows != nil || s.over) && q.Past && slices.EqualFunc(s.at, q.Lower, bytes.Equal) {
		p.ended = s.over // saves a query at the end
		return p, nil
	}
	if s.rows != nil {
		_ = s.rows.Close() // the error no longer matters
		s.rows = nil
	}
	if q.Past { // the row is read again to detect a second row with its key
		q.Past, p.skip = false, q.Lower
	}
	rows, err := s.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	s.rows, s.at, s.over = rows, slices.Clone(q.Lower), false
	return p, nil
}

// streamed is a page of a Stream.
type streamed struct {
	of    *Stream
	t     *Table
	left  int
	skip  [][]byte // key of a row that was already read, to be skipped; nil if there is none
	ended bool
}

func (p *streamed) Next() bool {
	if p.left == 0 || p.ended {
		return false
	}
	p.left--
	for {
		if p.ended = !p.of.rows.Next(); p.ended {
			return false
		}
		values := p.of.rows.Values()
		p.of.at = p.of.at[:0]
		for _, k := range p.t.Key {
			p.of.at = append(p.of.at, bytes.Clone(values[k]))
		}
		again := p.skip != nil && slices.EqualFunc(p.skip, p.of.at, bytes.Equal)
		if p.skip = nil; !again {
			return true
		}
	}
}

func (p *streamed) Values() [][]byte { return p.of.rows.Values() }

// Close keeps the result for the next page unless its end has been read.
func (p *streamed) Close() error {
	rows := p.of.rows
	if !p.ended || rows == nil {
		return nil
	}
	p.of.rows = nil
	err := rows.Close()
	p.of.over = err == nil
	return err
}

// pace limits the rows read per second in all sessions, to spare the server, because a load reads ahead.
type pace struct {
	perSecond float64

	mu   sync.Mutex
	free time.Time // when the next page may be requested
}

func (p *pace) wait(ctx context.Context) error {
	p.mu.Lock()
	d := time.Until(p.free)
	p.mu.Unlock()
	return ratelimit.Wait(ctx, d)
}

func (p *pace) took(rows int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(rows) / p.perSecond * float64(time.Second)))
}

// limit returns the largest number of rows in a page: a tenth of a second's rows.
func (p *pace) limit() int { return int(max(p.perSecond/10, 1)) }
