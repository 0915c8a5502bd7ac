package postgres

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
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

// TestPoolerSessionsStayUnchanged: a session that a pooler lends for a transaction goes to others afterwards.
func TestPoolerSessionsStayUnchanged(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE TABLE numbers (id bigint PRIMARY KEY, text text); INSERT INTO numbers SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) i; ANALYZE; CREATE TABLE written (id int)`)
	address := pooler(t, s, 3)
	ctx := context.Background()
	others := func(what string) {
		t.Helper()
		plain, _ := url.Parse(address(""))
		plain.RawQuery = "sslmode=disable"
		for range 6 { // sessions of the pool come by turns
			conn := conformance.Try(pgconn.Connect(ctx, plain.String())).Must(t)
			res, err := conn.Exec(ctx, "INSERT INTO written VALUES (1); SELECT current_setting('DateStyle') || current_setting('extra_float_digits') || current_setting('row_security'); SELECT name FROM pg_prepared_statements").ReadAll()
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
	for _, sessions := range []int{0, 1} { // one more than the pool has, and one
		a := addressOf(t, address("numbers"))
		_, parts := sqltest.Open(t, a, func(c *sqltable.Config) {
			c.Sessions, c.OnPause = sessions, func(why string) { notes = append(notes, why) }
		})
		others("a look")
		conformance.Equal(t, len(sqltest.All(t, parts, nil)), 20000, "rows")
		others("a load")
	}
	// A killed load hangs up during its transaction.
	a := addressOf(t, address("numbers"))
	h, _, err := a.Snapshot(ctx, 1, nil)
	must(t, err)
	_ = h.(*snapshot).conn.Conn().Close()
	others("a kill")
	conformance.True(t, len(notes) <= 1, "%q", notes)
}

func TestLastFreeSessionReads(t *testing.T) {
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
		if want := 1 - sessions; len(notes) != want || want > 0 && !strings.Contains(notes[0], "reading with 1 of 4 sessions") {
			t.Errorf("sessions=%d: %q", sessions, notes)
		}
	}
	held, err := pgconn.Connect(t.Context(), strings.Replace(strings.Replace(s.Address(""), "&table=", "", 1), "postgres@", "few@", 1))
	must(t, err)
	defer held.Close(context.Background())
	a := addressOf(t, strings.Replace(s.Address("numbers"), "postgres@", "few@", 1))
	_, _, err = a.Look(t.Context())
	conformance.True(t, err != nil && strings.Contains(err.Error(), "sessions=1"), "%v", err)
}

// pooler starts a PgBouncer in front of the server that lends up to this many sessions, each for one transaction, and
// returns the address of a table through it.
func pooler(t *testing.T, s *pgtest.Server, sessions int) (address func(table string) string) {
	t.Helper()
	bouncer, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("PgBouncer is not installed: apt-get install pgbouncer")
	}
	free := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	port := free.Addr().(*net.TCPAddr).Port
	must(t, free.Close())
	server := conformance.Try(url.Parse(s.Address(""))).Must(t)
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\npostgres = host=127.0.0.1 port=%s user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
		"unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = %d\n", server.Port(), port, sessions)
	must(t, os.WriteFile(file, []byte(text), 0o644))
	c := exec.Command(bouncer, "-q", file)
	if os.Getuid() == 0 { // it refuses to run as root
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
