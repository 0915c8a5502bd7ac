package server

import (
	"context"

	"example.com/tsimport/engine/wire"
)

// startTransaction is the operation StartLocalTransaction.
func (s *Server) startTransaction(body []byte) (call, *wire.Error) {
	r, err := wire.DecodeStartTransaction(body)
	if err != nil {
		return nil, err
	}
	return oneUnit(r.Name, r.Key, func(context.Context) ([]byte, *wire.Error) {
		t, err := s.table(r.Name)
		if err != nil {
			return nil, err
		}
		id, err := s.store.StartTransaction(t, r.Key[0])
		if err != nil {
			return nil, err
		}
		return wire.AppendStartTransaction(nil, id), nil
	}), nil
}

// endTransaction makes the operation CommitTransaction or AbortTransaction.
func endTransaction(commit bool) operation {
	return func(s *Server, body []byte) (call, *wire.Error) {
		id, err := wire.DecodeTransaction(body)
		if err != nil {
			return nil, err
		}
		table, key, _ := s.store.TransactionKey(id)
		return oneUnit([]byte(table), []wire.Cell{key}, func(ctx context.Context) ([]byte, *wire.Error) {
			return nil, s.store.EndTransaction(ctx, id, commit)
		}), nil
	}
}

// oneUnit makes a call that costs a write capacity unit of a key's partition, which the answer does not report.
func oneUnit(table []byte, key []wire.Cell, f func(context.Context) ([]byte, *wire.Error)) *plain {
	p := &plain{n: 1, unit: true}
	outcome := make([]wire.Outcome, 1)
	p.keys = func(v *visit) {
		v.open(table)
		v.key(key)
		v.rows[0].Units, v.outcomes = 1, outcome
	}
	p.f = func(ctx context.Context) ([]byte, *wire.Error) {
		out, err := f(ctx)
		outcome[0].Err = err
		return out, err
	}
	return p
}
