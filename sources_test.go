package tsimport

import (
	"path/filepath"
	"testing"

	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/postgres/pgtest"
)

func TestTheLibraryLoadsTablesOfServers(t *testing.T) {
	const made = "CREATE TABLE orders (id bigint PRIMARY KEY, name text)"
	const filled = "INSERT INTO orders VALUES (1, 'Ada'), (2, NULL), (-3, 'Grace')"
	load := func(t *testing.T, address string) {
		w := newWorld(t)
		s, err := Load(t.Context(), Request{
			From: []string{address}, Table: "t", Target: w.target(),
			NewTable: NewTable{Create: true}, Running: Running{RunDir: filepath.Join(t.TempDir(), "run")},
		})
		must(t, err)
		rows := w.rows(1)
		if s.Read != 3 || s.Written != 3 || len(rows) != 3 || rows["2"] != "" || rows["-3"] == "" {
			t.Errorf("%+v, %q", s, rows)
		}
	}
	t.Run("postgres", func(t *testing.T) {
		s := pgtest.Start(t)
		s.Exec(made + ";" + filled)
		load(t, s.Address("orders"))
	})
	t.Run("mysql", func(t *testing.T) {
		s := mysqltest.Start(t)
		s.Exec(made, filled)
		load(t, s.Address("orders"))
	})
}
