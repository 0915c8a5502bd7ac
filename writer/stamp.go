package writer

import (
	"sync/atomic"
)

// Stamp is the timestamp of the cells that bring none, in a table that keeps several versions: with one for the whole run,
// an update that is sent twice writes the same version twice. It moves only when the table takes it no more, as it is too
// far from the service's clock; an update that was sent before and is repeated after that may leave two versions. It is
// safe for concurrent use.
type Stamp struct {
	at      atomic.Int64
	moves   atomic.Int64
	window  func() (from, to int64)
	started int64
}

// NewStamp makes a stamp of the time in milliseconds. Window says which the table takes, from inclusive, to exclusive.
func NewStamp(ms int64, window func() (from, to int64)) *Stamp {
	s := &Stamp{window: window, started: ms}
	s.at.Store(ms)
	return s
}

// Now returns the timestamp to use. It moves a little early, as the service's clock may be ahead and a request takes time.
func (s *Stamp) Now() int64 {
	at := s.at.Load()
	from, to := s.window()
	if margin := (to - from) / 20; at < from+margin || at >= to-margin {
		return s.move(at, from+(to-from)/2)
	}
	return at
}

// At returns the timestamp as it is.
func (s *Stamp) At() int64 { return s.at.Load() }

// Moves counts how often the table would not have taken it any more.
func (s *Stamp) Moves() int64 { return s.moves.Load() }

// leave gives up a timestamp that a row was refused with, and reports whether another may help: it cannot be at fault while
// it is close to the clock.
func (s *Stamp) leave(at int64) bool {
	if s.at.Load() != at {
		return true // somebody has moved it meanwhile
	}
	from, to := s.window()
	now := from + (to-from)/2
	if age := now - at; 4*max(age, -age) < to-from {
		return false
	}
	s.move(at, now)
	return true
}

func (s *Stamp) move(from, to int64) int64 {
	if s.at.CompareAndSwap(from, to) {
		s.moves.Add(1)
		return to
	}
	return s.at.Load()
}
