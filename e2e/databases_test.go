//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "modernc.org/sqlite"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/postgres/pgtest"
	"example.com/tsimport/reader/source"
)

// TestDatabasesAreLoadedByCommands loads tables of real servers. reader/postgres and reader/mysql test the rest.
func TestDatabasesAreLoadedByCommands(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		s := pgtest.Start(t)
		exec := func(statements ...string) { s.Exec(strings.Join(statements, ";")) }
		exec("CREATE USER guarded PASSWORD 'geheim-right'")
		guard(s, "guarded")
		loadDatabase(t, s.Address, exec, "generate_series(1, 20000) AS n(seq)", "postgres@",
			"GRANT SELECT ON shop_orders TO guarded", "PGPASSWORD")
	})
	t.Run("SQLite", func(t *testing.T) {
		d := newDatabase(t, 0)
		address := func(table string) string { return "sqlite:" + d.path("shop.db") + "?table=" + table }
		loadDatabase(t, address, d.execute, "(WITH RECURSIVE n(seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq "+
			"< 20000) SELECT seq FROM n)", "", "", "")
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Setenv("HOME", t.TempDir())
		s := mysqltest.Start(t)
		s.Exec("CREATE USER guarded@'127.0.0.1' IDENTIFIED BY 'geheim-right'")
		loadDatabase(t, s.Address, s.Exec, "seq_1_to_20000", "root@", "GRANT SELECT ON shop.* TO guarded@'127.0.0.1'",
			"MYSQL_PWD")
	})
}

func guard(s *pgtest.Server, user string) {
	s.Helper()
	file := filepath.Join(s.Data(), "pg_hba.conf")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append([]byte("host all "+user+" 127.0.0.1/32 scram-sha-256\n"), text...), 0o600)
	}
	conformance.Must(s, err)
	s.Exec("SELECT pg_reload_conf()")
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		conn, err := pgconn.Connect(context.Background(), fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=disable",
			user, s.Port))
		if err != nil {
			return
		}
		_ = conn.Close(context.Background())
	}
	s.Fatal("the server does not require the user's password")
}

