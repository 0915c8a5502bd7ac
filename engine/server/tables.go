package server

import (
	"context"
	"time"

	"example.com/tsimport/engine/store"
	"example.com/tsimport/engine/wire"
)

func (s *Server) createTable(body []byte) (call, *wire.Error) {
	r, err := wire.DecodeCreateTable(body)
	if err == nil && !s.o.IgnoreStreams {
		err = r.Stream.Refuse()
	}
	if err == nil {
		err = r.Check()
	}
	return plain{0, func(ctx context.Context) ([]byte, *wire.Error) {
		if err := s.sim.prepare(r); err != nil {
			return nil, err
		}
		return nil, s.store.CreateTable(ctx, r)
	}}, err
}

func (s *Server) listTable([]byte) (call, *wire.Error) {
	return plain{0, func(context.Context) ([]byte, *wire.Error) {
		return wire.AppendListTable(nil, s.store.Tables()), nil
	}}, nil
}

// listNothing answers what tables could have and the engine's never do: search indexes, streams, tables of time series. All three
// answers are a list in an otherwise empty message.
func (s *Server) listNothing(body []byte) (call, *wire.Error) {
	name, err := wire.DecodeMaybeTableName(body)
	return plain{0, func(context.Context) ([]byte, *wire.Error) {
		if name != nil {
			_, err := s.table(name)
			return nil, err
		}
		return nil, nil
	}}, err
}

// table looks a table up for the operations that fail as a whole without it.
func (s *Server) table(name []byte) (*store.Table, *wire.Error) {
	if !wire.ValidTableName(name) {
		return nil, wire.Invalid("Invalid table name: '%s'.", name)
	}
	if t := s.lookup(name); t != nil {
		return t, nil
	}
	return nil, wire.Fail(wire.CodeObjectNotExist)
}

// lookup looks a table up; nil means no such table, or one that is so new that it is said to be missing.
func (s *Server) lookup(name []byte) *store.Table {
	t := s.store.Table(name)
	if t == nil {
		return nil
	}
	d := t.Describe()
	st := s.sim.present(d.Name)
	if st != nil && s.Now().Sub(time.UnixMicro(d.Created)) < st.Answers().NewTableMissing {
		return nil
	}
	return t
}

func (s *Server) describeTable(body []byte) (call, *wire.Error) {
	name, err := wire.DecodeTableName(body)
	return plain{0, func(context.Context) ([]byte, *wire.Error) {
		t, err := s.table(name)
		if err != nil {
			return nil, err
		}
		d := t.Describe()
		d.Splits = s.sim.splits(t, d)
		if st := s.sim.present(d.Name); st != nil {
			d.Indexes = st.Answers().Indexes
		}
		return wire.AppendDescribeTable(nil, d), nil
	}}, err
}

func (s *Server) updateTable(body []byte) (call, *wire.Error) {
	r, err := wire.DecodeUpdateTable(body)
	if err == nil && !s.o.IgnoreStreams {
		err = r.Stream.Refuse()
	}
	if err == nil {
		err = r.Check()
	}
	return plain{0, func(ctx context.Context) ([]byte, *wire.Error) {
		if t := s.store.Table(r.Name); t != nil {
			d := t.Describe()
			if st := s.sim.present(d.Name); st != nil && st.Answers().Indexes > 0 {
				if err := r.CheckIndexed(d); err != nil {
					return nil, err
				}
			}
		}
		d, err := s.store.UpdateTable(ctx, r)
		if err != nil {
			return nil, err
		}
		return wire.AppendUpdateTable(nil, d), nil
	}}, err
}

func (s *Server) deleteTable(body []byte) (call, *wire.Error) {
	name, err := wire.DecodeTableName(body)
	return plain{0, func(ctx context.Context) ([]byte, *wire.Error) {
		if _, err := s.table(name); err != nil {
			return nil, err
		}
		t := s.store.Table(name)
		if err := s.store.DeleteTable(ctx, name); err != nil {
			return nil, err
		}
		s.sim.forget(t)
		return nil, nil
	}}, err
}

func (s *Server) createIndex(body []byte) (call, *wire.Error) {
	r, err := wire.DecodeCreateIndex(body)
	return plain{0, func(ctx context.Context) ([]byte, *wire.Error) {
		if _, err := s.table(r.Table); err != nil {
			return nil, err
		}
		return nil, s.store.CreateIndex(ctx, r)
	}}, err
}

func (s *Server) dropIndex(body []byte) (call, *wire.Error) {
	r, err := wire.DecodeDropIndex(body)
	return plain{0, func(ctx context.Context) ([]byte, *wire.Error) {
		if _, err := s.table(r.Table); err != nil {
			return nil, err
		}
		return nil, s.store.DropIndex(ctx, r)
	}}, err
}

func (s *Server) splitPoints(body []byte) (call, *wire.Error) {
	r, err := wire.DecodeSplitPoints(body)
	return plain{0, func(ctx context.Context) ([]byte, *wire.Error) {
		t, err := s.table(r.Name)
		if err != nil {
			return nil, err
		}
		points, err := s.store.SplitPoints(ctx, t, r)
		if err != nil {
			return nil, err
		}
		splits := int64(len(points) + 1)
		return wire.AppendSplitPoints(nil, wire.Capacity{Read: int32(splits)}, t.Describe().Key, points, s.sim.locations(t, points)), nil
	}}, err
}
