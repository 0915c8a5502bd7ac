package postgres

import (
	"context"
	"strings"
	"testing"

	"tsimport/reader/postgres/pgtest"
	"tsimport/reader/source"
	"tsimport/reader/source/sourcetest"
	"tsimport/reader/sqltable"
	"tsimport/reader/sqltable/sqltest"
)

func TestAQueryNeedsAKey(t *testing.T) {
	for _, c := range []struct{ arg, query, want string }{
		{"postgres://u@h/d", "SELECT 1", "add key=COLUMN"},
		{"postgres://u@h/d?key=", "SELECT 1", "add key=COLUMN"},
		{"postgres://u@h/d?key=a&table=t", "SELECT 1", "leave one out"},
		{"postgres://u@h/d?key=a", " ; ", "--query is empty"},
		{"postgres://u@h/d?key=a", "DELETE FROM t RETURNING id", "want a SELECT, not DELETE"},
		{"postgres://u@h/d?key=a,b", "SELECT 1;", ""},
	} {
		a, err := ParseQuery(c.arg, c.query)
		if c.want == "" && (err != nil || a.query != "SELECT 1") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.arg, err, c.want)
		}
	}
	if _, err := Parse("postgres://u@h/d?table=t&key=a"); err == nil || !strings.Contains(err.Error(), "--query") {
		t.Error(err)
	}
}

func TestQueriesOfARealServer(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE TABLE customers (id int PRIMARY KEY, name text); CREATE TABLE orders (id int PRIMARY KEY, customer int, price numeric(10,2), at timestamptz);
		INSERT INTO customers SELECT i, 'customer ' || i FROM generate_series(1, 100) i; INSERT INTO orders SELECT i, i % 100 + 1, i / 100.0, '2024-01-01'::timestamptz + i * interval '1 s' FROM generate_series(1, 30000) i; ANALYZE`)
	const joined = "SELECT o.id, c.name, o.price, upper(c.name) AS \"Upper\", repeat('x', 200) AS pad FROM orders o JOIN customers c ON c.id = o.customer -- all of them"
	address := func(t *testing.T, key, query string) *Address { return parseQuery(t, s, key, query) }
	server := func(query string) sqltable.Server { return address(t, "id", query) }
	for key, query := range map[string]string{
		"id": "SELECT id, price FROM orders WHERE id < 1000 -- some", "name,id": "SELECT o.id, c.name, o.price FROM orders o JOIN customers c ON c.id = o.customer WHERE o.id <= 1000",
		"day,n": "SELECT at::date AS day, id AS n, price FROM orders WHERE id <= 1000", "k": "SELECT (i * 7919 % 1001)::text AS k, i FROM generate_series(1, 1000) i",
	} {
		t.Run("keeps the contract of sources: "+key, func(t *testing.T) {
			sourcetest.Check(t, func() source.Source {
				_, parts := sqltest.Open(t, address(t, key, query), nil)
				parts[0].SetSplitBytes(4 << 10)
				return parts[0]
			})
		})
	}

	t.Run("it is asked once, in one snapshot", func(t *testing.T) {
		o, parts := sqltest.Open(t, address(t, "id", joined), nil)
		rows := sqltest.All(t, parts, func(n int) {
			if n == 1 {
				s.Exec("UPDATE orders SET price = -1; DELETE FROM customers WHERE id > 50")
			}
		})
		if got := o.Snapshots(); len(rows) != 30000 || len(got) != 1 || strings.Contains(strings.Join(rows, ""), `"-1.00"`) {
			t.Errorf("%d rows, snapshots %+v", len(rows), got)
		}
		s.Exec("TRUNCATE customers; INSERT INTO customers SELECT i, 'customer ' || i FROM generate_series(1, 100) i")
	})
	for what, kill := range map[string]struct {
		sql       string
		snapshots int
	}{
		"its session was killed":   {"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tsimport' AND query LIKE 'SELECT \"id\"%'", 1},
		"all sessions were killed": {"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tsimport'", 2},
	} {
		t.Run("it continues after "+what, func(t *testing.T) {
			o, parts := sqltest.Open(t, address(t, "id", joined), nil)
			rows := sqltest.All(t, parts, func(n int) {
				if n == 2 {
					s.Exec(kill.sql)
				}
			})
			seen := map[string]bool{}
			for _, r := range rows {
				seen[r] = true
			}
			if got := o.Snapshots(); len(rows) != 30000 || len(seen) != 30000 || len(got) != kill.snapshots {
				t.Errorf("%d rows, %d of them different, snapshots %+v", len(rows), len(seen), got)
			}
		})
	}
	t.Run("a key that is none fails the reading", func(t *testing.T) {
		s.Exec("CREATE SEQUENCE IF NOT EXISTS numbers")
		sqltest.Keyless(t, server, map[string]string{
			"SELECT i / 2 AS id FROM generate_series(1, 1000) i":                                  "have the key id",
			"SELECT CASE WHEN i <> 700 THEN i END AS id FROM generate_series(1, 1000) i":          "has no id",
			"SELECT i AS id FROM generate_series(1, 1000) i UNION ALL SELECT 200":                 "have the key id",
			"SELECT i AS id, 1 / (900 - i) FROM generate_series(1, 1000) i":                       "division by zero",
			"SELECT i AS id, pg_advisory_lock(1), nextval('numbers') FROM generate_series(1,9) i": "read-only",
		})
	})
	t.Run("what cannot be exact is refused by name", func(t *testing.T) {
		sqltest.Refused(t, server, map[string]string{
			"SELECT 1.5 AS id": "cast it", "SELECT 1 AS id, 2 AS id": "two columns", "SELECT 1 AS other": "no column id", "SELECT 1 AS id) q; SELECT (1": "columns of the query",
			"WITH gone AS (DELETE FROM orders RETURNING id) SELECT id FROM gone": "columns of the query",
		})
	})
	t.Run("a table that was emptied between snapshot and lock is noticed", func(t *testing.T) {
		for _, change := range []string{"SELECT 1", "TRUNCATE customers", "DROP TABLE customers; CREATE TABLE customers (id int PRIMARY KEY, name text)", "ALTER TABLE customers ALTER id TYPE bigint"} {
			ctx := context.Background()
			a := address(t, "id", joined)
			conn, err := connect(ctx, a)
			must(t, err)
			of, err := describeQuery(ctx, conn, a)
			if err == nil {
				err = conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1").Close()
			}
			must(t, err)
			s.Exec(change)
			if err := of.unmoved(ctx, conn); (err == nil) != (change == "SELECT 1") {
				t.Errorf("%s: %v", change, err)
			}
			hangUp(conn)
		}
	})
}
