//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/postgres/pgtest"
)

var (
	momentRuns   = flag.Int("moment.runs", 2, "loads of all tables of each server at one moment")
	momentTables = flag.Int("moment.tables", 20, "how many tables it loads")
)

// The number of accounts per table, the initial amount of each, and the number of concurrent writers.
const (
	momentAccounts = 20
	momentAmount   = 100
	momentWriters  = 6
)

// bank is a server with tables of amounts, which writers transfer between rows of different tables.
type bank struct {
	*testing.T
	address func(table string) string
	exec    func(statements ...string)
	session func() (exec func(statement string) error, end func()) // opens a session
	kill    func(of string)                                        // kills sessions: the snapshot's, a reader's, or all
	tables  int
}

func banks(t *testing.T, tables int, test func(b *bank)) {
	t.Run("PostgreSQL", func(t *testing.T) {
		s := pgtest.Start(t)
		b := &bank{T: t, address: s.Address, exec: func(statements ...string) { s.Exec(strings.Join(statements, ";")) },
			tables: tables}
		b.session = func() (func(string) error, func()) {
			conn, err := pgconn.Connect(context.Background(),
				fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.Port))
			must(t, err)
			return func(statement string) error {
				_, err := conn.Exec(context.Background(), statement).ReadAll()
				return err
			}, func() { _ = conn.Close(context.Background()) }
		}
		b.kill = func(of string) {
			which := map[string]string{"the keeper": "ORDER BY backend_start LIMIT 1",
				"a reader": "ORDER BY backend_start DESC LIMIT 1"}[of]
			s.Exec("SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = " +
				"'tsimport' AND xact_start IS NOT NULL " + which + ") AS of")
		}
		b.fill()
		test(b)
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Setenv("HOME", t.TempDir())
		s := mysqltest.Start(t)
		b := &bank{T: t, address: s.Address, exec: s.Exec, tables: tables}
		b.session = func() (func(string) error, func()) {
			conn := conformance.Try(s.DB.Conn(context.Background())).Must(t)
			return func(statement string) (err error) {
				for one := range strings.SplitSeq(statement, ";") {
					if _, e := conn.ExecContext(context.Background(), one); e != nil && err == nil {
						err = e
					}
				}
				return err
			}, func() { conn.Close() }
		}
		b.kill = func(of string) {
			for n, r := range s.Rows("SELECT id FROM information_schema.PROCESSLIST WHERE user = 'reader' ORDER BY id") {
				if of == "all" || of == "a reader" && n == 0 {
					_, _ = s.DB.Exec("KILL " + r[0]) // the session may have ended
				}
			}
		}
		s.Exec("CREATE USER reader@'127.0.0.1'",
			"GRANT SELECT, RELOAD, PROCESS, REPLICA MONITOR ON *.* TO reader@'127.0.0.1'")
		b.address = func(table string) string { return strings.Replace(s.Address(table), "root@", "reader@", 1) }
		b.fill()
		test(b)
	})
}

func (b *bank) fill() {
	var values []string
	for n := range momentAccounts {
		values = append(values, fmt.Sprintf("(%d, %d)", n, momentAmount))
	}
	for n := range b.tables {
		b.exec(fmt.Sprintf("CREATE TABLE bank_%03d (id integer PRIMARY KEY, amount integer)", n),
			fmt.Sprintf("INSERT INTO bank_%03d VALUES %s", n, strings.Join(values, ", ")))
	}
}

