package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
)

type database struct {
	*sql.DB
	t    *testing.T
	path string
}

var must = conformance.Must

func newDatabase(t *testing.T, statements ...string) *database {
	t.Helper()
	d := &database{t: t, path: filepath.Join(t.TempDir(), "a shop#1?.db")}
	var err error
	a := &Address{path: d.path}
	d.DB, err = sql.Open("sqlite", strings.Replace(a.dsn(false),
		"mode=ro&_pragma=busy_timeout(10000)&_pragma=query_only(1)", "_pragma=busy_timeout(0)", 1))
	must(t, err)
	d.SetMaxOpenConns(1)
	t.Cleanup(func() { d.DB.Close() })
	d.exec(statements...)
	return d
}

func (d *database) exec(statements ...string) {
	d.t.Helper()
	for _, s := range statements {
		if _, err := d.Exec(s); err != nil {
			d.t.Fatalf("%s: %v", s, err)
		}
	}
}

func (d *database) address(table string) *Address {
	d.t.Helper()
	a := conformance.Try(Parse("sqlite:" + d.path + "?table=" + table)).Must(d.t)
	return a
}

func (d *database) open(table string, change func(*sqltable.Config)) (*sqltable.Origin, []source.Source) {
	d.t.Helper()
	return sqltest.Open(d.t, d.address(table), change)
}

const count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "

func filled(t *testing.T) *database {
	d := newDatabase(t, "CREATE TABLE numbers (v TEXT, id INTEGER PRIMARY KEY)",
		"CREATE TABLE texts (k TEXT COLLATE NOCASE PRIMARY KEY, v) ",
		"CREATE TABLE composed (a TEXT, b INT, v, PRIMARY KEY (b DESC, a)) WITHOUT ROWID",
		"CREATE TABLE blobs (k BLOB PRIMARY KEY NOT NULL, v) WITHOUT ROWID", "CREATE TABLE keyless (v)")
	for _, into := range []string{
		"numbers SELECT 'v' || i, i * 7 - 5000 FROM n",
		"texts SELECT CASE i % 2 WHEN 0 THEN 'k' ELSE 'K' END || printf('%05d', i), i FROM n",
		"composed SELECT 'a' || (i % 13), i / 13, i FROM n", "blobs SELECT CAST(printf('%05d', i) AS BLOB), x'00' FROM n",
		"keyless SELECT i FROM n",
	} {
		table, rest, _ := strings.Cut(into, " ")
		d.exec("INSERT INTO " + table + " " + fmt.Sprintf(count, 1200) + rest)
	}
	return d
}

func TestTablesKeepSourceContract(t *testing.T) {
	for _, mode := range []string{"DELETE", "WAL"} {
		d := filled(t)
		d.exec("PRAGMA journal_mode = " + mode)
		for _, table := range []string{"numbers", "texts", "composed", "blobs", "keyless"} {
			t.Run(mode+" "+table, func(t *testing.T) {
				sqltest.Contract(t, func() sqltable.Server { return d.address(table) }, 3<<10)
			})
		}
	}
}

func TestValuesKeepTheirOwnTypes(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE t (id INTEGER PRIMARY KEY, i INTEGER, r REAL, x TEXT, b BLOB, n NUMERIC, d "+
		"DATETIME, y BOOLEAN, any, g AS (i || '!') STORED, v AS (r))",
		"CREATE TABLE strict (id TEXT PRIMARY KEY NOT NULL, i INT, r REAL, x TEXT, b BLOB, a ANY) STRICT",
		`INSERT INTO t (id, i, r, x, b, n, d, y, any) VALUES (1, 9223372036854775807, 1, 'é' || char(0) || 'x', x'', '12.50', '2024-01-02 03:04:05', 1, -0.0),
			(2, 'text', 'text', x'ff00', 'text', '1e400', 1700000000, 'yes', x'00'), (3, NULL, 1e300, '', NULL, '007', NULL, 0, 1e999), (4, 2.5, -9223372036854775808, 5, 5, 5.0, 5.5, 5.5, 9007199254740993)`,
		"INSERT INTO strict VALUES ('k', 5, 5, '5', x'05', '5')")
	_, parts := d.open("t", nil)
	rows := sqltest.All(t, parts, nil)
	want := []string{
		`3 1 0 ""|3 9223372036854775807 0 ""|5 0 1 ""|7 0 0 "é\x00x"|8 0 0 ""|5 0 12.5 ""|7 0 0 "2024-01-02 03:04:05"|3 1 0 ""|5 0 -0 ""|7 0 0 "9223372036854775807!"|5 0 1 ""|`,
		`3 2 0 ""|7 0 0 "text"|7 0 0 "text"|8 0 0 "\xff\x00"|7 0 0 "text"|5 0 +Inf ""|3 1700000000 0 ""|7 0 0 "yes"|8 0 0 "\x00"|7 0 0 "text!"|7 0 0 "text"|`,
		`3 3 0 ""|0 0 0 ""|5 0 1e+300 ""|7 0 0 ""|0 0 0 ""|3 7 0 ""|0 0 0 ""|3 0 0 ""|5 0 +Inf ""|0 0 0 ""|5 0 1e+300 ""|`,
		`3 4 0 ""|5 0 2.5 ""|5 0 -9.223372036854776e+18 ""|7 0 0 "5"|3 5 0 ""|3 5 0 ""|5 0 5.5 ""|5 0 5.5 ""|3 9007199254740993 0 ""|7 0 0 "2.5!"|5 0 -9.223372036854776e+18 ""|`,
	}
	for i, w := range want {
		conformance.True(t, i < len(rows) && rows[i] == w, "%d: %s, want %s", i, append(rows, "")[min(i, len(rows))], w)
	}
	_, parts = d.open("strict", nil)
	rows = sqltest.All(t, parts, nil)
	conformance.True(t, len(rows) == 1 && rows[0] == `7 0 0 "k"|3 5 0 ""|5 0 5 ""|7 0 0 "5"|8 0 0 "\x05"|7 0 0 "5"|`,
		"strict: %q", rows)
}

