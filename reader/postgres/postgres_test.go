package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/postgres/pgtest"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
	"github.com/jackc/pgx/v5/pgconn"
)

var must = conformance.Must

func TestAddressesWithSecretsAreRefused(t *testing.T) {
	sqltest.Addresses(t, Parse, map[string]string{
		"postgres://u:planted@h/d?table=t":               "holds a password",
		"postgres://u@h/d?table=t&password=planted":      "holds a secret",
		"postgres://u@h/d?table=t&sslpassword=planted":   "holds a secret",
		"postgres://u:planted@h:bad port/d?table=t":      "cannot parse",
		"postgres://u@h/d":                               "names no table",
		"postgres://u@h/d?table=a.b.c":                   "SCHEMA.TABLE",
		`postgres://u@h/d?table="a`:                      "not closed",
		"postgres://u@h/d?table=t&sslmode=neither-mode":  "sslmode",
		"postgres://u@h/d?table=public.orders&port=1":    "",
		`postgresql://u@h/d?table="a.b"."c.d"`:           "",
		"postgres://u@h/d?table=t&sslmode=verify-full&a": "",
	})
	schema, table, err := tableName(`"a.b"."c.d"`)
	conformance.True(t, schema == "a.b" && table == "c.d" && err == nil, "%v %v %v", schema, table, err)
}

func TestTimesBecomeRFC3339IfPossible(t *testing.T) {
	var scratch []byte
	for from, to := range map[string]string{
		"2024-02-29 12:34:56.789+00": "2024-02-29T12:34:56.789Z", "2024-02-29 12:34:56": "2024-02-29T12:34:56",
		"infinity": "infinity", "-infinity": "-infinity", "0044-03-15 00:00:00+00 BC": "0044-03-15 00:00:00+00 BC",
		"294276-12-31 23:59:59.999999": "294276-12-31T23:59:59.999999",
	} {
		var d record.Datum
		err := readTime(&d, []byte(from), &scratch)
		conformance.True(t, err == nil && string(d.Bytes) == to, "%s: %s, want %s: %v", from, d.Bytes, to, err)
	}
}

func TestBinaryTimesEqualServerTexts(t *testing.T) {
	var scratch []byte
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	write := func(micros int64) string {
		var d record.Datum
		scratch = scratch[:0]
		must(t, binaryTime(&d, binary.BigEndian.AppendUint64(nil, uint64(micros)), &scratch))
		return string(d.Bytes)
	}
	for at := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 10_000; at = at.Add(
		131*time.Hour + 17*time.Minute + 3*time.Second + 120*time.Microsecond) {
		micros := (at.Unix()-epoch.Unix())*1_000_000 + int64(at.Nanosecond())/1000
		conformance.MustEqual(t, write(micros), at.Format("2006-01-02T15:04:05.999999"), "write")
	}
	for micros, want := range map[int64]string{math.MaxInt64: "infinity", math.MinInt64: "-infinity",
		0: "2000-01-01T00:00:00", -1: "1999-12-31T23:59:59.999999"} {
		conformance.Equal(t, write(micros), want, "%d", micros)
	}
	for base, read := range binaries {
		d := record.Datum{}
		conformance.True(t, read(&d, []byte{1, 2, 3}, &scratch) != nil || base == "bytea", "%s of three bytes is taken", base)
	}
}

func open(t *testing.T, s *pgtest.Server, table string, change func(*sqltable.Config)) (*sqltable.Origin,
	[]source.Source) {
	t.Helper()
	return sqltest.Open(t, addressOf(t, s.Address(table)), change)
}

func addressOf(t *testing.T, address string) *Address {
	t.Helper()
	return conformance.Try(Parse(address)).Must(t)
}

// parseQuery returns the address of a query with a key on a server.
func parseQuery(t *testing.T, s *pgtest.Server, key, sql string) *Address {
	t.Helper()
	return conformance.Try(ParseQuery(strings.Replace(s.Address(""), "table=", "key="+key, 1), sql)).Must(t)
}

func TestLostSessionsAreReplacedAndWrongQueriesNotRepeated(t *testing.T) {
	server := func(code string) error { return fmt.Errorf("page: %w", &pgconn.PgError{Code: code}) }
	sqltest.Lost(t, new(Address), map[string]error{
		"a query that was killed":                           server("57014"),
		"a session that was killed, or a server that stops": server("57P01"),
		"a server that starts":                              server("57P03"),
		"too many sessions":                                 server("53300"),
		"a query that a standby ends for its replay":        server("40001"),
		"a snapshot that nobody holds":                      server("22023"),
		"a connection that ended":                           io.ErrUnexpectedEOF,
	}, map[string]error{
		"a table that was dropped":  server("42P01"),
		"a column that was dropped": server("42703"),
		"a user who may not":        server("42501"),
		"a text that has no UTF-8":  server("22P05"),
	})
}

