package writer

import (
	"sync/atomic"
	"time"
)

// Stamps makes the timestamps of cells that bring none, in a table that keeps several versions. The service would give them
// its own time, but then an update that is sent twice would leave two versions. So each row gets a timestamp when it is
// first sent, and keeps it.
//
// A timestamp is the latest that the service's clock can show: it is not below that of any cell that the service has
// stamped or deleted before the row was sent. A lower one would be hidden by what is in the table already.
//
// Its methods are for one goroutine, but AtFault and Last.
type Stamps struct {
	service   func() (earliest, latest time.Time)
	deviation int64 // ms
	last      atomic.Int64
}

// NewStamps makes timestamps for a table that takes those up to deviation from the service's time, in whole seconds. Service
// returns the range in which the service's clock is now.
func NewStamps(service func() (earliest, latest time.Time), deviation time.Duration) *Stamps {
	return &Stamps{service: service, deviation: deviation.Milliseconds()}
}

// stepBack is how far below the last timestamp the clock may be while rows still wait for it to catch up. Beyond that, it was
// set back: their timestamps run ahead of it then.
const stepBack = 50

// Next returns a timestamp above after, and not below any that was made before unless the table would not take that.
func (s *Stamps) Next(after int64) int64 {
	earliest, latest := s.service()
	ms := max(latest.UnixMilli(), s.last.Load(), after+1)
	// The service compares whole seconds, and its clock may be the slowest that we know of.
	ms = min(ms, earliest.Unix()*1000+s.deviation-1)
	ms = max(ms, after+1)
	s.last.Store(ms)
	return ms
}

// Wait returns how long to wait for a timestamp above after, so that those of one key rise no faster than time.
func (s *Stamps) Wait(after int64) time.Duration {
	_, latest := s.service()
	if now := latest.UnixMilli(); now > after || now < after-stepBack {
		return 0
	}
	return time.Millisecond
}

// Takes reports whether the table takes a timestamp that was made before, if it is sent now.
func (s *Stamps) Takes(ms int64) bool {
	earliest, latest := s.service()
	margin := s.deviation / 20 // for the way
	return ms >= latest.UnixMilli()-s.deviation+margin && ms < earliest.Unix()*1000+s.deviation
}

// Last returns the newest timestamp; 0 is none.
func (s *Stamps) Last() int64 { return s.last.Load() }

// AtFault reports whether a row can have been refused for its timestamp, and not for what is in it.
func (s *Stamps) AtFault(ms int64) bool {
	earliest, latest := s.service()
	from, to := earliest.UnixMilli()-s.deviation/2, latest.UnixMilli()+s.deviation/2
	return ms < from || ms >= to
}
