package server

import (
	"context"
	"slices"
	"sync"

	"example.com/tsimport/engine/filter"
	"example.com/tsimport/engine/store"
	"example.com/tsimport/engine/wire"
)

// answerOf selects the form of a write's answer.
type answerOf uint8

const (
	ofRow   answerOf = iota // PutRow, UpdateRow, DeleteRow
	ofBatch                 // BatchWriteRow
	ofBulk                  // BulkImport
)

// write is a call of PutRow, UpdateRow, DeleteRow, BatchWriteRow or BulkImport. It is pooled, as it may take half a
// megabyte.
type write struct {
	server   *Server
	answer   answerOf
	request  wire.WriteRequest
	tables   []store.TableWrite
	filters  []*filter.Filter // the rows' column conditions; empty if no row has one
	outcomes []wire.Outcome
	answers  []wire.TableOutcomes
}

var writes = sync.Pool{New: func() any { return &write{} }}

func writeOf(answer answerOf, decode func(*wire.WriteRequest, []byte) *wire.Error) operation {
	return func(s *Server, body []byte) (call, *wire.Error) {
		w := writes.Get().(*write)
		w.server, w.answer = s, answer
		err := decode(&w.request, body)
		if err == nil {
			err = w.decodeConditions()
		}
		if err != nil {
			w.release()
			return nil, err
		}
		n := w.request.Rows()
		if cap(w.outcomes) < n {
			w.outcomes = make([]wire.Outcome, n)
		}
		w.outcomes = w.outcomes[:n]
		return w, nil
	}
}

// decodeConditions decodes the rows' column conditions. It leaves filters empty if there are none, which is usual.
func (w *write) decodeConditions() (err *wire.Error) {
	row := 0
	for i := range w.request.Tables {
		changes := w.request.Tables[i].Changes
		for j := range changes {
			if c := changes[j].Condition; len(c) > 0 {
				if len(w.filters) == 0 {
					w.filters = append(w.filters, make([]*filter.Filter, w.request.Rows())...)
				}
				if w.filters[row], err = filter.DecodeCondition(c); err != nil {
					return err
				}
			}
			row++
		}
	}
	return nil
}

func writeOne(op wire.RowOp) operation {
	return writeOf(ofRow, func(r *wire.WriteRequest, body []byte) *wire.Error { return r.DecodeRow(op, body) })
}

func (w *write) rows() int { return len(w.outcomes) }

func (w *write) refuse(code func(int) string) {
	for i := range w.outcomes {
		if c := code(i); c != "" {
			w.outcomes[i].Err = wire.Fail(c)
		}
	}
}

func (w *write) visit(v *visit) {
	v.outcomes = w.outcomes
	for i := range w.request.Tables {
		t := &w.request.Tables[i]
		v.open(t.Name)
		for j := range t.Changes {
			v.change(&t.Changes[j], &w.outcomes[len(v.rows)])
		}
	}
}

// units returns the instance's capacity units that the rows consume.
func (w *write) units() (sum float64) {
	for i := range w.request.Tables {
		t := &w.request.Tables[i]
		copies := w.server.sim.copies(t.Name)
		for j := range t.Changes {
			row := t.Changes[j].Row
			sum += float64(copies) * float64(wire.Units(row.DataBytes()))
		}
	}
	return sum
}

func (w *write) settle(row int, err *wire.Error) { w.outcomes[row].Err = err }

func (w *write) run(ctx context.Context) ([]byte, *wire.Error) {
	rest := w.outcomes
	for i := range w.request.Tables {
		t := &w.request.Tables[i]
		n := len(t.Changes)
		w.tables = append(w.tables, store.TableWrite{Table: w.server.lookup(t.Name), Changes: t.Changes, Outcomes: rest[:n]})
		if len(w.filters) > 0 {
			w.tables[i].Conditions = w.filters[len(w.outcomes)-len(rest):][:n]
		}
		w.answers = append(w.answers, wire.TableOutcomes{Name: t.Name, Outcomes: rest[:n]})
		rest = rest[n:]
	}
	var err *wire.Error
	if id := w.request.Transaction; len(id) > 0 {
		err = w.server.store.WriteIn(id, w.tables, w.request.Atomic)
	} else {
		err = w.server.store.Write(ctx, w.tables, w.request.Atomic)
	}
	if err != nil {
		return nil, err
	}
	switch w.answer {
	case ofBatch:
		return wire.AppendBatch(make([]byte, 0, 64+16*len(w.outcomes)), w.answers, false), nil
	case ofBulk:
		sizes := make([]int, len(w.outcomes))
		for i, c := range w.request.Tables[0].Changes {
			sizes[i] = c.Row.DataBytes()
		}
		return wire.AppendBulkImport(make([]byte, 0, 64+16*len(sizes)), &w.answers[0], sizes), nil
	}
	if o := &w.outcomes[0]; o.Err != nil {
		return nil, o.Err
	}
	return wire.AppendWrite(nil, &w.outcomes[0]), nil
}

