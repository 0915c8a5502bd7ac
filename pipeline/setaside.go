package pipeline

import (
	"fmt"
	"slices"

	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
)

// With Limits.SetAside, a load reports and leaves out bad inputs: inputs that cannot be planned with the others, have a
// fault that a second reading finds at the same place, or have more rejected rows than Limits.MaxErrors.

// allBad adds the copies of bad inputs, and notes how many nights each has been bad.
func allBad(cfg *Config, bad []keep.BadInput) []keep.BadInput {
	if !cfg.Resume.Once() {
		return bad
	}
	bad = append(bad, cfg.Resume.Known.Copies(bad)...)
	for i := range bad {
		bad[i].Nights = cfg.Resume.Nights(bad[i].Name)
	}
	return bad
}

func (a *attempt) beginBad() {
	r := a.counts
	r.BadInputs = a.bad
	if a.from.Snapshot != nil {
		r.BadInputs = slices.Clone(a.from.Snapshot.Bad)
	} else if a.cfg.Resume.Once() {
		r.BadInputs = append(r.BadInputs, a.cfg.Resume.Known.Bad()...)
	}
	r.OfInputs = len(a.planned.Sources)
	for _, b := range r.BadInputs {
		if b.Source < 0 {
			r.OfInputs++
		}
	}
}

// OnlyBadError means that only bad inputs are left.
type OnlyBadError struct {
	*plan.NothingNew
	Bad  []keep.BadInput
	code int
}

func (e *OnlyBadError) Exit() int { return e.code }

func (e *OnlyBadError) Error() string {
	return fmt.Sprintf("nothing is loaded, because %s", ledger.BadText(e.Bad))
}
