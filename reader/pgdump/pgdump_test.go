package pgdump

import (
	"bytes"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/postgres"
	"example.com/tsimport/reader/postgres/pgtest"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqldump"
	"example.com/tsimport/reader/sqltable/sqltest"
)

// shop returns a dump that pg_dump 15 made.
func shop(t testing.TB) []byte {
	t.Helper()
	return conformance.Read(t, "testdata", "shop.sql")
}

// rowsOf returns a table's rows as text.
func rowsOf(text []byte, t *sqldump.Table) []string {
	return sqltest.Read(NewParser(t.Columns), text[t.From:t.To], false, sqltest.Text)
}

func TestDumpIsReadWithSchema(t *testing.T) {
	text := shop(t)
	conformance.Equal(t, Is(text), true, "the dump is not known by its beginning")
	d, err := Index(bytes.NewReader(text))
	conformance.MustTrue(t, err == nil && d.Truncated == nil, "%v %v", err, d.Truncated)
	orders := conformance.Try(d.Choose("public.orders")).Must(t)
	var columns []string
	for _, c := range orders.Columns {
		columns = append(columns, fmt.Sprintf("%s %s %d", c.Name, c.SQL, c.Kind))
	}
	want := []string{"id bigint 3", "customer text 7", "amount numeric(12,2) 7", "paid boolean 6",
		"at timestamp with time zone 7", "local timestamp without time zone 7", "w double precision 5", "r real 5",
		"raw bytea 8", "m public.mood 7", "p public.price 7", "s public.small 3", "iv interval 7", "tags text[] 7",
		"j jsonb 7", "u uuid 7", `Odd "Name text 7`}
	conformance.True(t, slices.Equal(columns, want) && slices.Equal(orders.Key, []string{"id"}) && orders.Rows == 3,
		"columns %q, key %q, %d rows", columns, orders.Key, orders.Rows)
	conformance.Same(t, rowsOf(text, orders), []string{
		"1|Ann\t\"x\", \\ " +
			"é\nline|10.50|true|2024-02-29T07:04:56.789Z|2024-02-29T12:34:56|0.1|0.10000000149011612|\x00\xff\\|ok|9.99|7|P1Y-2DT3H4M5.5S|{a,\"b c\"}|{\"a\": 1}|73ffd264-44b3-4869-90e8-e7d1dfc035d4|\\N",
		"2||null|false|infinity|-infinity|NaN|-Inf||null|null|null|P-1MT-0.000001S|{}|null|null|null",
		"3|\\.|0.00|null|0044-03-15 00:00:00+00 " +
			"BC|12345-01-01T00:00:00.5|1e+300|1.4999999853326784e-10|null|sad|1.00|-1|PT0S|null|[]|null|",
	}, "rows")
	c := d.Find("public.customers")
	conformance.True(t, slices.Equal(c.Key, []string{"b", "a"}) && c.Rows == 5, "customers: %+v", c)
	got := d.Describe(orders)
	conformance.True(t, strings.HasPrefix(got, "table public.orders, 3 rows; skipped: 5 other tables with 7 rows "+
		"(other.orders 1, public.customers 5, public.parted_1 1) and ") &&
		strings.HasSuffix(got, "generated columns: gen"), "%s", got)
	for name, want := range map[string]string{"": "4 tables with rows", "orders": "other.orders, public.orders",
		"parted": "it is partitioned", "x": "no such table", "nokey": "", "customers": ""} {
		_, err := d.Choose(name)
		conformance.True(t, (want != "" || err == nil) && (want == "" || err != nil && strings.Contains(err.Error(), want)),
			"%q: %v, want %q", name, err, want)
	}
}

func TestTruncatedDumpIsAnError(t *testing.T) {
	text := shop(t)
	first, complete := bytes.IndexByte(text[3:], '\n')+3, bytes.Index(text, []byte("dump complete\n"))+len("dump complete")
	sqltest.CutAnywhere(t, text, first, complete, Index, func(of *sqldump.Table) []string { return rowsOf(text, of) })
}