func TestRangesShareOneSnapshotDuringWrites(t *testing.T) {
	d := newDatabase(t, "PRAGMA journal_mode = WAL", "CREATE TABLE big (id INTEGER PRIMARY KEY, v INT, pad TEXT)",
		"INSERT INTO big "+fmt.Sprintf(count, 40000)+"SELECT i, 0, hex(zeroblob(100)) FROM n")
	o, parts := d.open("big", nil)
	conformance.MustTrue(t, len(parts) >= 2, "%d parts", len(parts))
	rows := sqltest.All(t, parts, func(n int) {
		if n == 1 {
			d.exec("UPDATE big SET v = 1", "DELETE FROM big WHERE id % 2 = 0", "INSERT INTO big "+fmt.Sprintf(count, 1000)+
				"SELECT i + 40000, 2, '' FROM n", "PRAGMA wal_checkpoint")
		}
	})
	for _, r := range rows {
		conformance.MustEqual(t, strings.Contains(r, "|3 0 0 \"\"|"), true, "a row that was changed later: %.80s", r)
	}
	if got := o.Snapshots(); len(rows) != 40000 || len(got) != 1 || len(got[0].Ranges) != len(parts) {
		t.Errorf("%d rows, snapshots %+v", len(rows), got)
	}
	d.exec("PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode = DELETE") // this needs exclusive access to the file
}

func TestWriterWaitsWithoutWAL(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE big (id INTEGER PRIMARY KEY, v INT, pad TEXT)", "INSERT INTO big "+
		fmt.Sprintf(count, 20000)+"SELECT i, 0, hex(zeroblob(100)) FROM n")
	_, parts := d.open("big", nil)
	rows := sqltest.All(t, parts, func(n int) {
		_, err := d.Exec("UPDATE big SET v = 1")
		conformance.True(t, n != 1 || codeOf(err) == codeBusy, "a write in the midst: %v", err)
	})
	conformance.True(t, len(rows) == 20000 && !strings.Contains(strings.Join(rows, ""), "|3 1 0 \"\"|"),
		"%d rows", len(rows))
	d.exec("UPDATE big SET v = 1")
}

func TestKeysAreSortedByCollationOfTheirIndex(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE t (k TEXT COLLATE NOCASE, v, PRIMARY KEY (k COLLATE BINARY)) WITHOUT ROWID",
		"INSERT INTO t VALUES ('a', 1), ('A', 2), ('b', 3), ('B', 4), ('', 5)")
	s, described, err := d.address("t").Look(t.Context())
	must(t, err)
	defer s.Close()
	var keys []string
	var lower [][]byte
	for {
		page, err := s.Page(t.Context(), described, sqltable.Query{Lower: lower, Past: lower != nil, Limit: 1})
		must(t, err)
		n := 0
		for page.Next() {
			n++
			lower = [][]byte{append([]byte{}, page.Values()[0]...)}
			keys = append(keys, string(lower[0]))
		}
		must(t, page.Close())
		if n == 0 {
			break
		}
	}
	conformance.Equal(t, strings.Join(keys, ","), ",A,B,a,b", "keys")
}

// explaining is a connection that stores query plans.
type explaining struct {
	connection
	plan *string
}

func (e explaining) QueryContext(ctx context.Context, sql string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := e.connection.QueryContext(ctx, "EXPLAIN QUERY PLAN "+sql, args)
	if err != nil {
		return nil, err
	}
	row := make([]driver.Value, len(rows.Columns()))
	for rows.Next(row) == nil {
		*e.plan += fmt.Sprintln(row[len(row)-1])
	}
	return rows, rows.Close()
}

