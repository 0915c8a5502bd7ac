//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/postgres/pgtest"
)

// TestDatabasesAreLoadedByProcesses loads tables of real servers. That their readers are exact, also while rows change and sessions or the
// server are lost, is shown in reader/postgres and reader/mysql.
func TestDatabasesAreLoadedByProcesses(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		s := pgtest.Start(t)
		exec := func(statements ...string) { s.Exec(strings.Join(statements, ";")) }
		exec("CREATE USER guarded PASSWORD 'planted-secret'")
		s.Guard("guarded")
		loadDatabase(t, s.Address, exec, "generate_series(1, 20000) AS n(seq)", "postgres@", "GRANT SELECT ON shop_orders TO guarded", "PGPASSWORD")
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Setenv("HOME", t.TempDir())
		s := mysqltest.Start(t)
		s.Exec("CREATE USER guarded@'127.0.0.1' IDENTIFIED BY 'planted-secret'")
		loadDatabase(t, s.Address, s.Exec, "seq_1_to_20000", "root@", "GRANT SELECT ON shop.* TO guarded@'127.0.0.1'", "MYSQL_PWD")
	})
}

func loadDatabase(t *testing.T, address func(table string) string, exec func(statements ...string), numbers, user, grant, variable string) {
	for _, table := range []string{"orders", "items"} {
		exec(fmt.Sprintf("CREATE TABLE shop_%s (id int PRIMARY KEY, v varchar(30))", table),
			fmt.Sprintf("INSERT INTO shop_%s SELECT seq, CONCAT('%[1]s ', seq) FROM %s", table, numbers))
	}
	exec("CREATE VIEW shop_seen AS SELECT 1", grant)
	p := newPlace(t, "TSIMPORT_CHECKPOINT_EVERY=50ms")
	p.ends(0, []string{"tables", address("shop_*")}, "shop_orders", "shop_seen")
	p.write("shop.yaml", fmt.Sprintf(`version: 1
defaults: {store: ./store}
loads: {"{table}": {from: %q, table: "{table}"}}
`, address("shop_{table}")))
	p.ends(0, []string{"run", "shop.yaml"}, "40,000 written")

	load := []string{"load", address("shop_orders"), "--table", "killed", "--store", "store", "--run-dir", "run"}
	r := p.start(append(load, "--max-rows-per-second", "5000")...)
	r.must(there(p.path("run/checkpoint.bin")))
	r.kill()
	p.run(0, "resume", "run")
	for _, table := range []string{"orders", "items", "killed"} {
		text := strings.Replace(table, "killed", "orders", 1)
		if n := strings.Count(p.output("export", "--table", table, "--store", "store", "--format", "jsonl"), `"v":"`+text+" "); n != 20_000 {
			t.Errorf("%s: %d rows", table, n)
		}
	}
	p.ends(0, []string{"verify", "--run", "run"}, "source and table are equal now, in each of the ")
	exec("UPDATE shop_orders SET v = 'changed' WHERE id IN (3, 4)", "DELETE FROM shop_orders WHERE id = 5", "INSERT INTO shop_orders VALUES (30000, 'new')")
	p.ends(6, []string{"verify", "--run", "run"}, "the source has moved on, or the table was changed, in ", "2 different, 1 surplus")

	// From addresses with passwords, of which the last is right: they are in nothing that is left.
	guarded := strings.Replace(address("shop_orders"), user, "guarded@", 1)
	for i, address := range []string{strings.Replace(guarded, "guarded@", "guarded:planted-secret@", 1), guarded, guarded} {
		p.env = []string{variable + "=wrong-planted"}
		code := 2
		if i == 2 {
			p.env, code = []string{variable + "=planted-secret"}, 0
		}
		if said := p.ends(code, []string{"load", address, "--table", "guarded", "--store", "store"}); strings.Contains(said, "planted") {
			t.Errorf("%s", said)
		}
	}
	must(t, filepath.WalkDir(p.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if bytes.Contains(text, []byte("planted")) {
			t.Errorf("%s keeps a password", name)
		}
		return err
	}))
}
