package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	mysql "github.com/go-sql-driver/mysql"

	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
)

// Database returns the address of the database, which all tables of a snapshot must share, or "" for a query.
func (a *Address) Database() string {
	if a.query != "" {
		return ""
	}
	return fmt.Sprintf("mysql://%s@%s/%s", a.config.User, a.config.Addr, a.config.DBName)
}

// lockAll blocks all commits. LOCK TABLES would wait for open transactions, and new transactions would wait for it.
const lockAll = "FLUSH TABLES WITH READ LOCK"

// heldAtOnce is the largest number of tables that one statement protects from ALTER.
const heldAtOnce = 50

// SnapshotOf opens sessions while commits are blocked for a moment, so that their read views show the same state. A
// user who may not block commits gets a single session, whose view needs no lock.
func (a *Address) SnapshotOf(ctx context.Context, tables []sqltable.Server, sessions int,
	_ sqltable.Snapshot) (_ sqltable.Snapshot, p source.Position, err error) {
	h := &snapshot{}
	o := &opening{of: a, snapshot: h}
	if err = o.connect(ctx, sessions); err == nil {
		p, err = a.Position(ctx, o.open[0], nil, sessions)
	}
	if err != nil {
		o.close()
		return nil, p, a.passing(err)
	}
	joins := map[string]bool{}
	var readable []string
	for _, one := range tables {
		name := quote(a.config.DBName) + "." + quote(one.(*Address).table)
		if err = o.open[0].exec(ctx, "SELECT 1 FROM "+name+" LIMIT 0"); err == nil && !joins[name] {
			joins[name], readable = true, append(readable, "(SELECT 1 FROM "+name+" LIMIT 0)")
		}
		if err != nil && (a.Lost(err) || !errors.As(err, new(*mysql.MySQLError))) {
			break
		}
		err = nil // Describe will report the error
	}
	if err == nil {
		var holds []string
		for some := range slices.Chunk(readable, heldAtOnce) {
			holds = append(holds, strings.Join(some, " UNION ALL "))
		}
		err = o.begin(ctx, lockAll, "lock the tables of "+a.Database(), holds...)
	}
	if err != nil {
		o.close()
		return nil, p, err
	}
	if len(o.open) < sessions && h.lacks == nil {
		h.lacks = sqltable.Refused(errors.New("sessions that begin together need the RELOAD privilege"))
	}
	for _, s := range o.open {
		s.joins = joins
	}
	return h, p, nil
}

// Describe describes a's table as a session of the snapshot sees it.
func (a *Address) Describe(ctx context.Context, by sqltable.Session) (*sqltable.Table, error) {
	s := by.(*session)
	t, err := a.describe(ctx, s)
	if err == nil && !s.joins[t.Name] {
		err = sqltable.Unreadable(t.Name)
	}
	if errors.As(err, new(*refusal)) {
		err = sqltable.Refused(err)
	}
	return t, err
}

// Twice returns a key that occurs in several of the tables, followed by the numbers of two of them, or nil.
func (a *Address) Twice(ctx context.Context, by sqltable.Session, tables []*sqltable.Table) (key []string, err error) {
	var columns, from []string
	for _, k := range tables[0].Key {
		columns = append(columns, quote(tables[0].Columns[k].Name))
	}
	for _, t := range tables {
		from = append(from, t.Name)
	}
	rows, err := by.(*session).query(ctx, sqltable.TwiceSQL(columns, from))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}