func loadDatabase(t *testing.T, address func(table string) string, exec func(statements ...string), numbers, user,
	grant, variable string) {
	follows := ""
	if grant != "" {
		follows = "to follow the source from here: resume_from "
	}
	for _, table := range []string{"orders", "items"} {
		exec(fmt.Sprintf("CREATE TABLE shop_%s (id integer PRIMARY KEY, v varchar(30))", table),
			fmt.Sprintf("INSERT INTO shop_%s SELECT seq, CONCAT('%[1]s ', seq) FROM %s", table, numbers))
	}
	exec("CREATE VIEW shop_seen AS SELECT 1")
	p := newPlace(t, "TSIMPORT_CHECKPOINT_EVERY=50ms")
	p.ends(0, []string{"tables", address("shop_*")}, "shop_orders", "shop_seen")
	p.write("shop.yaml", fmt.Sprintf(`version: 1
defaults: {store: ./store}
loads: {"{table}": {from: %q, table: "{table}"}}
`, address("shop_{table}")))
	planned, moments := "note: all 2 tables of ", "one moment of "
	if grant == "" {
		planned, moments = "note: queries, tables of SQLite files, ", "are read in separate snapshots (2)"
	}
	p.ends(0, []string{"run", "shop.yaml", "--plan"}, planned)
	p.ends(0, []string{"run", "shop.yaml"}, "40,000 written", moments)

	load := []string{"load", address("shop_orders"), "--table", "killed", "--store", "store", "--run-dir", "run"}
	r := p.start(append(load, "--max-rows-per-second", "5000")...)
	r.must(there(p.path("run/checkpoint.bin")))
	r.kill()
	exec("CREATE TABLE shop_later (id int)") // writes to the log
	var first struct{ Position source.Position }
	must(t, json.Unmarshal([]byte(p.read("run/division.bin")), &first))
	p.ends(0, []string{"resume", "run"}, follows)
	if from := p.summary("run").Follow(); from != first.Position.Follow() || (from == "") != (follows == "") {
		t.Errorf("%s; the first attempt: %s", from, first.Position.Follow())
	}
	for _, table := range []string{"orders", "items", "killed"} {
		text := strings.Replace(table, "killed", "orders", 1)
		n := strings.Count(p.output("export", "--table", table, "--store", "store", "--format", "jsonl"), `"v":"`+text+" ")
		conformance.True(t, n == 20_000, "%s: %d rows", table, n)
	}
	p.ends(0, []string{"verify", "--run", "run"}, "source and table are equal, in each of the ", follows)
	p.ends(0, []string{"sync", address("shop_orders"), "--table", "killed", "--store", "store", "--plan"}, follows)
	exec("UPDATE shop_orders SET v = 'changed' WHERE id IN (3, 4)", "DELETE FROM shop_orders WHERE id = 5",
		"INSERT INTO shop_orders VALUES (30000, 'new')")
	const moved = "the source or the table has changed in "
	p.ends(6, strings.Fields("verify --run run"), moved, "2 different, 1 surplus")

	if grant == "" {
		return
	}
	exec(grant)
	// A password in the address is refused, and so is a wrong one. No output or file may contain a password.
	guarded := strings.Replace(address("shop_orders"), user, "guarded@", 1)
	for i, address := range []string{strings.Replace(guarded, "guarded@", "guarded:geheim-right@", 1), guarded, guarded} {
		p.env = []string{variable + "=wrong-geheim"}
		code := 2
		if i == 2 {
			p.env, code = []string{variable + "=geheim-right"}, 0
		}
		noSecretIn(t, "the load", p.ends(code, []string{"load", address, "--table", "guarded", "--store", "store"}))
	}
	noSecretBelow(t, p.dir)
}

// TestDatabasesAreLoadedByDataXJobs converts jobs that read databases and runs them against real servers.
func TestDatabasesAreLoadedByDataXJobs(t *testing.T) {
	my := mysqltest.Start(t)
	my.Exec("CREATE TABLE orders (id bigint PRIMARY KEY, City varchar(20), price decimal(8,2), day date)",
		`INSERT INTO orders VALUES (1, 'Bern', 1.5, '2024-01-01'), (2, '"x"\n', 20, '2024-01-01'), (3, NULL, NULL, '2024-01-01'), (4, 'later', 0, '2024-01-02')`)
	for part, rows := range map[string]string{"00": "(1, 'Bern', 1.5), (3, NULL, NULL)", "01": `(2, '"x"\n', 20)`} {
		my.Exec("CREATE TABLE orders_"+part+" (id bigint PRIMARY KEY, `City` varchar(20), price decimal(8,2))",
			"INSERT INTO orders_"+part+" VALUES "+rows)
	}
	const three = `{"order_id":1,"price":1.5,"town":"Bern"}` + "\n" + `{"order_id":2,"price":20.0,"town":"\"x\"\n"}` +
		"\n" + `{"order_id":3}` + "\n"
	for name, c := range map[string]struct{ address, table, more, want string }{
		"a condition": {my.Address("x"), `"table":["orders"]`,
			`"column":["id","City","price"],"splitPk":"id","where":"day = '${day}' -- of the day\n;",`, three},
		"a query": {my.Address("x"),
			`"querySql":["SELECT id + 0, City, price FROM orders WHERE day < '2024-01-02' ORDER BY rand();"]`, ``, three},
		"shards": {my.Address("x"), `"table":["orders_[00-01]"]`, "\"column\":[\"id\",\"`City`\",\"price\"],", three},
		"expressions": {my.Address("x"), `"table":["orders_00"]`, `"column":["id * 10","upper(City) AS t","price"],`,
			`{"order_id":10,"price":1.5,"town":"BERN"}` + "\n" + `{"order_id":30}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			m := regexp.MustCompile(`^mysql://(\w+)@([^/]+)/(\w+)`).FindStringSubmatch(c.address)
			p := newPlace(t, "day=2024-01-01")
			p.write("theirs.json", fmt.Sprintf(`{"job":{"setting":{"errorLimit":{"record":0}},"content":[{
"reader":{"name":"mysqlreader","parameter":{"username":%q,"password":"secret",%s"connection":[{"jdbcUrl":["jdbc:mysql://%s/%s"],%s}]}},
"writer":{"name":"otswriter","parameter":{"endpoint":"","accessId":"i","accessKey":"k","instanceName":"","table":"orders",
"primaryKey":[{"name":"order_id","type":"int"}],"column":[{"name":"town","type":"string"},{"name":"price","type":"double"}],"writeMode":"PutRow"}}}]}}`,
				m[1], c.more, m[2], m[3], c.table))
			p.run(0, "convert", "datax", "theirs.json", "-o", "ours.yaml")
			p.run(0, "run", "ours.yaml", "--store", "store", "--create")
			got := p.output("export", "--table", "orders", "--store", "store", "--format", "jsonl")
			conformance.True(t, got == c.want, "the table has\n%s, want\n%s", got, c.want)
		})
	}
}