func (b *bank) transfers() (stop func() int64) {
	var over atomic.Bool
	var moved atomic.Int64
	var group sync.WaitGroup
	for range momentWriters {
		exec, end := b.session()
		group.Go(func() {
			defer end()
			for !over.Load() {
				from, to, amount := rand.IntN(b.tables), rand.IntN(b.tables), rand.IntN(50)
				update := func(table, sign int) string {
					return fmt.Sprintf("UPDATE bank_%03d SET amount = amount + %d WHERE id = %d", table, sign*amount,
						rand.IntN(momentAccounts))
				}
				err := exec("BEGIN")
				for _, one := range []string{update(from, -1), update(to, 1), "COMMIT"} {
					if err == nil {
						err = exec(one)
					}
				}
				if err != nil { // a deadlock, or a lock timeout
					_ = exec("ROLLBACK")
				} else {
					moved.Add(1)
				}
			}
		})
	}
	return func() int64 { over.Store(true); group.Wait(); return moved.Load() }
}

func (b *bank) job(more string) string {
	return fmt.Sprintf("version: 1\nparallel: 4\ndefaults: {create: true%s}\nloads: {\"{table}\": {from: %q, table: "+
		"\"{table}\"}}\n", more, b.address("{table}"))
}

func (b *bank) sum(s *served) (sum, rows int64) {
	b.Helper()
	for n := range b.tables {
		for r := range rowsOf(b, s.client(), fmt.Sprintf("bank_%03d", n)) {
			rows++
			for _, c := range r.Columns {
				sum += c.Value.(int64)
			}
		}
	}
	return sum, rows
}

type momentRecord struct {
	Loads   []struct{ Name string }
	Moments []struct {
		Consistent bool
		Snapshots  []struct{ Loads []string }
	}
}

func (p *place) record() (r momentRecord) {
	p.t.Helper()
	all := p.glob("tsimport-runs/*/job.json")
	must(p.t, json.Unmarshal([]byte(p.read(strings.TrimPrefix(all[len(all)-1], p.dir+"/"))), &r))
	return r
}

// TestDatabasesAreLoadedFromOneSnapshot transfers amounts between tables. The sum of the loaded rows must not change.
func TestDatabasesAreLoadedFromOneSnapshot(t *testing.T) {
	banks(t, *momentTables, func(b *bank) {
		s := startServe(b, "--memory")
		stop := b.transfers()
		wrong := 0
		for run := range *momentRuns {
			p := newPlace(b, s.env()...)
			p.write("bank.yaml", b.job(""))
			if run == 0 {
				p.ends(0, []string{"run", "bank.yaml", "--plan"}, fmt.Sprintf("all %d tables of ", b.tables),
					"are read in one snapshot, by at most 4 sessions")
			}
			p.ends(0, []string{"run", "bank.yaml"}, "one moment of ")
			sum, rows := b.sum(s)
			if want := int64(b.tables * momentAccounts); rows != want || sum != want*momentAmount {
				b.Errorf("run %d: %d rows with a sum of %d, want %d with %d", run, rows, sum, want, want*momentAmount)
				wrong++
			}
			places := map[string]bool{}
			r := p.record()
			for _, l := range r.Loads {
				sum := p.summary(strings.TrimPrefix(p.glob("tsimport-runs/*")[0], p.dir+"/") + "/" + l.Name)
				places[fmt.Sprint(sum.Follow())] = true
			}
			conformance.True(b, len(r.Moments) == 1 && r.Moments[0].Consistent &&
				len(r.Moments[0].Snapshots[0].Loads) == b.tables && len(places) == 1,
				"run %d: moments %+v, followed from %v", run, r.Moments, places)
		}
		b.Logf("%d of %d loads of %d tables had another sum; %d transfers meanwhile", wrong, *momentRuns, b.tables, stop())
	})
}

// slow returns a job that reads its tables slowly, page by page, so that something can happen in the meantime.
func (b *bank) slow(more string) string { return b.job(", max-rows-per-second: 200" + more) }

