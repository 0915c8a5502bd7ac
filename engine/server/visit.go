package server

import (
	"context"
	"sync"
	"time"

	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/wire"
)

// carry runs a call subject to the simulation.
func (s *Server) carry(ctx context.Context, c call) ([]byte, *wire.Error) {
	if !s.sim.on.Load() {
		if err := s.limitInstance(c); err != nil {
			return nil, err
		}
		return c.run(ctx)
	}
	v := visits.Get().(*visit)
	defer v.release()
	v.sim = s.sim
	c.visit(v)
	if len(v.tables) == 0 {
		return c.run(ctx)
	}
	latency := v.latency(s.o.Now())
	if !s.wait(ctx, latency/2) {
		return nil, wire.Failf(wire.CodePartitionUnavailable, "The request was cancelled: nothing of it was applied.")
	}
	if err := s.limitInstance(c); err != nil {
		s.wait(ctx, latency-latency/2)
		return nil, err
	}
	delay := v.decide(s.o.Now(), c)
	out, err := c.run(ctx)
	v.noteRefused()
	s.wait(ctx, latency-latency/2+delay)
	return out, err
}

// limitInstance refuses a write request as a whole if it exceeds the instance's capacity.
func (s *Server) limitInstance(c call) *wire.Error {
	if s.instance == nil {
		return nil
	}
	units, rows := 1.0, 1
	switch c := c.(type) {
	case *write:
		units, rows = c.units(), c.rows()
	case *plain:
		if !c.unit {
			return nil
		}
	}
	if s.instance.Take(s.o.Now(), units, rows) {
		return nil
	}
	return wire.Fail(wire.CodeFlowControl)
}

// wait waits for d, or until the server closes. It returns false if ctx ends first.
func (s *Server) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closing:
	case <-ctx.Done():
		return false
	}
	return true
}

// visit describes a request to the simulation: rows or keys in order, and their tables. It is pooled.
type visit struct {
	sim      *Simulator
	tables   []visited
	rows     []sim.Row
	integers []byte         // memory of integer keys
	outcomes []wire.Outcome // nil for a read, whose rows have no limits
}

// visited is a table of a request. Its rows begin at index from and end at the next table's.
type visited struct {
	table  *simTable // nil if the table does not exist or is not simulated
	from   int
	copies int32
}

var visits = sync.Pool{New: func() any { return &visit{} }}

func (v *visit) release() {
	clear(v.tables)
	clear(v.rows)
	*v = visit{tables: v.tables[:0], rows: v.rows[:0], integers: v.integers[:0]}
	visits.Put(v)
}

// open starts the rows of a table.
func (v *visit) open(name []byte) {
	v.tables = append(v.tables, visited{v.sim.find(name), len(v.rows), int32(v.sim.copies(name))})
}

// copies returns how many times a row is charged: once for the table, and once for each index.
func (m *Simulator) copies(name []byte) int {
	copies := 1 + m.answers(name).Indexes
	if t := m.server.store.Table(name); t != nil {
		copies += t.Indexes()
	}
	return copies
}

func (v *visit) change(c *wire.Change, o *wire.Outcome) {
	v.key(c.Row.Key)
	r := &v.rows[len(v.rows)-1]
	if o.Err != nil {
		r.Verdict = sim.Exempt
	}
	size := c.Row.DataBytes()
	r.Bytes, r.Units = int32(size), wire.Units(size)*v.tables[len(v.tables)-1].copies
}

// key adds a row by its primary key. Rows that the table will refuse are exempt from the simulation.
func (v *visit) key(key []wire.Cell) {
	v.rows = append(v.rows, sim.Row{Verdict: sim.Exempt})
	r := &v.rows[len(v.rows)-1]
	t := v.tables[len(v.tables)-1].table
	if t == nil || len(key) == 0 {
		return
	}
	switch c := &key[0]; {
	case c.Type == wire.InfMin:
		r.Verdict = sim.Undecided // it belongs to the first partition
	case c.Type != t.key.Type.ValueType():
	case c.Type == wire.Integer:
		// When append moves the slice, earlier keys still refer to the old memory.
		from := len(v.integers)
		v.integers = sim.AppendInteger(v.integers, c.Int())
		r.Key, r.Verdict = v.integers[from:], sim.Undecided
	default:
		r.Key, r.Verdict = c.Value, sim.Undecided
	}
}

// each calls f with every simulated table and its rows. The first row has the index from in the request.
func (v *visit) each(f func(t *simTable, from int, rows []sim.Row)) {
	for i, t := range v.tables {
		end := len(v.rows)
		if i+1 < len(v.tables) {
			end = v.tables[i+1].from
		}
		if t.table != nil {
			f(t.table, t.from, v.rows[t.from:end])
		}
	}
}

func (v *visit) latency(now time.Time) (slowest time.Duration) {
	v.each(func(t *simTable, _ int, rows []sim.Row) { slowest = max(slowest, t.Latency(now, rows)) })
	return slowest
}

// decide settles the rows that the simulation refuses, and returns the delay of the answer. Rows share error values.
func (v *visit) decide(now time.Time, c call) (delay time.Duration) {
	v.each(func(t *simTable, from int, rows []sim.Row) {
		if v.outcomes == nil {
			t.Reach(now, rows)
		} else {
			delay = max(delay, t.Decide(now, rows))
		}
		throttled := wire.Fail(t.ThrottleCode())
		for i := range rows {
			switch rows[i].Verdict {
			case sim.Throttled:
				c.settle(from+i, throttled)
			case sim.Unavailable:
				c.settle(from+i, unavailable)
			}
		}
	})
	return delay
}

var unavailable = wire.Fail(wire.CodePartitionUnavailable)

// noteRefused reports to the simulation which rows the tables refused.
func (v *visit) noteRefused() {
	if v.outcomes == nil {
		return
	}
	v.each(func(t *simTable, from int, rows []sim.Row) {
		for i := range rows {
			if rows[i].Verdict == sim.Accepted && v.outcomes[from+i].Err != nil {
				t.Refused(&rows[i])
			}
		}
	})
}
