package mysql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	mysql "github.com/go-sql-driver/mysql"

	"example.com/tsimport/ratelimit"
	"example.com/tsimport/reader/sqltable"
)

func (a *Address) Shown() string { return a.shown }

func (a *Address) Name() string { return a.table }

// Look opens a session outside of any snapshot.
func (a *Address) Look(ctx context.Context) (sqltable.Session, *sqltable.Table, error) {
	s, err := a.connect(ctx)
	if err != nil {
		return nil, nil, a.passing(err)
	}
	t, err := a.describe(ctx, s)
	if err == nil && a.query != "" { // the query may call a function that would write
		err = s.exec(ctx, "START TRANSACTION READ ONLY")
	}
	if err != nil {
		s.Close()
		return nil, nil, a.passing(err)
	}
	return s, t, nil
}

// passing marks the errors of an overloaded server as temporary.
func (a *Address) passing(err error) error {
	if errors.As(err, new(*mysql.MySQLError)) && a.Lost(err) {
		return sqltable.Passing(err)
	}
	return err
}

// snapshot holds sessions whose read views began at the same moment. No session can join later.
type snapshot struct {
	sqltable.Together
	lacks error // why there are fewer sessions than requested; otherwise nil
}

// Lacks returns why the snapshot has fewer sessions than requested, or nil.
func (h *snapshot) Lacks() error { return h.lacks }

// Snapshot opens sessions while the table is locked against writers for a moment, so that their read views show the
// same state. A user who may not lock tables gets a single session, whose view needs no lock.
func (a *Address) Snapshot(ctx context.Context, sessions int, _ sqltable.Snapshot) (_ sqltable.Snapshot,
	t *sqltable.Table, err error) {
	h := &snapshot{}
	if a.query != "" {
		sessions = 1
	}
	o := &opening{of: a, snapshot: h}
	if err = o.connect(ctx, sessions); err == nil {
		t, err = a.describe(ctx, o.open[0])
	}
	if err == nil {
		source := cmp.Or(o.open[0].source, from(t))
		err = o.begin(ctx, "LOCK TABLES "+t.Name+" READ", "lock "+t.Name, "SELECT 1"+source+" LIMIT 0")
	}
	if err == nil && a.query != "" {
		s := o.open[0]
		s.stream = &sqltable.Stream{Ask: func(ctx context.Context, q sqltable.Query) (sqltable.Rows, error) {
			return s.ask(ctx, t, q)
		}}
	}
	if err == nil {
		t, err = a.describe(ctx, o.open[0])
	}
	if err != nil {
		o.close()
		return nil, nil, err
	}
	return h, t, nil
}

type opening struct {
	of *Address
	*snapshot
	open []*session // sessions that are to read the snapshot
}

func (o *opening) close() {
	for _, s := range o.open {
		s.Close()
	}
}

// connect opens as many sessions as it can. It runs before the lock is taken, which must be short.
func (o *opening) connect(ctx context.Context, sessions int) error {
	for len(o.open) < sessions {
		s, err := o.of.connect(ctx)
		if o.of.Full(err) && len(o.open) > 0 {
			o.lacks = err
			return nil
		}
		if err != nil {
			return err
		}
		o.open = append(o.open, s)
	}
	return nil
}

// begin begins the read views of several sessions while a lock blocks writers, or that of a single session without a
// lock. In each session, the statements in then protect the tables from ALTER until the view ends.
func (o *opening) begin(ctx context.Context, lock, what string, then ...string) (err error) {
	a := o.of
	if len(o.open) > 1 {
		var locks *session
		if o.lacks == nil {
			if locks, err = a.connect(ctx); a.Full(err) {
				o.lacks = err
			} else if err != nil {
				return err
			}
		}
		if last := len(o.open) - 1; locks == nil { // the last session takes the lock
			locks, o.open = o.open[last], o.open[:last]
		}
		defer locks.Close() // which releases the lock
		if err := a.sameServer(ctx, append(o.open[:len(o.open):len(o.open)], locks)); err != nil {
			return err
		}
		err = a.lock(ctx, locks, lock)
		if err != nil && !mayNot(err) {
			return sqltable.Busy(fmt.Errorf("%s for a moment, so that sessions begin together: %w", what, err))
		}
		if err != nil {
			for _, s := range o.open[1:] {
				s.Close()
			}
			o.open = o.open[:1]
		}
	}
	for _, s := range o.open {
		for _, sql := range append([]string{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
			"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"}, then...) {
			if err := s.exec(ctx, sql); err != nil {
				return err
			}
		}
		o.All = append(o.All, s)
	}
	now, err := o.open[0].query(ctx, "SELECT CONCAT(CONNECTION_ID(), ' ', UTC_TIMESTAMP(6))")
	if err == nil {
		o.Called = now[0][0]
	}
	return err
}

// sameServer refuses sessions that a proxy has opened on different servers: a lock on one would not block the others.
func (a *Address) sameServer(ctx context.Context, all []*session) error {
	first, err := all[0].server(ctx)
	for _, s := range all[1:] {
		if err != nil {
			return err
		}
		var other string
		if other, err = s.server(ctx); err == nil && other != first {
			return refusef("sessions of %s reach several servers (%s and %s), whose snapshots would differ; give the "+
				"address of one server, or sessions=1", a.shown, first, other)
		}
	}
	return err
}

// server returns text that identifies the server of the session.
func (s *session) server(ctx context.Context) (string, error) {
	rows, err := s.query(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid', 'server_id', "+
		"'hostname', 'port', 'version')")
	text := ""
	for _, v := range rows {
		text += ", " + v[0] + " " + v[1]
	}
	return text, err
}

// The lock waits for transactions that have written to the table, and blocks writers: waits must be short and rare.
const lockWait = "SET SESSION lock_wait_timeout = 1"

// lock runs a statement that blocks writers, at least lockPause after one that was not granted.
func (a *Address) lock(ctx context.Context, s *session, sql string) error {
	if err := ratelimit.Wait(ctx, time.Until(a.lockAfter)); err != nil {
		return err
	}
	if err := s.exec(ctx, lockWait); err != nil {
		return err
	}
	err := s.exec(ctx, sql)
	if err != nil && !mayNot(err) {
		a.lockAfter = time.Now().Add(a.lockPause)
	}
	return err
}

// Full reports whether err means that a limit of the server or of the user allows no more sessions.
func (a *Address) Full(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 1040 || e.Number == 1203 || e.Number == 1226)
}

func mayNot(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 1044 || e.Number == 1142 || e.Number == 1143 || e.Number == 1227)
}
