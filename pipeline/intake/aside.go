package intake

import (
	"context"
	"errors"
	"slices"
	"sync"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
)

// Aside is a source that is not read any further.
type Aside struct {
	Source int   // ordinal of the source
	Err    error // why it is set aside
}

// asides are the sources that are set aside.
type asides struct {
	ask      func(s *plan.Source, err error) bool
	ordinals sync.Map     // keys are their ordinals
	stopped  *plan.Source // the source at which reading in order stopped, or nil; owned by the reader
}

func (a *asides) has(source int) bool {
	_, is := a.ordinals.Load(source)
	return is
}

// OnFault sets a function that reports whether a source that cannot be read further is at fault. If so, its records so
// far are kept and the next source is read. Without the function, every fault ends reading. Call it before Run.
func (f *Flow) OnFault(ask func(s *plan.Source, err error) bool) { f.aside.ask = ask }

// SetAside stops the reading of a source. Records already read are still handed over. Any goroutine may call it.
func (f *Flow) SetAside(source int) { f.aside.ordinals.Store(source, nil) }

// fails sets the source of a job aside, or else ends reading with the job's error.
func (f *Flow) fails(ctx context.Context, j *job, err error) (complete, failed bool) {
	if j.section == nil && f.setsAside(ctx, j, err) {
		f.aside.stopped = j.source
		return false, false
	}
	return send(ctx, f.splits, Handed{Err: err}), true
}

// setsAside sets the source of a job aside if its content is at fault.
func (f *Flow) setsAside(ctx context.Context, j *job, err error) bool {
	if f.aside.ask == nil || ctx.Err() != nil || !f.aside.ask(j.source, err) {
		return false
	}
	f.SetAside(j.source.Ordinal)
	return send(ctx, f.splits, Handed{Aside: &Aside{j.source.Ordinal, err}})
}

// passOver receives the parts of a job without handing them over.
func passOver(ctx context.Context, j *job, r *byteBudget) bool {
	close(j.turn)
	for parts := j.parsed; ; {
		h, ok := receive(ctx, parts)
		if !ok {
			return false
		}
		if r.add(-h.bytes); h.last {
			r.add(-j.bytes)
			return true
		}
		if h.later {
			parts = j.later
		}
	}
}

// afterAside returns the number of sources up to and including the one set aside at which reading in order stopped, 0
// if there is none. It suspends that source and the later ones, some of which were read ahead.
func (f *Flow) afterAside(sources []*plan.Source) (n int, err error) {
	n = slices.Index(sources, f.aside.stopped) + 1
	if f.aside.stopped = nil; n == 0 {
		return 0, nil
	}
	for _, s := range sources[n-1:] {
		err = errors.Join(err, s.Suspend())
	}
	return n, err
}

// passes reports whether to skip a job because its source is set aside and no earlier attempt read any of its records.
func (f *Flow) passes(j *job, at table.Position) bool {
	if !f.aside.has(j.source.Ordinal) {
		return false
	}
	n := int64(-1)
	if j.section != nil {
		n = j.section.Records
	}
	return f.resumed == nil || !f.resumed.Records.Known(at.Source, at.Record, n)
}
