package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
)

// Database returns the address of the database, which all tables of a snapshot must share, or "" for a query.
func (a *Address) Database() string {
	if a.query != "" {
		return ""
	}
	return fmt.Sprintf("postgres://%s@%s/%s", a.config.User,
		net.JoinHostPort(a.config.Host, strconv.Itoa(int(a.config.Port))), a.config.Database)
}

// SnapshotOf exports a snapshot of several tables, locked first so that none is truncated or altered meanwhile.
func (a *Address) SnapshotOf(ctx context.Context, tables []sqltable.Server, sessions int,
	before sqltable.Snapshot) (_ sqltable.Snapshot, p source.Position, err error) {
	conn, err := connect(ctx, a)
	if err != nil {
		return nil, p, passing(err)
	}
	h := &snapshot{of: a, conn: conn, joint: map[string]bool{}}
	if p, err = a.Position(ctx, &session{conn: conn}, nil, sessions); err == nil {
		err = sqltable.Busy(h.lockAll(ctx, tables))
	}
	if err == nil {
		err = h.export(ctx, before)
	}
	if err != nil {
		hangUp(conn)
		return nil, p, fmt.Errorf("open a snapshot of the tables of %s: %w", a.Database(), passing(err))
	}
	if sessions == 1 {
		h.Alone()
	}
	return h, p, nil
}

// lockAll begins a transaction that locks the readable tables.
func (h *snapshot) lockAll(ctx context.Context, tables []sqltable.Server) error {
	var values, names []string
	for i, one := range tables {
		of := one.(*Address)
		values, names = append(values, fmt.Sprintf("($%d)", i+1)), append(names, of.named())
	}
	var locks []string
	err := within(ctx, h.conn, func() error {
		rows, err := query(ctx, h.conn, `SELECT n.nspname::text, c.relname::text, c.relkind::text FROM (VALUES `+
			strings.Join(values, ", ")+`) AS v(name)
			JOIN pg_class c ON c.oid = to_regclass(v.name) JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND has_table_privilege(c.oid, 'SELECT')`, names...)
		for _, r := range rows {
			t := described{Table: &sqltable.Table{Name: quote(r[0]) + "." + quote(r[1])}}
			if r[2] == "r" {
				t.only = "ONLY "
			}
			h.joint[t.from()] = true
			locks = append(locks, t.from())
		}
		return err
	})
	if err != nil {
		return err
	}
	then := "SELECT 1"
	if len(locks) > 0 {
		slices.Sort(locks)
		then = lockTables(slices.Compact(locks)...)
	}
	return begin(ctx, h.conn, beginSnapshot, then)
}

// Describe describes a's table as a session of the snapshot sees it.
func (a *Address) Describe(ctx context.Context, by sqltable.Session) (*sqltable.Table, error) {
	s := by.(*session)
	s.prepared = ""
	t, err := describe(ctx, s.conn, a)
	switch {
	case err != nil && !s.conn.IsClosed() && !errors.As(err, new(*pgconn.PgError)):
		return nil, sqltable.Refused(err)
	case err != nil:
		return nil, err
	}
	if !s.joins.joint[t.from()] {
		return nil, sqltable.Unreadable(t.Name)
	}
	return t.Table, s.enter(ctx, t)
}

// mostEntered is the number of tables that a session locks: max_locks_per_transaction, 64 by default, limits locks.
const mostEntered = 16

var errKeeper = sqltable.Passing(errors.New("the session that keeps the snapshot has ended"))

// enter locks a table before the session first reads it, while the keeper of the snapshot still has it locked.
func (s *session) enter(ctx context.Context, t *described) error {
	if s.joins == nil || s.conn == s.joins.conn || slices.Contains(s.entered, t.from()) {
		return nil
	}
	if len(s.entered) == mostEntered {
		if err := s.conn.Exec(ctx, "COMMIT").Close(); err != nil {
			return err
		}
		if err := begin(ctx, s.conn, beginIn(s.joins.name), "SELECT 1"); err != nil {
			return err
		}
		s.entered = nil
	}
	s.prepared = ""
	if err := s.conn.Exec(ctx, lockTables(t.from())).Close(); err != nil {
		return err
	}
	if !s.joins.Alive(ctx) {
		return errKeeper
	}
	s.entered = append(s.entered, t.from())
	return nil
}

// Twice returns a key that occurs in more than one of the tables, or nil.
func (a *Address) Twice(ctx context.Context, by sqltable.Session, tables []*sqltable.Table) (key []string, err error) {
	s := by.(*session)
	s.prepared = ""
	var from []string
	for _, t := range tables {
		from = append(from, t.Of.(*described).from())
	}
	rows, err := query(ctx, s.conn, sqltable.TwiceSQL(tables[0].Of.(*described).names(), from))
	switch {
	case err != nil:
		return nil, err
	case s.conn != s.joins.conn && !s.joins.Alive(ctx):
		return nil, errKeeper
	case len(rows) == 0:
		return nil, nil
	}
	return rows[0], nil
}
