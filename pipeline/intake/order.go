package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/shuffle/readorder"
)

// job is a piece of a source that becomes splits, a split that becomes rows, or the reason why the input ends early.
type job struct {
	source *plan.Source
	first  bool      // the first of its source
	last   bool      // the end of its source, without a piece
	begun  time.Time // when reading of the source began
	budget *byteBudget

	piece    source.Piece
	prepared chan error // receives one value when the piece is prepared

	split  source.Split
	parsed chan part     // parts of the split that were made ahead of its turn
	later  chan part     // later parts
	turn   chan struct{} // closed when the split's turn to be handed over has come

	section *readorder.Section // the split's section, if the source is scheduled
	at      table.Position     // position of the first record

	bytes int64 // bytes that the piece or split takes from the budget
	err   error
}

// part is the result of a part of a split, or the reason why there is none.
type part struct {
	handed Handed
	last   bool
	later  bool  // no part, but notice that the others are sent to job.later
	bytes  int64 // bytes taken from the budget, besides the split's
}

// partsAhead is the maximum number of a split's parts that wait for its turn, if there is room for them.
const partsAhead = 64

func newJob(of *job, first bool, split source.Split, bytes int64, r *byteBudget) *job {
	return &job{
		source: of.source, first: first, begun: of.begun, split: split, bytes: bytes, budget: r,
		parsed: make(chan part, partsAhead+2), later: make(chan part), turn: make(chan struct{}),
	}
}

// The reading stages end without an error when their context ends, as the owner of the context knows why.

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

// feed reads the sources one by one, and hands pieces to the workers and to stitch. Records before an error are loaded.
func feed(ctx context.Context, sources iter.Seq[*plan.Source], work, pieces chan<- *job, r *byteBudget,
	rows int64) error {
	for s := range sources {
		if err := feedPieces(ctx, s, work, pieces, r, rows); err != nil {
			if ctx.Err() != nil || !send(ctx, pieces, &job{source: s, err: err}) {
				return nil
			}
			break
		}
	}
	close(pieces)
	return nil
}

// feedPieces hands on the pieces of a source. Each takes room for its bytes, plus rows bytes for rows made of it.
func feedPieces(ctx context.Context, s *plan.Source, work, pieces chan<- *job, r *byteBudget, rows int64) error {
	begun := time.Now()
	for first := true; ; first = false {
		n := rows + s.About().Pieces
		if !r.take(ctx, n) {
			return context.Cause(ctx)
		}
		piece, err := s.Next()
		if err != nil {
			r.add(-n)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		j := &job{source: s, first: first, begun: begun, piece: piece, prepared: make(chan error, 1),
			bytes: rows + piece.Bytes()}
		r.add(j.bytes - n)
		if !send(ctx, pieces, j) || !send(ctx, work, j) {
			return context.Cause(ctx)
		}
	}
	if !send(ctx, pieces, &job{source: s, last: true, begun: begun}) {
		return context.Cause(ctx)
	}
	return nil
}

// stitch takes the prepared pieces in order. It hands their splits to the workers and, in the same order, to the
// hand-over. Only stitch knows when there is no more work, so it calls done.
func stitch(ctx context.Context, pieces <-chan *job, work, order chan<- *job, r *byteBudget, done func()) error {
	first := true
	aside := int64(0) // bytes of pieces that have made no split yet
	for {
		j, ok := receive(ctx, pieces)
		if !ok {
			if ctx.Err() == nil {
				done()
				close(order)
			}
			return nil
		}
		splits, err := stitchOne(ctx, j)
		aside += j.bytes
		r.setAside(j.bytes)
		for _, sp := range splits {
			// The first split takes the bytes of all pieces so far, although the last piece may end with the next split's text.
			split := newJob(j, first, sp, aside, r)
			r.setAside(-aside)
			first, aside = false, 0
			if !send(ctx, order, split) || !send(ctx, work, split) {
				return nil
			}
		}
		first = first || j.last
		if err != nil {
			// The places of later records are unknown.
			if send(ctx, order, &job{source: j.source, err: err}) {
				close(order)
			}
			return nil
		}
		if j.last {
			r.setAside(-aside)
			r.add(-aside) // the source has no record
			aside = 0
			if !send(ctx, order, j) {
				return nil
			}
		}
	}
}

// stitchOne returns the splits that the job completes, and an error if there can be no more.
func stitchOne(ctx context.Context, j *job) ([]source.Split, error) {
	switch {
	case j.err != nil:
		return j.source.Whole(), j.err
	case j.last:
		return j.source.Finish()
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

// handOver waits for the parsed splits in source order, numbers their records and passes them on. It reports whether it
// passed on everything, and whether it passed on an error. The watch, or a source that is set aside, stops it early.
func (f *Flow) handOver(ctx context.Context, order <-chan *job, r *byteBudget, w *watch) (complete, failed bool) {
	var records, lines int64
	var at table.Position
	for {
		j, ok := receive(ctx, order)
		if !ok {
			return ctx.Err() == nil, false
		}
		if j.last {
			// The source is closed only now, because parsing splits of some formats reads it.
			if err := j.source.Close(); err == nil {
				if !f.handEnd(ctx, j) {
					return false, false
				}
				continue
			} else {
				j.err = fmt.Errorf("close input %s: %w", j.source.Name, err)
			}
		}
		if j.err != nil {
			// Records after an unreadable part are not loaded, as they would have wrong places.
			return f.fails(ctx, j, j.err)
		}
		if w.stops(j, records, lines) {
			return false, false
		}
		switch {
		case j.section != nil:
			records, lines, at = j.section.Record, j.section.Line, j.at
		case j.first:
			begin := j.source.Begin()
			records, lines, at = begin.Record, begin.Line, table.Position{Source: j.source.Ordinal, Record: begin.Record}
		}
		if f.passes(j, at) {
			if j.section == nil {
				f.aside.stopped = j.source
				return false, false
			}
			if !passOver(ctx, j, r) {
				return false, false
			}
			continue
		}
		close(j.turn)
		parts := j.parsed
		for more := true; more; {
			h, ok := receive(ctx, parts)
			if !ok {
				return false, false
			}
			if h.later {
				parts = j.later
				continue
			}
			if h.handed.Err != nil && j.section != nil && f.setsAside(ctx, j, h.handed.Err) {
				break
			}
			if h.handed.Err != nil {
				return f.fails(ctx, j, h.handed.Err)
			}
			h.handed.Split.FirstRecord, h.handed.Split.FirstLine = records, lines
			h.handed.Split.Position = at
			records += int64(h.handed.Records)
			at.Record += int64(h.handed.Records)
			lines += int64(h.handed.lines)
			f.resumed.dropFinal(h.handed.Parsed)
			w.looks(h.handed.Parsed)
			if f.plan.Live {
				h.handed.Moment = Moment{From: j.begun, To: time.Now()}
			}
			if !send(ctx, f.splits, h.handed) {
				return false, false
			}
			r.add(-h.bytes)
			more = !h.last
		}
		r.add(-j.bytes)
		w.ends(j)
	}
}

// handEnd passes on the end of a source if its splits do not imply it. It returns false if ctx has ended.
func (f *Flow) handEnd(ctx context.Context, j *job) bool {
	if !f.plan.Live && f.plan.Request.Order != plan.OrderNone {
		return true
	}
	return send(ctx, f.splits, Handed{Ended: &Ended{Source: j.source.Ordinal,
		Moment: Moment{From: j.begun, To: time.Now()}}})
}