// TestDatabasesReportLostSnapshot kills reading sessions while a job loads tables.
func TestDatabasesReportLostSnapshot(t *testing.T) {
	banks(t, 30, func(b *bank) {
		s := startServe(b, "--memory")
		for _, c := range []struct {
			kill, more string
			code       int
			says       string
		}{
			{"a reader", "", 0, "one moment of "},
			{"a reader", ", require-snapshot: true", 0, "one moment of "},
			{"the keeper", "", 0, "were read at 2 moments: "},
			{"the keeper", ", require-snapshot: true", 1, "the session that held the snapshot was lost"},
			{"all", "", 0, "were read at 2 moments: "},
			{"all", ", require-snapshot: true", 1, "the session that held the snapshot was lost"},
		} {
			if c.kill == "the keeper" && strings.HasPrefix(b.address(""), "mysql") {
				continue // there is no session
			}
			b.Run(c.kill+c.more, func(t *testing.T) {
				p := newPlace(t, s.env()...)
				p.write("bank.yaml", b.slow(c.more))
				stop := b.transfers()
				defer stop()
				r := p.start("run", "bank.yaml")
				r.says(`(?m)bank_\d+: done`, 3)
				b.kill(c.kill)
				code := r.wait()
				said := r.said.String()
				conformance.True(t, code == c.code && strings.Contains(said, c.says),
					"exit code %d, want %d with %q:\n%s", code, c.code, c.says, said)
				one := c.says == "one moment of "
				m := p.record().Moments
				conformance.True(t, len(m) == 1 && (c.code != 0 || m[0].Consistent == one), "moments %+v", m)
				if one {
					sum, rows := b.sum(s)
					conformance.True(t, rows == 600 && sum == 60_000, "%d rows with a sum of %d", rows, sum)
				}
			})
		}
	})
}

// TestDatabasesAreReadByFewSessions limits sessions or rights. Tables must still be of one moment, with a warning.
func TestDatabasesAreReadByFewSessions(t *testing.T) {
	banks(t, 10, func(b *bank) {
		s := startServe(b, "--memory")
		limit, right := "ALTER ROLE few CONNECTION LIMIT %d", "SELECT 1"
		user := func() { b.exec("CREATE ROLE few LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO few") }
		if strings.HasPrefix(b.address(""), "mysql") {
			limit, right = "GRANT USAGE ON *.* TO few@'127.0.0.1' WITH MAX_USER_CONNECTIONS %d",
				"GRANT RELOAD ON *.* TO few@'127.0.0.1'"
			user = func() { b.exec("CREATE USER few@'127.0.0.1'", "GRANT SELECT ON shop.* TO few@'127.0.0.1'") }
		}
		user()
		own := b.address
		b.address = func(table string) string {
			return strings.NewReplacer("postgres@", "few@", "reader@", "few@").Replace(own(table))
		}
		stop := b.transfers()
		defer stop()
		for n, says := range map[int]string{10: "", 3: "reading with ", 1: "reading with 1 of 4 sessions"} {
			for _, granted := range []bool{false, true} {
				if granted {
					b.exec(right)
				}
				b.exec(fmt.Sprintf(limit, n))
				time.Sleep(50 * time.Millisecond) // sessions of the last load are ending
				p := newPlace(b, s.env()...)
				p.write("bank.yaml", b.job(", require-snapshot: true"))
				p.ends(0, []string{"run", "bank.yaml"}, "one moment of ", says)
				if sum, rows := b.sum(s); rows != 200 || sum != 20_000 {
					b.Errorf("%d sessions, granted %v: %d rows with a sum of %d", n, granted, rows, sum)
				}
			}
		}
	})
}

// TestDatabasesReadByResumedJobAreReported resumes at a later moment. Remaining tables must be reported or refused.
func TestDatabasesReadByResumedJobAreReported(t *testing.T) {
	banks(t, 30, func(b *bank) {
		s := startServe(b, "--memory")
		for more, c := range map[string]struct {
			code int
			says string
		}{
			"": {0, " were read at 2 moments: "},
			", require-snapshot: true": {1, "ended with the process that held it, and --require-snapshot does not allow " +
				"another one"},
		} {
			p := newPlace(b, s.env()...)
			p.write("bank.yaml", b.slow(more))
			r := p.start("run", "bank.yaml")
			r.says(`(?m)bank_\d+: done`, 3)
			r.kill()
			said := p.ends(c.code, []string{"run", "bank.yaml"}, c.says)
			if record := p.record(); len(record.Moments) != 1 || record.Moments[0].Consistent != (c.code == 1) {
				b.Errorf("%q: moments %+v\n%s", more, record.Moments, said)
			}
		}
	})
}

