package server

import (
	"context"
	"fmt"
	"time"
)

// Tests that share a server reset it in between, and move its clock instead of waiting.

// Now returns the time for data: timestamps, time to live, deviation. Dates of requests must match Options.Now.
func (s *Server) Now() time.Time { return s.o.Now().Add(time.Duration(s.ahead.Load())) }

// maxAhead limits how far the clock may be moved, to times that timestamps can still hold.
const maxAhead = 100 * 366 * 24 * time.Hour

// Advance moves the clock for data forward, in this process only. Only Reset moves it back.
func (s *Server) Advance(d time.Duration) error {
	for {
		ahead := s.ahead.Load()
		if d < 0 || time.Duration(ahead) > maxAhead-d {
			return fmt.Errorf("advance the clock by %s: it is %s ahead; want 0 to %s in all", d, time.Duration(ahead), maxAhead)
		}
		if s.ahead.CompareAndSwap(ahead, ahead+int64(d)) {
			return s.further(func(of *Server) error { return of.Advance(d) })
		}
	}
}

// Reset deletes all tables, and resets simulation, faults, counts and clock. Requests in progress may still see them.
func (s *Server) Reset(ctx context.Context) error {
	s.SetFaults(nil)
	for _, name := range s.store.Tables() {
		if err := s.DropTable(ctx, name); err != nil && s.HasTable(name) {
			return err
		}
	}
	if err := s.sim.forgetDefaults(); err != nil {
		return err
	}
	if s.o.Simulation != nil {
		if err := s.sim.Simulate("", *s.o.Simulation); err != nil {
			return err
		}
	}
	if s.o.InstanceUnits > 0 {
		s.instance.Reset(s.o.Now())
	}
	s.ahead.Store(0)
	s.store.RestartClock()
	s.lastPlan.Store(nil)
	s.SetFaults(s.o.Faults)
	return s.further(func(of *Server) error { return of.Reset(ctx) })
}

// forgetDefaults turns the simulation off, and resets the choices.
func (m *Simulator) forgetDefaults() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.defaults = nil
	m.on.Store(false)
	return m.server.store.Choose(Choices{})
}

func (s *Server) adminReset(ctx context.Context, _ string, body []byte) (any, error) {
	if len(body) > 0 {
		if err := readJSON(body, &struct{}{}); err != nil {
			return nil, err
		}
	}
	deleted := map[string]int{"tables": len(s.store.Tables())}
	return deleted, s.Reset(ctx)
}

type clockJSON struct {
	Now     time.Time `json:"now"`      // time for data
	AheadMS int64     `json:"ahead_ms"` // how far it is ahead of the real clock
}

func (s *Server) adminClock(context.Context, string, []byte) (any, error) {
	return clockJSON{s.Now().UTC(), time.Duration(s.ahead.Load()).Milliseconds()}, nil
}

type advanceJSON struct {
	Advance string `json:"advance"`
}

func (s *Server) adminAdvance(ctx context.Context, _ string, asked *advanceJSON) (any, error) {
	d, err := time.ParseDuration(asked.Advance)
	if err != nil || d < 0 {
		return nil, badRequest(`"advance" is %q; want a duration such as 36h, not below 0`, asked.Advance)
	}
	if err := s.Advance(d); err != nil {
		return nil, err
	}
	return s.adminClock(ctx, "", nil)
}
