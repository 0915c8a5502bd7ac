package mysql

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	mysql "github.com/go-sql-driver/mysql"

	"example.com/tsimport/ratelimit"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
)

// A transaction is in the binary log before read views show it. MariaDB and Percona Server report the log position at
// the start of a read view. MySQL does not: its GTID sets contain the visible transactions, and its log position can be
// used once every transaction that has written to the table has ended.

const needsReplicas = "needs the privilege REPLICA MONITOR (MariaDB) or REPLICATION CLIENT (MySQL), to detect replicas"

// ofStatements returns when the oldest running statement started: the rows it writes have no earlier times.
const ofStatements = `SELECT DATE_FORMAT(UTC_TIMESTAMP() - INTERVAL COALESCE(MAX(TIME), 0) + 1 SECOND, '%Y-%m-%dT%H:%i:%sZ') FROM information_schema.PROCESSLIST
	WHERE COMMAND NOT IN ('Sleep', 'Daemon', 'Connect', 'Binlog Dump', 'Binlog Dump GTID') AND ID <> CONNECTION_ID()`

// ofOpen returns when the oldest open transaction began, the number of open transactions of this session, and the
// number of those without a session, which are prepared ones. InnoDB reports times in the machine's zone; of the two
// meanings of an ambiguous time, the earlier one counts. Times are whole seconds, so one second is subtracted.
const ofOpen = `SELECT DATE_FORMAT(MIN(LEAST(CONVERT_TZ(trx_started, 'SYSTEM', '+00:00'), CONVERT_TZ(trx_started - INTERVAL 1 HOUR, 'SYSTEM', '+00:00') + INTERVAL 1 HOUR))
		- INTERVAL 1 SECOND, '%Y-%m-%dT%H:%i:%sZ'), COALESCE(SUM(trx_mysql_thread_id = CONNECTION_ID()), 0), COALESCE(SUM(trx_mysql_thread_id = 0), 0)
	FROM information_schema.INNODB_TRX`

// InnoDB refreshes its list of transactions at most ten times a second, so it is queried again, for up to askFor.
const (
	askAgain = 120 * time.Millisecond
	askFor   = 3 * time.Second
)

// Position returns the position in the binary log and the time since which transactions have been open.
func (a *Address) Position(ctx context.Context, look sqltable.Session, t *sqltable.Table,
	sessions int) (p source.Position, err error) {
	s := look.(*session)
	replica, logsOwnOnly, err := a.isReplica(ctx, s)
	if err != nil {
		return p, err
	}
	statements, unknown, err := a.asked(ctx, s, ofStatements, "PROCESS")
	if err != nil {
		return p, err
	}
	status, err := s.beginView(ctx)
	if err != nil {
		return p, err
	}
	switch {
	case replica == nil:
		unknown = needsReplicas
	case *replica:
		unknown = "a replica does not know which transactions are open; load from its source"
	case unknown == "":
		if p.SafeSince, unknown, err = a.openSince(ctx, s); err != nil {
			return p, err
		}
		p.SafeSince = min(p.SafeSince, statements[0][0])
	}
	if unknown != "" {
		p.SafeSince = source.Unknown + unknown
	}
	after := "COMMIT"
	if a.query != "" {
		after = "START TRANSACTION READ ONLY" // the state in which Look left it
	}
	if err = s.exec(ctx, after); err == nil {
		p.ResumeFrom, err = a.resumeFrom(ctx, s, t, sessions, status)
	}
	if err == nil && logsOwnOnly && p.ResumeFrom.Unknown == "" {
		p.ResumeFrom = &source.Resume{Unknown: "the binary log of the server lacks what it replicates; turn " +
			"log_slave_updates on, or load from its source"}
	}
	return p, err
}

// openSince returns the time since which transactions have been open, once InnoDB's list includes the session's own.
func (a *Address) openSince(ctx context.Context, s *session) (since, unknown string, err error) {
	for end := time.Now().Add(askFor); ; {
		rows, unknown, err := a.asked(ctx, s, ofOpen, "PROCESS")
		switch {
		case err != nil || unknown != "":
			return "", unknown, err
		case rows[0][1] == "0" && time.Now().After(end):
			return "", "others query INNODB_TRX so often that it is stale; load again later", nil
		case rows[0][1] == "0":
		case rows[0][2] != "0":
			return "", "a prepared transaction (XA RECOVER) has been open for an unknown time; end it and load again", nil
		default:
			return rows[0][0], "", nil
		}
		if err := ratelimit.Wait(ctx, askAgain); err != nil {
			return "", "", err
		}
	}
}

