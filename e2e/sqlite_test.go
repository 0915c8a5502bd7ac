//go:build e2e

package e2e

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"example.com/tsimport/pipeline/checkpoint"
)

// database is a folder with a file of SQLite, which a test writes.
type database struct {
	*place
	db *sql.DB
}

// newDatabase makes tables of so many rows.
func newDatabase(t *testing.T, rows int, tables ...string) *database {
	t.Helper()
	d := &database{place: newPlace(t)}
	var err error
	d.db, err = sql.Open("sqlite", d.path("shop.db"))
	must(t, err)
	t.Cleanup(func() { must(t, d.db.Close()) })
	d.db.SetMaxOpenConns(1)
	d.execute("PRAGMA journal_mode = WAL")
	for _, table := range tables {
		d.execute("CREATE TABLE " + table + " (id INTEGER PRIMARY KEY, v)")
		d.execute(fmt.Sprintf("INSERT INTO %s WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i, '%[1]s ' || i FROM n", table, rows))
	}
	return d
}

func (d *database) execute(statement string) {
	d.t.Helper()
	if _, err := d.db.Exec(statement); err != nil {
		d.t.Fatalf("%s: %v", statement, err)
	}
}

func TestTablesOfSQLiteAreListedAndLoadedByAJob(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 1000, "customers", "orders")
	d.execute("CREATE VIEW seen AS SELECT 1")
	d.ends(0, []string{"tables", "sqlite:shop.db"}, "orders", "cannot be loaded: \"seen\" is a view")
	d.write("shop.yaml", "version: 1\ndefaults: {store: ./store}\nloads:\n  \"{table}\":\n    from: \"sqlite:shop.db?table={table}\"\n    table: \"{table}\"\n")
	const moments = "note: each of the 2 tables of a database is read in a snapshot of its own"
	d.ends(0, []string{"run", "shop.yaml", "--plan"}, moments)
	d.ends(0, []string{"run", "shop.yaml"}, "2,000 written", moments)
	for _, table := range []string{"customers", "orders"} {
		if n := strings.Count(d.run(0, "export", "--table", table, "--store", "store", "--format", "jsonl"), `"v":"`+table+" "); n != 1000 {
			t.Errorf("%s: %d rows", table, n)
		}
	}
	d.ends(0, []string{"load", "sqlite:shop.db?table=orders", "--table", "orders", "--store", "store", "--run-dir", "verified", "--verify"}, "equal")

	d.ends(2, []string{"copy", "sqlite:shop.db?table=orders", "orders"}, "load it: tsimport load ADDRESS --table TABLE")
}

func TestALoadOfSQLiteThatIsKilledIsResumedWithTheFileAsItIsThen(t *testing.T) {
	t.Parallel()
	const rows = 8000
	d := newDatabase(t, rows, "orders")
	d.env = []string{"TSIMPORT_CHECKPOINT_EVERY=20ms"}
	args := []string{"load", "sqlite:shop.db?table=orders", "--table", "orders", "--store", "store", "--run-dir", "run", "--max-rows-per-second", "4000"}
	for round := range 2 {
		r := d.start(args...)
		r.must(func() bool {
			s, err := checkpoint.Read(d.path("run"))
			return err == nil && s.Counters["written"] >= int64(1000*(round+1))
		})
		r.kill()
		d.execute(fmt.Sprintf("UPDATE orders SET v = 'round %d'", round))
		args = []string{"resume", "run"}
	}
	d.ends(0, args, "the rows are not of one moment")
	out := d.output("export", "--table", "orders", "--store", "store", "--format", "jsonl")
	if n := strings.Count(out, "\n"); n != rows || !strings.Contains(out, `"v":"orders `) || !strings.Contains(out, `"v":"round 1"`) {
		t.Errorf("%d rows, %.100s", n, out)
	}
	d.ends(6, []string{"verify", "--run", "run"}, "the run read it in the snapshot of ", ", the rest in that of ")
}