func TestPagesUseKeyIndex(t *testing.T) {
	d := filled(t)
	for _, name := range []string{"numbers", "texts", "composed", "blobs", "keyless"} {
		var plan string
		s, described, err := d.address(name).Look(t.Context())
		must(t, err)
		explained := &session{conn: explaining{s.(*session).conn, &plan}, of: s.(*session).of}
		key := [][]byte{[]byte("1"), []byte("1")}[:len(described.Key)]
		_, err = explained.Page(t.Context(), described, sqltable.Query{Lower: key, Past: true, Upper: key, Limit: 10})
		must(t, err)
		conformance.True(t, strings.Contains(plan, "SEARCH") &&
			(!strings.Contains(plan, "TEMP B-TREE") || name == "composed"), "%s: %s", name, plan)
		s.Close()
	}
}

func TestInexactTablesAreRefusedByName(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE mixed (k PRIMARY KEY, v)", "INSERT INTO mixed VALUES (1, 1), ('1', 2)",
		"CREATE TABLE nulls (k TEXT PRIMARY KEY)", "INSERT INTO nulls VALUES ('a'), (NULL)",
		"CREATE TABLE reals (k REAL PRIMARY KEY)", "INSERT INTO reals VALUES (1.5)", "CREATE VIEW v AS SELECT 1",
		"CREATE TABLE own (rowid TEXT)", "CREATE VIRTUAL TABLE words USING fts5(t)")
	for table, want := range map[string]string{"mixed": "types integer and text", "nulls": "types text and null",
		"reals": "type real", "v": "is a view", "own": "but a column called rowid",
		"words": "not an ordinary table", "nothere": "there is no table", "sqlite_schema": "there is no table"} {
		_, err := sqltable.New(sqltable.Config{Server: d.address(table)}).Divide(t.Context())
		conformance.InALine(t, err, want, "%s", table)
	}
	wide := newDatabase(t, "PRAGMA encoding = 'UTF-16le'", "CREATE TABLE t (id TEXT PRIMARY KEY)")
	_, _, err := wide.address("t").Look(t.Context())
	conformance.Refused(t, err, "UTF-16le", "UTF-16")
	text := filepath.Join(t.TempDir(), "text.db")
	must(t, os.WriteFile(text, []byte(strings.Repeat("id,v\n", 300)), 0o644))
	for arg, want := range map[string]string{"sqlite:" + text + "?table=t": "not a SQLite file",
		"sqlite:/no/such.db?table=t": "there is no file", "sqlite:" + t.TempDir() + "?table=t": "is a folder"} {
		_, _, err := conformance.Try(Parse(arg)).Must(t).Look(t.Context())
		conformance.Refused(t, err, want, "%s", arg)
	}
	for arg, want := range map[string]string{"sqlite:a.db": "names no table", "sqlite:?table=t": "names no file",
		"sqlite::memory:?table=t": "names no file", "sqlite:a.db?table=t&mode=rw": "unknown parameter mode"} {
		conformance.Refused(t, conformance.ErrorOf(Parse(arg)), want, "%s", arg)
	}
}

func TestRowWithOtherKeyTypeEndsReading(t *testing.T) {
	d := newDatabase(t, "PRAGMA journal_mode = WAL", "CREATE TABLE t (k PRIMARY KEY, v)", "INSERT INTO t VALUES (1, 1)")
	for _, bad := range []string{"'x'", "NULL"} {
		_, parts := d.open("t", nil)
		d.exec("INSERT INTO t VALUES (" + bad + ", 2)") // after the table was described
		var err error
		for err == nil {
			_, err = parts[0].Next()
		}
		conformance.Contains(t, err.Error(), "column k of the primary key", "%s: %v", bad, err)
		d.exec("DELETE FROM t WHERE v = 2")
	}
}

func TestChangedTableIsNotReadFurther(t *testing.T) {
	d := filled(t)
	for what, tt := range map[string]struct {
		table  string
		change []string
	}{
		"another column":       {"numbers", []string{"ALTER TABLE numbers ADD COLUMN more"}},
		"rows numbered anew":   {"keyless", []string{"DELETE FROM keyless WHERE v < 10", "VACUUM"}},
		"another order of key": {"texts", []string{"DROP TABLE texts", "CREATE TABLE texts (k TEXT PRIMARY KEY, v)"}},
	} {
		o := sqltable.New(sqltable.Config{Server: d.address(tt.table)})
		must(t, conformance.ErrorOf(o.Divide(t.Context())))
		kept := conformance.Try(o.Divide(t.Context())).Must(t)
		parts := conformance.Try(o.Open(t.Context(), kept)).Must(t)
		d.exec(tt.change...)
		_, err := parts[0].Next()
		conformance.True(t, sqltable.IsChanged(err), "%s: %v", what, err)
		for _, p := range parts {
			p.Close()
		}
	}
	if fileID(info(t, d.path)) == "" {
		t.Skip("files have no number here")
	}
	before, _ := d.address("numbers").schema(t)
	must(t, os.WriteFile(d.path+".new", conformance.Read(t, "", d.path), 0o644))
	must(t, os.Rename(d.path+".new", d.path))
	after, _ := d.address("numbers").schema(t)
	conformance.True(t, after != before, "another file of the same name was not noticed")
}

