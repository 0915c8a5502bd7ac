package ledger

import (
	"errors"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/writer"
)

// rejects keeps rejected records. *rundir.Folder implements it.
type rejects interface {
	Reject(header int, r table.Reject) error
	Flush() error
}

// ErrLimit ends a load in which too many rows were rejected.
var ErrLimit = errors.New("too many rejected rows")

// Ends receives, once, the end of each record of a load without conditions. A record is given by its source and its
// number, from 0. One goroutine of the load calls the methods, so they must not block. A record never reported is
// unfinished.
type Ends interface {
	Written(source int, record int64)
	Superseded(source int, record int64)
	Rejected(source int, record int64, why *table.Reason)
	// Flush is called after the ends of an answer or of a split.
	Flush()
}

// Account counts how every record ends, for the load and for each of its tables. The report holds its counts.
type Account struct {
	Counts   *Counted
	Rejects  rejects
	OnReject func(*rundir.Reason) // may be nil
	OnKept   func(source int, r *table.Reject)
	Ends     Ends           // if nil, rejects are kept
	Options  writer.Options // options of the writers
	Files    *Files
	Limit    MaxErrors
	Stop     func(error)          // stops the load
	Tables   *Tables              // nil if there is one table
	Hot      *partitioner.HotKeys // keys of final rows or, in a dry run, of all rows
	DryRows  int64                // number of rows of a dry run
	Asides   *asides              // nil if bad inputs end the load
	// Form appends a row, in the form of rejects, in place of a record that was not kept.
	Form func(dst, body []byte) []byte
}

// Final counts how a row ended.
func (a *Account) Final(r table.Ref, end partitioner.End, o table.Outcome) {
	switch end {
	case partitioner.Written:
		a.written(r, o)
	case partitioner.Superseded:
		a.Counts.Superseded++
		if a.Ends != nil {
			a.Ends.Superseded(r.Block.Split.Ordinal, r.Number())
		}
		if a.Tables != nil {
			a.Tables.row(r.Key()).Superseded++
		}
	case partitioner.Rejected:
		if o.Unmet {
			a.Counts.ConditionFailed++
			if a.Tables != nil {
				a.Tables.row(r.Key()).ConditionFailed++
			}
			return
		}
		a.refused(r, o)
	}
}

func (a *Account) written(r table.Ref, o table.Outcome) {
	a.Counts.Written++
	a.Counts.ExpiredCells += int64(o.Expired)
	if a.Ends != nil {
		a.Ends.Written(r.Block.Split.Ordinal, r.Number())
	}
	key := r.Key()
	if a.Tables != nil {
		a.Tables.row(key).Written++
		_, key = table.CutTable(key)
	}
	a.Hot.Add(key, r.Row().Size())
	if o.Restamped {
		a.Counts.ExtraVersions++
	}
	if a.Options.AutoIncrement != nil {
		a.numbered(r, o)
	}
}

// AllWritten counts written rows that need no further treatment.
func (a *Account) AllWritten(rows []table.Ref) {
	if a.Ends != nil || a.Tables != nil || a.Options.AutoIncrement != nil {
		for _, r := range rows {
			a.written(r, table.Outcome{})
		}
		return
	}
	a.Counts.Written += int64(len(rows))
	a.Hot.AddAll(len(rows), func(i int) ([]byte, int) { return rows[i].Key(), rows[i].Row().Size() })
}

func (a *Account) numbered(r table.Ref, o table.Outcome) {
	if o.Repeated && a.Files.RepeatedRows == nil {
		a.Counts.MaybeTwice++
	}
	err := a.Files.RepeatedRows.add(r, o)
	if err == nil {
		err = a.Files.Returned.add(r, o)
	}
	if err != nil {
		a.Stop(err)
	}
}

func (a *Account) refused(r table.Ref, o table.Outcome) {
	rejected := r.Reject(table.Reason{Code: o.Code, Message: o.Message, MaybeApplied: o.MaybeApplied})
	if o.MaybeApplied {
		a.Counts.MaybeApplied++
	}
	if c := a.Options.Increments; c != nil {
		c.Rejected(r, o.MaybeApplied) // a row that the cutter has given up is known only here
	}
	if len(rejected.Raw) == 0 && a.Ends == nil {
		rejected.Raw = a.Form(nil, r.Body())
	}
	a.reject(r.Block.Split, rejected)
	if a.Tables != nil {
		a.Tables.row(r.Key()).Rejected++
	}
}

// Rejected counts a record that did not become a row.
func (a *Account) Rejected(s *table.Split, r *intake.Reject) {
	a.reject(s, s.Reject(r.Span, r.Reason, r.Raw))
	if r.Table != "" {
		a.Tables.named(r.Table).Rejected++
	}
}

func (a *Account) reject(s *table.Split, r table.Reject) {
	a.Counts.Rejected++
	if r.Reason.Code == table.CodeSeam {
		a.Counts.Seams++
	}
	if a.Ends != nil {
		a.Ends.Rejected(s.Ordinal, r.Location.Record-1, &r.Reason)
	} else if err := a.Rejects.Reject(s.Header, r); err != nil {
		a.Stop(err)
	} else {
		if a.OnReject != nil {
			why := rundir.ReasonOf(&r)
			a.OnReject(&why)
		}
		if a.OnKept != nil {
			a.OnKept(s.Ordinal, &r)
		}
	}
	switch {
	case a.Asides == nil && a.Counts.OverLimit(a.Limit, false):
		a.Stop(ErrLimit)
	case a.Asides != nil && r.Reason.Code != table.CodeSeam:
		a.Asides.counts[s.Ordinal].rejected++
		a.Asides.check(s.Ordinal, false)
	}
}

// Archived counts a record that goes to the archive instead of a table.
func (a *Account) Archived(name string) {
	a.Counts.Archived++
	a.Tables.named(name).Archived++
}

// Dry counts rows of a dry run, which end unfinished.
func (a *Account) Dry(b *table.Block) {
	a.DryRows += int64(len(b.Rows))
	for i := range b.Rows {
		key := table.Ref{Block: b, Index: int32(i)}.Key()
		if a.Tables != nil {
			a.Tables.row(key).Unfinished++
			_, key = table.CutTable(key)
		}
		a.Hot.Add(key, b.Rows[i].Size())
	}
}

// Flush writes out rejected records, and calls Ends.Flush.
func (a *Account) Flush() {
	if a.Ends != nil {
		a.Ends.Flush()
	}
	if err := a.Rejects.Flush(); err != nil {
		a.Stop(err)
	}
}

// HotKeys returns the partition keys with too many rows for the number of lanes. For a whole input, fewer rows suffice.
func (a *Account) HotKeys(lanes int, whole bool) []partitioner.HotKey {
	hot := a.Hot.Report(lanes)
	if len(hot) == 0 && whole {
		hot = a.Hot.ReportWhole()
	}
	return hot
}
