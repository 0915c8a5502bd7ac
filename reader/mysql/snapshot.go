package mysql

import (
	"context"
	"errors"
	"fmt"
	"time"

	mysql "github.com/go-sql-driver/mysql"

	"example.com/tsimport/reader/sqltable"
)

// Shown is the address.
func (a *Address) Shown() string { return a.shown }

// Name is the table's.
func (a *Address) Name() string { return a.table }

// Look opens a session outside any snapshot.
func (a *Address) Look(ctx context.Context) (sqltable.Session, *sqltable.Table, error) {
	s, err := a.connect(ctx)
	if err != nil {
		return nil, nil, a.passing(err)
	}
	t, err := a.describe(ctx, s)
	if err == nil && a.query != "" { // which may call what writes
		err = s.exec(ctx, "START TRANSACTION READ ONLY")
	}
	if err != nil {
		s.Close()
		return nil, nil, a.passing(err)
	}
	return s, t, nil
}

// passing marks what a server says that is too busy.
func (a *Address) passing(err error) error {
	if errors.As(err, new(*mysql.MySQLError)) && a.Lost(err) {
		return sqltable.Passing(err)
	}
	return err
}

// snapshot is the read views of sessions that were opened at one moment. A session cannot join it later.
type snapshot struct {
	sqltable.Together
	lacks error // why there are not more; nil if there are as many as were asked for
}

// Lacks is why it has fewer sessions than were asked for.
func (h *snapshot) Lacks() error { return h.lacks }

// Snapshot opens sessions while the table is locked against writers, for the moment that this takes: their read views are then of one state
// of it. A user who may not lock tables gets one session, whose view needs no lock.
func (a *Address) Snapshot(ctx context.Context, sessions int, _ sqltable.Snapshot) (_ sqltable.Snapshot, t *sqltable.Table, err error) {
	h := &snapshot{}
	defer func() {
		if err != nil {
			for _, s := range h.All {
				s.Close()
			}
		}
	}()
	if a.query != "" {
		sessions = 1
	}
	var open []*session // before the lock, which is to be short
	for len(open) < sessions {
		s, err := a.connect(ctx)
		if a.Full(err) && len(open) > 0 {
			h.lacks = err
			break
		}
		if err != nil {
			return nil, nil, err
		}
		open, h.All = append(open, s), append(h.All, s)
	}
	if t, err = a.describe(ctx, open[0]); err != nil {
		return nil, nil, err
	}
	if len(open) > 1 {
		var lock *session
		if h.lacks == nil {
			if lock, err = a.connect(ctx); a.Full(err) {
				h.lacks = err
			} else if err != nil {
				return nil, nil, err
			}
		}
		if last := len(open) - 1; lock == nil { // the last session locks
			lock, open, h.All = open[last], open[:last], h.All[:last]
		}
		defer lock.Close() // and the lock with it
		if err := a.sameServer(ctx, append(open[:len(open):len(open)], lock)); err != nil {
			return nil, nil, err
		}
		err = a.lock(ctx, lock, t)
		if err != nil && !mayNot(err) {
			return nil, nil, fmt.Errorf("lock %s for a moment, so that sessions begin at one: %w", t.Name, err)
		}
		if err != nil {
			for _, s := range open[1:] {
				s.Close()
			}
			open, h.All = open[:1], h.All[:1]
		}
	}
	for _, s := range open {
		if err := s.begin(ctx, t); err != nil {
			return nil, nil, err
		}
	}
	if t, err = a.describe(ctx, open[0]); err != nil {
		return nil, nil, err
	}
	now, err := open[0].query(ctx, "SELECT CONCAT(CONNECTION_ID(), ' ', UTC_TIMESTAMP(6))")
	if err != nil {
		return nil, nil, err
	}
	h.Called = now[0][0]
	return h, t, nil
}

// begin opens a read view. The second statement keeps what is read from being altered until the view ends.
func (s *session) begin(ctx context.Context, t *sqltable.Table) error {
	source := s.source
	if source == "" {
		source = from(t)
	} else {
		s.stream = &sqltable.Stream{Ask: func(ctx context.Context, q sqltable.Query) (sqltable.Rows, error) { return s.ask(ctx, t, q) }}
	}
	for _, sql := range []string{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", "SELECT 1" + source + " LIMIT 0"} {
		if err := s.exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// sameServer refuses sessions of several servers, as a proxy hands them out: a lock of one holds up no writer of another.
func (a *Address) sameServer(ctx context.Context, all []*session) error {
	first, err := all[0].server(ctx)
	for _, s := range all[1:] {
		if err != nil {
			return err
		}
		var other string
		if other, err = s.server(ctx); err == nil && other != first {
			return refusef("sessions of %s are at several servers (%s and %s), and their snapshots would be of different moments; give the address of one of them, or sessions=1", a.shown, first, other)
		}
	}
	return err
}

// server says which server the session is at.
func (s *session) server(ctx context.Context) (string, error) {
	rows, err := s.query(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid', 'server_id', 'hostname', 'port', 'version')")
	text := ""
	for _, v := range rows {
		text += ", " + v[0] + " " + v[1]
	}
	return text, err
}

// A transaction that has written to the table keeps it from being locked, and writers queue while the lock is waited for: so that is not
// done for long, and not soon again.
const lockWait = "SET SESSION lock_wait_timeout = 1"

// lock locks the table against writers.
func (a *Address) lock(ctx context.Context, s *session, t *sqltable.Table) error {
	timer := time.NewTimer(time.Until(a.lockAfter))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.exec(ctx, lockWait); err != nil {
		return err
	}
	err := s.exec(ctx, "LOCK TABLES "+t.Name+" READ")
	if err != nil && !mayNot(err) {
		a.lockAfter = time.Now().Add(a.lockPause)
	}
	return err
}

// Full reports whether an error says that the server, or what it allows the user, has no session left.
func (a *Address) Full(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 1040 || e.Number == 1203 || e.Number == 1226)
}

// mayNot reports whether the user lacks a privilege.
func mayNot(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 1044 || e.Number == 1142 || e.Number == 1143 || e.Number == 1227)
}