func TestEveryCommandReadsTablesOfSQLite(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 3000, "orders")
	run := func(code int, wants []string, args ...string) { t.Helper(); d.ends(code, args, wants...) }
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
	d.execute("UPDATE orders SET v = 5 WHERE id = 100")
	d.execute("DELETE FROM orders WHERE id = 200")
	d.execute("INSERT INTO orders VALUES (9000, x'00')")
	run(6, []string{"1 missing, 1 different, 1 surplus", "different id=100"}, to("verify")...)
	run(6, []string{"1 missing, 1 different, 1 surplus", "in 1 of the 1 ranges that the run read", "orders from its first row on: 1 missing, 1 different, 1 surplus; the run read it in the snapshot of 20"}, "verify", "--run", "run")
	run(0, []string{"would write 2 rows", "and delete 1 rows"}, to("sync", "--delete", "--plan")...)
	run(0, []string{"2 rows written, 1 deleted"}, to("sync", "--delete")...)
	run(0, []string{"3,000 equal, 0 missing, 0 different, 0 surplus"}, to("verify", "--extra", "fail")...)
	run(2, []string{"there is no table \"nothere\""}, "inspect", "sqlite:shop.db?table=nothere")
	run(2, []string{"give no other input beside it"}, "verify", address, "x.csv", "--table", "orders", "--store", "store")
	run(2, []string{"--delimiter: it says how text is read"}, "check", address, "--delimiter", ";")
}

func TestRejectsOfADatabaseKeepTheTypesOfItsColumnsHoweverOftenTheyAreLoaded(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 0)
	d.execute("CREATE TABLE typed (id INTEGER PRIMARY KEY, r REAL, s REAL, b BLOB, n INTEGER, t TEXT) STRICT")
	d.execute("INSERT INTO typed VALUES (1, 9e999, 1, x'00ff', 7, '5'), (2, 0.5, 2, x'', 8, 'x')")
	d.run(3, "load", "sqlite:shop.db?table=typed&sessions=2", "--require-snapshot", "--table", "t", "--store", "store", "--run-dir", "first", "-q")
	d.run(3, "load", "--retry-rejects", "first", "--run-dir", "second", "-q")
	text := d.read("second/rejects.ndjson")
	corrected := strings.Replace(text, `"r":"+Inf"`, `"r":3.0`, 1)
	if corrected == text {
		t.Fatalf("the rejects are %s", text)
	}
	d.write("second/rejects.ndjson", corrected)
	d.run(0, "load", "--retry-rejects", "second", "--run-dir", "third", "-q")
	d.run(0, "load", "second/rejects.ndjson", "--table", "byhand", "--pk", "id:integer", "--store", "store", "--run-dir", "fourth", "-q")
	if got, want := d.run(0, "export", "--table", "byhand", "--store", "store", "--format", "jsonl", "-q"), `{"id":1,"b":{"base64":"AP8="},"n":7,"r":3.0,"s":1.0,"t":"5"}`+"\n"; got != want {
		t.Errorf("by hand: got %s, want %s", got, want)
	}
	want := `{"id":1,"b":{"base64":"AP8="},"n":7,"r":3.0,"s":1.0,"t":"5"}` + "\n" + `{"id":2,"b":{"base64":""},"n":8,"r":0.5,"s":2.0,"t":"x"}` + "\n"
	if got := d.run(0, "export", "--table", "t", "--store", "store", "--format", "jsonl", "-q"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	must(t, os.Rename(d.path("first"), d.path("moved")))
	d.ends(2, []string{"load", "--retry-rejects", "second", "--fresh"}, "which no longer says its settings")
}

func TestATableWithMoreKeyColumnsThanATableHereTakesIsRefusedWithAnExample(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 0)
	d.execute("CREATE TABLE five (a INT, b INT, c INT, d INT, e INT, PRIMARY KEY (a, b, c, d, e))")
	d.ends(2, []string{"load", "sqlite:shop.db?table=five", "--table", "t", "--store", "store"},
		`has 5 columns, and a table here takes 1 to 4: make one of several with --pk, such as --pk 'key=splice(auto, a, b, …)'`)
}