// isReplica reports whether the server is a replica (nil if unknown), and whether its log omits replicated changes.
func (a *Address) isReplica(ctx context.Context, s *session) (is *bool, logsOwnOnly bool, err error) {
	vars, err := s.query(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_slave_updates', 'log_replica_updates', "+
		"'gtid_slave_pos')")
	if err != nil {
		return nil, false, err
	}
	follows := false
	for _, v := range vars {
		logsOwnOnly = logsOwnOnly || v[1] == "OFF"
		follows = follows || v[0] == "gtid_slave_pos" && v[1] != ""
	}
	w := &watch{session: s}
	ask, err := w.findAsk(ctx)
	var never *sqltable.Unwatched
	switch {
	case errors.As(err, &never):
		return nil, logsOwnOnly && follows, nil
	case err != nil:
		return nil, false, err
	}
	rows, err := s.query(ctx, ask)
	replica := len(rows) > 0
	return &replica, logsOwnOnly && (replica || follows), err
}

// resumeFrom returns a position in the binary log: at the start of the read view, if status has it.
func (a *Address) resumeFrom(ctx context.Context, s *session, t *sqltable.Table, sessions int,
	status map[string]string) (_ *source.Resume, err error) {
	const none = "the server writes no binary log (log_bin)"
	if len(status) > 0 {
		r := &source.Resume{File: status["binlog_snapshot_file"], GTID: status["binlog_snapshot_gtid_executed"]}
		if r.File == "" {
			return &source.Resume{Unknown: none}, nil
		}
		r.Position, err = strconv.ParseUint(status["binlog_snapshot_position"], 10, 64)
		if rows, unknown, wrong := a.asked(ctx, s, "SELECT BINLOG_GTID_POS('"+strings.ReplaceAll(r.File, "'", "''")+"', "+
			status["binlog_snapshot_position"]+")", ""); wrong != nil {
			return nil, wrong
		} else if unknown == "" {
			r.GTID = rows[0][0]
		}
		return r, err
	}
	locked := false
	if a.query == "" && sessions > 1 {
		lock := lockAll
		if t != nil {
			lock = "LOCK TABLES " + t.Name + " READ"
		}
		switch err := a.lock(ctx, s, lock); {
		case err == nil:
			locked = true
		case !errors.As(err, new(*mysql.MySQLError)):
			return nil, err
		}
	}
	rows, unknown, err := a.asked(ctx, s, "SHOW BINARY LOG STATUS", "REPLICATION CLIENT")
	if unknown != "" {
		rows, unknown, err = a.asked(ctx, s, "SHOW MASTER STATUS", "REPLICATION CLIENT") // servers before 8.2
	}
	if locked && err == nil {
		err = s.exec(ctx, "UNLOCK TABLES")
	}
	switch {
	case err != nil:
		return nil, err
	case unknown != "":
		return &source.Resume{Unknown: unknown}, nil
	case len(rows) == 0 || len(rows[0]) < 5:
		return &source.Resume{Unknown: none}, nil
	}
	r := &source.Resume{GTID: strings.ReplaceAll(rows[0][4], "\n", "")}
	if locked {
		r.File = rows[0][0]
		r.Position, err = strconv.ParseUint(rows[0][1], 10, 64)
	} else if r.GTID == "" {
		r.Unknown = "needs gtid_mode=ON at the server or, for tables read by several sessions, the privilege LOCK TABLES"
	}
	return r, err
}

// beginView begins a read view. It returns the binary-log position that the server reports for it, if any.
func (s *session) beginView(ctx context.Context) (map[string]string, error) {
	for _, sql := range []string{"COMMIT", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
		"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"} {
		if err := s.exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	rows, err := s.query(ctx, "SHOW STATUS WHERE Variable_name IN ('binlog_snapshot_file', 'binlog_snapshot_position', "+
		"'binlog_snapshot_gtid_executed')")
	status := map[string]string{}
	for _, r := range rows {
		status[strings.ToLower(r[0])] = r[1]
	}
	return status, err
}

// asked runs a query that needs a privilege. A refusal is not an error, because other kinds of servers also refuse it.
func (a *Address) asked(ctx context.Context, s *session, sql, right string) (rows [][]string, unknown string,
	err error) {
	rows, err = s.query(ctx, sql)
	e := new(mysql.MySQLError)
	switch {
	case !errors.As(err, &e) || a.Lost(err):
		return rows, "", err
	case mayNot(err):
		return nil, "needs the privilege " + right, nil
	}
	return nil, e.Message, nil
}