// TestDatabasesShardsAreLoadedAsOneTable kills and resumes a load of several tables as one, then verifies and syncs it.
func TestDatabasesShardsAreLoadedAsOneTable(t *testing.T) {
	banks(t, 1, func(b *bank) {
		for n := range 3 {
			var values []string
			for i := range 1500 {
				values = append(values, fmt.Sprintf("(%d, 'row')", 3*i+n))
			}
			b.exec(fmt.Sprintf("CREATE TABLE shard_%02d (id integer PRIMARY KEY, v varchar(30))", n+8),
				fmt.Sprintf("INSERT INTO shard_%02d VALUES %s", n+8, strings.Join(values, ", ")))
		}
		address := b.address("shard_{08..10}")
		p := newPlace(b, "TSIMPORT_CHECKPOINT_EVERY=50ms")
		load := []string{"load", address, "--table", "whole", "--store", "store", "--run-dir", "run"}
		r := p.start(append(load, "--max-rows-per-second", "1000")...)
		r.must(there(p.path("run/checkpoint.bin")))
		r.kill()
		p.ends(0, []string{"resume", "run"}, "follow the source from here")
		p.ends(0, []string{"verify", address, "--table", "whole", "--store", "store"}, "equal")
		b.exec("UPDATE shard_09 SET v = 'changed' WHERE id = 4", "DELETE FROM shard_08 WHERE id = 3",
			"INSERT INTO shard_10 VALUES (3, 'moved')")
		p.ends(6, []string{"verify", address, "--table", "whole", "--store", "store"}, "2 different")
		p.ends(0, []string{"sync", address, "--table", "whole", "--store", "store"})
		p.ends(0, []string{"verify", address, "--table", "whole", "--store", "store"}, "equal")
		n := strings.Count(p.output("export", "--table", "whole", "--store", "store", "--format", "jsonl"), `"id":`)
		conformance.True(b, n == 4500, "%d rows", n)
		p.write("shards.yaml", fmt.Sprintf("version: 1\nparallel: 2\ndefaults: {store: store}\nloads: {shards: {from: %q}, "+
			"bank_000: {from: %q}}\n", address, b.address("bank_000")))
		p.ends(0, []string{"run", "shards.yaml"}, "one moment of ")
		p.ends(0, []string{"inspect", address}, "id")
		b.exec("INSERT INTO shard_10 VALUES (6, 'of shard_08, too')")
		for _, command := range [][]string{{"load"}, {"sync"}, {"verify"}, {"run"}} {
			args := append(command, address, "--table", "whole", "--store", "store")
			if command[0] == "run" {
				args = []string{"run", "shards.yaml", "--fresh"}
			}
			said := p.ends(map[string]int{"load": 2, "sync": 2, "verify": 2, "run": 2}[command[0]], args,
				"both have a row with the key id 6")
			conformance.True(b, !strings.Contains(said, "4,501 written"), "%v", said)
		}
	})
}

// TestDatabasesArePlannedByFewSessions checks that a plan ends the sessions of one load before it starts the next.
func TestDatabasesArePlannedByFewSessions(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	s := mysqltest.Start(t)
	b := &bank{T: t, address: s.Address, exec: s.Exec, tables: 40}
	b.fill()
	p := newPlace(t)
	p.write("bank.yaml", b.job(", store: store"))
	p.ends(0, []string{"run", "bank.yaml", "--plan"}, "all 40 tables of ")
	most, _ := strconv.Atoi(s.Rows("SHOW GLOBAL STATUS LIKE 'Max_used_connections'")[0][1])
	conformance.True(t, most != 0 && most <= 12, "%d sessions at a time", most)
}