type database struct {
	*place
	db *sql.DB
}

func newDatabase(t *testing.T, rows int, tables ...string) *database {
	t.Helper()
	d := &database{place: newPlace(t)}
	d.db = conformance.Try(sql.Open("sqlite", d.path("shop.db"))).Must(t)
	t.Cleanup(func() { must(t, d.db.Close()) })
	d.db.SetMaxOpenConns(1)
	d.execute("PRAGMA journal_mode = WAL")
	for _, table := range tables {
		d.execute("CREATE TABLE " + table + " (id INTEGER PRIMARY KEY, v)")
		d.execute(fmt.Sprintf("INSERT INTO %s WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "+
			"SELECT i, '%[1]s ' || i FROM n", table, rows))
	}
	return d
}

func (d *database) execute(statements ...string) {
	d.t.Helper()
	for _, statement := range statements {
		if _, err := d.db.Exec(statement); err != nil {
			d.t.Fatalf("%s: %v", statement, err)
		}
	}
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
	run(0, []string{"only the primary key of the source is rated (id)",
		"--table orders --create --pk 'key=md5(id, 4) + text(id)'"}, "advise", address)
	run(0, []string{"3,000 records read, 0 would be rejected", "3,000 keys, 0 records"}, "check", "--unique", address)
	run(2, []string{"its rows are identified only by id"}, "check", address, "--pk", "v")
	run(0, []string{"3,000 written"}, to("load", "--run-dir", "run")...)
	run(0, []string{"3,000 equal", "the source was compared as of "}, to("verify")...)
	d.execute("UPDATE orders SET v = 5 WHERE id = 100", "DELETE FROM orders WHERE id = 200",
		"INSERT INTO orders VALUES (9000, x'00')")
	run(6, []string{"1 missing, 1 different, 1 surplus", "different id=100"}, to("verify")...)
	run(6, []string{"1 missing, 1 different, 1 surplus", "in 1 of the 1 ranges that the run read",
		"orders from its first row on: 1 missing, 1 different, 1 surplus; the run read it in the snapshot of 20"}, "verify",
		"--run", "run")
	run(0, []string{"would write 2 rows", "and delete 1 rows"}, to("sync", "--delete", "--plan")...)
	run(0, []string{"2 rows written, 1 deleted"}, to("sync", "--delete")...)
	run(0, []string{"3,000 equal, 0 missing, 0 different, 0 surplus"}, to("verify", "--extra", "fail")...)
	run(2, []string{"there is no table \"nothere\""}, "inspect", "sqlite:shop.db?table=nothere")
	run(2, []string{"copy reads a Tablestore table; use tsimport load "}, "copy", address, "orders")
	run(2, []string{"load it separately"}, "verify", address, "x.csv", "--table", "orders", "--store", "store")
	d.execute("CREATE TABLE five (a INT, b INT, c INT, d INT, e INT, PRIMARY KEY (a, b, c, d, e))")
	run(2, []string{"has 5 columns, but a table takes 1 to 4: combine several with --pk, such as --pk 'key=splice(auto, " +
		"a, b, …)'"},
		"load", "sqlite:shop.db?table=five", "--table", "t", "--store", "store")
	run(2, []string{"--delimiter applies to files"}, "check", address, "--delimiter", ";")
}

