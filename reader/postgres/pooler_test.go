package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/postgres/pgtest"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
)

func TestSettingsEndWithTransaction(t *testing.T) {
	for sql := range strings.SplitSeq(settings, ";") {
		conformance.Equal(t, strings.HasPrefix(strings.TrimSpace(sql), "SET LOCAL "), true, "%q stays with the session", sql)
	}
}

// TestPoolerSessionsStayUnchanged checks that reading leaves sessions unchanged: a pooler lends them to others, too.
func TestPoolerSessionsStayUnchanged(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE TABLE numbers (id bigint PRIMARY KEY, text text); INSERT INTO numbers SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) i; ANALYZE; CREATE TABLE written (id int)`)
	address := pooler(t, s, 3)
	ctx := context.Background()
	others := func(what string) {
		t.Helper()
		plain, _ := url.Parse(address(""))
		plain.RawQuery = "sslmode=disable"
		for range 6 { // the pool lends its sessions in turn
			conn := conformance.Try(pgconn.Connect(ctx, plain.String())).Must(t)
			res, err := conn.Exec(ctx, "INSERT INTO written VALUES (1); SELECT current_setting('DateStyle') || "+
				"current_setting('extra_float_digits') || current_setting('row_security'); SELECT name FROM pg_prepared_statements").ReadAll()
			conformance.MustEqual(t, err, nil, "after %s", what)
			if got := string(res[1].Rows[0][0]); got != "ISO, MDY1on" || len(res[2].Rows) > 0 {
				t.Errorf("after %s: settings %q, statements %q", what, got, res[2].Rows)
			}
			_ = conn.Close(ctx)
		}
	}
	if all, err := List(ctx, address("")); err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	others("a list")
	var notes []string
	for _, sessions := range []int{0, 1} { // the default, which is more than the pool has, and one
		a := addressOf(t, address("numbers"))
		_, parts := sqltest.Open(t, a, func(c *sqltable.Config) {
			c.Sessions, c.OnPause = sessions, func(why string) { notes = append(notes, why) }
		})
		others("a look")
		conformance.Equal(t, len(sqltest.All(t, parts, nil)), 20000, "rows")
		others("a load")
	}
	// A killed load disconnects in the middle of its transaction.
	a := addressOf(t, address("numbers"))
	h, _, err := a.Snapshot(ctx, 1, nil)
	must(t, err)
	_ = h.(*snapshot).conn.Conn().Close()
	others("a kill")
	conformance.True(t, len(notes) <= 1, "%q", notes)
}

func TestTableIsReadWithLastFreeSession(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE TABLE numbers (id bigint PRIMARY KEY, text text); INSERT INTO numbers SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) i; ANALYZE;
		CREATE ROLE few LOGIN CONNECTION LIMIT 1; GRANT SELECT ON numbers TO few`)
	for _, sessions := range []int{0, 1} {
		a := addressOf(t, strings.Replace(s.Address("numbers"), "postgres@", "few@", 1))
		var notes []string
		_, parts := sqltest.Open(t, a, func(c *sqltable.Config) {
			c.Sessions, c.OnPause = sessions, func(why string) { notes = append(notes, why) }
		})
		conformance.Equal(t, len(sqltest.All(t, parts, nil)), 20000, "rows")
		want := 1 - sessions
		conformance.True(t, len(notes) == want && (want <= 0 || strings.Contains(notes[0], "reading with 1 of 4 sessions")),
			"sessions=%d: %q", sessions, notes)
	}
	held, err := pgconn.Connect(t.Context(), strings.Replace(strings.Replace(s.Address(""), "&table=", "", 1), "postgres@",
		"few@", 1))
	must(t, err)
	defer held.Close(context.Background())
	_, _, err = addressOf(t, strings.Replace(s.Address("numbers"), "postgres@", "few@", 1)).Look(t.Context())
	conformance.True(t, err != nil && strings.Contains(err.Error(), "sessions=1"), "%v", err)
}

// pooler starts a PgBouncer in front of the server. It lends up to this many sessions, for one transaction each.
// address returns the address of a table through it.
func pooler(t *testing.T, s *pgtest.Server, sessions int) (address func(table string) string) {
	bouncer, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("PgBouncer is not installed: apt-get install pgbouncer")
	}
	free := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	port := free.Addr().(*net.TCPAddr).Port
	must(t, free.Close())
	server := conformance.Try(url.Parse(s.Address(""))).Must(t)
	file := t.TempDir() + "/pgbouncer.ini"
	text := fmt.Sprintf("[databases]\npostgres = host=127.0.0.1 port=%s user=postgres\n[pgbouncer]\nlisten_addr = "+
		"127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = %d\n",
		server.Port(), port, sessions)
	must(t, os.WriteFile(file, []byte(text), 0o644))
	c := exec.Command(bouncer, "-q", file)
	if os.Getuid() == 0 { // PgBouncer refuses to run as root
		c.Args = append(c.Args, "-u", "postgres")
	}
	must(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	plain := fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := pgconn.Connect(context.Background(), plain)
		if err == nil {
			_ = conn.Close(context.Background())
			return func(table string) string { return plain + "&table=" + table }
		}
		conformance.MustTrue(t, !time.Now().After(end), "%v", err)
	}
}

