package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"example.com/tsimport/engine/store"
	"example.com/tsimport/engine/wire"
)

func (s *Server) createTable(ctx context.Context, r *wire.CreateTable) ([]byte, *wire.Error) {
	if err := s.sim.prepare(r); err != nil {
		return nil, err
	}
	if !r.LocalTxn.Set { // most SDKs cannot set it, and their test suites expect transactions
		r.LocalTxn.Value = !slices.ContainsFunc(r.Key, func(k wire.KeyColumn) bool { return k.AutoIncrement })
	}
	return nil, s.store.CreateTable(ctx, r)
}

func (s *Server) listTable(context.Context, struct{}) ([]byte, *wire.Error) {
	return wire.AppendListTable(nil, s.store.Tables()), nil
}

// listNothing returns an empty list, because the engine has no search indexes, timeseries tables or streams to read.
func (s *Server) listNothing(_ context.Context, name []byte) (_ []byte, err *wire.Error) {
	if name != nil {
		_, err = s.table(name)
	}
	return nil, err
}

// table looks up a table for operations that fail as a whole if it is missing.
func (s *Server) table(name []byte) (*store.Table, *wire.Error) {
	if !wire.ValidTableName(name) {
		return nil, wire.Invalid("Invalid table name: '%s'.", name)
	}
	if t := s.lookup(name); t != nil {
		return t, nil
	}
	return nil, wire.Fail(wire.CodeObjectNotExist)
}

// lookup looks up a table. It returns nil if the table does not exist, or is so new that the simulation hides it.
func (s *Server) lookup(name []byte) *store.Table {
	t := s.store.Table(name)
	if t == nil {
		return nil
	}
	missing := s.sim.answers(name).NewTableMissing
	if missing > 0 && s.Now().Sub(time.UnixMicro(t.Describe().Created)) < missing {
		return nil
	}
	return t
}

func (s *Server) describeTable(_ context.Context, name []byte) ([]byte, *wire.Error) {
	t, err := s.table(name)
	if err != nil {
		return nil, err
	}
	d := t.Describe()
	d.Splits, d.Indexes = s.sim.splits(d), s.sim.answers(name).Indexes
	return wire.AppendDescribeTable(nil, d), nil
}

func (s *Server) updateTable(ctx context.Context, r *wire.UpdateTable) ([]byte, *wire.Error) {
	if t := s.store.Table(r.Name); t != nil && s.sim.answers(r.Name).Indexes > 0 {
		if err := r.CheckIndexed(t.Describe()); err != nil {
			return nil, err
		}
	}
	d, err := s.store.UpdateTable(ctx, r)
	if err != nil {
		return nil, err
	}
	return wire.AppendUpdateTable(nil, d), nil
}

func (s *Server) deleteTable(ctx context.Context, name []byte) ([]byte, *wire.Error) {
	t, err := s.table(name)
	if err == nil {
		err = s.store.DeleteTable(ctx, name)
	}
	if err == nil {
		s.sim.forget(t)
	}
	return nil, err
}

func (s *Server) createIndex(ctx context.Context, r *wire.CreateIndex) ([]byte, *wire.Error) {
	_, err := s.table(r.Table)
	if err == nil {
		err = s.store.CreateIndex(ctx, r)
	}
	return nil, err
}

func (s *Server) dropIndex(ctx context.Context, r *wire.DropIndex) ([]byte, *wire.Error) {
	_, err := s.table(r.Table)
	if err == nil {
		err = s.store.DropIndex(ctx, r)
	}
	return nil, err
}

func (s *Server) updateDefined(ctx context.Context, r *wire.DefinedColumns) ([]byte, *wire.Error) {
	return nil, s.store.UpdateDefined(ctx, r)
}

func (s *Server) splitPoints(ctx context.Context, r *wire.SplitPoints) ([]byte, *wire.Error) {
	t, err := s.table(r.Name)
	if err != nil {
		return nil, err
	}
	points, err := s.store.SplitPoints(ctx, t, r)
	if err != nil {
		return nil, err
	}
	d, units := t.Describe(), wire.Capacity{Read: int32(len(points) + 1)}
	return wire.AppendSplitPoints(nil, units, d.Key, points, s.sim.locations(d, points)), nil
}

// opsLimit limits table operations in any second. Operations that it refuses do not count.
type opsLimit struct {
	perSecond int // 0 means no limit
	mu        sync.Mutex
	last      []time.Time // times of the last perSecond operations, as a ring buffer
	next      int
}

func (l *opsLimit) take(now time.Time) *wire.Error {
	if l.perSecond <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) < l.perSecond {
		l.last = append(l.last, now)
		return nil
	}
	if since := now.Sub(l.last[l.next]); since >= 0 && since < time.Second {
		return wire.Failf(wire.CodeQuotaExhausted, "Too frequent table operations.")
	}
	l.last[l.next] = now
	l.next = (l.next + 1) % l.perSecond
	return nil
}

// tableOperation puts an operation under the limit of table operations. Malformed requests count, too.
func tableOperation(op operation) operation {
	return func(s *Server, body []byte) (call, *wire.Error) {
		if err := s.tableOps.take(s.o.Now()); err != nil {
			return nil, err
		}
		return op(s, body)
	}
}