func TestDatabaseRejectsKeepColumnTypesAcrossRetries(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, 0)
	d.execute("CREATE TABLE typed (id INTEGER PRIMARY KEY, r REAL, s REAL, b BLOB, n INTEGER, t TEXT) STRICT")
	d.execute("INSERT INTO typed VALUES (1, 9e999, 1, x'00ff', 7, '5'), (2, 0.5, 2, x'', 8, 'x')")
	d.run(3, "load", "sqlite:shop.db?table=typed&sessions=2", "--require-snapshot", "--table", "t", "--store", "store",
		"--run-dir", "first", "-q")
	d.run(3, "load", "--retry-rejects", "first", "--run-dir", "second", "-q")
	text := d.read("second/rejects.ndjson")
	corrected := strings.Replace(text, `"r":"+Inf"`, `"r":3.0`, 1)
	conformance.MustTrue(t, corrected != text, "the rejects are %s", text)
	d.write("second/rejects.ndjson", corrected)
	d.run(0, "load", "--retry-rejects", "second", "--run-dir", "third", "-q")
	d.run(0, strings.Fields("load second/rejects.ndjson -t byhand --pk id:integer --store store --run-dir fourth -q")...)
	export := func(table string) string {
		return d.run(0, "export", "--table", table, "--store", "store", "--format", "jsonl", "-q")
	}
	want := `{"id":1,"b":{"base64":"AP8="},"n":7,"r":3.0,"s":1.0,"t":"5"}` + "\n"
	conformance.Equal(t, export("byhand"), want, "by hand")
	want += `{"id":2,"b":{"base64":""},"n":8,"r":0.5,"s":2.0,"t":"x"}` + "\n"
	conformance.Equal(t, export("t"), want, "result")
	must(t, os.Rename(d.path("first"), d.path("moved")))
	d.ends(2, []string{"load", "--retry-rejects", "second", "--fresh"}, "whose settings are no longer known")
}

// dumps/make.sh made these dumps and their contents with the databases. reader/csv tests dumps that need no server.

// heldBy returns a table's content according to a database, by key, without rows that contain one of the texts.
func heldBy(t *testing.T, name string, but ...string) map[string][]cell {
	t.Helper()
	text := conformance.Try(os.ReadFile(filepath.Join("dumps", "made", name))).Must(t)
	rows := map[string][]cell{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // id, v, w and possibly the types of v and w
		var row []cell
		left := false
		for i, column := range []string{"v", "w"} {
			if fields[i+1] == "-" { // a null column is missing
				continue
			}
			bytes := conformance.Try(hex.DecodeString(strings.Trim(fields[i+1], "'"))).Must(t)
			var value any = string(bytes)
			if len(fields) == 5 && fields[i+3] == "blob" {
				value = bytes
			} else if len(fields) == 5 && fields[i+3] == "integer" {
				value = conformance.Try(strconv.ParseInt(string(bytes), 10, 64)).Must(t)
			}
			left = left || slices.Contains(but, string(bytes))
			row = append(row, c(column, value))
		}
		if !left {
			rows["["+fields[0]+"]"] = row
		}
	}
	return rows
}

