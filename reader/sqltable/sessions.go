package sqltable

import (
	"context"
	"slices"
	"sync"
	"time"

	"example.com/tsimport/reader/source"
)

// sessions are the sessions of a reading, or of all readings of a Moment. Each is lent for one page.
type sessions struct {
	cfg  *Config
	open func(ctx context.Context, before Snapshot) (Snapshot, source.Position, error)

	mu       sync.Mutex
	came     sync.Cond // signals that a session was returned or lost
	borrowed int
	most     int // largest number of sessions, which is smaller than requested if the server has no more
	idle     []*session
	held     *held // snapshot for new sessions; nil before the first page
	took     int   // number of snapshots opened so far
}

// noted lists the ranges read from each snapshot. It has its own lock, so that its readers do not wait for a server.
type noted struct {
	sync.Mutex
	read []source.Snapshot
	of   []*held     // the snapshot of each element of read
	at   map[int]int // by part: index in read of its latest snapshot
}

// held is a snapshot in use.
type held struct {
	Snapshot
	taken  time.Time
	place  source.Position
	number int  // number of the snapshot, counted from 0
	fixed  int  // number of sessions left, if no others can join; otherwise 0
	lost   bool // no session can read it any longer
}

// session is a session that reads a snapshot.
type session struct {
	Session
	of *held
}

func newSessions(c *Config, open func(context.Context, Snapshot) (Snapshot, source.Position, error)) *sessions {
	s := &sessions{cfg: c, open: open, most: c.Sessions}
	s.came.L = &s.mu
	return s
}

// borrow returns a free session of the snapshot with number only, or of any snapshot if only is -1.
func (s *sessions) borrow(ctx context.Context, only int) (*session, error) {
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
		if only >= 0 && s.took > only && (s.held == nil || s.held.lost || s.held.number != only) {
			return nil, ErrSnapshot
		}
		var one *session
		switch n := len(s.idle); {
		case n > 0:
			one, s.idle = s.idle[n-1], s.idle[:n-1]
		case s.held == nil || s.held.lost:
			if err := s.begin(ctx); err != nil {
				return nil, err
			}
		case s.held.fixed == 0 && s.borrowed < s.most:
			var err error
			if one, err = s.join(ctx); err != nil {
				return nil, err
			}
		default:
			s.came.Wait()
		}
		if one != nil {
			s.borrowed++
			return one, nil
		}
	}
}

// joinFor is the time to wait for another session while others are reading. A full pooler does not answer.
const joinFor = 5 * time.Second

// join opens a session of the snapshot. It returns nil if the snapshot is lost or the server has no more sessions.
func (s *sessions) join(ctx context.Context) (*session, error) {
	keeper, may := s.held.Snapshot.(Keeper)
	within, cancel := context.WithTimeout(ctx, joinFor)
	defer cancel()
	one, err := s.held.Join(within)
	full := err != nil && ctx.Err() == nil && (isFull(s.cfg.Server, err) || within.Err() != nil)
	switch {
	case err == nil:
		return &session{one, s.held}, nil
	case full && s.borrowed > 0:
		s.most = s.borrowed
		s.cfg.fewer(s.most, err)
		return nil, nil
	case full && may && s.held.Alive(ctx):
		s.held.fixed = 1
		s.cfg.fewer(1, err)
		return &session{keeper.Alone(), s.held}, nil
	case ctx.Err() != nil || !s.cfg.Server.Lost(err) || s.held.Alive(ctx):
		return nil, err // this session has failed, but not the snapshot
	}
	s.held.lost = true
	s.held.Close()
	return nil, nil
}

func (s *sessions) begin(ctx context.Context) error {
	var before Snapshot
	if s.held != nil {
		before = s.held.Snapshot
	}
	now, place, err := s.open(ctx, before)
	if err != nil {
		return err
	}
	h := &held{Snapshot: now, taken: time.Now().UTC(), place: place, number: s.took}
	if few, ok := now.(Lacking); ok && few.Lacks() != nil {
		s.cfg.fewer(len(now.Sessions()), few.Lacks())
	}
	s.hangUp() // end the remaining sessions of a lost snapshot
	for _, one := range now.Sessions() {
		h.fixed++
		s.idle = append(s.idle, &session{one, h})
	}
	s.held = h
	s.took++
	return nil
}

func (s *sessions) giveBack(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.of != s.held || one.of.lost {
		one.Close()
	} else {
		s.idle = append(s.idle, one)
	}
	s.borrowed--
	s.came.Broadcast()
}

// drop ends a failed session. If no others can join its snapshot, the rest continue; without any, the snapshot is lost.
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
	s.borrowed--
	s.came.Broadcast()
}

func (n *noted) note(h *held, part int, from string) {
	n.Lock()
	defer n.Unlock()
	number := slices.Index(n.of, h)
	if number < 0 {
		number = len(n.read)
		n.of, n.read = append(n.of, h), append(n.read, source.Snapshot{Name: h.Name(), Taken: h.taken})
	}
	if n.at == nil {
		n.at = map[int]int{}
	}
	if last, known := n.at[part]; !known || last != number {
		n.at[part] = number
		n.read[number].Ranges = append(n.read[number].Ranges, from)
	}
}

// close ends all sessions that are not borrowed.
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
