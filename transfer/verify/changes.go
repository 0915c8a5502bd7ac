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

// Changes receives the changes that would make a table equal to the inputs. They are valid only if Run succeeds.
type Changes interface {
	// Reject is called for each rejected record, from one goroutine and before any range. headers[header] is its header.
	Reject(headers []rundir.Header, header int, r table.Reject) error
	// Range is called for each range of keys, in any order and concurrently. Ranges of lower keys have lower numbers.
	Range(number int) (RangeChanges, error)
	// Again is called after all ranges are closed. It discards all changes; those that remain are then reported again.
	Again() error
}

// RangeChanges receives the changes in a range of keys, in order, from one goroutine.
type RangeChanges interface {
	// Expected is called for a key whose row is missing or different. The change is not valid after the call.
	Expected(*Change) error
	// Surplus is called with the key of a row that is in the table but not in the inputs.
	Surplus(key []table.Value) error
	Close() error
}

// Change is a row that is missing or different.
type Change struct {
	// Rows holds the key's rows as PlainBuffer: for updates one per record in input order, otherwise only the last.
	Rows    [][]byte
	Stored  *scan.Row                // the row of the table; nil if it is missing
	Differs func(column []byte) bool // reports whether an update must write a column; nil means all columns
}

// InputError means that the inputs could not be read completely.
type InputError struct{ Cause error }

func (e *InputError) Error() string { return e.Cause.Error() }

func (e *InputError) Unwrap() error { return e.Cause }

// noteUnread sets the fields of the result that are only for Changes.
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

// Facts returns the facts on which the rows of the inputs depend, as in Result. It reads only the beginnings of inputs.
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