func TestTablesOnRealServer(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE TABLE numbers (id bigint PRIMARY KEY, text text); INSERT INTO numbers SELECT i * 10 - 20000, 'row ' || i FROM generate_series(1, 5000) i;
		CREATE COLLATION cs (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
		CREATE TABLE texts (a text COLLATE cs, b char(3), n numeric, u uuid, y bytea, at timestamptz, v int, PRIMARY KEY (a, b, n, u, y, at) INCLUDE (v));
		INSERT INTO texts SELECT substr('aBcÄéz', 1 + i % 6, 1) || i % 100, i % 7, i / 100.0, md5(i::text)::uuid, decode(md5(i::text), 'hex'), '2024-01-01'::timestamptz + i * interval '1.5 s', i
			FROM generate_series(1, 3000) i;
		CREATE TABLE parted (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (500);
		CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (500) TO (100000); INSERT INTO parted SELECT i, repeat('x', 100) FROM generate_series(0, 2999) i`)
	server := func(table string) sqltable.Server { return addressOf(t, s.Address(url.QueryEscape(table))) }
	for _, table := range []string{"numbers", "texts", "parted"} {
		t.Run("keeps the contract of sources: "+table, func(t *testing.T) {
			sqltest.Contract(t, func() sqltable.Server { return server(table) }, 8<<10)
		})
	}

	t.Run("values of every type are exact", func(t *testing.T) {
		s.Exec(
			`CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN price AS numeric(10,2); CREATE TYPE pair AS (a int, b text);
			CREATE TABLE kinds (id smallint PRIMARY KEY, i8 bigint, f4 real, f8 double precision, n numeric, p price, b boolean, t text, c char(5), v varchar(9), y bytea, u uuid,
			j json, jb jsonb, d date, ts timestamp, tz timestamptz, tm time, tmz timetz, iv interval, m mood, a int[], at text[], bits bit(3), vb varbit, ip inet, r int4range, pr pair, mo money, x xml, o oid,
			g int GENERATED ALWAYS AS (id * 2) STORED);
			INSERT INTO kinds VALUES (1, -9223372036854775808, 0.1, 0.1, 'NaN', 12345678.90, true, E'tab\t"é', 'ab', '', '\x00ff', '00112233-4455-6677-8899-aabbccddeeff',
			'{"a": 1.50,  "a":2}', '{"b":1.50,"a":1}', 'infinity', '0044-03-15 01:02:03 BC', '2024-03-10 02:30:00.5+05:30', '24:00:00', '10:00:00+02', '1 year -2 days 3.5 s', 'ok', '{1,NULL,3}', '{"a b",NULL,"\""}', B'101', B'1', '10.0.0.1/8', '[1,5)', '(1,"x y")', 1234.5, '<a/>', 4294967295);
			INSERT INTO kinds (id, f8, n, tz) VALUES (2, 'Infinity', 123456789012345678901234567890.00100, 'infinity')`)
		sqltest.Exact(t, server("kinds"), []string{
			`3 1 0 ""|`, `3 -9223372036854775808 0 ""|`, `5 0 0.10000000149011612 ""|`, `5 0 0.1 ""|`, `7 0 0 "NaN"|`,
			`"12345678.90"|`, `6 1 0 ""|`, `"tab\t\"é"|`, `"ab   "|`, `7 0 0 ""|`, `8 0 0 "\x00\xff"|`,
			`"00112233-4455-6677-8899-aabbccddeeff"|`, `"{\"a\": 1.50,  \"a\":2}"|`, `"{\"a\": 1, \"b\": 1.50}"|`, `"infinity"|`,
			`"0044-03-15 01:02:03 BC"|`, `"2024-03-09T21:00:00.5Z"|`, `"24:00:00"|`, `"10:00:00+02"|`, `"P1Y-2DT3.5S"|`,
			`"ok"|`, `"{1,NULL,3}"|`, `"{\"a b\",NULL,\"\\\"\"}"|`, `"101"|`, `"1"|`, `"10.0.0.1/8"|`, `"[1,5)"|`,
			`"(1,\"x y\")"|`, `"1234.50"|`, `"<a/>"|`, `3 4294967295 0 ""|`, `3 2 0 ""|`,
		}, []string{`5 0 +Inf ""|`, `"123456789012345678901234567890.00100"|`, `7 0 0 "infinity"|`})
	})

	t.Run("times equal the server's texts", func(t *testing.T) {
		s.Exec(`SET TimeZone = 'UTC'; CREATE TABLE times (id int PRIMARY KEY, ts timestamp, tz timestamptz, ts_text text, tz_text text);
			INSERT INTO times SELECT i, ts, ts AT TIME ZONE 'UTC', ts::text, (ts AT TIME ZONE 'UTC')::text FROM (
				SELECT i, '4713-11-24 00:00:00 BC'::timestamp + i * interval '11 days 03:07:11.104729' AS ts FROM generate_series(0, 300000, 7) i
				UNION ALL SELECT 400000 + i, '9990-01-01'::timestamp + i * interval '5194d 1.5s' FROM generate_series(0, 19000) i
				UNION ALL SELECT 500000 + i, '0002-01-01 BC'::timestamp + i * interval '12h' FROM generate_series(0, 3000) i) t`)
		_, parts := open(t, s, "times", nil)
		var scratch []byte
		n := 0
		sqltest.Each(t, parts, nil, func(r *record.Record) {
			n++
			for i := range 2 {
				var want record.Datum
				scratch = scratch[:0]
				err := readTime(&want, r.Fields[3+i].Bytes, &scratch)
				conformance.True(t, err == nil && string(want.Bytes) == string(r.Fields[1+i].Bytes),
					"%s is read as %s: %v", r.Fields[3+i].Bytes, r.Fields[1+i].Bytes, err)
			}
		})
		conformance.True(t, n >= 60_000, "%d rows", n)
	})

	t.Run("a row that would not fit in memory ends the reading", func(t *testing.T) {
		s.Exec(`CREATE TABLE large (id int PRIMARY KEY, v bytea); INSERT INTO large SELECT i, decode(repeat('00', CASE WHEN i = 3 THEN 5000000 ELSE 100 END), 'hex') FROM generate_series(1, 5) i`)
		sqltest.Large(t, server("large"))
	})

	t.Run("inexact tables are refused by name", func(t *testing.T) {
		s.Exec(`CREATE TABLE nokey (id int); CREATE VIEW v AS SELECT 1; CREATE TABLE floats (f float8 PRIMARY KEY); CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child () INHERITS (parent)`)
		sqltest.Refused(t, server, map[string]string{"nokey": "no primary key", "v": "is not a table",
			"floats": "column f of the primary key", "parent": "inherit", "nothere": "there is no table"})
	})

	t.Run("refused tables are loaded by the query in the error", func(t *testing.T) {
		s.Exec(`CREATE TYPE temper AS ENUM ('sad', 'ok'); CREATE TABLE moods (m temper, b bit(3), f float8, id int, v text, PRIMARY KEY (m, b, f, id)); INSERT INTO moods VALUES ('sad', B'101', 0.1, 1, ''), ('ok', B'101', 0.1, 1, ''), ('sad', B'100', 0.1, 1, ''), ('sad', B'101', 0.2, 1, '');
			CREATE VIEW "it's" AS SELECT id FROM numbers; INSERT INTO nokey SELECT generate_series(1, 4); INSERT INTO child VALUES (1), (2); INSERT INTO parent VALUES (3)`)
		query := func(key, sql string) sqltable.Server { return parseQuery(t, s, key, sql) }
		sqltest.Named(t, server, query, map[string]int{"moods": 4, `"it's"`: 5000, "nokey": 4, "parent": 3})
	})

	t.Run("unique indexes of parts of the key count, but not partial indexes", func(t *testing.T) {
		s.Exec(`CREATE TABLE indexed (a int, b int, c int, d int, PRIMARY KEY (a, b, c, d), UNIQUE (a) DEFERRABLE, UNIQUE (d, c) INCLUDE (a));
			CREATE UNIQUE INDEX ON indexed (b) WHERE a > 0; CREATE UNIQUE INDEX ON indexed ((b + 1)); CREATE INDEX ON indexed (b); CREATE UNIQUE INDEX ON indexed (b, c) NULLS NOT DISTINCT`)
		sqltest.Unique(t, server("indexed"), []string{"b", "c"}, []string{"c", "d"})
		s.Exec(`CREATE TABLE halves (a int, b int, PRIMARY KEY (a, b)) PARTITION BY RANGE (a); CREATE TABLE half PARTITION OF halves FOR VALUES FROM (0) TO (9);
			CREATE UNIQUE INDEX ON half (b); CREATE UNIQUE INDEX whole ON ONLY halves (a)`)
		sqltest.Unique(t, server("halves"))
	})

	t.Run("all ranges are from one snapshot while rows change", func(t *testing.T) {
		s.Exec(`CREATE TABLE big (id int PRIMARY KEY, v int, pad text); INSERT INTO big SELECT i, 0, repeat('x', 200) FROM generate_series(1, 40000) i`)
		sqltest.Changed(t, server("big"), 1, 1, func() {
			s.Exec("UPDATE big SET v = 1; DELETE FROM big WHERE id % 2 = 0; INSERT INTO big SELECT i, 2, '' FROM " +
				"generate_series(40001, 41000) i")
		})
		sqltest.Until(t, "no session holds a snapshot", func() bool {
			return s.Exec("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tsimport' AND state LIKE 'idle in " +
				"trans%'")[0][0] == "0"
		})
	})

	t.Run("a killed session is replaced in the same snapshot", func(t *testing.T) {
		s.Exec(`DROP TABLE big; CREATE TABLE big (id int PRIMARY KEY, v int, pad text); INSERT INTO big SELECT i, 0, repeat('x', 200) FROM generate_series(1, 40000) i`)
		sqltest.Changed(t, server("big"), 3, 1, func() {
			s.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tsimport' AND query LIKE " +
				"'SELECT \"id\"%LIMIT%'; UPDATE big SET v = 1")
		})
	})
	t.Run("after a server crash the rest is from another snapshot", func(t *testing.T) {
		sqltest.Changed(t, server("big"), 3, 2, func() { s.Stop("immediate"); s.Go() })
	})
	t.Run("a reading that needs one snapshot stops when it is lost", func(t *testing.T) {
		sqltest.Whole(t, server("big"), func() {
			s.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tsimport'")
		})
	})
	database := func(t *testing.T, name, encoding, sql string) []source.Source {
		t.Helper()
		s.Exec("CREATE DATABASE " + name + " ENCODING '" + encoding + "' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
		a := addressOf(t, strings.Replace(s.Address("t"), "/postgres?", "/"+name+"?", 1))
		conn := conformance.Try(connect(t.Context(), a)).Must(t)
		must(t, errors.Join(conn.Exec(t.Context(), "SET default_transaction_read_only = off").Close(),
			conn.Exec(t.Context(), sql).Close()))
		hangUp(conn)
		_, parts := sqltest.Open(t, a, nil)
		return parts
	}
	t.Run("texts of a database without an encoding are its bytes", func(t *testing.T) {
		parts := database(t, "bytes", "SQL_ASCII",
			`CREATE TABLE t (id text PRIMARY KEY, v text); INSERT INTO t VALUES (E'k\xfe', 'x'), ('l', E'bad \xff'), ('m', 'é')`)
		parts[0].SetSplitBytes(1) // one row per page, so that the next page begins at its key
		if got := strings.Join(sqltest.All(t, parts, nil), "\n"); !strings.Contains(got, `"k\xfe"|`) ||
			!strings.Contains(got, `"bad \xff"|`) || !strings.Contains(got, `"é"|`) {
			t.Error(got)
		}
	})
	t.Run("a text that cannot be UTF-8 ends the reading with its place", func(t *testing.T) {
		parts := database(t, "japanese", "EUC_JP",
			`SET client_encoding = 'EUC_JP'; CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'x'), (2, E'\xa9\xa9')`)
		if _, err := parts[0].Next(); err == nil || !strings.Contains(err.Error(),
			"after the row id 1: the server cannot convert a string to UTF-8") || !strings.Contains(err.Error(), "--query") {
			t.Error(err)
		}
	})
	t.Run("a promoted standby counts as another server", func(t *testing.T) {
		other := s.Standby()
		s.Exec("UPDATE big SET v = 3") // until a checkpoint, control data has the old timeline
		at := s.Exec("SELECT pg_current_wal_lsn()")[0][0]
		sqltest.Until(t, "the standby follows",
			func() bool { return other.Exec("SELECT pg_last_wal_replay_lsn() >= '" + at + "'")[0][0] == "t" })
		a := addressOf(t, s.Address("big"))
		to := a.config.Port
		dial := a.config.DialFunc
		a.config.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dial(ctx, network, fmt.Sprintf("127.0.0.1:%d", to))
		}
		sqltest.Replaced(t, a, func() {
			other.Promote()
			to = addressOf(t, other.Address("big")).config.Port
			s.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tsimport'")
		}, "timeline 1, and is now timeline 2")
	})
	t.Run("replacing the table ends the reading", func(t *testing.T) {
		sqltest.Replaced(t, server("big"), func() {
			s.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tsimport'; DROP TABLE " +
				"big; CREATE TABLE big (id int PRIMARY KEY, v int, pad text)")
		}, "")
	})
}

func TestQueryNeedsKey(t *testing.T) {
	for _, c := range []struct{ arg, query, want string }{
		{"postgres://u@h/d", "SELECT 1", "add key=COLUMN"},
		{"postgres://u@h/d?key=", "SELECT 1", "add key=COLUMN"},
		{"postgres://u@h/d?key=a&table=t", "SELECT 1", "leave one out"},
		{"postgres://u@h/d?key=a", " ; ", "--query is empty"},
		{"postgres://u@h/d?key=a", "DELETE FROM t RETURNING id", "want a SELECT, not DELETE"},
		{"postgres://u@h/d?key=a,b", "SELECT 1;", ""},
	} {
		a, err := ParseQuery(c.arg, c.query)
		conformance.True(t, (c.want != "" || err == nil && a.query == "SELECT 1") &&
			(c.want == "" || err != nil && strings.Contains(err.Error(), c.want)),
			"%s: %v, want %q", c.arg, err, c.want)
	}
	conformance.Refused(t, conformance.ErrorOf(Parse("postgres://u@h/d?table=t&key=a")), "--query", "error")
}

func TestQueriesOnRealServer(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE TABLE customers (id int PRIMARY KEY, name text); CREATE TABLE orders (id int PRIMARY KEY, customer int, price numeric(10,2), at timestamptz);
		INSERT INTO customers SELECT i, 'customer ' || i FROM generate_series(1, 100) i; INSERT INTO orders SELECT i, i % 100 + 1, i / 100.0, '2024-01-01'::timestamptz + i * interval '1 s' FROM generate_series(1, 30000) i; ANALYZE`)
	const joined = "SELECT o.id, c.name, o.price, upper(c.name) AS \"Upper\", repeat('x', 200) AS pad FROM orders o " +
		"JOIN customers c ON c.id = o.customer -- all of them"
	address := func(t *testing.T, key, query string) *Address { return parseQuery(t, s, key, query) }
	server := func(query string) sqltable.Server { return address(t, "id", query) }
	for key, query := range map[string]string{
		"id":      "SELECT id, price FROM orders WHERE id < 1000 -- some",
		"name,id": "SELECT o.id, c.name, o.price FROM orders o JOIN customers c ON c.id = o.customer WHERE o.id <= 1000",
		"day,n":   "SELECT at::date AS day, id AS n, price FROM orders WHERE id <= 1000",
		"k":       "SELECT (i * 7919 % 1001)::text AS k, i FROM generate_series(1, 1000) i",
	} {
		t.Run("keeps the contract of sources: "+key, func(t *testing.T) {
			sqltest.Contract(t, func() sqltable.Server { return address(t, key, query) }, 4<<10)
		})
	}

	t.Run("the query is run once, in one snapshot", func(t *testing.T) {
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
		"its session was killed": {"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = " +
			"'tsimport' AND query LIKE 'SELECT \"id\"%'", 1},
		"all sessions were killed": {"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = " +
			"'tsimport'", 2},
	} {
		t.Run("reading continues after "+what, func(t *testing.T) {
			sqltest.Continued(t, server(joined), kill.snapshots, func() { s.Exec(kill.sql) })
		})
	}
	t.Run("columns that are not a key end the reading", func(t *testing.T) {
		s.Exec("CREATE SEQUENCE IF NOT EXISTS numbers")
		sqltest.Keyless(t, server, map[string]string{
			"SELECT i / 2 AS id FROM generate_series(1, 1000) i":                                  "have the key id",
			"SELECT CASE WHEN i <> 700 THEN i END AS id FROM generate_series(1, 1000) i":          "has no id",
			"SELECT i AS id FROM generate_series(1, 1000) i UNION ALL SELECT 200":                 "have the key id",
			"SELECT i AS id, 1 / (900 - i) FROM generate_series(1, 1000) i":                       "division by zero",
			"SELECT i AS id, pg_advisory_lock(1), nextval('numbers') FROM generate_series(1,9) i": "read-only",
		})
	})
	t.Run("inexact tables are refused by name", func(t *testing.T) {
		sqltest.Refused(t, server, map[string]string{
			"SELECT 1.5 AS id": "cast it", "SELECT 1 AS id, 2 AS id": "two columns", "SELECT 1 AS other": "no column id",
			"SELECT 1 AS id) q; SELECT (1":                                       "columns of the query",
			"WITH gone AS (DELETE FROM orders RETURNING id) SELECT id FROM gone": "columns of the query",
		})
	})
	t.Run("truncation between snapshot and lock is detected", func(t *testing.T) {
		for _, change := range []string{"SELECT 1", "TRUNCATE customers",
			"DROP TABLE customers; CREATE TABLE customers (id int PRIMARY KEY, name text)",
			"ALTER TABLE customers ALTER id TYPE bigint"} {
			ctx := context.Background()
			a := address(t, "id", joined)
			conn := conformance.Try(connect(ctx, a)).Must(t)
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
		all := conformance.Try(List(t.Context(), s.Address(pattern))).Must(t)
		got := ""
		for _, one := range all {
			conformance.True(t, strings.HasPrefix(one.Address, "postgres://postgres@127.0.0.1:") &&
				strings.Contains(one.Address, "table=") && (one.Rows <= 0 || one.Bytes != 0),
				"%+v", one)
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
	conformance.Refused(t, conformance.ErrorOf(List(t.Context(), s.Address("["))), "", "pattern")
	s.Stop("immediate")
	conformance.Refused(t, conformance.ErrorOf(List(t.Context(), s.Address(""))), "", "no server")
}

// secure makes the server use TLS with a certificate and its key, and verify clients' certificates with a CA. rules are
// put at the start of pg_hba.conf.
func secure(s *pgtest.Server, ca, cert, key, rules string) {
	for name, from := range map[string]string{"ca.pem": ca, "cert.pem": cert, "key.pem": key} {
		s.Own(from, filepath.Join(s.Data(), name))
	}
	file := filepath.Join(s.Data(), "pg_hba.conf")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append([]byte(rules), text...), 0o600)
	}
	conformance.Must(s, err)
	for _, sql := range []string{"ssl_ca_file = 'ca.pem'", "ssl_cert_file = 'cert.pem'", "ssl_key_file = 'key.pem'",
		"ssl = on"} {
		s.Exec("ALTER SYSTEM SET " + sql)
	}
	s.Stop("fast")
	s.Go()
}

func TestTLSOnRealServer(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec("CREATE TABLE t (id int PRIMARY KEY); CREATE USER safe; CREATE USER known; GRANT SELECT ON t TO safe, known")
	address := func(user, host, parameters string) (*Address, error) {
		return Parse(strings.NewReplacer("postgres@", user+"@", "127.0.0.1", host, "sslmode=disable&",
			"").Replace(s.Address("t")) + parameters)
	}
	sqltest.Tried(t, address, []sqltest.TLS{
		{"postgres", "127.0.0.1", "", ""},
		{"postgres", "127.0.0.1", "&sslmode=prefer", ""},
		{"postgres", "127.0.0.1", "&sslmode=disable", ""},
		{"postgres", "127.0.0.1", "&sslmode=require", "the server does not support TLS, which the address requires; turn " +
			"TLS on at the server or, where the network is trusted, give sslmode=disable"},
	})
	ours, others := sqltest.NewAuthority(t), sqltest.NewAuthority(t)
	cert, key := ours.Server()
	secure(s, ours.File, cert, key, "hostssl all safe all trust\nhost all safe all reject\nhostssl all known all "+
		"cert\nhost all known all reject\n")
	cert, key = ours.Client("known")
	strange, strangeKey := others.Client("known")
	other, otherKey := ours.Client("safe")
	pair := func(cert, key string) string { return "&sslcert=" + cert + "&sslkey=" + key }
	sqltest.Tried(t, address, []sqltest.TLS{
		{"safe", "127.0.0.1", "", ""},
		{"safe", "127.0.0.1", "&sslmode=disable", "pg_hba.conf rejects"},
		{"safe", "127.0.0.1", "&sslmode=require", ""},
		{"safe", "127.0.0.1", "&sslmode=verify-ca&sslrootcert=" + ours.File, ""},
		{"safe", "127.0.0.1", "&sslmode=verify-ca&sslrootcert=" + others.File,
			"unknown authority; give the authority's certificate with sslrootcert=FILE"},
		{"safe", "127.0.0.1", "&sslmode=verify-full&sslrootcert=" + ours.File, ""},
		{"safe", "localhost", "&sslmode=verify-full&sslrootcert=" + ours.File,
			"match localhost); connect by one of them or, to trust any that the authority has signed, give sslmode=verify-ca"},
		{"safe", "127.0.0.1", "&sslmode=verify-ca&sslrootcert=/nowhere.pem",
			"/nowhere.pem: no such file or directory); want the parameters of libpq"},
		{"nobody", "127.0.0.1", "&sslmode=disable",
			"the server refuses the session: role \"nobody\" does not exist (SQLSTATE 28000)"},
		{"safe", "localhost", "&sslmode=verify-ca&sslrootcert=" + ours.File, ""},
		{"safe", "127.0.0.1", "&sslmode=sometimes", "sslmode"},
		{"known", "127.0.0.1", "&sslmode=require", "certificate"},
		{"known", "127.0.0.1", "&sslmode=verify-full&sslrootcert=" + ours.File + pair(cert, key), ""},
		{"known", "127.0.0.1", "&sslmode=require" + pair(strange, strangeKey),
			"give one that it trusts with sslcert=FILE and sslkey=FILE"},
		{"known", "127.0.0.1", "&sslmode=require" + pair(other, otherKey), "certificate authentication failed"},
	})
}

func TestPositionOfRealServerMissesNothing(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE TABLE orders (id int PRIMARY KEY, v text, updated_at timestamptz NOT NULL DEFAULT now()); INSERT INTO orders (id, v) SELECT n, 'old' FROM generate_series(-1000, -1) n;
		CREATE USER reader; GRANT SELECT ON orders TO reader; CREATE USER seeing; GRANT SELECT ON orders TO seeing; GRANT pg_read_all_stats TO seeing; CREATE USER writer; GRANT ALL ON orders TO writer`)
	as := func(user string) *Address {
		return addressOf(t, strings.Replace(s.Address("orders"), "postgres@", user+"@", 1))
	}
	connect := func(user string) *pgconn.PgConn {
		t.Helper()
		conn, err := pgconn.Connect(t.Context(), strings.Replace(strings.SplitN(s.Address("orders"), "&", 2)[0], "postgres@",
			user+"@", 1))
		must(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	exec := func(conn *pgconn.PgConn, sql string) {
		t.Helper()
		must(t, conformance.ErrorOf(conn.Exec(t.Context(), sql).ReadAll()))
	}
	// notLater reports whether a position is not after a place in the log.
	notLater := func(p source.Position, lsn string) bool {
		t.Helper()
		return s.Exec("SELECT '" + p.ResumeFrom.LSN + "'::pg_lsn <= '" + lsn + "'::pg_lsn")[0][0] == "t"
	}
	unknown := func(what string, p source.Position, resume, since string) {
		t.Helper()
		conformance.True(t, strings.Contains(p.ResumeFrom.Unknown, resume) &&
			strings.HasPrefix(p.SafeSince, source.Unknown) && strings.Contains(p.SafeSince, since),
			"%s: %s", what, p)
	}

	t.Run("a quiet server", func(t *testing.T) {
		p := sqltest.Position(t, as("seeing"))
		if since, err := time.Parse(time.RFC3339, p.SafeSince); err != nil || time.Since(since) < time.Second ||
			time.Since(since) > time.Minute || !notLater(p, s.Exec("SELECT pg_current_wal_lsn()")[0][0]) {
			t.Error(p)
		}
	})
	t.Run("a transaction waiting for its client is safe, and visible with the privilege", func(t *testing.T) {
		w := connect("writer")
		exec(w, "BEGIN; INSERT INTO orders VALUES (-5000)")
		began := s.Exec("SELECT to_char(xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM " +
			"pg_stat_activity WHERE usename = 'writer'")[0][0]
		sqltest.Until(t, "it is older than what is subtracted", func() bool {
			return s.Exec("SELECT '" + began + "' < clock_timestamp() - interval '1 second'")[0][0] == "t"
		})
		p := sqltest.Position(t, as("seeing"))
		conformance.Equal(t, p.SafeSince, began, "%s", p)
		conformance.True(t, p.ResumeFrom.LSN != "", "%v", p)
		unknown("a user who sees no others", sqltest.Position(t, as("reader")), "pg_read_all_stats", "pg_read_all_stats")
		exec(w, "ROLLBACK")
	})
	t.Run("a prepared transaction without a session is unknown", func(t *testing.T) {
		s.Exec("ALTER SYSTEM SET max_prepared_transactions = 5")
		s.Stop("fast")
		s.Go()
		w := connect("writer")
		exec(w, "BEGIN; INSERT INTO orders VALUES (-5001); PREPARE TRANSACTION 'p'")
		unknown("prepared", sqltest.Position(t, as("postgres")), "prepared", "prepared")
		exec(w, "ROLLBACK PREPARED 'p'")
	})
	t.Run("sessions without activity tracking are unknown", func(t *testing.T) {
		w := connect("postgres")
		exec(w, "SET track_activities = off; BEGIN; INSERT INTO orders VALUES (-5002)")
		p := sqltest.Position(t, as("postgres"))
		conformance.Contains(t, p.SafeSince, "track_activities", "%v", p)
		must(t, w.Close(t.Context()))
	})
	t.Run("a committed transaction not yet visible, because a standby has not confirmed it, is not missed",
		func(t *testing.T) {
			s.Exec("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
			s.Exec("SELECT pg_reload_conf()")
			ended := make(chan error, 1)
			w := connect("writer")
			before := s.Exec("SELECT pg_current_wal_insert_lsn()")[0][0]
			go func() {
				_, err := w.Exec(context.Background(), "INSERT INTO orders VALUES (-5003)").ReadAll()
				ended <- err
			}()
			sqltest.Until(t, "the transaction waits for the standby", func() bool {
				return s.Exec("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")[0][0] == "1"
			})
			s.Exec("SET synchronous_commit = local; CREATE TABLE later (a int)") // advances the log
			a := as("postgres")
			p := sqltest.Position(t, a)
			_, parts := sqltest.Open(t, a, nil)
			conformance.Equal(t, len(sqltest.All(t, parts, nil)), 1000, "the snapshot sees the transaction")
			conformance.True(t, p.ResumeFrom.Unknown != "" || notLater(p, before), "%s is after %s", p.ResumeFrom, before)
			s.Exec("ALTER SYSTEM RESET synchronous_standby_names")
			s.Exec("SELECT pg_reload_conf()")
			must(t, <-ended)
			s.Exec("DELETE FROM orders WHERE id < -1000")
		})
	t.Run("a standby reports what it has replayed, not open transactions", func(t *testing.T) {
		p := sqltest.Position(t, addressOf(t, s.Standby().Address("orders")))
		if p.ResumeFrom.LSN == "" || !notLater(p, s.Exec("SELECT pg_current_wal_lsn()")[0][0]) ||
			!strings.Contains(p.SafeSince, "primary") {
			t.Error(p)
		}
	})
	t.Run("a server without the function", func(t *testing.T) {
		w := connect("postgres")
		exec(w, "REVOKE EXECUTE ON FUNCTION pg_last_wal_replay_lsn FROM PUBLIC")
		unknown("revoked", sqltest.Position(t, as("reader")), "permission denied", "permission denied")
		exec(w, "GRANT EXECUTE ON FUNCTION pg_last_wal_replay_lsn TO PUBLIC")
	})
	t.Run("rows of 1,000 open transactions are found by the next delta", func(t *testing.T) {
		s.Exec("DELETE FROM orders WHERE id < -1000")
		s.Most = 1100
		s.Stop("fast")
		s.Go()
		changed := func(since string) sqltable.Server {
			a, err := ParseQuery(strings.Replace(s.Address(""), "table=", "key=id", 1),
				"SELECT id, v FROM orders WHERE updated_at >= '"+since+"'")
			must(t, err)
			return a
		}
		table, err := ParseQuery(strings.Replace(s.Address(""), "table=", "key=id", 1), "SELECT id, v FROM orders")
		must(t, err)
		const rows = 1000
		sqltest.Followed(t, table, changed, rows, func() func() {
			var open []*pgconn.PgConn
			for i := range rows {
				open = append(open, connect("writer"))
				exec(open[i], fmt.Sprintf("BEGIN; INSERT INTO orders (id, v) VALUES (%d, 'new')", i))
			}
			return func() {
				for _, conn := range open {
					exec(conn, "COMMIT")
				}
			}
		})
	})
}
