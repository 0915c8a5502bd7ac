package intake

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"tsimport/pipeline/plan"
	"tsimport/pipeline/readorder"
	"tsimport/reader/record"
	"tsimport/reader/source"
)

// region is a part of a source that is read in one go: a section or a split of text, a row group of Parquet.
type region struct {
	section *readorder.Section // nil if it has splits
	source  *plan.Source
	splits  []source.Split // without data
	records []int64        // of each
	first   int64          // records of the source before it
	line    int64          // lines of the source before it
	key     []byte         // ordering key that it begins with; nil is unknown

	coming *demand // which expects its rows for the lane
	lane   int
}

func (g *region) rows() (n int64) {
	for _, r := range g.records {
		n += r
	}
	return n
}

// find returns the regions of the sources, and why there are no more.
func (f *Flow) find(ctx context.Context, sources []*plan.Source) (regions []*region, failed error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, groupCtx := errgroup.WithContext(ctx)
	order := f.stages(groupCtx, group, slices.Values(sources))
	f.parsers(group, func(p *parser) error { return p.run(groupCtx, order.work, p.countOnce) })
	group.Go(func() error {
		defer cancel() // as readInOrder
		regions, failed = collect(groupCtx, order.splits, order.budget)
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return regions, failed
}

// findSorted returns the regions of sources that are text and sorted, at least here and there, in an order that uses the keys evenly;
// false of others. A split of them has few keys: rows would come from some keys at a time, and a partition that is halved meanwhile
// has uneven halves.
func (f *Flow) findSorted(ctx context.Context, sources []*plan.Source) (regions []*region, ok bool) {
	size := int64(0)
	bySource := map[int]*plan.Source{}
	for _, s := range sources {
		if !divisible(s) {
			return nil, false
		}
		size += s.About().Bytes
		bySource[s.Ordinal] = s
	}
	if when := f.scheduling.When; when == Never || when == WhenItPays && size < minScheduledBytes {
		return nil, false
	}
	_, sections, err := f.firstPass(ctx, sources, pass{textOnly: true})
	if err != nil || ctx.Err() != nil || f.scheduling.When == WhenItPays && !worthwhile(sections) {
		return nil, false // as for a schedule
	}
	for _, i := range readorder.Spread(sections) {
		s := &sections[i]
		g := &region{section: s, source: bySource[s.Source], records: []int64{s.Records}, first: s.Record, line: s.Line}
		if len(s.Keys) > 0 {
			g.key = s.Keys[0].Lower
		}
		regions = append(regions, g)
	}
	return regions, true
}

// countOnce counts a split as a job.
func (p *parser) countOnce(ctx context.Context, j *job) {
	sp, err := p.forSource(j.source)
	var made *Parsed
	if err == nil {
		made, err = p.inTurn(ctx, sp, j.turn, func() (*Parsed, error) { return p.count(j.source, j.split) })
	}
	j.parsed <- part{Handed: Handed{Parsed: made, Err: err}, last: true} // buffered: never blocks
}

// count counts the records and lines of a split and finds the key it begins with. Splits of Parquet, which states its
// counts, are read for their first row only, and only where a row group begins.
func (p *parser) count(s *plan.Source, split source.Split) (*Parsed, error) {
	sp, err := p.forSource(s)
	if err != nil {
		return nil, err
	}
	made := &Parsed{}
	first := func(rec *record.Record) {
		if made.key == nil {
			made.key = sp.values.key(rec)
		}
	}
	if split.Rows > 0 {
		made.Records = int(split.Rows)
		if made.key = sp.keyOf(s, split.Keys); made.key != nil {
			return made, nil
		}
		if head, ok := random(s).Head(split); ok {
			_, _, err = sp.parser.Parse(head, first)
		}
		return made, err
	}
	made.Records, made.lines, err = sp.parser.Parse(split, first)
	return made, err
}

// keyOf returns the ordering key of the first key of a split, nil if it is not known without reading.
func (sp *sourceParser) keyOf(s *plan.Source, keys []source.KeyInterval) []byte {
	if !s.Keyed || len(keys) == 0 {
		return nil
	}
	rec := &record.Record{Fields: make([]record.Datum, len(sp.columns))}
	for i, k := range s.About().Unique {
		if at := slices.Index(sp.columns, k.Name); at >= 0 && i < len(keys[0].First) {
			rec.Fields[at] = keys[0].First[i]
		}
	}
	return sp.values.key(rec)
}

// collect makes regions of splits that come in source order.
func collect(ctx context.Context, splits <-chan *job, r *byteBudget) (regions []*region, failed error) {
	var records, lines int64
	for {
		j, ok := receive(ctx, splits)
		switch {
		case !ok:
			return regions, nil
		case j.last:
			if err := j.source.Close(); err != nil {
				return regions, err
			}
			continue
		case j.err != nil:
			return regions, j.err
		}
		close(j.turn)
		made, ok := receive(ctx, j.parsed)
		r.add(-j.bytes)
		switch {
		case !ok:
			return regions, nil
		case made.Err != nil:
			return regions, made.Err
		}
		if j.first {
			records, lines = 0, j.source.Begin().Line
		}
		n := int64(made.Records)
		if last := len(regions) - 1; !j.first && last >= 0 && j.split.Group > 0 && regions[last].splits[0].Group == j.split.Group {
			regions[last].splits = append(regions[last].splits, j.split.Place())
			regions[last].records = append(regions[last].records, n)
		} else {
			regions = append(regions, &region{
				source: j.source, splits: []source.Split{j.split.Place()}, records: []int64{n}, first: records, line: lines, key: made.key,
			})
		}
		records += n
		lines += int64(made.lines)
	}
}
