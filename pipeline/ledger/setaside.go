package ledger

import (
	"fmt"
	"slices"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
)

// If too many inputs are bad, flags may be wrong, or a folder may be only half copied.
const (
	mostBadShare = 10  // one in ten may be bad, but at least one
	MostBad      = 100 // so many are too many
)

// bySource counts the records of a source that were read and rejected.
type bySource struct{ read, rejected int64 }

// asides sets bad inputs aside. It belongs to the dispatcher's goroutine. A nil asides sets none aside.
type asides struct {
	counted *Counted
	sources []*plan.Source
	limit   MaxErrors // limit for each input
	counts  []bySource
	flow    *intake.Flow
	once    bool // rows must not be sent twice
	// Added is called when a source is set aside.
	Added func()
}

// NewAsides returns asides with the counts of earlier attempts. limit applies to each input; once means that rows must
// not be sent twice. It returns nil for a load that cannot set inputs aside.
func NewAsides(limit MaxErrors, once bool, counted *Counted, planned *plan.Plan, from *checkpoint.Snapshot,
	flow *intake.Flow) *asides {
	if planned.Parallel || planned.Live {
		return nil
	}
	for _, s := range planned.Sources {
		if s.Chain != nil {
			return nil // the data read ahead would be lost
		}
	}
	a := &asides{counted: counted, sources: planned.Sources, limit: limit, once: once,
		counts: make([]bySource, len(planned.Sources)), flow: flow}
	flow.OnFault(planned.AtFault)
	if from == nil {
		return a
	}
	for i := range a.counts {
		a.counts[i] = bySource{from.Counters[countedOf("read", i)], from.Counters[countedOf("rejected", i)]}
	}
	for _, b := range from.Bad {
		if b.Source >= 0 {
			flow.SetAside(b.Source)
		}
	}
	return a
}

func countedOf(what string, source int) string { return fmt.Sprintf("%s of source %d", what, source) }

// Keep adds the counts to a checkpoint.
func (a *asides) Keep(counters map[string]int64) {
	if a == nil {
		return
	}
	for i, n := range a.counts {
		if n.read > 0 {
			counters[countedOf("read", i)] = n.read
		}
		if n.rejected > 0 {
			counters[countedOf("rejected", i)] = n.rejected
		}
	}
}

// CountRead counts records of a source that no attempt has counted before.
func (a *asides) CountRead(source int, n int64) {
	if a != nil {
		a.counts[source].read += n
	}
}

func (a *asides) check(source int, end bool) {
	if n := a.counts[source]; a.limit.Exceeded(n.rejected, n.read, end) {
		a.flow.SetAside(source)
		// An unchanged source is not tried again: every night, its rows would be sent and overwrite rows of later files.
		a.Add(source, fmt.Sprintf("%d of %d rows were rejected, more than --max-errors allows", n.rejected, n.read), true)
	}
}

// Add notes that a source is set aside. If held is set, it is tried again only after it, or the limit, has changed.
func (a *asides) Add(source int, reason string, held bool) {
	if slices.ContainsFunc(a.counted.BadInputs, func(b keep.BadInput) bool { return b.Source == source }) {
		return
	}
	a.Added()
	a.counted.BadInputs = append(a.counted.BadInputs, keep.BadInput{Name: a.sources[source].Name, Reason: reason,
		Held: held, Source: source})
}

// End checks the share of rejected rows of every source, and completes the entries of bad ones.
func (a *asides) End() {
	if a == nil {
		return
	}
	for source := range a.counts {
		a.check(source, true)
	}
	for i := range a.counted.BadInputs {
		if b := &a.counted.BadInputs[i]; b.Source >= 0 {
			n := a.counts[b.Source]
			b.Read, b.Sent = n.read, a.once && n.read > n.rejected
			if b.Held {
				b.Rejected = n.rejected
			}
		}
	}
}

// tooManyBad reports whether so many inputs have become bad that the fault must lie elsewhere.
func (r *ReportBad) tooManyBad() bool {
	bad, inputs := 0, r.OfInputs
	for _, b := range r.BadInputs {
		if b.Nights == 0 {
			bad++
		} else {
			inputs--
		}
	}
	return bad >= MostBad || bad > max(1, inputs/mostBadShare)
}

// BadCode returns the exit code of a finished load, which is code unless inputs are bad.
func (r *ReportBad) BadCode(code int) int {
	switch {
	case len(r.BadInputs) == 0:
		return code
	case r.tooManyBad():
		return exitcode.Failed
	}
	return exitcode.Rejects
}

// LeftOut returns the names of bad inputs that are not sources of the plan.
func LeftOut(bad []keep.BadInput) map[string]bool {
	names := map[string]bool{}
	for _, b := range bad {
		if b.Source < 0 {
			names[b.Name] = true
		}
	}
	return names
}

// BadText tells how many inputs are bad, and names the first one.
func BadText(bad []keep.BadInput) string {
	if len(bad) == 0 {
		return ""
	}
	text := "1 input is bad"
	if len(bad) > 1 {
		text = fmt.Sprintf("%d inputs are bad, first", len(bad))
	}
	return fmt.Sprintf("%s: %s: %s", text, bad[0].Name, bad[0].Reason)
}
