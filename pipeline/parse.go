package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tsimport/encode"
	"tsimport/reader"
	"tsimport/reader/convert"
	"tsimport/reader/record"
	"tsimport/table"
)

// job is a piece of a source on its way to splits, or a split on its way to a block, or, as the last job, why the input
// ends early.
type job struct {
	source *source
	first  bool // of its source
	last   bool // of its source: no piece

	piece    *reader.Piece
	prepared chan error // one, when the piece is prepared

	split reader.Split
	block chan parsed // one, when the split is parsed

	err error
}

// parsed is a block, or why its split cannot be parsed.
type parsed struct {
	block *table.Block
	err   error
}

// handed is what the dispatcher gets: the next block in source order, or why there are no more.
type handed struct {
	block *table.Block
	err   error
}

// The reading stages end without an error when their context ends: whoever ended it knows why.

func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

func receive[T any](ctx context.Context, from <-chan T) (v T, ok bool) {
	select {
	case v, ok = <-from:
		return v, ok
	case <-ctx.Done():
		return v, false
	}
}

// feed reads the sources in order and hands every piece to the workers and, in the same order, to stitch. What was read
// before an error is loaded.
func feed(ctx context.Context, sources []*source, work, pieces chan<- *job) error {
	for _, s := range sources {
		if err := feedPieces(ctx, s, work, pieces); err != nil {
			if ctx.Err() != nil || !send(ctx, pieces, &job{source: s, err: err}) {
				return nil
			}
			break
		}
	}
	close(pieces)
	return nil
}

func feedPieces(ctx context.Context, s *source, work, pieces chan<- *job) error {
	for first := true; ; first = false {
		piece, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		j := &job{source: s, first: first, piece: piece, prepared: make(chan error, 1)}
		if !send(ctx, pieces, j) || !send(ctx, work, j) {
			return context.Cause(ctx)
		}
	}
	if !send(ctx, pieces, &job{source: s, last: true}) {
		return context.Cause(ctx)
	}
	return nil
}

// stitch takes the prepared pieces in order and hands the splits they make to the workers and, in the same order, to the
// hand-over. It alone knows when there is no more work.
func stitch(ctx context.Context, pieces <-chan *job, work, order chan<- *job) error {
	first := true
	for {
		j, ok := receive(ctx, pieces)
		if !ok {
			if ctx.Err() == nil {
				close(work)
				close(order)
			}
			return nil
		}
		splits, err := stitchOne(ctx, j)
		for _, sp := range splits {
			split := &job{source: j.source, first: first, split: sp, block: make(chan parsed, 1)}
			first = false
			if !send(ctx, order, split) || !send(ctx, work, split) {
				return nil
			}
		}
		first = first || j.last
		if err != nil {
			// Nothing after it can be trusted to be in its place.
			if send(ctx, order, &job{err: err}) {
				close(order)
			}
			return nil
		}
		if j.last && !send(ctx, order, j) {
			return nil
		}
	}
}

// stitchOne returns the splits that are whole after the job, and why there are no more.
func stitchOne(ctx context.Context, j *job) ([]reader.Split, error) {
	switch {
	case j.err != nil:
		return j.source.Whole(), j.err
	case j.last:
		return j.source.Finish(), nil
	}
	prepareErr, ok := receive(ctx, j.prepared)
	if !ok {
		return nil, nil
	}
	splits, err := j.source.Add(j.piece)
	if prepareErr != nil {
		splits, err = append(splits, j.source.Whole()...), prepareErr
	}
	return splits, err
}

// parser is one worker of the reading stages: it prepares pieces, and makes rows of the records of splits.
type parser struct {
	plan     *Plan
	cfg      *Config
	encoder  *encode.Encoder
	worker   reader.Worker
	sources  map[*source]*sourceParser
	integers map[string]bool // input columns that are loaded as plain integers
	growth   float64         // encoded bytes per input byte of the last block
}

// sourceParser is what a worker keeps for a source.
type sourceParser struct {
	parser  *reader.Parser
	convert *convert.Converter
}

