package apply

import (
	"context"
	"errors"
	"time"

	"example.com/tsimport/internal/lifecycle"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/transfer/lifecycle/archive"
)

// Request selects the tables and the policy.
type Request struct {
	Admin    *client.Admin
	Target   string // name of the instance, as in export manifests
	Policy   *lifecycle.Policy
	Template *lifecycle.Template
	Now      time.Time      // the time for which ages are computed
	Archive  *archive.Place // archive of the policy's last class; nil if the class does not archive
	// DropExpired drops expired tables. A table of a class that archives is dropped only after its export.
	DropExpired bool
}

// State is the progress of a table's change.
type State string

const (
	Unchanged State = "unchanged" // nothing to do
	Planned   State = "planned"
	Done      State = "done"
	Failed    State = "failed"
)

type Item struct {
	lifecycle.Change
	State State
	Err   error  // why the state is Failed
	Note  string // note for the user; may be ""

	Export  *archive.Manifest // the complete export of an expired table, or nil
	Drop    bool              // the plan is to drop the table
	Dropped bool              // the table has been dropped

	table *client.Table // the table as Look found it
}

// Exports reports whether an expired table still needs a complete export.
func (i *Item) Exports() bool { return i.Class.Archives() && i.Export == nil }

type Plan struct {
	Request
	Items  []*Item  // sorted by period
	Others []string // tables whose names only resemble the template
}

// Look determines the changes that the policy requires. It changes nothing.
func Look(ctx context.Context, r Request) (*Plan, error) {
	if err := r.Policy.Fits(r.Template); err != nil {
		return nil, err
	}
	names, err := r.Admin.List()
	if err != nil {
		return nil, err
	}
	p := &Plan{Request: r}
	names, p.Others = r.Template.Matching(names)
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		item, err := r.look(ctx, name)
		if errors.Is(err, client.ErrNoTable) {
			continue // it was dropped after it was listed
		}
		if err != nil {
			return nil, err
		}
		p.Items = append(p.Items, item)
	}
	return p, nil
}

func (r *Request) look(ctx context.Context, name string) (*Item, error) {
	described, err := r.Admin.Describe(name)
	if err != nil {
		return nil, err
	}
	period, _ := r.Template.Period(name)
	have := lifecycle.Table{Name: name, Read: described.ReservedRead, Write: described.ReservedWrite,
		TTL: described.TimeToLive, MaxVersions: described.MaxVersions}
	i := &Item{Change: r.Policy.Change(period, have, r.Now), State: Unchanged, table: described}
	if i.Class.Archives() {
		if i.Export, err = r.exported(ctx, i); err != nil {
			return nil, err
		}
	}
	i.Drop = r.DropExpired && i.Expired()
	if i.Class.Drop && !i.Drop {
		i.Note = "expired; --drop-expired drops it without an archive"
	}
	if i.Shortens() {
		i.Note = "cells older than the new ttl, and surplus versions, are lost at once"
	}
	if len(i.Settings()) > 0 || i.Exports() || i.Drop {
		i.State = Planned
	}
	return i, nil
}

// exported returns an expired table's complete export, or nil. An export whose archive is missing does not count.
func (r *Request) exported(ctx context.Context, i *Item) (*archive.Manifest, error) {
	m, err := r.Archive.Latest(ctx, r.Target, i.Have.Name)
	if err != nil || m == nil || m.State != archive.Verified {
		return nil, err
	}
	if whole, err := r.Archive.Whole(ctx, m); !whole || err != nil {
		return nil, err
	}
	return m, nil
}

// File returns the place of an expired table's complete export, or "" if there is none.
func (p *Plan) File(i *Item) string {
	if i.Export == nil {
		return ""
	}
	return p.Archive.Path(i.Export)
}