func TestTablesShareOneSnapshot(t *testing.T) {
	s := pgtest.Start(t)
	server := func(name string) sqltable.Server { return addressOf(t, s.Address(name)) }
	fill := func() {
		s.Exec(`DROP TABLE IF EXISTS a, b; CREATE TABLE a (id int PRIMARY KEY, v text); INSERT INTO a SELECT i, repeat('x', 200) FROM generate_series(1, 40000) i;
			CREATE TABLE b (id text PRIMARY KEY, v text) PARTITION BY LIST (id); CREATE TABLE b_1 PARTITION OF b DEFAULT; INSERT INTO b SELECT 'k' || i, 'x' FROM generate_series(1, 300) i`)
	}
	t.Run("each table gives its own rows", func(t *testing.T) {
		fill()
		sqltest.Alike(t, server("a"), server("b"))
	})
	t.Run("loads that end cost others no session", func(t *testing.T) {
		fill()
		sqltest.Cancelled(t, server("a"), server("b"))
	})
	t.Run("a session does not read a table that may have been truncated after the keeper was killed", func(t *testing.T) {
		fill()
		a, b := server("a").(*Address), server("b").(*Address)
		h, _, err := a.SnapshotOf(t.Context(), []sqltable.Server{a, b}, 2, nil)
		must(t, err)
		session := conformance.Try(h.Join(t.Context())).Must(t)
		defer session.Close()
		must(t, conformance.ErrorOf(a.Describe(t.Context(), session)))
		s.Exec("SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = " +
			"'tsimport' ORDER BY backend_start LIMIT 1) AS keeper")
		s.Exec("TRUNCATE b")
		conformance.Is(t, conformance.ErrorOf(b.Describe(t.Context(), session)), errKeeper, "describe")
		must(t, conformance.ErrorOf(a.Describe(t.Context(), session)))
		conformance.Equal(t, h.Alive(t.Context()), false, "the keeper is alive")
	})
	t.Run("unreadable tables are refused and the others read", func(t *testing.T) {
		fill()
		s.Exec("CREATE VIEW seen AS SELECT 1; CREATE TABLE keyless (v int)")
		_, open := sqltest.Joined(t, true, server("seen"), server("a"), server("none"), server("keyless"), server("later"))
		for n, says := range []string{"is not a table", "", "there is no table", "has no primary key", "there is no table"} {
			sqltest.Says(t, func() error { _, err := open(n, t.Context()); return err }, says)
			if n == 1 {
				s.Exec("CREATE TABLE later (id int PRIMARY KEY)")
			}
		}
	})
	t.Run("a session reads more tables than it keeps locked", func(t *testing.T) {
		var tables []sqltable.Server
		for n := range 3 * mostEntered {
			name := "many_" + string(rune('a'+n%26)) + string(rune('a'+n/26))
			s.Exec("CREATE TABLE " + name + " (id int PRIMARY KEY); INSERT INTO " + name + " VALUES (1), (2)")
			tables = append(tables, server(name))
		}
		sqltest.Alike(t, tables...)
	})
	t.Run("shards", func(t *testing.T) { sqltest.Sharded(t, server, func(sql string) { s.Exec(sql) }) })
}

func TestReplicationOnRealServer(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec("CREATE TABLE big (id int PRIMARY KEY, pad text); INSERT INTO big SELECT i, repeat('x', 200) FROM " +
		"generate_series(1, 30000) i; ANALYZE; CREATE USER plain; GRANT SELECT ON big TO plain")
	sqltest.NoLag(t, addressOf(t, s.Address("big")), "none streams from it")
	standby := s.Standby()
	says := func(what string, of *pgtest.Server, sql, want string) {
		t.Helper()
		sqltest.Until(t, what, func() bool { return of.Exec(sql)[0][0] == want })
	}
	says("the standby streams", s, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1")
	s.Exec("CREATE TABLE other (id int)")
	says("the standby replays", standby, "SELECT to_regclass('other') IS NOT NULL", "t")
	sqltest.NoLag(t, addressOf(t, strings.Replace(s.Address("big"), "postgres@", "plain@", 1)), "GRANT pg_monitor")
	for where, of := range map[string]*pgtest.Server{"at a standby": standby, "at a server with a standby": s} {
		t.Run("reading pauses while replication lags, "+where, func(t *testing.T) {
			// The lag of a standby that does not replay grows with each transaction.
			lag := func() {
				standby.Exec("SELECT pg_wal_replay_pause()")
				sqltest.Until(t, "it lags", func() bool {
					s.Exec("INSERT INTO other VALUES (1)")
					w := conformance.Try(addressOf(t, of.Address("big")).Watch(context.Background())).Must(t)
					defer w.Close()
					lag, known, err := w.Lag(context.Background())
					must(t, err)
					return known && lag > time.Second
				})
			}
			sqltest.Paused(t, addressOf(t, of.Address("big")), lag, func() { standby.Exec("SELECT pg_wal_replay_resume()") })
		})
	}
	t.Run("a lost standby pauses reading", func(t *testing.T) {
		_, parts := sqltest.Open(t, addressOf(t, s.Address("big")),
			func(c *sqltable.Config) { c.MaxLag, c.RetryFor = time.Second, 2*time.Second })
		must(t, conformance.ErrorOf(parts[0].Next()))
		standby.Stop("immediate")
		says("nothing streams", s, "SELECT count(*) FROM pg_stat_replication", "0")
		time.Sleep(1100 * time.Millisecond) // the lag is queried once a second
		_, err := parts[0].Next()
		for _, p := range parts[1:] {
			if err == nil || errors.Is(err, io.EOF) {
				_, err = p.Next()
			}
		}
		conformance.MustTrue(t, err != nil, "it was read")
		conformance.True(t, strings.Contains(err.Error(), "not connected") || strings.Contains(err.Error(), "lags by"),
			"%v", err)
	})
}