func newParser(plan *Plan, cfg *Config) *parser {
	encoder := encode.New(plan.Schema, cfg.Write.Mode, cfg.Write.DeleteNull)
	encoder.Window = plan.window(cfg)
	return &parser{
		plan: plan, cfg: cfg, encoder: encoder,
		sources: map[*source]*sourceParser{}, integers: plan.integers(),
		growth: 3,
	}
}

func (p *parser) run(ctx context.Context, work <-chan *job) error {
	defer p.close()
	for {
		j, ok := receive(ctx, work)
		if !ok {
			return nil
		}
		if j.piece != nil {
			j.prepared <- p.worker.Prepare(j.piece) // has room for the one answer
			continue
		}
		b, err := p.parse(j)
		j.block <- parsed{b, err} // has room for the one block
	}
}

func (p *parser) close() {
	p.worker.Close()
	for _, s := range p.sources {
		_ = s.parser.Close() // nothing is written that could be lost
	}
}

// of returns the worker's parser for a source. Those of sources that are done are let go.
func (p *parser) of(s *source) (*sourceParser, error) {
	if sp := p.sources[s]; sp != nil {
		return sp, nil
	}
	for old, sp := range p.sources {
		_ = sp.parser.Close() // as in close
		delete(p.sources, old)
	}
	options := p.cfg.Read.Convert
	options.Decode = s.Decode()
	c, err := convert.New(s.Columns, p.plan.Schema.Columns, options)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Name, err)
	}
	sp := &sourceParser{parser: s.NewParser(c.Fields()), convert: c}
	p.sources[s] = sp
	return sp, nil
}

func (p *parser) parse(j *job) (*table.Block, error) {
	sp, err := p.of(j.source)
	if err != nil {
		return nil, err
	}
	size := len(j.split.Data)
	if size == 0 {
		size = int(min(j.split.Bytes, reader.DefaultSplitBytes))
	}
	b := &table.Block{
		Source: j.source.Name, Header: j.source.header, Split: j.split.Number,
		Raw: j.split.Data, Offset: j.split.Offset, Input: j.split.Bytes,
		Data: make([]byte, 0, int(p.growth*float64(size))+1024),
	}
	b.Records, b.Lines, err = sp.parser.Parse(j.split, func(rec *record.Record) {
		values, why := sp.convert.Convert(rec)
		var stamps []int64
		if why == nil {
			stamps, why = sp.convert.Stamps(rec)
		}
		if why == nil {
			why = p.encoder.Append(b, values, stamps, rec.Mark)
		}
		if why != nil {
			b.RejectAt(rec.Mark, *why)
			if b.Raw == nil {
				b.Rejects[len(b.Rejects)-1].Raw = appendRecord(nil, j.source.Columns, rec, p.integers)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if size > 0 {
		p.growth = min(200, 1.05*float64(len(b.Data))/float64(size))
	}
	return b, nil
}

// handOver waits for the blocks in source order, numbers their records and passes them on. It closes blocks only when
// every block has been passed on.
func handOver(ctx context.Context, order <-chan *job, blocks chan<- handed) error {
	var records, lines int64
	for {
		j, ok := receive(ctx, order)
		if !ok {
			if ctx.Err() == nil {
				close(blocks)
			}
			return nil
		}
		if j.last {
			// Only now has every split been parsed, for which some formats read the source.
			if err := j.source.Close(); err == nil {
				continue
			} else {
				j.err = fmt.Errorf("close input %s: %w", j.source.Name, err)
			}
		}
		h := handed{err: j.err}
		if j.err == nil {
			p, ok := receive(ctx, j.block)
			if !ok {
				return nil
			}
			h = handed(p)
		}
		if h.err == nil {
			if j.first {
				records, lines = 0, int64(j.source.HeaderLines())
			}
			h.block.FirstRecord, h.block.FirstLine = records, lines
			records += int64(h.block.Records)
			lines += int64(h.block.Lines)
		}
		if !send(ctx, blocks, h) {
			return nil
		}
		if h.err != nil {
			// What follows a part that cannot be read is not loaded: it would be out of its place.
			close(blocks)
			return nil
		}
	}
}
