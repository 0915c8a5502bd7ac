package e2e

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"
)

// sqliteFile is a file with tables of rows, which a test writes.
func sqliteFile(t *testing.T, dir string, rows int, tables ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	db.SetMaxOpenConns(1)
	execute(t, db, "PRAGMA journal_mode = WAL")
	for _, table := range tables {
		execute(t, db, "CREATE TABLE "+table+" (id INTEGER PRIMARY KEY, v)")
		execute(t, db, fmt.Sprintf("INSERT INTO %s WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i, '%[1]s ' || i FROM n", table, rows))
	}
	return db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func TestTablesOfSQLiteAreListedAndLoadedByAJob(t *testing.T) {
	dir := t.TempDir()
	db := sqliteFile(t, dir, 5000, "customers", "orders")
	execute(t, db, "CREATE VIEW seen AS SELECT 1")
	run := func(args ...string) string {
		t.Helper()
		c := exec.Command(binary, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if out := run("tables", "sqlite:shop.db"); !strings.Contains(out, "orders") || !strings.Contains(out, "cannot be loaded: \"seen\" is a view") {
		t.Error(out)
	}
	must(t, os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte("version: 1\ndefaults: {store: ./store}\nloads:\n  \"{table}\":\n    from: \"sqlite:shop.db?table={table}\"\n    table: \"{table}\"\n"), 0o644))
	if out := run("run", "shop.yaml"); !strings.Contains(out, "10,000 written") {
		t.Error(out)
	}
	for _, table := range []string{"customers", "orders"} {
		if n := strings.Count(run("export", "--table", table, "--store", "store", "--format", "jsonl"), `"v":"`+table+" "); n != 5000 {
			t.Errorf("%s: %d rows", table, n)
		}
	}
	if out := run("load", "sqlite:shop.db?table=orders", "--table", "orders", "--store", "store", "--run-dir", "verified", "--verify"); !strings.Contains(out, "equal") {
		t.Error(out)
	}
}

func TestALoadOfSQLiteThatIsKilledIsResumedWithTheFileAsItIsThen(t *testing.T) {
	dir := t.TempDir()
	const rows = 20000
	db := sqliteFile(t, dir, rows, "orders")
	start := func(args ...string) *exec.Cmd {
		c := exec.Command(binary, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "TSIMPORT_CHECKPOINT_EVERY=20ms")
		return c
	}
	args := []string{"load", "sqlite:shop.db?table=orders", "--table", "orders", "--store", "store", "--run-dir", "run", "--max-rows-per-second", "8000"}
	for round := range 4 {
		c := start(args...)
		must(t, c.Start())
		kept := filepath.Join(dir, "run", "checkpoint.bin")
		var last time.Time
		for changes := 0; changes < 20; { // until more is kept than the round began with
			if info, err := os.Stat(kept); err == nil && !info.ModTime().Equal(last) {
				last = info.ModTime()
				changes++
			}
			time.Sleep(5 * time.Millisecond)
		}
		must(t, c.Process.Kill())
		_ = c.Wait()
		execute(t, db, fmt.Sprintf("UPDATE orders SET v = 'round %d'", round))
		args = []string{"resume", "run"}
	}
	if out, err := start(args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "the rows are not of one moment") {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := start("export", "--table", "orders", "--store", "store", "--format", "jsonl").CombinedOutput()
	must(t, err)
	seen := map[string]int{}
	for line := range strings.Lines(string(out)) {
		if _, v, ok := strings.Cut(line, `"v":"`); ok {
			word, rest, _ := strings.Cut(v, " ")
			if word == "round" {
				word += rest[:1]
			}
			seen[word]++
		}
	}
	total := 0
	for _, n := range seen {
		total += n
	}
	if total != rows || seen["orders"] == 0 || seen["round3"] == 0 {
		t.Errorf("%d rows: %v", total, seen)
	}
}

func TestEveryCommandReadsTablesOfSQLite(t *testing.T) {
	dir := t.TempDir()
	db := sqliteFile(t, dir, 3000, "orders")
	run := func(code int, wants []string, args ...string) {
		t.Helper()
		c := exec.Command(binary, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != code {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		for _, want := range wants {
			if !strings.Contains(string(out), want) {
				t.Errorf("%q: no %q in\n%s", args, want, out)
			}
		}
	}
	const address = "sqlite:shop.db?table=orders"
	to := func(command string, more ...string) []string {
		return append([]string{command, address, "--table", "orders", "--store", "store"}, more...)
	}
	run(0, []string{"format       table", "rows         3,000", "id      integer", "v       string"}, "inspect", address)
	run(0, []string{`"rows":3000,"exact":true`}, "inspect", "--count", "--json", address)
	run(0, []string{"only the primary key of the source is rated (id)", "--table orders --create --pk 'key=md5(id, 4) + text(id)'"}, "advise", address)
	run(0, []string{"3,000 records read, 0 would be rejected", "3,000 keys, 0 records repeat"}, "check", "--unique", address)
	run(2, []string{"only id tell its rows apart"}, "check", address, "--pk", "v")
	run(0, []string{"3,000 written"}, to("load", "--run-dir", "run")...)
	run(0, []string{"3,000 equal", "as it was at one moment"}, to("verify")...)
	execute(t, db, "UPDATE orders SET v = 5 WHERE id = 100")
	execute(t, db, "DELETE FROM orders WHERE id = 200")
	execute(t, db, "INSERT INTO orders VALUES (9000, x'00')")
	run(6, []string{"1 missing, 1 different, 1 surplus", "different id=100"}, to("verify")...)
	run(6, []string{"1 missing, 1 different, 1 surplus"}, "verify", "--run", "run")
	run(0, []string{"would write 2 rows", "and delete 1 rows"}, to("sync", "--delete", "--plan")...)
	run(0, []string{"2 rows written, 1 deleted"}, to("sync", "--delete")...)
	run(0, []string{"3,000 equal, 0 missing, 0 different, 0 surplus"}, to("verify", "--extra", "fail")...)
	run(2, []string{"there is no table \"nothere\""}, "inspect", "sqlite:shop.db?table=nothere")
	run(2, []string{"give no other input beside it"}, "verify", address, "x.csv", "--table", "orders", "--store", "store")
	run(2, []string{"--delimiter: it says how text is read"}, "check", address, "--delimiter", ";")
}
