package partitioner

import (
	"slices"

	"example.com/tsimport/internal/table"
)

// Flight is a batch in a request. Batch.Rows, Repeated and Outcomes are parallel.
type Flight struct {
	table.Batch
	// Lane is the rows' lane when the batch was cut.
	Lane int
	// Units are the rows' write capacity units.
	Units int
	// Repeated marks rows that an earlier attempt may have applied.
	Repeated []bool
	// Retried is the number of rows sent again.
	Retried int
	// Outcomes are set by the sender, unless AllWritten says that every row was written, for WriteCU units in all.
	Outcomes   []table.Outcome
	AllWritten bool
	WriteCU    int
	keys       []*key
	cuts       int // number of recuts before it was cut
}

func (f *Flight) add(k *key, maxUnits float64) bool {
	units := k.row.Row().Units()
	if len(f.Rows) > 0 && float64(f.Units+units) > maxUnits || !f.Add(k.row) {
		return false
	}
	f.Units += units
	k.cut, k.place = f, len(f.keys)
	f.keys = append(f.keys, k)
	f.Repeated = append(f.Repeated, k.repeated)
	if k.attempts > 0 {
		f.Retried++
	}
	f.addOutcome()
	return true
}

// addOutcome adds an unknown outcome. The spare capacity of Outcomes always holds unknown outcomes.
func (f *Flight) addOutcome() {
	n := len(f.Outcomes)
	if n == cap(f.Outcomes) {
		f.Outcomes = slices.Grow(f.Outcomes, 1)
		fill(f.Outcomes[n:cap(f.Outcomes)])
	}
	f.Outcomes = f.Outcomes[:n+1]
}

func fill(outcomes []table.Outcome) {
	for i := range outcomes {
		outcomes[i] = table.Outcome{Fate: table.Unknown}
	}
}

// Reset empties the flight for the next cut.
func (f *Flight) Reset() {
	f.Batch.Reset()
	clear(f.keys)
	if !f.AllWritten {
		fill(f.Outcomes)
	}
	f.keys, f.Repeated, f.Outcomes, f.Retried, f.Units = f.keys[:0], f.Repeated[:0], f.Outcomes[:0], 0, 0
	f.AllWritten, f.WriteCU = false, 0
}