func TestUnsupportedDumpsAreRefused(t *testing.T) {
	sqltest.RefusedDumps(t, Index, map[string]string{
		"COPY a (x) FROM stdin WITH CSV;\n":                              "a COPY that pg_dump does not write",
		"COPY a (x) FROM stdin;\r\n1\r\n\\.\r\n":                         "CR LF",
		"COPY a (x) FROM stdin; SELECT 1;\n":                             "after a COPY",
		"COPY a (x y) FROM stdin;\n":                                     "a COPY that pg_dump does not write",
		"COPY (SELECT 1) TO stdout;\n":                                   "a COPY that pg_dump does not write",
		"SET standard_conforming_strings = off;\n":                       "standard_conforming_strings is off",
		"SET client_encoding = 'LATIN1';\n":                              "--encoding UTF8",
		"COPY a (x) FROM stdin;\nx\\\ny\n\\.\n":                          "a backslash at the end of a row",
		"\\! rm -rf x\n":                                                 "not a command of a dump",
		"SELECT '" + strings.Repeat("x\n", sqldump.MaxStatement/2) + "'": "a statement without rows is longer than 8 MiB",
		strings.Repeat("x", sqldump.MaxStatement+(2<<20)):                "a line without rows is longer than 8 MiB",
	}, map[string]string{
		"CREATE TABLE a (x int);\nINSERT INTO a VALUES (1);\n":             "without --inserts",
		"COPY a (x) FROM stdin;\n1\n\\.\nCOPY a (x) FROM stdin;\n1\n\\.\n": "several places",
		"COPY a  FROM stdin;\n\n\\.\n":                                     "has no columns",
		"CREATE FOREIGN TABLE a (x int) SERVER s;\n":                       "not in the dump",
		"CREATE TABLE a ();\n":                                             "does not state its columns",
	})
}

func TestNamesWithoutSchemaUseSearchPath(t *testing.T) {
	const one = "CREATE DOMAIN small AS smallint;\nCREATE TABLE t (\n    id small,\n    v text\n);\nCOPY t (id, v) FROM " +
		"stdin;\n1\ta\n\\.\nALTER TABLE ONLY t\n    ADD CONSTRAINT t_pkey PRIMARY KEY (id);\n"
	text := "SET search_path = public, pg_catalog;\n" + one + "SET search_path = other, pg_catalog;\n" + one +
		"SELECT pg_catalog.set_config('search_path', '', false);\n"
	d := conformance.Try(Index(strings.NewReader(text))).Must(t)
	for _, name := range []string{"public.t", "other.t"} {
		of := conformance.Try(d.Choose(name)).Must(t)
		rows := rowsOf([]byte(text), of)
		conformance.True(t, slices.Equal(rows, []string{"1|a"}) && slices.Equal(of.Key, []string{"id"}) &&
			of.Columns[0].Kind == record.Integer, "%s: %q, %+v", name, rows, of)
	}
}

func TestTypesOfColumnsComeFromAllStatements(t *testing.T) {
	const create = "CREATE TYPE public.r AS (\n  id bigint,\n  b bytea\n);\nCREATE DOMAIN public.storage AS integer;\n" +
		"CREATE TABLE public.par (\n    id bigint,\n    b bytea\n);\nCREATE TABLE public.child (\n    exclude bytea,\n    " +
		"s public.storage\n)\nINHERITS (public.par);\nCREATE TABLE public.typed OF public.r (\n    id NOT NULL\n);\n"
	const rows = "COPY public.child (id, b, exclude, s) FROM stdin;\n1\t\\\\x00\t\\\\x01\t7\n\\.\n" +
		"COPY public.typed (id, b) FROM stdin;\n1\t\\\\x00\n\\.\nCOPY public.par (id, b) FROM stdin;\n\\.\n"
	d := conformance.Try(Index(strings.NewReader(create + rows))).Must(t)
	for name, want := range map[string][]record.Kind{
		`"public"."child"`: {record.Integer, record.Binary, record.Binary, record.Integer},
		`"typed"`:          {record.Integer, record.Binary}, "par": {record.Integer, record.Binary},
	} {
		of, err := d.Choose(name)
		conformance.MustTrue(t, err == nil, "%v", err)
		for i, c := range of.Columns {
			conformance.Equal(t, c.Kind, want[i], "%s %s", name, c.Name)
		}
		conformance.Equal(t, strings.Contains(of.Note, "tables that inherit"), name == "par", "%s", of.Note)
	}
	part := create[strings.Index(create, "CREATE TABLE public.child"):]
	of, err := conformance.Try(Index(strings.NewReader(part + rows))).Must(t).Choose("child")
	conformance.True(t, err == nil && strings.HasSuffix(of.Note, ": id, b"), "%v, %+v", err, of)
}

func TestBadValueRejectsRow(t *testing.T) {
	columns := []sqldump.Column{{Name: "a", SQL: "integer", Kind: record.Integer, Form: asInteger},
		{Name: "b", SQL: "bytea", Kind: record.Binary, Form: asBytes}, {Name: "c", SQL: "boolean", Kind: record.Boolean,
			Form: asBoolean}}
	text := "1\t\\\\x00\tt\nx\t\\N\t\\N\n1\t\\\\f\tt\n1\ta\\\\000\\\\\\\\\tt\n1\t\\\\xf\tt\n1\t\\N\ttrue\n1\t\\N\n"
	got := rowsOf([]byte(text), &sqldump.Table{Columns: columns, To: int64(len(text))})
	conformance.Same(t, got, []string{"1|\x00|true", "WrongType a", "WrongType b", "1|a\x00\\|true", "WrongType b",
		"WrongType c", "RaggedRecord "}, "rows")
}

