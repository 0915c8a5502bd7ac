package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/postgres/pgtest"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
)

func TestPositionOfRealServerMissesNothing(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE TABLE orders (id int PRIMARY KEY, v text, updated_at timestamptz NOT NULL DEFAULT now()); INSERT INTO orders (id, v) SELECT n, 'old' FROM generate_series(-1000, -1) n;
		CREATE USER reader; GRANT SELECT ON orders TO reader; CREATE USER seeing; GRANT SELECT ON orders TO seeing; GRANT pg_read_all_stats TO seeing; CREATE USER writer; GRANT ALL ON orders TO writer`)
	as := func(user string) *Address {
		return addressOf(t, strings.Replace(s.Address("orders"), "postgres@", user+"@", 1))
	}
	connect := func(user string) *pgconn.PgConn {
		t.Helper()
		conn, err := pgconn.Connect(t.Context(), strings.Replace(strings.SplitN(s.Address("orders"), "&", 2)[0], "postgres@",
			user+"@", 1))
		must(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	exec := func(conn *pgconn.PgConn, sql string) {
		t.Helper()
		must(t, conformance.ErrorOf(conn.Exec(t.Context(), sql).ReadAll()))
	}
	// notLater reports whether a position is not later than a place in the log.
	notLater := func(p source.Position, lsn string) bool {
		t.Helper()
		return s.Exec("SELECT '" + p.ResumeFrom.LSN + "'::pg_lsn <= '" + lsn + "'::pg_lsn")[0][0] == "t"
	}
	unknown := func(what string, p source.Position, resume, since string) {
		t.Helper()
		conformance.True(t, strings.Contains(p.ResumeFrom.Unknown, resume) &&
			strings.HasPrefix(p.SafeSince, source.Unknown) && strings.Contains(p.SafeSince, since),
			"%s: %s", what, p)
	}

	t.Run("a quiet server", func(t *testing.T) {
		p := sqltest.Position(t, as("seeing"))
		if since, err := time.Parse(time.RFC3339, p.SafeSince); err != nil || time.Since(since) < time.Second ||
			time.Since(since) > time.Minute || !notLater(p, s.Exec("SELECT pg_current_wal_lsn()")[0][0]) {
			t.Error(p)
		}
	})
	t.Run("a transaction that waits for its client is safe, and seen by those who may", func(t *testing.T) {
		w := connect("writer")
		exec(w, "BEGIN; INSERT INTO orders VALUES (-5000)")
		began := s.Exec("SELECT to_char(xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM " +
			"pg_stat_activity WHERE usename = 'writer'")[0][0]
		sqltest.Until(t, "it is older than what is subtracted", func() bool {
			return s.Exec("SELECT '" + began + "' < clock_timestamp() - interval '1 second'")[0][0] == "t"
		})
		p := sqltest.Position(t, as("seeing"))
		conformance.Equal(t, p.SafeSince, began, "%s", p)
		conformance.True(t, p.ResumeFrom.LSN != "", "%v", p)
		unknown("a user who sees no others", sqltest.Position(t, as("reader")), "pg_read_all_stats", "pg_read_all_stats")
		exec(w, "ROLLBACK")
	})
	t.Run("one that has no session is unknown", func(t *testing.T) {
		s.Exec("ALTER SYSTEM SET max_prepared_transactions = 5")
		s.Stop("fast")
		s.Go()
		w := connect("writer")
		exec(w, "BEGIN; INSERT INTO orders VALUES (-5001); PREPARE TRANSACTION 'p'")
		unknown("prepared", sqltest.Position(t, as("postgres")), "prepared", "prepared")
		exec(w, "ROLLBACK PREPARED 'p'")
	})
	t.Run("sessions that do not say what they do are unknown", func(t *testing.T) {
		w := connect("postgres")
		exec(w, "SET track_activities = off; BEGIN; INSERT INTO orders VALUES (-5002)")
		p := sqltest.Position(t, as("postgres"))
		conformance.Contains(t, p.SafeSince, "track_activities", "%v", p)
		must(t, w.Close(t.Context()))
	})
	t.Run("a committed transaction that nobody sees yet, because a standby has not confirmed it, is not passed over",
		func(t *testing.T) {
			s.Exec("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
			s.Exec("SELECT pg_reload_conf()")
			ended := make(chan error, 1)
			w := connect("writer")
			before := s.Exec("SELECT pg_current_wal_insert_lsn()")[0][0]
			go func() {
				_, err := w.Exec(context.Background(), "INSERT INTO orders VALUES (-5003)").ReadAll()
				ended <- err
			}()
			sqltest.Until(t, "the transaction waits for the standby", func() bool {
				return s.Exec("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")[0][0] == "1"
			})
			s.Exec("SET synchronous_commit = local; CREATE TABLE later (a int)") // the log moves on
			a := as("postgres")
			p := sqltest.Position(t, a)
			_, parts := sqltest.Open(t, a, nil)
			conformance.Equal(t, len(sqltest.All(t, parts, nil)), 1000, "the snapshot sees the transaction")
			conformance.True(t, p.ResumeFrom.Unknown != "" || notLater(p, before), "%s is after %s", p.ResumeFrom, before)
			s.Exec("ALTER SYSTEM RESET synchronous_standby_names")
			s.Exec("SELECT pg_reload_conf()")
			must(t, <-ended)
			s.Exec("DELETE FROM orders WHERE id < -1000")
		})
	t.Run("a standby says what it has replayed, and not what is open", func(t *testing.T) {
		p := sqltest.Position(t, addressOf(t, s.Standby().Address("orders")))
		if p.ResumeFrom.LSN == "" || !notLater(p, s.Exec("SELECT pg_current_wal_lsn()")[0][0]) ||
			!strings.Contains(p.SafeSince, "primary") {
			t.Error(p)
		}
	})
	t.Run("a server that lacks the function", func(t *testing.T) {
		w := connect("postgres")
		exec(w, "REVOKE EXECUTE ON FUNCTION pg_last_wal_replay_lsn FROM PUBLIC")
		unknown("revoked", sqltest.Position(t, as("reader")), "permission denied", "permission denied")
		exec(w, "GRANT EXECUTE ON FUNCTION pg_last_wal_replay_lsn TO PUBLIC")
	})
	t.Run("rows of 1,000 open transactions are found by the next delta", func(t *testing.T) {
		s.Exec("DELETE FROM orders WHERE id < -1000")
		s.Most = 1100
		s.Stop("fast")
		s.Go()
		changed := func(since string) sqltable.Server {
			a, err := ParseQuery(strings.Replace(s.Address(""), "table=", "key=id", 1),
				"SELECT id, v FROM orders WHERE updated_at >= '"+since+"'")
			must(t, err)
			return a
		}
		table, err := ParseQuery(strings.Replace(s.Address(""), "table=", "key=id", 1), "SELECT id, v FROM orders")
		must(t, err)
		const rows = 1000
		sqltest.Followed(t, table, changed, rows, func() func() {
			var open []*pgconn.PgConn
			for i := range rows {
				open = append(open, connect("writer"))
				exec(open[i], fmt.Sprintf("BEGIN; INSERT INTO orders (id, v) VALUES (%d, 'new')", i))
			}
			return func() {
				for _, conn := range open {
					exec(conn, "COMMIT")
				}
			}
		})
	})
}
