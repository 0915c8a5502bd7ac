package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/tsimport/ratelimit"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
)

// A transaction is in the log before snapshots show it: it must first be flushed, or reach a synchronous standby. So an
// LSN can be used only if no transaction was being committed when it was read.

const (
	// ofLSN returns the log position; on a standby, the position replayed.
	ofLSN = `SELECT pg_is_in_recovery()::text, CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END::text, pg_has_role('pg_read_all_stats', 'USAGE')::text`

	ofDatabase = `(SELECT oid FROM pg_database WHERE datname = current_database())`

	// mayCommit selects transactions that have written and may be committing, with the name of a prepared one. Each holds
	// the lock of its number until snapshots show it. One that waits for its client or a lock is not committing.
	mayCommit = `SELECT l.transactionid::text, coalesce(p.gid, '') FROM pg_locks l LEFT JOIN pg_prepared_xacts p ON p.transaction = l.transactionid
		WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted AND coalesce(p.database, current_database()) = current_database()
			AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = l.pid AND (a.datid <> ` + ofDatabase +
		` OR a.state LIKE 'idle in transaction%' OR a.wait_event_type IN ('Client', 'Lock')))`

	// ofOpen returns when the oldest open transaction began, or a second ago to allow for one that is just beginning. It
	// also returns the numbers of sessions that hide this and of prepared transactions, whose beginning is unknown.
	ofOpen = `SELECT to_char(least(statement_timestamp() - interval '1 second', min(a.xact_start)) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
			(count(*) FILTER (WHERE NOT pg_has_role(a.usesysid, 'USAGE') AND NOT pg_has_role('pg_read_all_stats', 'USAGE')))::text,
			(count(*) FILTER (WHERE a.state = 'disabled'))::text, (SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database())::text
		FROM pg_stat_activity a WHERE a.datid = ` + ofDatabase +
		` AND a.backend_type IS DISTINCT FROM 'autovacuum worker' AND a.pid <> pg_backend_pid()`
)

// Open transactions are examined again, for at most commitWait, until none can have been committing.
const (
	commitWait  = time.Second
	commitAgain = 20 * time.Millisecond
)

const (
	needsStats = "needs the role pg_read_all_stats: other users have transactions open"
	isPrepared = "a prepared transaction is open (pg_prepared_xacts), and when it began or commits is unknown; " +
		"end it, and load again"
)

// Position returns the log position and the time since which transactions have been open.
func (a *Address) Position(ctx context.Context, look sqltable.Session, _ *sqltable.Table, _ int) (p source.Position,
	err error) {
	conn := look.(*session).conn
	rows, unknown, err := asked(ctx, conn, ofLSN)
	if err != nil || unknown != "" {
		return source.Position{ResumeFrom: &source.Resume{Unknown: unknown}, SafeSince: source.Unknown + unknown}, err
	}
	standby, lsn, sees := rows[0][0] == "true", rows[0][1], rows[0][2] == "true"
	p.ResumeFrom = &source.Resume{LSN: lsn}
	if standby {
		p.SafeSince = source.Unknown + "a standby does not know which transactions are open; load from its primary"
		return p, nil
	}
	if unknown, err = noneCommitting(ctx, conn, sees); err != nil {
		return p, err
	}
	if unknown != "" {
		p.ResumeFrom = &source.Resume{Unknown: unknown}
	}
	rows, unknown, err = asked(ctx, conn, ofOpen)
	switch {
	case err != nil:
		return p, err
	case unknown != "":
	case rows[0][1] != "0":
		unknown = needsStats
	case rows[0][2] != "0":
		unknown = "sessions have track_activities off and hide when their transactions began"
	case rows[0][3] != "0":
		unknown = isPrepared
	default:
		p.SafeSince = rows[0][0]
		return p, nil
	}
	p.SafeSince = source.Unknown + unknown
	return p, nil
}

// noneCommitting returns "" once no transaction can have been committing when it was called, or why that is unknown.
func noneCommitting(ctx context.Context, conn *pgconn.PgConn, sees bool) (unknown string, err error) {
	first := map[string]bool{}
	for end := time.Now().Add(commitWait); ; {
		rows, unknown, err := asked(ctx, conn, mayCommit)
		if err != nil || unknown != "" {
			return unknown, err
		}
		left, why := map[string]bool{}, ""
		for _, r := range rows {
			if len(first) > 0 && !first[r[0]] {
				continue // began later
			}
			left[r[0]] = true
			switch {
			case r[1] != "":
				why = isPrepared
			case !sees:
				why = needsStats
			default:
				why = fmt.Sprintf("transaction %s kept writing and may have been committing; load again when it has ended", r[0])
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return why, nil
		}
		first = left
		if err := ratelimit.Wait(ctx, commitAgain); err != nil {
			return "", err
		}
	}
}

// asked runs a query in its own transaction. A refusal is not an error, because other kinds of servers also refuse it.
func asked(ctx context.Context, conn *pgconn.PgConn, sql string) (rows [][]string, unknown string, err error) {
	err = within(ctx, conn, func() (err error) { rows, err = query(ctx, conn, sql); return err })
	if pg := new(pgconn.PgError); errors.As(err, &pg) && !lost(err) {
		return nil, pg.Message, conn.Exec(ctx, "ROLLBACK").Close()
	}
	return rows, "", err
}
