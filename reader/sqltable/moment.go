package sqltable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/tsimport/ratelimit"
	"example.com/tsimport/reader/source"
)

// MaxJoint is the largest number of sessions that read a Moment.
const MaxJoint = 16

// Moments are the snapshots that the loads of a job share, one per database. Add all loads before any of them reads.
type Moments struct {
	all []*Moment
}

// Moment is a snapshot of several tables whose Origins share a few sessions. If it is lost, a new one replaces it.
type Moment struct {
	*sessions
	database string
	tables   []Server
	lag      *lagWatch
	private  bool // whether it is used only by the shards of one table
	done     int  // number of tables loaded before
	left     int  // number of unfinished loads; guarded by sessions.mu
}

// Add adds a table; done means that it is loaded already. The Moment has the largest number of sessions that a table
// asks for, up to MaxJoint.
func (m *Moments) Add(c Config, done bool) {
	joint, ok := c.Server.(Joint)
	if !ok || joint.Database() == "" {
		return
	}
	servers := c.servers()
	c.Shards = nil // otherwise New would create a Moment
	of := m.find(joint)
	if of == nil {
		of = &Moment{database: joint.Database()}
		of.sessions = newSessions(&New(c).cfg, of.open) // New completes the Config
		m.all = append(m.all, of)
	}
	if done {
		of.done++
		return
	}
	if own := New(c); own.lag != nil && (of.lag == nil || own.lag.max < of.lag.max) {
		of.lag = own.lag
	}
	most := of.cfg
	most.Sessions, most.MaxRow = min(max(most.Sessions, c.Sessions), MaxJoint), max(most.MaxRow, c.MaxRow)
	if server, ok := most.Server.(Limited); ok {
		server.LimitRow(most.MaxRow)
	}
	of.tables, of.most = append(of.tables, servers...), most.Sessions
	of.left++
}

func (m *Moments) find(s Joint) *Moment {
	for _, of := range m.all {
		if of.database == s.Database() {
			return of
		}
	}
	return nil
}

// Of returns the Moment that a table shares with others, or nil if it has its own snapshot.
func (m *Moments) Of(s Server) *Moment {
	if joint, ok := s.(Joint); ok && m != nil {
		if of := m.find(joint); of != nil && len(of.tables)+of.done > 1 {
			return of
		}
	}
	return nil
}

// Database names the server, database and user that the tables share.
func (m *Moment) Database() string { return m.database }

// Sessions returns the largest number of sessions.
func (m *Moment) Sessions() int { return m.cfg.Sessions }

// Close ends all sessions.
func (m *Moments) Close() {
	for _, of := range m.all {
		of.end()
	}
}

// Ended records that the load of a table has ended. The last one releases the snapshot.
func (m *Moment) Ended() {
	m.mu.Lock()
	m.left--
	over := m.left == 0
	m.mu.Unlock()
	if over {
		m.end()
	}
}

func (m *Moment) end() {
	m.close()
	if m.lag != nil {
		m.lag.close()
	}
}

func (m *Moment) open(ctx context.Context, before Snapshot) (Snapshot, source.Position, error) {
	if before != nil && m.cfg.OnPause != nil {
		m.cfg.OnPause(fmt.Sprintf("the snapshot %s of %s was lost: the rest of its tables is read from a new one",
			before.Name(), m.database))
	}
	return m.cfg.Server.(Joint).SnapshotOf(ctx, m.tables, m.cfg.Sessions, before)
}

// Refused marks an error that would also occur in any other session.
func Refused(err error) error { return &refusedError{err} }

type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// Unreadable returns the error for a table that exists now but is not in the Moment.
func Unreadable(table string) error {
	return Refused(fmt.Errorf("%s could not be read when the snapshot of all tables began; load it by itself", table))
}

// Busy marks an error after which the Moment can be tried again, such as a table lock not granted. Busy(nil) is nil.
func Busy(err error) error {
	if err == nil {
		return nil
	}
	return &busyError{err}
}

type busyError struct{ error }

func (e *busyError) Unwrap() error { return e.error }

// endOfPage is the time that a page may take after its load has ended: an interrupted session is lost to other loads.
const endOfPage = 5 * time.Second

func withGrace(ctx context.Context) (context.Context, func()) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(endOfPage, func() { cancel(context.Cause(ctx)) }) })
	return later, func() {
		stop()
		cancel(nil)
	}
}

// pageBy reads a page in a session. In a Moment, it first checks that the table is the same in that session's snapshot.
func (o *Origin) pageBy(p *part, by *session) (*page, error) {
	if o.cfg.Moment == nil {
		return p.page(p.ctx, by)
	}
	ctx, done := withGrace(p.ctx)
	defer done()
	if err := o.describeIn(ctx, by); err != nil {
		return nil, err
	}
	return p.page(ctx, by)
}

// describeIn describes the table, or its shards, as a session sees them, once for each snapshot.
func (o *Origin) describeIn(ctx context.Context, by *session) error {
	o.done.seeing.Lock()
	defer o.done.seeing.Unlock()
	if o.done.seen == by.of {
		return nil
	}
	var all []*Table
	for i, s := range o.cfg.servers() {
		t, err := s.(Joint).Describe(ctx, by.Session)
		if err != nil {
			return err
		}
		if o.done.tables != nil && o.done.tables[i].Schema != t.Schema {
			return &changedError{was: o.done.tables[i].Schema, is: t.Schema}
		}
		t.settle()
		all = append(all, t)
	}
	if len(all) > 1 {
		if err := o.checkShards(ctx, by, all); err != nil {
			return err
		}
	}
	if o.done.tables == nil {
		o.of, o.done.tables = all[0], all
	}
	o.done.seen = by.of
	return nil
}

// only returns the number of the snapshot from which the table must be read, or -1 for any.
func (o *Origin) only() int {
	o.done.seeing.Lock()
	defer o.done.seeing.Unlock()
	switch {
	case !o.cfg.Whole:
		return -1
	case o.done.seen != nil:
		return o.done.seen.number
	case o.cfg.Alone:
		return -1
	}
	return 0
}

// failed ends a session after an error. In a Moment, a session that still works is returned for other loads.
func (o *Origin) failed(s *sessions, by *session, err error) {
	if o.cfg.Moment != nil && (final(err) || !o.cfg.Server.Lost(err)) {
		s.giveBack(by)
	} else {
		s.drop(by)
	}
}

// looking calls do with a session for examining the table: one of the Moment, retried if lost, or one of no snapshot.
func (o *Origin) looking(ctx context.Context, do func(context.Context, Session) error) (err error) {
	if o.cfg.Moment == nil {
		return do(ctx, o.look)
	}
	begun := time.Now()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		var by *session
		if by, err = o.cfg.Moment.borrow(ctx, o.only()); err == nil {
			later, done := withGrace(ctx)
			if err = o.describeIn(later, by); err == nil {
				err = do(later, by.Session)
			}
			done()
			if err == nil {
				o.cfg.Moment.giveBack(by)
				return nil
			}
			o.failed(o.cfg.Moment.sessions, by, err)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case by == nil && !errors.As(err, new(*busyError)):
			return err
		case final(err) || !o.cfg.Server.Lost(err):
			return err
		case time.Since(begun) > o.cfg.RetryFor:
			return Passing(err)
		}
		if err := ratelimit.Wait(ctx, wait); err != nil {
			return err
		}
	}
}
