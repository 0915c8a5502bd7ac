package plan

import (
	"context"
	"errors"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/reader/input"
)

// Selection chooses the inputs to load from those found.
type Selection interface {
	// Select returns the inputs to load into the table, in order, and notes for the user. created is as in client.Table,
	// or 0 if the table does not exist yet. earlier has the names that the first attempt of a resumed load chose; it is
	// nil in the first attempt. Inputs in without are left out.
	Select(ctx context.Context, found []input.Item, created int64, earlier []string,
		without map[string]bool) (chosen []input.Item, notes []string, err error)
}

// Units is implemented by a Selection that remembers the units of the table's columns between loads.
type Units interface {
	Units() map[string]string // returns units by column; valid once Select was called
	KeepUnits(units map[string]string)
}

// NothingNew means that no input is left to load, although some were found.
type NothingNew struct {
	Found int      // number of inputs found
	Notes []string // why none are left
}

func (*NothingNew) Error() string { return "nothing new to load" }

func (p *planner) choose(ctx context.Context, set *input.Set) error {
	r := p.request
	if r.Selection == nil {
		if set.Items = input.Others(set.Items, r.Without); len(set.Items) == 0 {
			return &NothingNew{}
		}
		return nil
	}
	created := int64(0)
	if !r.Target.Absent {
		t, err := p.admin.Describe(r.Target.Table)
		switch {
		case errors.Is(err, client.ErrNoTable):
		case err != nil:
			return err
		default:
			created = t.Created
		}
	}
	found := len(set.Items)
	chosen, notes, err := r.Selection.Select(ctx, set.Items, created, r.Chosen, r.Without)
	if err != nil {
		return cannotLoad(ctx, err)
	}
	if len(chosen) == 0 {
		return &NothingNew{Found: found, Notes: notes}
	}
	p.plan.Notes = append(p.plan.Notes, notes...)
	p.plan.Chosen = []string{}
	for _, i := range chosen {
		p.plan.Chosen = append(p.plan.Chosen, i.Name)
	}
	set.Items = chosen
	return nil
}
