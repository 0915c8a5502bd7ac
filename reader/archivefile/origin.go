package archive

import (
	"context"
	"path"
	"path/filepath"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/source"
)

// Origin is the parts of an
type Origin struct {
	m       *Manifest
	key     []table.KeyColumn
	checked bool
}

// New makes an Origin.
func New(m *Manifest) *Origin { return &Origin{m: m, key: m.Key} }

// ByParts is for a process that reads some of the parts, after another has checked them all: each is checked as it is read to its end.
func (o *Origin) ByParts() { o.checked = true }

// Divide keeps nothing: an archive has the parts that it has.
func (o *Origin) Divide(context.Context) ([]byte, error) { return nil, nil }

// Position is of a little before the export began, by the clock of the machine that made it.
func (o *Origin) Position() (p source.Position) {
	if !o.m.Began.IsZero() {
		p.ResumeFrom = source.ResumeAt(o.m.Began.Add(-source.Lead))
	}
	return p
}

// Open checks the parts, once, and opens them.
func (o *Origin) Open(ctx context.Context, _ []byte) (parts []source.Source, err error) {
	if !o.checked {
		if err := o.m.Check(ctx); err != nil {
			return nil, err
		}
		o.checked = true
	}
	for i := range o.m.Parts {
		p := &o.m.Parts[i]
		parts = append(parts, &part{ctx: ctx, of: o, entry: p, name: path.Join(path.Base(filepath.ToSlash(o.m.Dir())), p.Name)})
	}
	return parts, nil
}
