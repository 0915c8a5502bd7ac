package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	mysql "github.com/go-sql-driver/mysql"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
)

func TestPositionOfRealServerMissesNothing(t *testing.T) {
	t.Setenv("TZ", "America/New_York") // InnoDB writes its times so
	s := mysqltest.Start(t)
	s.Exec("CREATE TABLE orders (id int PRIMARY KEY, v text, updated_at timestamp(6) NOT NULL DEFAULT "+
		"CURRENT_TIMESTAMP(6))", "INSERT INTO orders (id, v) SELECT -CAST(seq AS INT), 'old'"+sequence+"1000",
		"CREATE USER reader@'127.0.0.1'", "GRANT SELECT ON shop.orders TO reader@'127.0.0.1'",
		"CREATE USER seeing@'127.0.0.1'", "GRANT SELECT ON shop.orders TO seeing@'127.0.0.1'",
		"GRANT PROCESS, REPLICA MONITOR ON *.* TO seeing@'127.0.0.1'")
	as := func(user string) *Address {
		return addressOf(t, strings.Replace(s.Address("orders"), "root@", user+"@", 1))
	}
	connect := func(statements ...string) *sql.Conn {
		t.Helper()
		conn := conformance.Try(s.DB.Conn(t.Context())).Must(t)
		for _, one := range statements {
			must(t, conformance.ErrorOf(conn.ExecContext(t.Context(), one)))
		}
		return conn
	}
	end := func(conn *sql.Conn, how string) {
		t.Helper()
		must(t, conformance.ErrorOf(conn.ExecContext(t.Context(), how)))
		must(t, conn.Close())
	}
	since := func(p source.Position) time.Time {
		t.Helper()
		return conformance.Try(time.Parse(time.RFC3339, p.SafeSince)).Must(t)
	}
	unknown := func(what, says, want string) {
		t.Helper()
		conformance.Equal(t, strings.Contains(says, want), true, "%s: %q, want %q", what, says, want)
	}

	t.Run("a quiet server", func(t *testing.T) {
		master := s.Rows("SHOW MASTER STATUS")[0]
		p := sqltest.Position(t, as("seeing"))
		want := source.Resume{File: master[0], GTID: s.Rows("SELECT @@gtid_binlog_pos")[0][0]}
		must(t, conformance.ErrorOf(fmt.Sscan(master[1], &want.Position)))
		conformance.Equal(t, *p.ResumeFrom, want, "resume_from")
		d := time.Since(since(p))
		conformance.True(t, want.GTID != "" && d >= time.Second && d <= time.Minute, "%v", p)
		p = sqltest.Position(t, as("reader"))
		conformance.Equal(t, *p.ResumeFrom, want, "of a user without rights")
		unknown("open transactions", p.SafeSince, "unknown: needs the right REPLICA MONITOR")
		s.Exec("GRANT REPLICA MONITOR ON *.* TO reader@'127.0.0.1'")
		unknown("open transactions", sqltest.Position(t, as("reader")).SafeSince, "unknown: needs the right PROCESS")
	})
	t.Run("an open transaction, and a statement that waits before it has begun one", func(t *testing.T) {
		began := time.Now()
		w := connect("START TRANSACTION", "INSERT INTO orders (id) VALUES (-5000)")
		sqltest.Until(t, "it is older than the lead", func() bool { return time.Since(began) > 2500*time.Millisecond })
		at := since(sqltest.Position(t, as("seeing")))
		conformance.True(t, !at.After(began) && began.Sub(at) <= 3*time.Second, "%v, and it began at %v", at, began)
		end(w, "ROLLBACK")
		lock := connect("LOCK TABLES orders WRITE")
		waits := connect()
		began = time.Now()
		ended := make(chan error, 1)
		go func() {
			_, err := waits.ExecContext(context.Background(), "INSERT INTO orders (id) VALUES (-5001)")
			ended <- err
		}()
		sqltest.Until(t, "it is older than the lead", func() bool { return time.Since(began) > 2500*time.Millisecond })
		a := as("seeing")
		look := conformance.Try(a.connect(t.Context())).Must(t)
		defer look.Close()
		p := conformance.Try(a.Position(t.Context(), look, nil, 1)).Must(t)
		conformance.True(t, !since(p).After(began), "%v, and a statement of %v that waits", p, began)
		end(lock, "UNLOCK TABLES")
		must(t, <-ended)
		end(waits, "DELETE FROM orders WHERE id = -5001")
	})
	t.Run("a transaction of no session is unknown", func(t *testing.T) {
		w := connect("XA START 'x'", "INSERT INTO orders (id) VALUES (-5002)", "XA END 'x'", "XA PREPARE 'x'")
		_ = w.Raw(func(any) error { return driver.ErrBadConn }) // hangs up
		_ = w.Close()
		sqltest.Until(t, "the session has ended", func() bool { return openTransactions(s)[0][0] == "0" })
		unknown("prepared", sqltest.Position(t, as("seeing")).SafeSince, "XA RECOVER")
		s.Exec("XA ROLLBACK 'x'")
	})
	t.Run("what InnoDB says is old while others ask for it all the time", func(t *testing.T) {
		asking, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			for asking.Err() == nil {
				s.Rows("SELECT COUNT(*) FROM information_schema.INNODB_TRX")
			}
			close(ended)
		}()
		began := time.Now()
		w := connect("START TRANSACTION", "INSERT INTO orders (id) VALUES (-5004)")
		sqltest.Until(t, "it is older than the lead", func() bool { return time.Since(began) > 2500*time.Millisecond })
		p := sqltest.Position(t, as("seeing"))
		stop()
		<-ended
		conformance.True(t, strings.Contains(p.SafeSince, "others ask for INNODB_TRX") || !since(p).After(began),
			"%s, and a transaction that began at %v", p.SafeSince, began)
		end(w, "ROLLBACK")
	})
	t.Run("a transaction that is in the log and that nobody sees yet is not passed over", func(t *testing.T) {
		s.Exec("SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'", "SET GLOBAL rpl_semi_sync_master_timeout = 60000",
			"SET GLOBAL rpl_semi_sync_master_enabled = ON")
		before := sqltest.Position(t, as("root"))
		w := connect()
		ended := make(chan error, 1)
		go func() {
			_, err := w.ExecContext(context.Background(), "INSERT INTO orders (id) VALUES (-5003)")
			ended <- err
		}()
		place := func() string { return strings.Join(s.Rows("SHOW MASTER STATUS")[0][:2], " ") }
		sqltest.Until(t, "the log has it",
			func() bool { return place() != fmt.Sprint(before.ResumeFrom.File, " ", before.ResumeFrom.Position) })
		now := sqltest.Position(t, as("root"))
		conformance.Equal(t, *now.ResumeFrom, *before.ResumeFrom, "resume_from, while the log is at %s", place())
		conformance.Equal(t, s.Rows("SELECT COUNT(*) FROM orders WHERE id = -5003")[0][0], "0", "it is seen")
		s.Exec("SET GLOBAL rpl_semi_sync_master_enabled = OFF")
		must(t, <-ended)
		end(w, "DELETE FROM orders WHERE id = -5003")
	})
	t.Run("rows of 1,000 open transactions are found by the next delta", func(t *testing.T) {
		s.Options("--max-connections=1100")
		const rows = 1000
		changed := func(since string) sqltable.Server {
			return parseQuery(t, s, "id", "SELECT id, v FROM orders WHERE updated_at >= '"+since+"'")
		}
		for what, table := range map[string]sqltable.Server{"one session": addressOf(t, s.Address("orders")),
			"a query": parseQuery(t, s, "id", "SELECT id, v FROM orders")} {
			t.Run(what, func(t *testing.T) {
				sqltest.Followed(t, table, changed, rows, func() func() {
					var open []*sql.Conn
					for i := range rows {
						open = append(open, connect("START TRANSACTION", fmt.Sprintf("INSERT INTO orders (id, v) VALUES (%d, 'new')", i)))
					}
					return func() {
						for _, conn := range open {
							end(conn, "COMMIT")
						}
					}
				})
				s.Exec("DELETE FROM orders WHERE id >= 0")
			})
		}
	})
	t.Run("a replica", func(t *testing.T) {
		r := mysqltest.Start(t)
		r.Exec("CREATE TABLE orders (id int PRIMARY KEY)")
		r.Follow(s)
		p := sqltest.Position(t, addressOf(t, r.Address("orders")))
		unknown("log_slave_updates is off", p.ResumeFrom.Unknown, "log_slave_updates")
		unknown("open transactions", p.SafeSince, "a replica does not know")
		r.Exec("STOP SLAVE") // its rows come later, with the times that they have
		unknown("open transactions", sqltest.Position(t, addressOf(t, r.Address("orders"))).SafeSince,
			"a replica does not know")
		r.Options("--log-slave-updates=ON")
		p = sqltest.Position(t, addressOf(t, r.Address("orders")))
		conformance.True(t, p.ResumeFrom.File != "", "%v", p)
	})
	t.Run("a server without a binary log", func(t *testing.T) {
		s.Options("--skip-log-bin")
		unknown("no log", sqltest.Position(t, as("root")).ResumeFrom.Unknown, "writes no binary log")
	})
}

