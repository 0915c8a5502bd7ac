package intake

import (
	"context"

	"tsimport/partitioner"
	"tsimport/pipeline/plan"
	"tsimport/reader/source"
)

// Stretch is records of a source that follow each other.
type Stretch struct {
	From    source.Place // of the first
	Records int64
	Bytes   int64 // of the source, about
}

// Outline reads the one source of a plan and returns where its records are: stretches of about a split each, or of a row group. Sources
// that state their rows are hardly read.
func Outline(ctx context.Context, p *plan.Plan) ([]Stretch, error) {
	regions, err := New(p, partitioner.NewMap(nil)).find(ctx, p.Sources)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	all := make([]Stretch, 0, len(regions))
	for _, g := range regions {
		s := Stretch{From: source.Place{Record: g.first, Line: g.line, Offset: g.splits[0].Offset}, Records: g.rows()}
		for _, sp := range g.splits {
			s.Bytes += sp.Bytes
		}
		all = append(all, s)
	}
	return all, nil
}