func (w *write) release() {
	w.request.Reset()
	clear(w.outcomes)
	clear(w.tables)
	clear(w.answers)
	clear(w.filters)
	w.tables, w.answers, w.filters, w.server = w.tables[:0], w.answers[:0], w.filters[:0], nil
	writes.Put(w)
}

// selected checks a selection and returns its filter, or nil if it has none.
func selected(sel *wire.Selection, when string) (*filter.Filter, *wire.Error) {
	f, err := filter.Decode(sel.Filter)
	if err == nil {
		err = sel.CheckVersions(when)
	}
	return f, err
}

func (s *Server) getRow(body []byte) (call, *wire.Error) {
	r, err := wire.DecodeGetRow(body)
	if err != nil {
		return nil, err
	}
	f, err := selected(&r.Selection, "")
	if err != nil {
		return nil, err
	}
	visit := func(v *visit) { v.open(r.Name); v.key(r.Key) }
	return &plain{n: 1, keys: visit, f: func(context.Context) ([]byte, *wire.Error) {
		t, err := s.table(r.Name)
		if err != nil {
			return nil, err
		}
		o := s.store.GetIn(r.Transaction, t, r.Key, &r.Selection, f)
		if o.Err != nil {
			return nil, o.Err
		}
		return wire.AppendGetRow(nil, &o), nil
	}}, nil
}

func (s *Server) batchGet(body []byte) (call, *wire.Error) {
	tables, err := wire.DecodeBatchGet(body)
	if err != nil {
		return nil, err
	}
	rows := 0
	filters := make([]*filter.Filter, len(tables))
	for i := range tables {
		rows += len(tables[i].Keys)
		if filters[i], err = selected(&tables[i].Selection, " while querying row"); err != nil {
			return nil, err
		}
	}
	var lost map[int]*wire.Error // by key, counted over all tables
	return &plain{n: rows, keys: func(v *visit) {
		for i := range tables {
			v.open(tables[i].Name)
			for _, key := range tables[i].Keys {
				v.key(key)
			}
		}
	}, lost: func(key int, err *wire.Error) {
		if lost == nil {
			lost = make(map[int]*wire.Error)
		}
		lost[key] = err
	}, f: func(ctx context.Context) ([]byte, *wire.Error) {
		answers := make([]wire.TableOutcomes, len(tables))
		n := 0
		for i := range tables {
			r := &tables[i]
			answers[i] = wire.TableOutcomes{Name: r.Name, Outcomes: make([]wire.Outcome, len(r.Keys))}
			t := s.lookup(r.Name)
			for j, key := range r.Keys {
				if len(key) > wire.MaxKeyColumns && (t == nil || !t.IsIndex()) {
					return nil, wire.TooManyKeyColumns()
				}
				if filters[i] != nil && ctx.Err() != nil { // matching a regular expression may take a long time
					return nil, wire.Failf(wire.CodePartitionUnavailable, "The request was cancelled.")
				}
				if err := lost[n]; err != nil {
					answers[i].Outcomes[j].Err = err
				} else if t == nil {
					answers[i].Outcomes[j].Err = wire.Fail(wire.CodeObjectNotExist)
				} else {
					answers[i].Outcomes[j] = s.store.Get(t, key, &r.Selection, filters[i])
				}
				n++
			}
		}
		return wire.AppendBatch(nil, answers, true), nil
	}}, nil
}

func rangeOf(decode func([]byte) (*wire.GetRange, *wire.Error)) operation {
	return func(s *Server, body []byte) (call, *wire.Error) {
		r, err := decode(body)
		if err != nil {
			return nil, err
		}
		f, err := selected(&r.Selection, "")
		if err != nil {
			return nil, err
		}
		c := &plain{keys: func(v *visit) { v.open(r.Name); v.key(r.Start) }}
		c.f = func(ctx context.Context) ([]byte, *wire.Error) {
			t, err := s.table(r.Name)
			if err != nil {
				return nil, err
			}
			p, err := s.store.Range(ctx, t, r, f)
			if err != nil {
				return nil, err
			}
			c.page = p
			if r.Block == wire.SimpleRowMatrix {
				matrix, err := r.Matrix(t.Describe().Key, p.Rows)
				if matrix != nil || err != nil {
					before, after := r.Around(p.Consumed, p.Scanned, len(matrix), p.Next)
					return slices.Concat(before, matrix, after), err
				}
			}
			return p.Between(r.Around(p.Consumed, p.Scanned, len(p.Rows), p.Next)), nil
		}
		return c, nil
	}
}