func TestDumpsEqualDatabaseContents(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--memory")
	const named = "--no-header --names id,v,w"
	for i, of := range []struct {
		dialect, file, flags string
		held                 map[string][]cell
	}{
		{"mysql", "mysql-batch.txt", "", heldBy(t, "mysql.hex", "NULL")},
		{"mysql", "mysql-batch-names.txt", named, heldBy(t, "mysql.hex", "NULL")},
		{"mysql-batch", "mysql-batch.txt", "", heldBy(t, "mysql.hex", "NULL")},
		{"mysql", "mysql-tab.txt", named, heldBy(t, "mysql.hex")},
		{"mysql-tab", "mysql-tab.txt", named, heldBy(t, "mysql.hex")},
		{"mysql", "mysql-outfile.csv", named + ` --delimiter , --quote "`, heldBy(t, "mysql.hex")},
		{"postgres", "postgres.txt", "", heldBy(t, "postgres.hex")},
		{"postgres", "postgres-dump.txt", named, heldBy(t, "postgres.hex")},
		{"postgres", "postgres-bar.txt", named + " --delimiter | --null nil", heldBy(t, "postgres.hex")},
		{"postgres-csv", "postgres.csv", "", heldBy(t, "postgres.hex")},
		{"sqlite", "sqlite.csv", "", onlyTexts(heldBy(t, "sqlite.hex"))},
		{"sqlite-quote", "sqlite-quote.txt", "", heldBy(t, "sqlite.hex")},
	} {
		t.Run(fmt.Sprint(i, " ", of.dialect), func(t *testing.T) {
			p := newPlace(t, s.env()...)
			file := conformance.Try(filepath.Abs(filepath.Join("dumps", "made", of.file))).Must(t)
			name := fmt.Sprint("t", i)
			p.run(0, append([]string{"load", file, "--dialect", of.dialect, "--table", name, "--create", "--pk", "id:integer",
				"--settle", "1ms"}, strings.Fields(of.flags)...)...)
			got := dump(t, s, name)
			for key, cells := range got {
				got[key] = untimed(cells)
			}
			conformance.Equal(t, differs(of.held, got), "", "the table differs from what the database holds (-database +table)")
		})
	}
}

// onlyTexts drops rows with blobs, which SQLite's CSV cannot show, and makes numbers texts.
func onlyTexts(rows map[string][]cell) map[string][]cell {
	maps.DeleteFunc(rows, func(_ string, row []cell) bool {
		return slices.ContainsFunc(row, func(c cell) bool { _, blob := c.Value.([]byte); return blob })
	})
	for _, row := range rows {
		for i := range row {
			row[i].Value = fmt.Sprint(row[i].Value)
		}
	}
	return rows
}

func writeGzip(t *testing.T, name, text string) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(text))
	must(t, errors.Join(err, w.Close(), os.WriteFile(name, packed.Bytes(), 0o644)))
	return name
}

// TestRetryRejectsKeepsFormatsApart checks rejects for which no single --format is right.
func TestRetryRejectsKeepsFormatsApart(t *testing.T) {
	p := newPlace(t)
	p.write("in/a.json", `{"Item":{"id":{"S":"a"}}}`+"\n"+`{"Item":{"id":{"S":1}}}`)
	p.write("in/b.csv", "id\nb\nc,d\n")
	p.run(3, "load", "in", "--store", "store", "--table", "t", "--pk", "id", "--run-dir", "run")
	p.ends(2, []string{"load", "--retry-rejects", "run"}, "load each one separately")
}

