package intake

import (
	"context"
	"errors"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
)

// Look makes rows of a sample of a plan's records, as a load would, and calls each with them. row is valid during the
// call; it is nil for an archived record, and for one that is rejected because of why. whole means that the record is
// certainly complete. each reports whether the record counts.
func Look(ctx context.Context, p *plan.Plan, each func(row *table.Ref, why *table.Reason,
	whole bool) (counts bool)) error {
	made, sources := newParser(&Flow{plan: p}), map[*plan.Source]*sourceParser{}
	var failed error
	err := p.Look(ctx, func(s *plan.Source, rec *record.Record, whole bool) bool {
		sp := sources[s]
		if sp == nil {
			v, err := newValues(p, s)
			if err != nil {
				failed = errors.Join(failed, err)
				return false
			}
			sp = &sourceParser{values: v, columns: s.About().Columns}
			sources[s] = sp
		}
		made.rows.Reset()
		archived, why := made.row(sp.values, sp.columns, rec, nil)
		if archived || why != nil {
			return each(nil, why, whole)
		}
		return each(&table.Ref{Block: &made.rows}, nil, whole)
	})
	return errors.Join(failed, err)
}
