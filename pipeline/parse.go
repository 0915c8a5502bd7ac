package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tsimport/encode"
	"tsimport/reader"
	"tsimport/table"
)

// job is one split on its way through a parse worker, or, as the last job, why the input ends early. The block comes
// out of done.
type job struct {
	source *source
	first  bool // of its source
	split  reader.Split
	done   chan *table.Block
	err    error
}

// handed is what the dispatcher gets: the next block in source order, or why there are no more.
type handed struct {
	block *table.Block
	err   error
}

// The reading stages end without an error when their context ends: whoever ended it knows why.

// feed reads the sources in order and hands every split to the parse workers and, in the same order, to the hand-over.
// It closes both channels only when all sources are read to their ends, or as far as they can be: what was read before
// an error is loaded.
func feed(ctx context.Context, sources []*source, work, order chan<- *job) error {
	err := feedSplits(ctx, sources, work, order)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		select {
		case order <- &job{err: err}:
		case <-ctx.Done():
			return nil
		}
	}
	close(work)
	close(order)
	return nil
}

func feedSplits(ctx context.Context, sources []*source, work, order chan<- *job) error {
	for _, s := range sources {
		for first := true; ; first = false {
			split, err := s.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			j := &job{source: s, first: first, split: split, done: make(chan *table.Block, 1)}
			for _, to := range []chan<- *job{order, work} {
				select {
				case to <- j:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
		if err := s.Close(); err != nil {
			return fmt.Errorf("close input %s: %w", s.Path, err)
		}
	}
	return nil
}

// parser is one parse worker: records of a split become rows of a block.
type parser struct {
	plan       *Plan
	cfg        *Config
	encoder    *encode.Encoder
	parser     *reader.Parser
	converters map[*source]*reader.Converter
	growth     float64 // encoded bytes per input byte of the last block
}

func newParser(plan *Plan, cfg *Config) *parser {
	return &parser{
		plan: plan, cfg: cfg,
		encoder:    encode.New(plan.Schema, cfg.Write.Mode, cfg.Write.DeleteNull),
		parser:     reader.NewParser(cfg.Read.Dialect),
		converters: map[*source]*reader.Converter{},
		growth:     3,
	}
}

func (p *parser) run(ctx context.Context, work <-chan *job) error {
	for {
		select {
		case j, ok := <-work:
			if !ok {
				return nil
			}
			b, err := p.parse(j)
			if err != nil {
				return err
			}
			j.done <- b // has room for the one block
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *parser) parse(j *job) (*table.Block, error) {
	convert := p.converters[j.source]
	if convert == nil {
		var err error
		convert, err = reader.NewConverter(j.source.Columns, p.plan.Schema.Columns, p.cfg.Read.Nulls)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", j.source.Path, err)
		}
		p.converters[j.source] = convert
	}
	b := &table.Block{
		Source: j.source.Path, Header: j.source.header, Split: j.split.Number,
		Raw: j.split.Data, Offset: j.split.Offset,
		Data: make([]byte, 0, int(p.growth*float64(len(j.split.Data)))+1024),
	}
	p.parser.Reset(j.split.Data)
	for {
		rec, ok := p.parser.Next()
		if !ok {
			break
		}
		values, why := convert.Convert(rec)
		if why == nil {
			why = p.encoder.Append(b, values, rec.Mark)
		}
		if why != nil {
			b.RejectAt(rec.Mark, *why)
		}
	}
	b.Records, b.Lines = p.parser.Records(), p.parser.Lines()
	p.growth = 1.05 * float64(len(b.Data)) / float64(len(j.split.Data))
	return b, nil
}

// handOver waits for the blocks in source order, numbers their records and passes them on. It closes blocks only when
// every block has been passed on.
func handOver(ctx context.Context, order <-chan *job, blocks chan<- handed) error {
	var records, lines int64
	for {
		h := handed{}
		select {
		case j, ok := <-order:
			if !ok {
				close(blocks)
				return nil
			}
			if h.err = j.err; h.err != nil {
				break
			}
			select {
			case h.block = <-j.done:
			case <-ctx.Done():
				return nil
			}
			if j.first {
				records, lines = 0, int64(j.source.HeaderLines())
			}
			h.block.FirstRecord, h.block.FirstLine = records, lines
			records += int64(h.block.Records)
			lines += int64(h.block.Lines)
		case <-ctx.Done():
			return nil
		}
		select {
		case blocks <- h:
		case <-ctx.Done():
			return nil
		}
	}
}
