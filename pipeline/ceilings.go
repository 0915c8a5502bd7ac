package pipeline

import (
	"cmp"
	"math"

	"tsimport/internal/table"
)

// wanted is how many rows the next batch of the lane may hold.
func (d *dispatcher) wanted(l *lane) int {
	return d.underCeilings(min(d.batchRows(), int(math.Ceil(d.unitsUnderCeilings(l.units)/l.perRow))))
}

func (d *dispatcher) batchRows() int { return cmp.Or(d.cfg.Write.BatchRows, table.MaxBatchRows) }

// batchBytes is how large a request may be: what is set, or less where a gateway has refused that.
func (d *dispatcher) batchBytes() int {
	limit := cmp.Or(d.cfg.Write.BatchBytes, table.MaxBatchBytes)
	if learnt := d.extras.Size.Limit(); learnt > 0 {
		limit = min(limit, learnt)
	}
	return limit
}

// A batch holds no more than flows in under a ceiling in so short a time, or a low one would come in lumps.
const ceilingBatch = 0.2 // seconds

func (d *dispatcher) underCeilings(rows int) int {
	if d.rows != nil {
		rows = min(rows, max(1, int(d.rows.Rate()*ceilingBatch)))
	}
	return rows
}

func (d *dispatcher) unitsUnderCeilings(units float64) float64 {
	if d.units != nil {
		units = min(units, max(1, d.units.Rate()*ceilingBatch))
	}
	return units
}
