//go:build e2e

package e2e

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"tsimport/pipeline/checkpoint"
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
	const moments = "note: each of the 2 tables of a database is read in a snapshot of its own"
	if out := run("run", "shop.yaml", "--plan"); !strings.Contains(out, moments) {
		t.Error(out)
	}
	if out := run("run", "shop.yaml"); !strings.Contains(out, "10,000 written") || !strings.Contains(out, moments) {
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

// keeps reports whether the checkpoint of a run has so many rows.
func keeps(run string, rows int64) bool {
	s, err := checkpoint.Read(run)
	return err == nil && s.Counters["written"] >= rows
}

func TestALoadOfSQLiteThatIsKilledIsResumedWithTheFileAsItIsThen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const rows = 20000
	db := sqliteFile(t, dir, rows, "orders")
	start := func(args ...string) *exec.Cmd {
		c := exec.Command(binary, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "TSIMPORT_CHECKPOINT_EVERY=20ms")
		return c
	}
	args := []string{"load", "sqlite:shop.db?table=orders", "--table", "orders", "--store", "store", "--run-dir", "run", "--max-rows-per-second", "4000"}
	for round := range 4 {
		c := start(args...)
		must(t, c.Start())
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		for !keeps(filepath.Join(dir, "run"), int64(1000*(round+1))) {
			select {
			case err := <-ended:
				t.Fatalf("round %d ended by itself: %v", round, err)
			case <-time.After(5 * time.Millisecond):
			}
		}
		must(t, c.Process.Kill())
		<-ended
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
	out, err = start("verify", "--run", "run").CombinedOutput()
	if text := string(out); err == nil || !strings.Contains(text, "the run read it in the snapshot of ") || !strings.Contains(text, ", the rest in that of ") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestARunIsComparedRangeByRangeWithTheSourceThatHasMovedOn(t *testing.T) {
	dir := t.TempDir()
	db := sqliteFile(t, dir, 5000, "orders")
	execute(t, db, "UPDATE orders SET v = hex(zeroblob(600))") // six megabytes: four ranges
	verify := func(code int, args ...string) (found struct {
		Notes  []string
		Ranges []struct {
			Range                                  string
			Read, Equal, Missing, Different, Extra int64
			Loaded                                 []struct{ Range, Snapshot string }
		} `json:"source_ranges"`
	}) {
		t.Helper()
		c := exec.Command(binary, append([]string{"verify", "--json", "--quiet"}, args...)...)
		c.Dir = dir
		out, err := c.Output()
		if c.ProcessState.ExitCode() != code {
			t.Fatalf("%v\n%s", err, out)
		}
		must(t, json.Unmarshal(out, &found))
		return found
	}
	c := exec.Command(binary, "load", "sqlite:shop.db?table=orders", "--table", "orders", "--store", "store", "--run-dir", "run")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	equal := verify(0, "--run", "run")
	if n := len(equal.Ranges); n < 3 || !strings.Contains(strings.Join(equal.Notes, ""), fmt.Sprintf("each of the %d ranges", n)) {
		t.Fatalf("%+v", equal)
	}
	// A sample would cut these rows at other keys.
	execute(t, db, "INSERT INTO orders SELECT id + 5000, v FROM orders")
	execute(t, db, "UPDATE orders SET v = 1 WHERE id IN (1, 2)")
	execute(t, db, "DELETE FROM orders WHERE id = 3")
	found := verify(6, "--run", "run")
	last := len(found.Ranges) - 1
	for i, r := range found.Ranges {
		was := equal.Ranges[i]
		if r.Range != was.Range || len(r.Loaded) != 1 || r.Loaded[0] != was.Loaded[0] || r.Loaded[0].Range != r.Range || r.Loaded[0].Snapshot == "" {
			t.Errorf("range %d is %+v, was %+v", i, r, was)
		}
		switch i {
		case 0:
			if r.Read != was.Read-1 || r.Equal != was.Equal-3 || r.Missing != 0 || r.Different != 2 || r.Extra != 1 {
				t.Errorf("range %d: %+v, was %+v", i, r, was)
			}
		case last:
			if r.Read != was.Read+5000 || r.Equal != was.Equal || r.Missing != 5000 || r.Different+r.Extra != 0 {
				t.Errorf("range %d: %+v, was %+v", i, r, was)
			}
		default:
			if r.Read != was.Read || r.Equal != was.Equal || r.Missing+r.Different+r.Extra != 0 {
				t.Errorf("range %d: %+v, was %+v", i, r, was)
			}
		}
	}
	if notes := strings.Join(found.Notes, "\n"); !strings.Contains(notes, fmt.Sprintf("in 2 of the %d ranges that the run read", last+1)) || !strings.Contains(notes, "orders[1] from its first row on: 0 missing, 2 different, 1 surplus") {
		t.Error(notes)
	}
	// Without the run, its ranges are not known.
	if own := verify(6, "sqlite:shop.db?table=orders", "--table", "orders", "--store", "store"); len(own.Ranges) <= last+1 || own.Ranges[0].Loaded != nil {
		t.Errorf("%+v", own)
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
	run(6, []string{"1 missing, 1 different, 1 surplus", "in 1 of the 1 ranges that the run read", "orders from its first row on: 1 missing, 1 different, 1 surplus; the run read it in the snapshot of 20"}, "verify", "--run", "run")
	run(0, []string{"would write 2 rows", "and delete 1 rows"}, to("sync", "--delete", "--plan")...)
	run(0, []string{"2 rows written, 1 deleted"}, to("sync", "--delete")...)
	run(0, []string{"3,000 equal, 0 missing, 0 different, 0 surplus"}, to("verify", "--extra", "fail")...)
	run(2, []string{"there is no table \"nothere\""}, "inspect", "sqlite:shop.db?table=nothere")
	run(2, []string{"give no other input beside it"}, "verify", address, "x.csv", "--table", "orders", "--store", "store")
	run(2, []string{"--delimiter: it says how text is read"}, "check", address, "--delimiter", ";")
}

func TestRejectsOfADatabaseKeepTheTypesOfItsColumnsHoweverOftenTheyAreLoaded(t *testing.T) {
	dir := t.TempDir()
	db := sqliteFile(t, dir, 0)
	execute(t, db, "CREATE TABLE typed (id INTEGER PRIMARY KEY, r REAL, s REAL, b BLOB, n INTEGER, t TEXT) STRICT")
	execute(t, db, "INSERT INTO typed VALUES (1, 9e999, 1, x'00ff', 7, '5'), (2, 0.5, 2, x'', 8, 'x')")
	run := func(want int, args ...string) string {
		t.Helper()
		c := exec.Command(binary, args...)
		c.Dir = dir
		out, _ := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != want {
			t.Fatalf("%q: exit code %d, want %d\n%s", args, code, want, out)
		}
		return string(out)
	}
	run(3, "load", "sqlite:shop.db?table=typed", "--table", "t", "--store", "store", "--run-dir", "first", "-q", "--require-snapshot", "--source-connections", "2")
	run(3, "load", "--retry-rejects", "first", "--run-dir", "second", "-q")
	file := filepath.Join(dir, "second", "rejects.ndjson")
	text, err := os.ReadFile(file)
	must(t, err)
	corrected := strings.Replace(string(text), `"r":"+Inf"`, `"r":3.0`, 1)
	if corrected == string(text) {
		t.Fatalf("the rejects are %s", text)
	}
	must(t, os.WriteFile(file, []byte(corrected), 0o600))
	run(0, "load", "--retry-rejects", "second", "--run-dir", "third", "-q")
	run(0, "load", filepath.Join("second", "rejects.ndjson"), "--table", "byhand", "--pk", "id:integer", "--store", "store", "--run-dir", "fourth", "-q")
	if got, want := run(0, "export", "--table", "byhand", "--store", "store", "--format", "jsonl", "-q"), `{"id":1,"b":{"base64":"AP8="},"n":7,"r":3.0,"s":1.0,"t":"5"}`+"\n"; got != want {
		t.Errorf("by hand: got %s, want %s", got, want)
	}
	want := `{"id":1,"b":{"base64":"AP8="},"n":7,"r":3.0,"s":1.0,"t":"5"}` + "\n" + `{"id":2,"b":{"base64":""},"n":8,"r":0.5,"s":2.0,"t":"x"}` + "\n"
	if got := run(0, "export", "--table", "t", "--store", "store", "--format", "jsonl", "-q"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	must(t, os.Rename(filepath.Join(dir, "first"), filepath.Join(dir, "moved")))
	if out := run(2, "load", "--retry-rejects", "second", "--fresh"); !strings.Contains(out, "which no longer says its settings") {
		t.Error(out)
	}
}

func TestATableWithMoreKeyColumnsThanATableHereTakesIsRefusedWithAnExample(t *testing.T) {
	dir := t.TempDir()
	execute(t, sqliteFile(t, dir, 0), "CREATE TABLE five (a INT, b INT, c INT, d INT, e INT, PRIMARY KEY (a, b, c, d, e))")
	c := exec.Command(binary, "load", "sqlite:shop.db?table=five", "--table", "t", "--store", "store")
	c.Dir = dir
	if out, _ := c.CombinedOutput(); c.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), `has 5 columns, and a table here takes 1 to 4: make one of several with --pk, such as --pk 'key=splice(auto, a, b, …)'`) {
		t.Errorf("exit code %d: %s", c.ProcessState.ExitCode(), out)
	}
}
