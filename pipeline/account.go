package pipeline

import (
	"errors"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/writer"
)

// rejects keeps rejected records. A *rundir.Folder does.
type rejects interface {
	Reject(header int, r table.Reject) error
	Flush() error
}

// errLimit ends a load whose rows are bad.
var errLimit = errors.New("too many rejected rows")

// account counts how every record ends, of the load and of each of its tables. The report has its counts.
type account struct {
	counts   *Counted
	rejects  rejects
	onReject func(*rundir.Reason) // nil if nobody is told
	onKept   func(source int, r *table.Reject)
	ends     Ends           // nil if nobody is told, and rejects are kept
	options  writer.Options // of the writers
	files    *files
	limit    MaxErrors
	stop     func(error)          // the load
	tables   *tableLedger         // nil if there is one table
	hot      *partitioner.HotKeys // of rows that are final; of a dry run, of all
	dryRows  int64                // of a dry run
	asides   *asides              // nil if bad inputs end the load
	// form appends a row whose record was not kept, as rejects have it.
	form func(dst, body []byte) []byte
}

// final enters how a row ended.
func (a *account) final(r table.Ref, end partitioner.End, o table.Outcome) {
	switch end {
	case partitioner.Written:
		a.written(r, o)
	case partitioner.Superseded:
		a.counts.Superseded++
		if a.ends != nil {
			a.ends.Superseded(r.Block.Split.Ordinal, r.Number())
		}
		if a.tables != nil {
			a.tables.row(r.Key()).Superseded++
		}
	case partitioner.Rejected:
		if o.Unmet {
			a.unmet(r)
			return
		}
		a.refused(r, o)
	}
}

func (a *account) written(r table.Ref, o table.Outcome) {
	a.counts.Written++
	a.counts.ExpiredCells += int64(o.Expired)
	if a.ends != nil {
		a.ends.Written(r.Block.Split.Ordinal, r.Number())
	}
	key := r.Key()
	if a.tables != nil {
		a.tables.row(key).Written++
		_, key = table.CutTable(key)
	}
	a.hot.Add(key)
	if o.Restamped {
		a.counts.ExtraVersions++
	}
	if a.options.AutoIncrement != nil {
		a.numbered(r, o)
	}
}

// allWritten is written of rows of which there is nothing more to say.
func (a *account) allWritten(rows []table.Ref) {
	if a.ends != nil || a.tables != nil || a.options.AutoIncrement != nil {
		for _, r := range rows {
			a.written(r, table.Outcome{})
		}
		return
	}
	a.counts.Written += int64(len(rows))
	a.hot.AddAll(len(rows), func(i int) []byte { return rows[i].Key() })
}

// numbered enters a row that the service has numbered.
func (a *account) numbered(r table.Ref, o table.Outcome) {
	if o.Repeated && a.files.repeatedRows == nil {
		a.counts.MaybeTwice++
	}
	err := a.files.repeatedRows.add(r, o)
	if err == nil {
		err = a.files.returned.add(r, o)
	}
	if err != nil {
		a.stop(err)
	}
}

// refused enters a row that the service refused.
func (a *account) refused(r table.Ref, o table.Outcome) {
	rejected := r.Reject(table.Reason{Code: o.Code, Message: o.Message, MaybeApplied: o.MaybeApplied})
	if o.MaybeApplied {
		a.counts.MaybeApplied++
	}
	if c := a.options.Increments; c != nil {
		c.Rejected(r, o.MaybeApplied) // that it was given up, only the cutter knows
	}
	if len(rejected.Raw) == 0 && a.ends == nil {
		rejected.Raw = a.form(nil, r.Body())
	}
	a.reject(r.Block.Split, rejected)
	if a.tables != nil {
		a.tables.row(r.Key()).Rejected++
	}
}

// unmet enters a row that was not written because of what the table has.
func (a *account) unmet(r table.Ref) {
	a.counts.ConditionFailed++
	if a.tables != nil {
		a.tables.row(r.Key()).ConditionFailed++
	}
}

// rejected enters a record that did not become a row.
func (a *account) rejected(s *table.Split, r *intake.Reject) {
	a.reject(s, s.Reject(r.Span, r.Reason, r.Raw))
	if r.Table != "" {
		a.tables.named(r.Table).Rejected++
	}
}

func (a *account) reject(s *table.Split, r table.Reject) {
	a.counts.Rejected++
	if r.Reason.Code == table.CodeSeam {
		a.counts.Seams++
	}
	if a.ends != nil {
		a.ends.Rejected(s.Ordinal, r.Location.Record-1, &r.Reason)
	} else if err := a.rejects.Reject(s.Header, r); err != nil {
		a.stop(err)
	} else {
		if a.onReject != nil {
			why := rundir.ReasonOf(&r)
			a.onReject(&why)
		}
		if a.onKept != nil {
			a.onKept(s.Ordinal, &r)
		}
	}
	switch {
	case a.asides == nil && a.counts.overLimit(a.limit, false):
		a.stop(errLimit)
	case a.asides != nil && r.Reason.Code != table.CodeSeam:
		a.asides.countRejected(s.Ordinal)
	}
}

// archived enters a record that is kept in the archive in place of a table.
func (a *account) archived(name string) {
	a.counts.Archived++
	a.tables.named(name).Archived++
}

// dry enters rows of a dry run, which end unfinished.
func (a *account) dry(b *table.Block) {
	a.dryRows += int64(len(b.Rows))
	for i := range b.Rows {
		key := table.Ref{Block: b, Index: int32(i)}.Key()
		if a.tables != nil {
			a.tables.row(key).Unfinished++
			_, key = table.CutTable(key)
		}
		a.hot.Add(key)
	}
}

// flush writes out what was rejected, or says that the ends so far are whole.
func (a *account) flush() {
	if a.ends != nil {
		a.ends.Flush()
	}
	if err := a.rejects.Flush(); err != nil {
		a.stop(err)
	}
}
