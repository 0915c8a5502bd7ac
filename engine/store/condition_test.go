package store

import (
	"context"
	"testing"

	"example.com/tsimport/engine/filter"
	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// missingX is the bytes of a filter on column x, which no row has: it passes them or not.
func missingX(t *testing.T, passes bool) *filter.Filter {
	t.Helper()
	b := []byte("\x08\x01\x12\x14\x08\x01\x12\x01x\x1a\x09\x00\x01\x00\x00\x00\x00\x00\x00\x00\x20\x01\x28\x01")
	if passes {
		b[len(b)-3] = 0
	}
	f, err := filter.DecodeCondition(b)
	must(t, err)
	return f
}

// patient is a context that ends when it has been asked a number of times.
type patient struct {
	context.Context
	asked int
}

func (c *patient) Err() error {
	if c.asked--; c.asked < 0 {
		return context.Canceled
	}
	return nil
}

// A filter may take long over a row, so the client's leaving is noticed at each.
func TestARangeWithAFilterStopsAtTheNextRowAfterItsClientDisconnects(t *testing.T) {
	s := open(t, Options{})
	tab := newTable(t, s, -1, 1)
	for k := range int64(20) {
		apply(t, s, tab, change(wire.PutRow, k))
	}
	q := &wire.GetRange{
		Start: []wire.Cell{{Name: []byte("k"), Type: wire.InfMin}}, End: []wire.Cell{{Name: []byte("k"), Type: wire.InfMax}},
	}
	if _, err := s.Range(&patient{ctx, 10}, tab, q, missingX(t, true)); err == nil || err.Message != readError(context.Canceled).Message {
		t.Error(err)
	}
	if p, err := s.Range(&patient{ctx, 100}, tab, q, missingX(t, true)); err != nil || len(p.Rows) == 0 {
		t.Error(p, err)
	}
	if p, err := s.Range(&patient{ctx, 10}, tab, q, nil); err != nil || len(p.Rows) == 0 {
		t.Error(p, err)
	}
}

func TestAConditionalBatchAppliesNothingWhenItsClientHasGone(t *testing.T) {
	s := open(t, Options{Now: (&clock{}).now})
	tab := newTable(t, s, -1, 1)
	passes := missingX(t, true)
	changes := make([]wire.Change, 3)
	for i := range changes {
		changes[i] = change(wire.PutRow, int64(i))
		changes[i].Condition = []byte{1}
	}
	w := TableWrite{Table: tab, Changes: changes, Conditions: []*filter.Filter{passes, passes, passes}, Outcomes: make([]wire.Outcome, 3)}
	if err := s.Write(&patient{ctx, 2}, []TableWrite{w}, false); err == nil || *err != *cancelled() {
		t.Error(err)
	}
	for k := range int64(3) {
		conformance.Equal(t, read(t, s, tab, k), "-", "row %d is there", k)
	}
}
