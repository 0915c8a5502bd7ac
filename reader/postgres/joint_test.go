package postgres

import (
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/postgres/pgtest"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
)

func TestTablesShareOneSnapshot(t *testing.T) {
	s := pgtest.Start(t)
	server := func(name string) sqltable.Server { return addressOf(t, s.Address(name)) }
	fill := func() {
		s.Exec(`DROP TABLE IF EXISTS a, b; CREATE TABLE a (id int PRIMARY KEY, v text); INSERT INTO a SELECT i, repeat('x', 200) FROM generate_series(1, 40000) i;
			CREATE TABLE b (id text PRIMARY KEY, v text) PARTITION BY LIST (id); CREATE TABLE b_1 PARTITION OF b DEFAULT; INSERT INTO b SELECT 'k' || i, 'x' FROM generate_series(1, 300) i`)
	}
	t.Run("rows are those of each table", func(t *testing.T) {
		fill()
		sqltest.Alike(t, server("a"), server("b"))
	})
	t.Run("loads that end cost the others nothing", func(t *testing.T) {
		fill()
		sqltest.Cancelled(t, server("a"), server("b"))
	})
	t.Run("a session does not read a table that may have been emptied since the keeper was killed", func(t *testing.T) {
		fill()
		a, b := server("a").(*Address), server("b").(*Address)
		h, _, err := a.SnapshotOf(t.Context(), []sqltable.Server{a, b}, 2, nil)
		must(t, err)
		session := conformance.Try(h.Join(t.Context())).Must(t)
		defer session.Close()
		must(t, conformance.ErrorOf(a.Describe(t.Context(), session)))
		s.Exec("SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'tsimport' ORDER BY backend_start LIMIT 1) AS keeper")
		s.Exec("TRUNCATE b")
		_, err = b.Describe(t.Context(), session)
		conformance.Is(t, err, errKeeper, "describe")
		must(t, conformance.ErrorOf(a.Describe(t.Context(), session)))
		conformance.Equal(t, h.Alive(t.Context()), false, "the keeper is alive")
	})
	t.Run("tables that cannot be read are refused, and the others are read", func(t *testing.T) {
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
	t.Run("a session takes part in more tables than it keeps locked", func(t *testing.T) {
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
