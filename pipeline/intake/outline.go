package intake

import (
	"context"

	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Stretch is a run of consecutive records of a source.
type Stretch struct {
	From    source.Place // place of the first record
	Records int64
	Bytes   int64 // approximate bytes of the source
}

// Outline reads the only source of a plan and returns where its records are. Each stretch is a split or a row group.
func Outline(ctx context.Context, p *plan.Plan) (all []Stretch, err error) {
	last := 0 // group of the last stretch
	err = New(p, partitioner.NewMap(nil)).readThrough(ctx, p.Sources, count,
		func(j *job, made *Parsed, records, lines int64) error {
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
	return all, err
}

func count(ctx context.Context, p *parser, j *job) {
	sp, err := p.forSource(j.source)
	made := &Parsed{Records: int(j.split.Rows)}
	if err == nil && made.Records == 0 {
		made, err = p.inTurn(ctx, sp, j.turn, func() (*Parsed, error) {
			records, lines, err := sp.parser.Parse(j.split, func(*record.Record) {})
			return &Parsed{Records: records, lines: lines}, err
		})
	}
	j.parsed <- part{handed: Handed{Parsed: made, Err: err}, last: true} // never blocks, as it is buffered
}