// TestSmallLoad loads, verifies and drops a table, on the instance in TABLESTORE_TEST_… (make real) if that is set.
func TestSmallLoad(t *testing.T) {
	var env []string
	for _, name := range []string{"ENDPOINT", "INSTANCE", "ACCESS_KEY_ID", "ACCESS_KEY_SECRET"} {
		env = append(env, "TABLESTORE_"+name+"="+os.Getenv("TABLESTORE_TEST_"+name))
	}
	if os.Getenv("TABLESTORE_TEST_ENDPOINT") == "" {
		env = startServe(t, "--sync", "none").env()
	}
	p := newPlace(t, env...)
	input := conformance.Try(filepath.Abs("../examples/student-cards.csv")).Must(t)
	name := fmt.Sprintf("tsimport_small_%d_%d", time.Now().UnixMilli(), os.Getpid())
	p.ends(0, []string{"load", input, "--create", "--limit", "2000", "--verify", "--table", name, "--pk",
		"DeviceID:integer", "--pk", "OrderNumber:integer"})
	p.ends(0, []string{"table", "drop", name, "--yes"})
}

// TestStoresInDifferentFoldersAreDistinctTargets loads a file in two folders at once. In one folder this is refused.
func TestStoresInDifferentFoldersAreDistinctTargets(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "XDG_CACHE_HOME="+t.TempDir())
	elsewhere := newPlace(t, here.env...)
	load := []string{"load", here.write("in.csv", fileOf("id,v", 2000,
		func(i int) string { return fmt.Sprintf("%d,x", i) })), "--table", "t", "--pk", "id:integer"}
	first := here.start(append(load, "--max-rows-per-second", "1")...)
	first.must(func() bool { return len(here.glob("tsimport-runs/*/summary.json")) == 1 })
	elsewhere.ends(0, load)
	here.ends(1, load, "it is in use by another process")
	first.signal(os.Kill)
}

// TestAnotherMachineResumesFromState kills the first machine, whose folder is lost. internal/jobdir tests bad states.
func TestAnotherMachineResumesFromState(t *testing.T) {
	t.Parallel()
	s, around := startServe(t), newPlace(t)
	store := around.bucket(t, "states")
	const rows = 5000
	drop := newPlace(t)
	drop.write("a.csv", fileOf("id,v", rows, func(i int) string { return fmt.Sprintf("%d,x%d", i, i) })+"bad\n")
	args := func(more ...string) []string {
		return append([]string{"load", drop.dir, "--table", "nights", "--pk", "id", "--create", "--only-new", "--state",
			"s3://states/all", "--settle", "1s", "--request-timeout", "2s"}, more...)
	}
	first := s.pod(t, around.env...).start(args("--max-rows-per-second", "200")...)
	first.must(func() bool { // the state has checkpoints
		kept := 0
		for _, r := range store.Requests() {
			if strings.HasPrefix(r, "PUT ") && strings.Contains(r, "/checkpoint.") {
				kept++
			}
		}
		return kept >= 2
	})
	first.kill()                            // the second machine waits for its lease
	drop.write("b.csv", "id,v\n-1,later\n") // a file that arrives now does not belong to that run
	second := s.pod(t, around.env...)
	second.ends(3, args(), "resuming run", "5,001 read, 5,000 written, 1 rejected")
	second.ends(0, args(), "1 of 2 inputs are known", "1 read, 1 written")
	second.ends(0, args(), "nothing new")
	conformance.Equal(t, len(second.glob("tsimport-runs/*/rejects.csv")), 1, "rejects")
	said := second.run(0, "files", "--table", "nights", "--state", "s3://states/all")
	conformance.Equal(t, strings.Count(said, ".csv"), 2, "files: %s", said)
}

var (
	resumeRows = flag.Int("resume-rows", 0, "rows of a kilobyte of the measurement of what resuming costs; 0 skips it")
	resumeRate = flag.Int("resume-rate", 50, "rows a second that each of its partitions takes")
)

func (s *served) accepted(t *testing.T) (rows int64) {
	t.Helper()
	res := conformance.Try(http.Get(s.URL + "/_engine/stats")).Must(t)
	defer res.Body.Close()
	var stats struct {
		Tables map[string]struct{ Rows int64 }
	}
	must(t, json.NewDecoder(res.Body).Decode(&stats))
	return stats.Tables["t"].Rows
}