// In round trips, a server imports its own data unchanged with the statement that an export prints.

// texts lists values that look like the formats' syntax.
var texts = []string{``, `plain`, `\N`, `\.`, `NULL`, `a\tb`, "tab\there", "line\nbreak\r\n", `"quoted", 'text'`,
	`back\\slash\`, "中文 é 😀", ` blanks `}

// exportedFor loads a table, exports it, and returns the import statement that the export prints.
func exportedFor(t *testing.T, address, format, key string) (dir, statement string) {
	t.Helper()
	dir = t.TempDir()
	for _, args := range [][]string{{"load", address, "-t", "a", "--create", "-q"},
		{"export", "-t", "a", "--format", format, "-o", "out.txt"}} {
		cmd := exec.Command(binary, append(args, "--store", "store")...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		conformance.MustTrue(t, err == nil, "%q: %v\n%s", args, err, out)
		if _, after, found := strings.Cut(string(out), "to load it: "); found {
			statement, _, _ = strings.Cut(after, "\n")
		}
	}
	for of := dir; of != "/" && of != os.TempDir(); of = filepath.Dir(of) { // the server runs as another user
		must(t, os.Chmod(of, 0o755))
	}
	must(t, os.Chmod(filepath.Join(dir, "out.txt"), 0o644))
	return dir, statement
}

func TestPostgreSQLRoundTrip(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE TABLE a (id int PRIMARY KEY, i2 smallint, i8 bigint, n numeric, n2 numeric(20,4), r real, d double precision, m money, c char(5), v varchar(99), t text, b bytea, bo boolean,
		da date, ti time(3), ts timestamp, tz timestamptz(3), iv interval, u uuid, ip inet, ci cidr, mac macaddr, bi bit(3), bv bit varying(9), j json, jb jsonb, x xml, ar int[], at text[], ra int4range, po point, tsv tsvector)`)
	for i, text := range texts {
		quoted := "E'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
		s.Exec(fmt.Sprintf(`INSERT INTO a (id, v, t, at, j) VALUES (%d, %s, %[2]s, ARRAY[%[2]s, NULL], to_json(%[2]s::text))`,
			i, quoted))
	}
	s.Exec(`INSERT INTO a VALUES (100, -32768, 9223372036854775807, 'NaN', 1.5000, 3e38, 0.1, -12.34, 'ab', '', '', '\x00ff5c090a', true, '-infinity', '23:59:59.999', '0044-03-15 12:00:00 BC', '2026-01-01 00:00:00+08',
		'1 year -2 days 03:04:05.6', '00000000-0000-0000-0000-000000000001', '::1/64', '10.0.0.0/8', '08:00:2b:01:02:03', B'101', B'', '{"a": 1,  "a": "\t"}', '{"b": null}', '<a>\</a>', '{1,NULL}', '{"a,b","\\"}', '[1,5)', '(1,2)', 'a b'),
		(101, 0, -9223372036854775808, 123456789012345678901234567890.123456789, -0.0001, 1e-30, '-0', 0, '', NULL, NULL, '', false, '2026-02-28', '00:00', '2026-01-01 00:00:00.000001', 'infinity', '0', NULL, '10.1.2.3', '::/0', NULL, B'000', B'1', 'null', '[]', NULL, '{}', '{}', 'empty', NULL, '')`)
	dir, statement := exportedFor(t, s.Address("a"), "postgres", "id")
	s.Exec(`CREATE TABLE b (LIKE a INCLUDING ALL)`)
	s.Exec(strings.NewReplacer(`\copy a`, "COPY b", "'out.txt'", "'"+filepath.Join(dir, "out.txt")+"'").Replace(statement))
	rows :=
		s.Exec(`(SELECT 'a', old::text FROM a old EXCEPT ALL SELECT 'a', new::text FROM b new) UNION ALL (SELECT 'b', new::text FROM b new EXCEPT ALL SELECT 'b', old::text FROM a old)`)
	conformance.True(t, len(rows) == 0, "%d rows differ after %s: %q", len(rows), statement, rows)
	rows = s.Exec("SELECT count(*) FROM b")
	conformance.Equal(t, rows[0][0], fmt.Sprint(len(texts)+2), "%v rows came back", rows)
}

