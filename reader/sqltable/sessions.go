package sqltable

import (
	"context"
	"sync"
	"time"

	"example.com/tsimport/reader/source"
)

// sessions are those of one reading. They are lent for a page each, so that none waits for another.
type sessions struct {
	cfg *Config
	of  *Table
	lag *lagWatch // nil watches none

	mu   sync.Mutex
	came sync.Cond // one was given back, or lost
	lent int
	most int // that may be lent: fewer than were asked for, where the server has no more
	idle []*session
	held *held // what new sessions join; nil before the first page
	noted
}

// noted is what was read from where. It has a lock of its own: whoever asks does not wait for a server.
type noted struct {
	sync.Mutex
	read []source.Snapshot
	at   map[int]int // of read, the one that a part was read from last
}

// held is a snapshot.
type held struct {
	Snapshot
	number int  // in noted.read
	fixed  int  // sessions that are left of it, where no more can join; else 0
	lost   bool // nobody can read it any more
}

// session is one that reads a snapshot.
type session struct {
	Session
	of *held
}

func newSessions(c *Config, of *Table) *sessions {
	s := &sessions{cfg: c, of: of, most: c.Sessions, noted: noted{at: map[int]int{}}}
	s.came.L = &s.mu
	return s
}

// lend returns a session that nobody else has.
func (s *sessions) lend(ctx context.Context) (*session, error) {
	if s.lag != nil {
		if err := s.lag.wait(ctx); err != nil {
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.came.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		one := s.pop()
		switch {
		case one != nil:
		case s.held == nil || s.held.lost:
			if err := s.begin(ctx); err != nil {
				return nil, err
			}
		case s.held.fixed == 0 && s.lent < s.most:
			var err error
			if one, err = s.join(ctx); err != nil {
				return nil, err
			}
		default:
			s.came.Wait()
		}
		if one != nil {
			s.lent++
			return one, nil
		}
	}
}

// joinFor bounds the wait for another session while others read: a full pooler does not answer.
const joinFor = 5 * time.Second

// join opens a session of the snapshot; nil if the snapshot is lost or the server has no more sessions. Then the open ones read.
func (s *sessions) join(ctx context.Context) (*session, error) {
	keeper, may := s.held.Snapshot.(Keeper)
	within, cancel := context.WithTimeout(ctx, joinFor)
	defer cancel()
	one, err := s.held.Join(within)
	full := err != nil && ctx.Err() == nil && (isFull(s.cfg.Server, err) || within.Err() != nil)
	switch {
	case err == nil:
		return &session{one, s.held}, nil
	case full && s.lent > 0:
		s.most = s.lent
		s.cfg.fewer(s.most, err)
		return nil, nil
	case full && may && s.held.Alive(ctx):
		s.held.fixed = 1
		s.cfg.fewer(1, err)
		return &session{keeper.Alone(), s.held}, nil
	case ctx.Err() != nil || !s.cfg.Server.Lost(err) || s.held.Alive(ctx):
		return nil, err // this session failed, not the snapshot
	}
	s.held.lost = true
	s.held.Close()
	return nil, nil
}

func (s *sessions) pop() (one *session) {
	if n := len(s.idle); n > 0 {
		one = s.idle[n-1]
		s.idle = s.idle[:n-1]
	}
	return one
}

// begin opens a snapshot.
func (s *sessions) begin(ctx context.Context) error {
	if len(s.snapshots()) > 0 && s.cfg.Whole {
		return ErrSnapshot
	}
	var before Snapshot
	if s.held != nil {
		before = s.held.Snapshot
	}
	now, t, err := s.cfg.Server.Snapshot(ctx, s.cfg.Sessions, before)
	if err != nil {
		return err
	}
	h := &held{Snapshot: now}
	if few, ok := now.(Lacking); ok && few.Lacks() != nil {
		s.cfg.fewer(len(now.Sessions()), few.Lacks())
	}
	for _, one := range now.Sessions() {
		h.fixed++
		s.idle = append(s.idle, &session{one, h})
	}
	if t.Schema != s.of.Schema {
		s.hangUp()
		now.Close()
		return &changedError{was: s.of.Schema, is: t.Schema}
	}
	s.held = h
	s.Lock()
	defer s.Unlock()
	h.number = len(s.read)
	s.read = append(s.read, source.Snapshot{Name: now.Name(), Taken: time.Now().UTC()})
	return nil
}

// giveBack takes a session back that has read a page of a part.
func (s *sessions) giveBack(one *session, part int, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(one.of.number, part, from)
	if one.of != s.held || one.of.lost {
		one.Close()
	} else {
		s.idle = append(s.idle, one)
	}
	s.lent--
	s.came.Broadcast()
}

// drop ends a session that has failed. When no other can join its snapshot, the rest of those that read it do its work; after the last of
// them the snapshot is lost.
func (s *sessions) drop(one *session) {
	one.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := one.of; h.fixed > 0 {
		if h.fixed--; h.fixed == 0 && !h.lost {
			h.lost = true
			h.Close()
		}
	}
	s.lent--
	s.came.Broadcast()
}

func (n *noted) note(number, part int, from string) {
	n.Lock()
	defer n.Unlock()
	if last, known := n.at[part]; !known || last != number {
		n.at[part] = number
		n.read[number].Ranges = append(n.read[number].Ranges, from)
	}
}

// close ends all sessions that are not lent.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangUp()
	if s.held != nil && !s.held.lost {
		s.held.Close()
	}
	s.held = nil
}

func (s *sessions) hangUp() {
	for _, one := range s.idle {
		one.Close()
	}
	s.idle = nil
}

func (n *noted) snapshots() (all []source.Snapshot) {
	n.Lock()
	defer n.Unlock()
	for _, one := range n.read {
		one.Ranges = append([]string(nil), one.Ranges...)
		all = append(all, one)
	}
	return all
}