func TestTimesAndIntervalsMatchLiveServer(t *testing.T) {
	for from, to := range map[string]string{
		"2024-02-29 12:34:56.789+00": "2024-02-29T12:34:56.789Z", "2024-02-29 00:30:00+05:30": "2024-02-28T19:00:00Z",
		"2024-12-31 23:00:00-02": "2025-01-01T01:00:00Z", "1800-01-01 00:00:00-00:01:15": "1800-01-01T00:01:15Z",
		"294276-12-31 23:59:59.999999+00": "294276-12-31T23:59:59.999999Z", "infinity": "infinity", "-infinity": "-infinity",
		"0044-03-15 00:00:00+00 BC": "0044-03-15 00:00:00+00 BC", "0001-01-01 00:00:00+01": "0001-12-31 23:00:00+00 BC",
		"0001-12-31 23:30:00-01 BC": "0001-01-01T00:30:00Z", "": "!", "2024-02-29": "!", "2024-02-29 12:34:56": "!",
		"2024-13-01 00:00:00+00": "!", "2024-01-01 00:00:00+1": "!", "2024-01-01 00:00:00.x+01": "!",
		"2024-01-01 00:00:60+00": "!", "2024-01-01 00:00:0+00": "!", "2024-01-01T00:00:00+00": "!",
		"x-01-01 00:00:00+00": "!", "2024-01-01 00:00:00+01:00:00:00": "!",
	} {
		out, err := appendZoned(nil, []byte(from))
		conformance.True(t, (err != nil || string(out) == to) && (err != nil) == (to == "!"), "%s: %s, %v", from, out, err)
	}
	for from, to := range map[string]string{
		"1 year 2 mons 3 days 04:05:06": "P1Y2M3DT4H5M6S", "-1 years -2 mons": "P-1Y-2M", "1 day -00:00:01.5": "P1DT-1.5S",
		"00:00:00": "PT0S", "100:00:00": "PT100H", "-00:01:00": "PT-1M", "1 mon": "P1M", "+00:00:00.000001": "PT0.000001S",
		"": "!", "1 fortnight": "!", "x days": "!", "1 day 1:2": "!", "1 day 00:61:00": "!", "00:00:0.1.2": "!",
	} {
		out, err := appendInterval(nil, []byte(from))
		conformance.True(t, (err != nil || string(out) == to) && (err != nil) == (to == "!"), "%s: %s, %v", from, out, err)
	}
}

func FuzzIndex(f *testing.F) {
	text := shop(f)
	f.Add(text)
	for _, part := range strings.SplitAfter(string(text), "\n\n\n") {
		f.Add([]byte(part))
	}
	f.Add([]byte("COPY a (x) FROM stdin;\n1\n\\.\n"))
	f.Add([]byte("CREATE TABLE a (x timestamp with time zone, y interval);\nCOPY a (x, y) FROM stdin;\n2024-02-29 " +
		"12:34:56.789+05:30\t1 year -2 days 03:04:05.5\n\\.\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Index(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, table := range d.Tables {
			if table.Refused != "" {
				continue
			}
			conformance.MustTrue(t, table.From <= table.To && table.To <= int64(len(text)), "%+v of %d", table, len(text))
			rows := text[table.From:table.To]
			n := int64(bytes.Count(rows, []byte("\n")))
			conformance.MustTrue(t, n == table.Rows && (n <= 0 || rows[len(rows)-1] == '\n') &&
				!bytes.Contains(append([]byte("\n"), rows...), []byte("\n\\.\n")), "%d rows of %q", table.Rows, rows)
			all := rowsOf(text, table)
			for cut := bytes.IndexByte(rows, '\n') + 1; cut > 0 && cut < len(rows); cut += len(rows) {
				a, b := *table, *table
				a.To = table.From + int64(cut)
				b.From = a.To
				parts := append(rowsOf(text, &a), rowsOf(text, &b)...)
				conformance.MustTrue(t, slices.Equal(parts, all), "%q, in parts %q", all, parts)
			}
		}
	})
}

