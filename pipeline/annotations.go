package pipeline

import (
	"errors"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/writer"
)

// annotations are what writers add to rows that cannot be repeated safely: marks of rows that the service numbers and
// of increments, and timestamps of updates in a table that keeps several versions.
type annotations struct {
	writer.Options
	rowBytes int                 // added to each row when it is sent
	rowExtra func(table.Ref) int // added to the given row; nil means nothing
}

// markFraming is the size of a cell in a request without its name and value.
const markFraming = 24

// marksBegunAt is the checkpoint counter when the first attempt began, in milliseconds of the service's clock.
const marksBegunAt = "marks_begun"

// newAnnotations makes the annotations that the plan needs. A dry run sends nothing and needs none.
func (a *attempt) newAnnotations() *annotations {
	x := &annotations{Options: writer.Options{Size: new(writer.Size), Brief: true}}
	if a.cfg.DryRun {
		return x
	}
	if a.planned.Restamp {
		now := a.hooks.serviceTime
		if now == nil {
			now = serviceTime(a.service.clock())
		}
		x.Stamps = writer.NewStamps(now, a.planned.Deviation())
		x.rowExtra = func(r table.Ref) int { return plainbuffer.StampBytes(r.Body()) }
	}
	x.Expiry = a.newExpiry()
	if x.When = a.cfg.Write.When; x.When != nil {
		x.rowBytes = 2*len(x.When.String()) + whenFraming
	}
	if x.Unchanged = a.cfg.Write.Unchanged; x.Unchanged {
		x.rowBytes = whenFraming // the condition; its cell counts as part of the row
	}
	mark, run := a.planned.Mark, a.from.Job.Run
	switch at := a.planned.Schema.Numbered; {
	case a.cfg.Write.Mode == table.Increment:
		a.counts.MarkColumn = mark
		x.Increments = writer.NewIncrements(a.service.sdk, mark, run)
		x.rowBytes = markBytes(mark) + x.Increments.ConditionBytes()
	case at > 0:
		x.AutoIncrement = writer.NewAutoIncrement(a.service.sdk, a.cfg.Target.Table, at, mark,
			table.Marker{Job: a.planned.Job(), Run: run})
		x.AutoIncrement.LookFirst, x.AutoIncrement.Parallel = a.cfg.Write.Marks.LookFirst, lookUps(a.cfg.Lanes.Concurrency)
		x.AutoIncrement.Begun, x.AutoIncrement.Earlier = marksBegun(a.service.clock(), a.from), a.earlier()
		if mark != "" {
			x.rowBytes = markBytes(mark)
		}
		a.counts.MarkColumn, a.counts.ReturnedKeys = mark, a.cfg.Write.Marks.ReturnedKeys
		a.cfg.Watch.Progress.Numbers.Store(x.AutoIncrement)
	}
	return x
}

// newExpiry returns which cells may expire while their rows wait; nil means none.
func (a *attempt) newExpiry() *writer.Expiry {
	reach, live, expires := a.planned.Expiry()
	if !expires {
		return nil
	}
	now := a.hooks.serviceTime
	if now == nil {
		now = serviceTime(a.service.clock())
	}
	return &writer.Expiry{Reach: reach, Live: live, Now: func() time.Time { _, latest := now(); return latest }}
}

// whenFraming is roughly the size of a condition in a request without its names and values.
const whenFraming = 128

// readsBack is the existence condition under which a load may have to read rows back.
func (c *Config) readsBack() table.Existence {
	if c.Write.When != nil || c.Write.Unchanged {
		return table.ExpectNotExist
	}
	return c.Write.Condition
}

// markBytes is the size that a mark adds to a row.
func markBytes(column string) int { return len(column) + table.MaxMarkBytes + markFraming }

// clockUnknown is how far the service's clock may lag if no answer has a date. The service tolerates much less.
const clockUnknown = time.Hour

// marksBegun returns a time that no mark of the load precedes, in milliseconds of the service's clock.
func marksBegun(clock *client.Clock, from *keep.Point) int64 {
	earliest, _, known := clock.Range(time.Now())
	switch {
	case from.Counter(marksBegunAt) != 0:
		return from.Counter(marksBegunAt)
	case from.Snapshot != nil && !from.Snapshot.Begun.IsZero():
		return from.Snapshot.Begun.Add(-clockUnknown).UnixMilli()
	case !known:
		return earliest.Add(-clockUnknown).UnixMilli()
	}
	return earliest.UnixMilli()
}

// keep adds to a checkpoint what a later attempt needs.
func (x *annotations) keep(counters map[string]int64) {
	if x.AutoIncrement != nil {
		counters[marksBegunAt] = x.AutoIncrement.Begun
	}
}

// tryNeeds tests permissions other than writing before the load begins; with several tables, when each is opened.
func (a *attempt) tryNeeds(x *annotations) error {
	if a.cfg.DryRun || a.planned.Empty || a.planned.Tables != nil {
		return nil
	}
	key := a.planned.Schema.Key
	return refusedSoon(func() error {
		return errors.Join(
			writer.TryReadBack(a.service.sdk, a.cfg.Target.Table, key, a.cfg.Write.Mode, a.cfg.readsBack()),
			x.AutoIncrement.Try(key),
			x.Increments.Try(a.cfg.Target.Table, key))
	})
}

// triedFor is how long a load waits for these permission tests before it writes.
const triedFor = 3 * time.Second

// refusedSoon returns an early error of try. A silent service has refused nothing: the load begins and finds out later.
func refusedSoon(try func() error) error {
	answer := make(chan error, 1)
	go func() { answer <- try() }()
	select {
	case err := <-answer:
		return err
	case <-time.After(triedFor):
		return nil
	}
}