func TestMariaDBRoundTrip(t *testing.T) {
	s := mysqltest.Start(t)
	s.Exec(`CREATE TABLE a (id int PRIMARY KEY, t1 tinyint, u8 bigint unsigned, de decimal(30,10), f float, d double, c char(5), v varchar(99) CHARACTER SET utf8mb4, tx text CHARACTER SET utf8mb4, l1 varchar(20) CHARACTER SET latin1,
		b varbinary(20), bl blob, b4 binary(4), bo bit(1), bi bit(9), da date, ti time(3), dt datetime(6), ts timestamp(3) NULL, y year, e enum('x','y'), st set('p','q'), j json, g point)`)
	for i, text := range texts {
		s.Exec(fmt.Sprintf(`INSERT INTO a (id, v, tx) VALUES (%d, x'%x', x'%[2]x')`, i, text))
	}
	s.Exec(`SET time_zone = '+00:00'`,
		`INSERT INTO a VALUES (100, -128, 9223372036854775807, 12345678901234567890.0123456789, 0.1, -1e300, 'ab', '', '', 'é', x'00ff5c090a0d1a', x'', x'5c4e0000', 1, 257, '2026-02-28', '-838:59:58.999', '0001-01-01 00:00:00.000001',
		'2026-01-01 00:00:00.5', 2026, 'y', 'p,q', '{"a":  "\\t"}', POINT(1.5, -2)), (101, 0, 0, 0, 16777216, 0, '', NULL, NULL, '', x'80818283', x'c3a9ff', x'', 0, 0, '9999-12-31', '00:00:00', '2026-01-01 00:00:00', '1970-01-01 00:00:01', 1901, 'x', '', '[]', NULL)`)
	every := ""
	for b := range 256 {
		every += fmt.Sprintf("%02x%02x", b, 255-b)
	}
	s.Exec(fmt.Sprintf(`INSERT INTO a (id, bl) VALUES (102, x'%s')`, every))
	dir, statement := exportedFor(t, s.Address("a"), "mysql", "id")
	s.Exec(`CREATE TABLE b LIKE a`)
	statement = strings.NewReplacer("LOCAL ", "", "TABLE a", "TABLE b", "'out.txt'", "'"+filepath.Join(dir, "out.txt")+"'",
		"`bo`", "@bo", "`bi`", "@bi", "`ts`", "@ts").Replace(statement)
	s.Exec(`SET time_zone = '+00:00'`, statement+
		` SET bo = CAST(@bo AS UNSIGNED), bi = CAST(@bi AS UNSIGNED), ts = REPLACE(@ts, 'Z', '')`)
	columns := "id, t1, u8, de, f + 0e0, d + 0e0, c, v, tx, l1, HEX(b), HEX(bl), HEX(b4), bo + 0, bi + 0, da, ti, dt, " +
		"ts, y, e, st, j, HEX(g)"
	rows := s.Rows("SELECT * FROM (SELECT " + columns + " FROM a EXCEPT SELECT " + columns +
		" FROM b) x UNION ALL SELECT * FROM (SELECT " + columns + " FROM b EXCEPT SELECT " + columns + " FROM a) y")
	conformance.True(t, len(rows) == 0, "%d rows differ after %s: %q", len(rows), statement, rows)
	rows = s.Rows("SELECT count(*) FROM b")
	conformance.Equal(t, rows[0][0], fmt.Sprint(len(texts)+3), "%v rows came back", rows)
}
