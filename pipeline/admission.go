package pipeline

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
)

// admission takes in splits from the intake. It decides how many records of each to take, and counts what is known
// before rows are sent: records read, rejected or archived, and the tables that rows wait for.
type admission struct {
	limit        int64 // records to read; 0 means all
	dry          bool
	account      *ledger.Account
	readProgress *keep.ReadProgress // nil if the load has no checkpoints
	archive      *ledger.Archive
	hotKeyWatch  *hotKeyWatch
	want         func(table string) // requests a table that is new to the load
	stop         *stopper

	follower ledger.Follower
	entering bool // a split is being entered
	full     bool // the last record to read has been read
}

// truncate drops a split's records beyond the limit. last means that no more splits are needed.
func (a *admission) truncate(p *intake.Parsed) (last bool) {
	if a.limit <= 0 {
		return false
	}
	// Records that an earlier attempt counted come first, as a load with a limit is read in order.
	read := a.account.Counts.Read
	fresh := a.readProgress.Fresh(p.Split, 0, int64(p.Records))
	if read+fresh < a.limit || !a.readProgress.Reached(p) {
		return false
	}
	p.Truncate(p.Records - int(fresh) + int(a.limit-read))
	return true
}

// enter counts a split and its records that yield no row. If the load stops at one of these, it reads no further.
func (a *admission) enter(p *intake.Parsed) {
	a.entering = true
	defer func() { a.entering = false }()
	counts := a.account.Counts
	read := int64(0) // records of this split counted so far
	for i := range p.Rejects {
		r := &p.Rejects[i]
		at := int(r.Span.Record) + 1
		a.countRead(p.Split, read, int64(at)-read)
		read = int64(at)
		a.account.Rejected(p.Split, r)
		if a.stop.stopped() || a.full {
			p.Truncate(at)
			break
		}
	}
	a.countRead(p.Split, read, int64(p.Records)-read)
	if a.readProgress != nil {
		a.readProgress.Counted(p, counts.BytesRead)
	}
	counts.BytesRead += p.Split.Input
	counts.EmptyLines += int64(p.Skipped.EmptyLines)
	counts.OtherChanges += int64(p.Skipped.Others)
	if !a.full && !a.stop.stopped() { // records after the last one to read are not written
		a.follower.Read(keep.PositionAfter(p.Split.Position, int64(p.Records)), p.Skipped.Followed)
	}
	if p.Split.Number == 0 {
		counts.BytesRead += p.Split.Offset // the header
	}
	a.account.Counts.ReadMoment(p.Split.Ordinal, p.Moment)
	for _, e := range p.Expired {
		counts.ExpiredCells += int64(e.Cells)
	}
	a.keepArchived(p)
}

// countRead counts n records of a split from record from on, except those that an earlier attempt has counted.
func (a *admission) countRead(s *table.Split, from, n int64) {
	n = a.readProgress.Fresh(s, from, n)
	a.account.Counts.Read += n
	a.account.Asides.CountRead(s.Ordinal, n)
}

func (a *admission) ended(e *intake.Ended) {
	a.readProgress.Ended(e)
	a.account.Counts.ReadMoment(e.Source, e.Moment)
}

func (a *admission) keepArchived(p *intake.Parsed) {
	for i := range p.Archived {
		r := &p.Archived[i]
		a.account.Archived(r.Table)
		a.archive.Add(p.Split.Header, r)
	}
	if err := a.archive.Failure(); err != nil {
		a.stop.stop(err)
	}
}

// rows counts the rows of a block and reports whether they may be sent. wait means that they wait for their tables.
func (a *admission) rows(b *table.Block, wait bool) bool {
	if wait {
		a.findTables(b)
	}
	a.hotKeyWatch.count(b)
	if a.dry {
		a.account.Dry(b)
	}
	return !a.dry
}

func (a *admission) findTables(b *table.Block) {
	tables := a.account.Tables
	partitioner.UnknownTables(b, func(name []byte) {
		isNew, err := tables.Add(string(name))
		switch {
		case err != nil:
			a.stop.stop(err)
		case isNew && !a.dry:
			a.want(string(name))
		}
	})
}
