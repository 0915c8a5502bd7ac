package verify

import (
	"context"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

// Changes is told what must change for a table to be what the inputs say. What it is told counts only if Run returns no error.
type Changes interface {
	// Reject is called for each record that was rejected, one at a time and before any range; header is that of its source.
	Reject(headers []rundir.Header, header int, r table.Reject) error
	// Range is called for each range of keys, in any order and by several goroutines. A lower number is a range of lower keys.
	Range(number int) (RangeChanges, error)
	// Again is called after all ranges were closed: what was told of them is forgotten, and told again as far as it is still so.
	Again() error
}

// RangeChanges is told what must change in a range of keys, in their order. One goroutine calls it.
type RangeChanges interface {
	// Expected is called for a key whose row is missing or different. Nothing of it is valid afterwards.
	Expected(*Change) error
	// Surplus is called for the key of a row that no record has.
	Surplus(key []table.Value) error
	Close() error
}

// Change is a row that is missing or different.
type Change struct {
	// Rows are what the inputs say of it, as PlainBuffer bytes: of an update that of every record in input order, else of the last.
	Rows    [][]byte
	Stored  *scan.Row                // as it was read; nil is none
	Differs func(column []byte) bool // of an update of a stored row: whether the column must be written; nil is all of them
}

// InputError says that the inputs could not be read to their end.
type InputError struct{ Cause error }

func (e *InputError) Error() string { return e.Cause.Error() }

func (e *InputError) Unwrap() error { return e.Cause }

// noteUnread enters what only Changes asks for.
func (v *verifier) noteUnread() {
	r := v.result
	r.Unread, r.Stamped, r.Live, r.ColumnUnits = v.plan.Unread, v.stamped, v.plan.Live, v.plan.Units()
	for i, s := range v.plan.Sources {
		if v.recordsOf[i] == 0 && v.plan.Request.Read.Sources == nil { // parts of a table may be empty
			r.Unread = append(r.Unread, s.Name+" has no records")
		}
	}
	if len(v.tables) == 1 {
		r.Of = v.tables[0].Table
	}
}

// Facts are what the rows of the inputs depend on now, as Result has them. Nothing but the beginning of the inputs is read.
func Facts(ctx context.Context, request *plan.Request, admin *client.Admin) ([]progress.Fact, error) {
	r := *request
	r.Written, r.Keep, r.Order = true, plan.KeepNothing, plan.LastWins
	p, err := plan.Make(ctx, &r, admin)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Facts()
}
