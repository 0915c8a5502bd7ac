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

// annotations says what writers add to rows that cannot be repeated safely: marks to increments and to rows that the
// service numbers, and timestamps to updates in a table that keeps several versions.
type annotations struct {
	writer.Options
	rowBytes int                 // bytes added to each row when it is sent
	rowExtra func(table.Ref) int // further bytes added to a row; nil means none
}

// markFraming is the size of a cell in a request without its name and value.
const markFraming = 24

// marksBegunAt names the checkpoint counter that holds the first attempt's beginning, in ms of the service's clock.
const marksBegunAt = "marks_begun"

// newAnnotations returns the annotations that the plan needs. A dry run sends nothing and needs none.
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

// newExpiry returns the rules by which cells expire while their rows wait, or nil if none do.
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

// readsBack returns the existence condition to pass to TryReadBack: ExpectNotExist if rows may have to be read back.
func (c *Config) readsBack() table.Existence {
	if c.Write.When != nil || c.Write.Unchanged {
		return table.ExpectNotExist
	}
	return c.Write.Condition
}

func markBytes(column string) int { return len(column) + table.MaxMarkBytes + markFraming }

// clockUnknown is how far the service's clock may lag if no answer had a date. The service itself tolerates less.
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

func (x *annotations) keep(counters map[string]int64) {
	if x.AutoIncrement != nil {
		counters[marksBegunAt] = x.AutoIncrement.Begun
	}
}

// tryNeeds tests, before a load into one table begins, the permissions that it needs besides writing.
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

// triedFor is how long a load waits for these tests before it writes.
const triedFor = 3 * time.Second

// refusedSoon returns the error of try, or nil if try takes longer than triedFor: a silent service refuses nothing.
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