// TestResumeCost kills a load after 90 % of its rows, with one partition ten times slower than the others. It measures
// how long resuming takes, and how many rows are written again: those in flight and about one second's worth.
func TestResumeCost(t *testing.T) {
	if *resumeRows == 0 {
		t.Skip("set -resume-rows (make crash), on a machine that does nothing else")
	}
	t.Parallel()
	text := fileOf("id,n,v", *resumeRows, func(i int) string {
		return fmt.Sprintf("%016x,%d,%s", uint64(i+1)*0x9e3779b97f4a7c15, i,
			strings.Repeat(fmt.Sprintf("%x some text that comes again ", i*7919), 28))
	})
	for _, name := range []string{"in.csv", "in.csv.gz"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			if p.write("in.csv", text); name != "in.csv" {
				writeGzip(t, p.path(name), text)
			}
			bounds := p.write("bounds.txt", fileOf("00", 31, func(i int) string { return fmt.Sprintf("%02x", (i+1)*8) }))
			s := startServe(t, "--sync", "none", "--partitions", "32", "--sample-file", bounds, "--partition-wcu",
				fmt.Sprint(*resumeRate), "--latency", "5ms", "--slow", "7:0.1")
			p.env = s.env()
			start := func() *process {
				return p.start("load", name, "--table", "t", "--create", "--pk", "id:string", "-q", "--settle", "1s",
					"--batch-bytes", fmt.Sprintf("%dKiB", *resumeRate/5))
			}
			first := start()
			first.must(func() bool { return s.accepted(t) >= int64(*resumeRows)*9/10 })
			first.kill()
			known, before := finalRows(p.dir), int64(-1)
			for last := int64(-2); last != before; time.Sleep(20 * time.Millisecond) { // requests may still arrive
				last, before = before, s.accepted(t)
			}
			begun := time.Now()
			second := start()
			second.must(func() bool { return s.accepted(t) > before })
			toFirst := time.Since(begun)
			// The rows to be written again are first in their lanes, so after a few new rows all of them have been written.
			second.must(func() bool { return s.accepted(t) >= before+int64(*resumeRows)*6/100 })
			second.signal(syscall.SIGINT)
			conformance.MustEqual(t, second.wait(), 130, "the load that resumes: exit code\n%s", &second.said)
			sum := p.summary()
			// A checkpoint may be late. Package pipeline tests that no lane sends more than it allows.
			again, allowed := s.accepted(t)-sum.Written, int64(32**resumeRate/5+2*(31**resumeRate+*resumeRate/10))
			t.Logf("%s: %d rows, killed at %d of which the checkpoint knew %d; first new write after %v; %d rows written "+
				"again (%d sent again); checkpoints took %.2f %% of its time",
				name, *resumeRows, before, known, toFirst.Round(time.Millisecond), again, sum.Replayed,
				100*sum.CheckpointSeconds/sum.Seconds)
			conformance.True(t, again <= allowed,
				"%d rows were written again, want at most %d: those in flight and two seconds' worth", again, allowed)
		})
	}
}

func TestAddressInUsePreventsLoad(t *testing.T) {
	w := watch(t)
	address := strings.TrimSuffix(strings.TrimPrefix(w.status, "http://"), "/")
	p := newPlace(t)
	p.write("in.csv", "id\n1\n")
	said := p.ends(2, []string{"load", "in.csv", "--table", "t", "--pk", "id", "--store", "store", "--status", address},
		"tsimport: --status "+address+": ")
	conformance.True(t, strings.Count(said, "\n") == 1, "%v", said)
	p.ends(2, []string{"table", "list", "--store", "store"}) // the store must not exist
	w.signal(syscall.SIGINT)
	w.end(130)
}

// TestMoreScripts runs scripts that test refusals, counts and choices of commands.
func TestMoreScripts(t *testing.T) { runScripts(t, "testdata/morescripts") }
