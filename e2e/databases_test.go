//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"tsimport/reader/postgres/pgtest"
)

// fromPostgres is a load of a table of a real server, compared by the server itself: what the target holds is copied back, and the
// server looks for rows that only one of the two has.
func fromPostgres(t *testing.T, s *pgtest.Server, rows int) *liveLoad {
	s.Exec(`DROP TABLE IF EXISTS orders, back; CREATE TABLE orders (id bigint PRIMARY KEY, customer text NOT NULL, price numeric(12,2), paid boolean, at timestamptz, w double precision, note text, raw bytea);
		INSERT INTO orders SELECT i * 7 - 1000, 'customer "' || i % 1000 || E'", \\ é\n', i / 100.0, i % 3 = 0, '2024-01-01'::timestamptz + i * interval '1.25 s', i / 3.0, CASE WHEN i % 5 > 0 THEN md5(i::text) END,
			decode(md5(i::text), 'hex') FROM generate_series(1, ` + fmt.Sprint(rows) + `) i`)
	d := newLiveLoad(t, s.Address("orders"), "--pk", "id:integer")
	const made = `SELECT (j->>'id')::bigint, j->>'customer', (j->>'price')::text, (j->>'paid')::boolean, j->>'at', (j->>'w')::float8, j->>'note', decode(j->'raw'->>'base64', 'base64') FROM back`
	const was = `SELECT id, customer, price::text, paid, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') || rtrim(rtrim(to_char(at, '.US'), '0'), '.') || 'Z', w, note, raw FROM orders`
	d.compare = func() {
		t.Helper()
		s.Exec("DROP TABLE IF EXISTS back; CREATE TABLE back (j jsonb)")
		s.CopyIn(context.Background(), d.back(), "COPY back FROM STDIN WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')")
		for _, q := range []string{made + " EXCEPT ALL " + was, was + " EXCEPT ALL " + made} {
			if rows := s.Exec("SELECT * FROM (" + q + ") q LIMIT 3"); len(rows) > 0 {
				t.Errorf("rows that only one side has: %q", rows)
			}
		}
	}
	return d
}

func TestDatabases(t *testing.T) {
	s := pgtest.Start(t)
	round := func(t *testing.T, rows int) *liveLoad { return fromPostgres(t, s, rows) }
	t.Run("a million rows are loaded as they are", func(t *testing.T) { round(t, 1_000_000).loadWhole(1_000_000) })
	small := func(t *testing.T) *liveLoad { return round(t, 30_000) }
	t.Run("loads that are killed are resumed", func(t *testing.T) { loseClients(t, small) })
	t.Run("loads whose server is killed continue", func(t *testing.T) {
		loseServers(t, small, func() {
			s.Stop("immediate")
			s.Go()
		})
	})
	t.Run("all rows are of one moment while they change", func(t *testing.T) {
		s.Exec(fmt.Sprintf(`DROP TABLE IF EXISTS moving; CREATE TABLE moving (id int PRIMARY KEY, n int NOT NULL, mark text NOT NULL, pad text);
			INSERT INTO moving SELECT i, 0, md5(i || ':' || 0), repeat('x', 80) FROM generate_series(1, %d) i; ANALYZE moving`, movingRows))
		loadMoving(t, s.Address("moving"), func(n int) {
			up, down := movingRows/2+n*7919%(movingRows/2), movingRows/2+(n*7919+104729)%(movingRows/2)
			s.Exec(fmt.Sprintf(`UPDATE moving SET n = n + 1, mark = md5(id || ':' || n + 1) WHERE id = %d; UPDATE moving SET n = n - 1, mark = md5(id || ':' || n - 1) WHERE id = %d;
				WITH gone AS (DELETE FROM moving WHERE id = %d RETURNING n, pad) INSERT INTO moving SELECT %[4]d, n, md5(%[4]d || ':' || n), pad FROM gone`, up, down, n+1, movingRows+n+1))
		})
	})
	t.Run("the ranges of a run are compared with a source that has moved on", func(t *testing.T) {
		d := small(t)
		d.run(0, d.load...)
		d.ends(0, []string{"verify", "--run", "run"}, "source and table are equal now, in each of the ")
		s.Exec("UPDATE orders SET note = 'changed' WHERE id IN (-993, -986); DELETE FROM orders WHERE id = -979; INSERT INTO orders (id, customer) VALUES (1000000, 'new')")
		d.ends(6, []string{"verify", "--run", "run"}, "the source has moved on, or the table was changed, in 2 of the ", "orders[1] from its first row on: 0 missing, 2 different, 1 surplus; the run read it in the snapshot of 20", ": 1 missing, 0 different, 0 surplus")
	})
	t.Run("no password is kept", func(t *testing.T) {
		d := round(t, 10)
		s.Exec("CREATE USER guarded PASSWORD 'planted-secret'; GRANT SELECT ON orders TO guarded")
		s.Guard("guarded")
		guarded := strings.Replace(s.Address("orders"), "postgres@", "guarded@", 1)
		d.keepsNoPassword("PGPASSWORD", strings.Replace(guarded, "guarded@", "guarded:planted-secret@", 1), guarded+"&password=planted-secret", guarded, guarded)
	})
}