func (a *Address) schema(t *testing.T) (string, *sqltable.Table) {
	t.Helper()
	s, described, err := a.Look(context.Background())
	must(t, err)
	s.Close()
	return described.Schema, described
}

func info(t *testing.T, path string) os.FileInfo {
	t.Helper()
	return conformance.Try(os.Stat(path)).Must(t)
}

func TestImmutableFileIsCheckedAfterEachPage(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)", "INSERT INTO t VALUES (1, 1)")
	a := d.address("t")
	s := conformance.Try(a.open(t.Context(), true)).Must(t)
	defer s.Close()
	s.frozen = info(t, a.path)
	described := conformance.Try(a.describe(t.Context(), s)).Must(t)
	page := func() error {
		p, err := s.Page(t.Context(), described, sqltable.Query{Limit: 10})
		if err != nil {
			return err
		}
		for p.Next() {
		}
		return p.Close()
	}
	must(t, page())
	d.exec("INSERT INTO t " + fmt.Sprintf(count, 5000) + "SELECT i + 1, i FROM n")
	conformance.Is(t, page(), errChanged, "page")
}

func TestDamagedFileErrorGivesAdvice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "my shop.db")
	db := conformance.Try(sql.Open("sqlite", path)).Must(t)
	for _, s := range []string{"CREATE TABLE t (a INTEGER PRIMARY KEY, v)", "CREATE TABLE whole (a INTEGER PRIMARY KEY)",
		"INSERT INTO t " + fmt.Sprintf(count, 2000) + "SELECT i, hex(zeroblob(100)) FROM n"} {
		must(t, conformance.ErrorOf(db.Exec(s)))
	}
	must(t, db.Close())
	text := conformance.Read(t, "", path)
	page := len(text) / 2 &^ 4095
	copy(text[page:page+4096], bytes.Repeat([]byte{0xff}, 4096))
	const want = "shop.db is damaged: database disk image is malformed (11); recover what can be read and load that: " +
		"sqlite3 '/"
	for what, text := range map[string][]byte{"a page": text, "the end": text[:len(text)/3]} {
		must(t, os.WriteFile(path, text, 0o600))
		a := conformance.Try(Parse("sqlite:" + path + "?table=t")).Must(t)
		o := sqltable.New(sqltable.Config{Server: a})
		division, err := o.Divide(t.Context())
		var parts []source.Source
		if err == nil {
			parts, err = o.Open(t.Context(), division)
		}
		for err == nil {
			_, err = parts[0].Next()
		}
		for _, p := range parts {
			must(t, p.Close())
		}
		conformance.True(t, strings.Contains(err.Error(), want) && strings.Count(err.Error(), "\n") <= 0, "%s: %v", what, err)
		all, err := List(t.Context(), "sqlite:"+path)
		conformance.True(t, what != "a page" || err == nil && strings.Contains(all[0].Refused, want) && all[1].Refused == "",
			"%+v, %v", all, err)
	}
}

func TestTablesAreListed(t *testing.T) {
	d := filled(t)
	d.exec("CREATE VIEW seen AS SELECT 1 AS a")
	all := conformance.Try(List(t.Context(), "sqlite:"+d.path+"?table=*e*")).Must(t)
	got := fmt.Sprintf("%+v", all)
	for _, want := range []string{"Table:texts", "Table:composed Address:sqlite:" + d.path +
		"?table=composed Kind:table Rows:", "Table:keyless", "Key:[rowid]", "Table:seen", "is a view"} {
		conformance.Contains(t, got, want, "got")
	}
	conformance.Equal(t, len(all), 5, "tables")
	for _, one := range all {
		if one.Kind == "view" {
			continue
		}
		var rows, bytes int64
		must(t, d.QueryRow("SELECT count(*), (SELECT sum(pgsize) FROM dbstat WHERE name = ?) FROM "+one.Table,
			one.Table).Scan(&rows, &bytes))
		conformance.True(t, one.Rows == rows && one.Bytes == bytes && bytes != 0, "%+v, want %d, %d", one, rows, bytes)
	}
}
