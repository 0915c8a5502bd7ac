package intake

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Stretch is records of a source that follow each other.
type Stretch struct {
	From    source.Place // of the first
	Records int64
	Bytes   int64 // of the source, about
}

// Outline reads the one source of a plan and returns where its records are: stretches of about a split each, or of a row group. Sources
// that state their rows are hardly read.
func Outline(outer context.Context, p *plan.Plan) (all []Stretch, err error) {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	f := New(p, partitioner.NewMap(nil))
	splits := f.stages(ctx, group, slices.Values(p.Sources))
	f.parsers(group, func(p *parser) error { return p.run(ctx, splits.work, p.count) })
	var failed error
	group.Go(func() error {
		defer cancel() // as readInOrder
		last := 0      // group of the last stretch
		failed = splits.each(ctx, func(j *job, made *Parsed, records, lines int64) error {
			if n := len(all); n > 0 && last > 0 && j.split.Group == last {
				all[n-1].Records += int64(made.Records)
				all[n-1].Bytes += j.split.Bytes
				return nil
			}
			last = j.split.Group
			from := source.Place{Record: records, Line: lines, Offset: j.split.Offset}
			all = append(all, Stretch{From: from, Records: int64(made.Records), Bytes: j.split.Bytes})
			return nil
		})
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if outer.Err() != nil {
		return nil, context.Cause(outer)
	}
	return all, failed
}

// count counts the records and lines of the split of a job.
func (p *parser) count(ctx context.Context, j *job) {
	sp, err := p.forSource(j.source)
	made := &Parsed{Records: int(j.split.Rows)}
	if err == nil && made.Records == 0 {
		made, err = p.inTurn(ctx, sp, j.turn, func() (*Parsed, error) {
			records, lines, err := sp.parser.Parse(j.split, func(*record.Record) {})
			return &Parsed{Records: records, lines: lines}, err
		})
	}
	j.parsed <- part{Handed: Handed{Parsed: made, Err: err}, last: true} // buffered: never blocks
}