// mysqlServer answers as MySQL does, which none of the tests has: statements are matched by their beginnings.
type mysqlServer struct {
	driver.Conn
	answers map[string][][]driver.Value
	refused map[string]uint16 // numbers of errors
	asked   []string
}

func (m *mysqlServer) answer(sql string) ([][]driver.Value, error) {
	m.asked = append(m.asked, sql)
	for begins, number := range m.refused {
		if strings.HasPrefix(sql, begins) {
			return nil, &mysql.MySQLError{Number: number, Message: "refused"}
		}
	}
	for begins, rows := range m.answers {
		if strings.HasPrefix(sql, begins) {
			return rows, nil
		}
	}
	return nil, nil
}

func (m *mysqlServer) ExecContext(_ context.Context, sql string, _ []driver.NamedValue) (driver.Result, error) {
	_, err := m.answer(sql)
	return driver.RowsAffected(0), err
}

func (m *mysqlServer) QueryContext(_ context.Context, sql string, _ []driver.NamedValue) (driver.Rows, error) {
	rows, err := m.answer(sql)
	if err != nil {
		return nil, err
	}
	return &mysqlRows{rows}, nil
}

type mysqlRows struct{ rows [][]driver.Value }

func (r *mysqlRows) Columns() []string { return make([]string, 5) }
func (r *mysqlRows) Close() error      { return nil }
func (r *mysqlRows) Next(to []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(to, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

// A position in MySQL's log may be later than the visible rows: it counts only while the table is locked.
func TestPositionInBinaryLog(t *testing.T) {
	log := [][]driver.Value{{"bin.000003", int64(157), "", "",
		"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:1"}}
	const gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,4e11fa47-71ca-11e1-9e33-c80aa9429562:1"
	noGTID := [][]driver.Value{{"bin.000003", int64(157), "", "", ""}}
	for name, c := range map[string]struct {
		log      [][]driver.Value
		refused  map[string]uint16
		sessions int
		query    string
		want     source.Resume
		since    string
	}{
		"it is locked": {log: log, sessions: 4, want: source.Resume{File: "bin.000003", Position: 157, GTID: gtid},
			since: "2026-01-02T03:04:05Z"},
		"before version 8.2": {log: log, sessions: 4, refused: map[string]uint16{"SHOW BINARY LOG STATUS": 1064},
			want: source.Resume{File: "bin.000003", Position: 157, GTID: gtid}, since: "2026"},
		"one session": {log: log, sessions: 1, want: source.Resume{GTID: gtid}, since: "2026"},
		"a query":     {log: log, sessions: 4, query: "SELECT 1", want: source.Resume{GTID: gtid}, since: "2026"},
		"it is not lockable": {log: log, sessions: 4, refused: map[string]uint16{"LOCK TABLES": 1142},
			want: source.Resume{GTID: gtid}, since: "2026"},
		"it is written to": {log: log, sessions: 4, refused: map[string]uint16{"LOCK TABLES": 1205},
			want: source.Resume{GTID: gtid}, since: "2026"},
		"without GTIDs": {log: noGTID, sessions: 1, want: source.Resume{
			Unknown: "needs gtid_mode=ON at the server or, for tables read by several sessions, the right LOCK TABLES"},
			since: "2026"},
		"locked, no GTIDs": {log: noGTID, sessions: 2, want: source.Resume{File: "bin.000003", Position: 157},
			since: "2026"},
		"no binary log": {sessions: 4, want: source.Resume{Unknown: "the server writes no binary log (log_bin)"},
			since: "2026"},
		"no right to see the log": {log: log, sessions: 4, refused: map[string]uint16{"SHOW BINARY LOG STATUS": 1064,
			"SHOW MASTER STATUS": 1227, "SHOW REPLICA STATUS": 1227},
			want:  source.Resume{Unknown: "needs the right REPLICATION CLIENT"},
			since: "unknown: needs the right REPLICA MONITOR (MariaDB) or REPLICATION CLIENT"},
		"no right to PROCESS": {log: log, sessions: 4, refused: map[string]uint16{"SELECT DATE_FORMAT": 1227},
			want: source.Resume{File: "bin.000003", Position: 157, GTID: gtid}, since: "unknown: needs the right PROCESS"},
	} {
		refused := map[string]uint16{"SHOW ALL REPLICAS STATUS": 1064}
		maps.Copy(refused, c.refused)
		m := &mysqlServer{refused: refused, answers: map[string][][]driver.Value{
			"SHOW BINARY LOG STATUS": c.log, "SHOW MASTER STATUS": c.log, "SELECT DATE_FORMAT(UTC": {{"2026-01-02T03:04:06Z"}},
			"SELECT DATE_FORMAT(MIN": {{"2026-01-02T03:04:05Z", int64(1), int64(0)}},
			"SHOW GLOBAL VARIABLES":  {{"log_replica_updates", "ON"}},
		}}
		a := &Address{query: c.query}
		p := conformance.Try(a.Position(t.Context(), &session{conn: m}, &sqltable.Table{Name: "t"}, c.sessions)).Must(t)
		conformance.True(t, *p.ResumeFrom == c.want && strings.HasPrefix(p.SafeSince, c.since), "%s: %s", name, p)
		asked := strings.Join(m.asked, "; ")
		locked := strings.Index(asked, "LOCK TABLES t READ")
		conformance.True(t, c.want.File == "" || locked >= 0 && locked <= strings.LastIndex(asked, " STATUS") &&
			strings.Contains(asked, "UNLOCK TABLES"), "%s: %s", name, asked)
	}
}
