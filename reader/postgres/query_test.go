package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/postgres/pgtest"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
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
	_, err := Parse("postgres://u@h/d?table=t&key=a")
	conformance.Refused(t, err, "--query", "error")
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
			sqltest.Contract(t, func() sqltable.Server { return address(t, key, query) }, 4<<10)
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
			sqltest.Continued(t, server(joined), kill.snapshots, func() { s.Exec(kill.sql) })
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
			conformance.Equal(t, (of.unmoved(ctx, conn) == nil), change == "SELECT 1", "%s", change)
			hangUp(conn)
		}
	})
}

func TestTablesAreListed(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE SCHEMA other; CREATE TABLE customers (id int PRIMARY KEY); CREATE TABLE other."o.1" (b int, a text, PRIMARY KEY (a, b)); CREATE TABLE nokey (id int);
		CREATE VIEW seen AS SELECT 1; CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (500);
		INSERT INTO customers SELECT generate_series(1, 1000); INSERT INTO parted SELECT generate_series(0, 99)`)
	s.Exec("ANALYZE")
	for pattern, want := range map[string]string{
		"":          `other."o.1" table 0 [a b], public.customers table 1000 [id], public.nokey table 0 no primary key, public.parted table 100 [id], public.seen view 0 is not a table, `,
		"c*":        "customers table 1000 [id], ",
		"public.p*": "public.parted table 100 [id], ",
		"nothing":   "",
	} {
		all, err := List(context.Background(), s.Address(pattern))
		must(t, err)
		got := ""
		for _, one := range all {
			if !strings.HasPrefix(one.Address, "postgres://postgres@127.0.0.1:") || !strings.Contains(one.Address, "table=") || one.Rows > 0 && one.Bytes == 0 {
				t.Errorf("%+v", one)
			}
			why := fmt.Sprint(one.Key)
			for _, part := range []string{"no primary key", "is not a table"} {
				if strings.Contains(one.Refused, part) {
					why = part
				}
			}
			got += fmt.Sprintf("%s %s %d %s, ", one.Table, one.Kind, max(one.Rows, 0), why)
		}
		conformance.Equal(t, got, want, "%s", pattern)
	}
	if _, err := List(context.Background(), s.Address("[")); err == nil {
		t.Error("a pattern that is none was taken")
	}
	s.Stop("immediate")
	if _, err := List(context.Background(), s.Address("")); err == nil {
		t.Error("a server that is down was listed")
	}
}

func TestTLSOfARealServer(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec("CREATE TABLE t (id int PRIMARY KEY); CREATE USER safe; CREATE USER known; GRANT SELECT ON t TO safe, known")
	address := func(user, host, parameters string) (*Address, error) {
		return Parse(strings.NewReplacer("postgres@", user+"@", "127.0.0.1", host, "sslmode=disable&", "").Replace(s.Address("t")) + parameters)
	}
	sqltest.Tried(t, address, []sqltest.TLS{
		{"postgres", "127.0.0.1", "", ""},
		{"postgres", "127.0.0.1", "&sslmode=prefer", ""},
		{"postgres", "127.0.0.1", "&sslmode=disable", ""},
		{"postgres", "127.0.0.1", "&sslmode=require", "the server speaks no TLS, which the address asks for; turn TLS on at the server or, where the network is trusted, give sslmode=disable"},
	})
	ours, others := sqltest.NewAuthority(t), sqltest.NewAuthority(t)
	cert, key := ours.Server()
	s.Secure(ours.File, cert, key, "hostssl all safe all trust\nhost all safe all reject\nhostssl all known all cert\nhost all known all reject\n")
	cert, key = ours.Client("known")
	strange, strangeKey := others.Client("known")
	other, otherKey := ours.Client("safe")
	pair := func(cert, key string) string { return "&sslcert=" + cert + "&sslkey=" + key }
	sqltest.Tried(t, address, []sqltest.TLS{
		{"safe", "127.0.0.1", "", ""},
		{"safe", "127.0.0.1", "&sslmode=disable", "pg_hba.conf rejects"},
		{"safe", "127.0.0.1", "&sslmode=require", ""},
		{"safe", "127.0.0.1", "&sslmode=verify-ca&sslrootcert=" + ours.File, ""},
		{"safe", "127.0.0.1", "&sslmode=verify-ca&sslrootcert=" + others.File, "unknown authority; give the authority's certificate with sslrootcert=FILE"},
		{"safe", "127.0.0.1", "&sslmode=verify-full&sslrootcert=" + ours.File, ""},
		{"safe", "localhost", "&sslmode=verify-full&sslrootcert=" + ours.File, "match localhost); connect by one of them or, to trust any that the authority has signed, give sslmode=verify-ca"},
		{"safe", "127.0.0.1", "&sslmode=verify-ca&sslrootcert=/nowhere.pem", "/nowhere.pem: no such file or directory); want the parameters of libpq"},
		{"nobody", "127.0.0.1", "&sslmode=disable", "the server refuses the session: role \"nobody\" does not exist (SQLSTATE 28000)"},
		{"safe", "localhost", "&sslmode=verify-ca&sslrootcert=" + ours.File, ""},
		{"safe", "127.0.0.1", "&sslmode=sometimes", "sslmode"},
		{"known", "127.0.0.1", "&sslmode=require", "certificate"},
		{"known", "127.0.0.1", "&sslmode=verify-full&sslrootcert=" + ours.File + pair(cert, key), ""},
		{"known", "127.0.0.1", "&sslmode=require" + pair(strange, strangeKey), "give one that it trusts with sslcert=FILE and sslkey=FILE"},
		{"known", "127.0.0.1", "&sslmode=require" + pair(other, otherKey), "certificate authentication failed"},
	})
}