// TestDumpsEqualTablesOfRealServer makes dumps with pg_dump and compares every value with the live table's.
func TestDumpsEqualTablesOfRealServer(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE TYPE mood AS ENUM ('sad', 'o''k', 'NULL'); CREATE DOMAIN price AS numeric(10,2) CHECK (VALUE > 0); CREATE DOMAIN deep AS price; CREATE DOMAIN small AS smallint DEFAULT 1;
		CREATE TYPE pair AS (a int, b text); CREATE SCHEMA "Odd Schema"; CREATE SEQUENCE seq;
		CREATE TABLE "Odd Schema"."t;(x" (id bigint PRIMARY KEY DEFAULT nextval('seq'), i2 smallint, i4 int, o oid, n numeric, n2 numeric(30,10), f4 real, f8 double precision, b boolean, y bytea, t text, vc varchar(20), c char(5), cc "char", nm name,
			d date, tm time, tmz timetz, ts timestamp, ts3 timestamp(3), tz timestamptz, iv interval, iv2 interval day to second, u uuid, j json, jb jsonb, m mood, p deep, s small, a int[], ta text[], r int4range, bi bit(5), vb bit varying,
			ip inet, cd cidr, mc macaddr, x xml, pt point, pr pair, "Select" text COLLATE "C" DEFAULT 'a;b(''', gen int GENERATED ALWAYS AS (i4 * 2) STORED, ident int GENERATED BY DEFAULT AS IDENTITY);
		ALTER DATABASE postgres SET TimeZone = 'America/New_York'; ALTER DATABASE postgres SET IntervalStyle = 'sql_standard'; ALTER DATABASE postgres SET bytea_output = 'escape'; ALTER DATABASE postgres SET DateStyle = 'German'`)
	const name = `"Odd Schema"."t;(x"`
	s.Exec(`INSERT INTO ` + name +
		` SELECT i, i % 30000, -i, i, i / 7.0, i / 1000.0, random(), random() * pow(10, i % 300), i % 2 = 0, decode(md5(i::text), 'hex'), E'a\tb\\\n\r\b\f\v' || chr(1 + i % 2000) || E'\\N\\.', 'v' || i, 'c' || i % 100, 'x', 'n',
			'2000-01-01'::date + i, '12:34:56.789', '12:34:56+02', '2000-01-01'::timestamp + i * interval '1.001 s', '2000-01-01', '1890-01-01'::timestamptz + i * interval '1 day 1 hour 1.5 s', i * interval '1 mon' - i % 7 * interval '1 day' + i % 5 * interval '-1.25 s',
			interval '1 day 2:03:04.5', md5(i::text)::uuid, '{"a": 1}', '{"b": [1, "x"]}', 'o''k', 1 + i, i % 100, ARRAY[i, NULL], ARRAY['a b', '"', NULL], int4range(i, i + 5), B'10101', B'1', '10.0.0.1/8', '10.0.0.0/8', '08:00:2b:01:02:03', '<a/>', '(1,2)',
			ROW(i, 'x y')::pair, 'sel'
			FROM generate_series(1, 3000) i;
		INSERT INTO ` + name + ` (id) VALUES (-1); INSERT INTO ` + name +
		` (id, t, y, n, f4, f8, ts, tz, d, iv, c, vc) VALUES (-2, '', '', 'NaN', 'NaN', 'Infinity', 'infinity', '-infinity', 'infinity', '0', '', ''),
			(-3, '\N', '\x00', '-Infinity', '-0', '-0', '4713-01-01 00:00:00 BC', '4713-01-02 00:00:00+00 BC', '4713-01-01 BC', '-1 year -2 mons +3 days -04:05:06', ' ', 'NULL'), (-4, E'\\.', E'\\\\x', 1e-100, 1e-40, 5e-324, '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999+00', '5874897-12-31', '178000000 years', NULL, E'\n')`)
	s.Exec(`CREATE TABLE plain (a text, b int, PRIMARY KEY (b, a)); INSERT INTO plain SELECT 'x' || i, i FROM generate_series(1, 10) i; CREATE TABLE one (v text); INSERT INTO one VALUES (''), (NULL), (E'\n'), ('\.')`)
	address, _, _ := strings.Cut(s.Address("x"), "&table")
	for _, flags := range [][]string{nil, {"--clean", "--if-exists", "--create"},
		{"--no-owner", "--no-privileges", "--quote-all-identifiers"}} {
		out := conformance.Try(exec.Command("pg_dump", append(flags, address)...).Output()).Must(t)
		conformance.Equal(t, Is(out), true, "%q: not known by its beginning", flags)
		d, err := Index(bytes.NewReader(out))
		conformance.MustTrue(t, err == nil && d.Truncated == nil, "%v %v %v", flags, err, d.Truncated)
		for table, full := range map[string]string{name: "Odd Schema.t;(x", "public.plain": "public.plain"} {
			of := conformance.Try(d.Choose(full)).Must(t)
			live := conformance.Try(postgres.Parse(s.Address(url.QueryEscape(table)))).Must(t)
			sqltest.Compare(t, live, out, of, NewParser(of.Columns))
		}
		one, err := d.Choose("one")
		conformance.True(t, err == nil && fmt.Sprintf("%q", rowsOf(out, one)) == `["" "null" "\n" "\\."]`,
			"%q, %v", rowsOf(out, one), err)
	}
}
