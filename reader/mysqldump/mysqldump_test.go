package mysqldump

import (
	"bytes"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqldump"
	"example.com/tsimport/reader/sqltable/sqltest"
)

// shop returns a dump that mysqldump of MariaDB 10.11 made.
func shop(t testing.TB) []byte {
	t.Helper()
	return conformance.Read(t, "testdata", "shop.sql")
}

// rowsOf returns a table's rows as text. A Cutter that is given size bytes at a time cuts them into splits.
func rowsOf(t testing.TB, text []byte, of *sqldump.Table, size int) (rows []string) {
	p, c := NewParser(of.Columns), new(Cutter)
	var pending []byte
	seen, begun := 0, false
	for rest := text[of.From:of.To]; len(rest) > 0; {
		n := min(size, len(rest))
		pending, rest = append(pending, rest[:n]...), rest[n:]
		end, err := c.Cut(pending[seen:])
		conformance.MustEqual(t, err, nil, "cut %q", pending[seen:])
		if end < 0 {
			seen = len(pending)
			continue
		}
		end += seen
		rows = append(rows, sqltest.Read(p, pending[:end], begun, sqltest.Text)...)
		pending, begun = bytes.Clone(pending[end:]), true
		seen = len(pending)
	}
	return rows
}

func TestDumpIsReadWithSchema(t *testing.T) {
	text := shop(t)
	conformance.Equal(t, Is(text), true, "the dump is not known by its beginning")
	d, err := Index(bytes.NewReader(text))
	conformance.MustTrue(t, err == nil && d.Truncated == nil, "%v %v", err, d.Truncated)
	orders := conformance.Try(d.Choose("orders")).Must(t)
	var columns []string
	for _, c := range orders.Columns {
		columns = append(columns, fmt.Sprintf("%s %s %v", c.Name, c.SQL, c.Type()))
	}
	want := []string{"id bigint(20) unsigned integer", "t tinyint(4) integer", "flag tinyint(1) integer",
		"z int(8) unsigned zerofill integer", "dc decimal(12,2) string", "f float double", "d double double",
		"b1 bit(1) boolean",
		"b bit(12) integer", "y year(4) integer", "bi binary(4) binary", "vb varbinary(20) binary", "bl blob binary",
		"c char(10) string", "v varchar(100) string", "tx text string", "e enum('a','b''c') string", "s set('x','y') string",
		"j longtext string", "da date string", "ti time string", "dt datetime(3) string", "ts timestamp(6) string",
		"g point binary", "u uuid string", "i6 inet6 string", "odd `name( int(11) integer", "gen int(11) integer"}
	conformance.True(t, slices.Equal(columns, want) && slices.Equal(orders.Key, []string{"id"}) && orders.Rows == 3,
		"columns %q, key %q, %d rows", columns, orders.Key, orders.Rows)
	rows := rowsOf(t, text, orders, 1<<20)
	if want := []string{
		"1|-5|1|42|10.50|0.10000000149011612|0.1|true|5|2024|\x00\xff\x00\x00|\x00\x01\n\r\x1a\"'%\\_||c|a'b\"c\\d\ne\rf\x00g\x1ah\ti%\\_é😀||b'c|x,y|{\"a\": 1}|2024-02-29|-12:34:56|2024-02-29T12:34:56.789|2024-02-29T12:34:56.789123Z|" +
			"\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0?\x00\x00\x00\x00\x00\x00\x00@|73ffd264-44b3-4869-90e8-e7d1dfc035d4|::1|7|-10",
		"3|0|0|0|-0.01|1.0000000150474662e+30|1.7976931348623157e+308|false|0|1901|abcd|NULL|x|NULL|NULL|),(1,'x|a||[]|2024-01-01|00:00:00|2024-01-01T00:00:00.000|2024-01-01T00:00:00.000000Z|null|null|null|null|0",
		"18446744073709551615" + strings.Repeat("|null", 27),
	}; !slices.Equal(rows, want) {
		t.Errorf("rows %q,\nwant %q", rows, want)
	}
	for size := 1; size < 2000; size += 7 {
		again := rowsOf(t, text, orders, size)
		conformance.MustTrue(t, slices.Equal(again, rows), "%d bytes at a time: %q", size, again)
	}
	c := d.Find("customers")
	conformance.True(t, slices.Equal(c.Key, []string{"b", "a"}) && c.Rows == 2, "customers: %+v", c)
	conformance.Equal(t, len(d.Tables), 3, "tables: the view is not one")
}

// TestMySQL8DumpIsRead reads a handwritten dump as MySQL 8.0's mysqldump would write it, which differs from MariaDB's.
func TestMySQL8DumpIsRead(t *testing.T) {
	text := conformance.Read(t, "testdata", "mysql8.sql")
	d, err := Index(bytes.NewReader(text))
	conformance.MustTrue(t, err == nil && d.Truncated == nil && Is(text), "%v %v", err, d)
	orders := conformance.Try(d.Choose("")).Must(t)
	rows := rowsOf(t, text, orders, 1<<20)
	if want := []string{
		"1|true|7|{\"a\": \"b\\n\"}|\x00\\'|\xe6\x10\x00\x00\x00|2024-02-29T12:34:56Z|it's; ),(",
		"2|false|null|null|null|\xe6\x10\x00\x00|null|null",
	}; !slices.Equal(rows, want) || !slices.Equal(orders.Key, []string{"id"}) ||
		orders.Note != "the dump has no values of generated columns: twice, low" {
		t.Errorf("%q, want %q; key %q, %s", rows, want, orders.Key, orders.Note)
	}
}

func TestTruncatedDumpIsAnError(t *testing.T) {
	text := shop(t)
	first, complete := bytes.Index(text, []byte("Distrib")),
		bytes.Index(text, []byte("-- Dump completed"))+len("-- Dump completed")
	sqltest.CutAnywhere(t, text, first, complete, Index,
		func(of *sqldump.Table) []string { return rowsOf(t, text, of, 100) })
}

func TestUnsupportedDumpsAreRefused(t *testing.T) {
	const create = "CREATE TABLE `a` (\n  `x` int(11)\n);\n"
	sqltest.RefusedDumps(t, Index, map[string]string{
		"INSERT INTO \"a\" VALUES (1);\n":                           "dump again without it",
		"INSERT INTO a SELECT 1;\n":                                 "want INSERT INTO a table (columns) VALUES and a row",
		"INSERT INTO a VALUES ROW(1);\n":                            "want INSERT INTO",
		"INSERT a VALUES (1);\n":                                    "an INSERT that mysqldump does not write",
		"INSERT INTO a (x y) VALUES (1);\n":                         "an INSERT that mysqldump does not write",
		"INSERT INTO a VALUES (1) ON DUPLICATE KEY UPDATE x = 1;\n": "want ',' or ';' after a row",
		"INSERT INTO a VALUES (1),x;\n":                             "want '(' of a row",
		"INSERT INTO a VALUES (1,now(),NULL);\n":                    "and no functions",
		"INSERT INTO a VALUES;\n":                                   "want INSERT INTO",
		"INSERT INTO " + strings.Repeat("a", maxHead+2):             "want INSERT INTO",
		"/*!40101 SET SQL_MODE='NO_BACKSLASH_ESCAPES' */;\n":        "NO_BACKSLASH_ESCAPES",
		"SET @x=1, sql_mode='A,NO_BACKSLASH_ESCAPES';\n":            "NO_BACKSLASH_ESCAPES",
		"/*!40101 SET NAMES latin1 */;\n":                           "--default-character-set=utf8mb4",
		"mysqldump: [Warning] Using a password on the command line interface can be insecure.\n-- MySQL dump 10.13\n": "2>&1",
		"SELECT 1; SELECT 2;\n": "follows a statement on the same line",
		"SELECT '" + strings.Repeat("x\n", sqldump.MaxStatement/2) + "'": "a statement without rows is longer than 8 MiB",
		strings.Repeat("x", sqldump.MaxStatement+(2<<20)):                "a line without rows is longer than 8 MiB",
	}, map[string]string{
		"SET NAMES binary;\n" + strings.Replace(create, "(11)", "(11),\n  y text CHARACTER SET ucs2", 1): "in ucs2",
		"SET NAMES 'binary';\n" + strings.Replace(create, ");", ") DEFAULT CHARSET=latin1;", 1):          "in latin1",
		create + create: "creates it twice",
		create + "INSERT INTO `a` VALUES (1);\nSELECT 1;\nINSERT INTO `a` VALUES (2);\n":  "several places",
		create + "INSERT INTO `a` (`x`) VALUES (1);\nINSERT INTO `a` (`y`) VALUES (2);\n": "different columns",
		"INSERT INTO `a` VALUES (1);\n": "does not state its columns",
	})
}

func TestRowsAreReadFromAllFormsOfStatements(t *testing.T) {
	for text, want := range map[string]string{
		"INSERT  IGNORE INTO `t` VALUES (1,'a'),(2,'b');\nREPLACE INTO `t` VALUES (3,'c');\n": "1|a 2|b 3|c",
		"INSERT INTO `t` (`v`, `id`) VALUES ('a',1);\n":                                       "a|1",
		"insert into t values (1, 'a') ,\n ( 2 ,NULL ) ;\n":                                   "1|a 2|null",
		"INSERT INTO `t` VALUES (1,'a;b)''(,\\'\\\\');\n":                                     "1|a;b)'(,'\\",
		"INSERT INTO `t` VALUES\n(1,'a'),\n(2,'b\nc');\n":                                     "1|a 2|b\nc",
	} {
		d, err := Index(strings.NewReader("CREATE TABLE `t` (\n  `id` int(11),\n  `v` varchar(9)\n);\n" + text))
		conformance.MustTrue(t, err == nil, "%v %v", text, err)
		whole := []byte("CREATE TABLE `t` (\n  `id` int(11),\n  `v` varchar(9)\n);\n" + text)
		for _, size := range []int{1, 5, 1000} {
			conformance.Equal(t, strings.Join(rowsOf(t, whole, d.Find("t"), size), " "), want, "%q by %d", text, size)
		}
	}
	d, err := Index(strings.NewReader("USE `a b`;\nCREATE TABLE `t` (`id` int);\nINSERT INTO `t` VALUES (1);\nUSE " +
		"`c`;\nCREATE TABLE `t` (`id` int);\nINSERT INTO `t` VALUES (1);\n"))
	conformance.True(t, err == nil && d.Find("a b.t") != nil && d.Find("c.t") != nil, "%v, %v", d, err)
	d = conformance.Try(Index(strings.NewReader("INSERT INTO `t` (`a`,`b`,`c`) VALUES (7,'x',_binary 'y\\0');\n"))).Must(t)
	p := NewParser(d.Find("t").Columns)
	p.Reset([]byte("(8,'x',0x7900)"), true)
	_, ok := p.Next()
	conformance.True(t, !ok, "a row without a comma was read")
	p.Reset([]byte(",(8,'x',0x7900)"), true)
	rec, _ := p.Next()
	f := rec.Fields
	conformance.True(t, f[0].Kind == record.Text && f[1].Kind == record.String && f[2].Kind == record.Binary &&
		string(f[2].Bytes) == "y\x00", "%+v", f)
}

func TestValuesHaveColumnTypes(t *testing.T) {
	x := new(index)
	column := func(sql string) sqldump.Column { return x.column(sqldump.Tokens([]byte("`c` "+sql), syntax)) }
	x.utc = true
	for _, tt := range []struct{ sql, value, want string }{
		{"int(11)", "-7", "-7"}, {"int", "1.5", "!"}, {"int", "'7'", "!"}, {"int", "9223372036854775808", "!"},
		{"int", "0x07", "!"}, {"int", "NULL", "null"}, {"int", "NULLX", "!"}, {"bigint(20) unsigned", "18446744073709551615",
			"18446744073709551615"}, {"bigint unsigned", "-1", "!"}, {"decimal(5,2)", "-1.50", "-1.50"},
		{"decimal(5,2)", "1e5", "1e5"}, {"double", "0.1", "0.1"}, {"double", "1e-400", "!"},
		{"double", "0.1000000000000000055", "!"}, {"double", "1e999", "!"}, {"float", "0.1", "0.10000000149011612"},
		{"double", "'1'", "!"},
		{"bit(1)", "b'1'", "true"}, {"bit(1)", "0x00", "false"}, {"bit(1)", "b'10'", "!"}, {"bit(12)", "b'100000001'", "257"},
		{"bit(12)", "_binary '\\0\\Z'", "26"}, {"bit(64)", "0xFFFFFFFFFFFFFFFF", "18446744073709551615"},
		{"bit(64)", "0x01FFFFFFFFFFFFFFFF", "!"}, {"bit(3)", "b'2'", "!"}, {"bit(3)", "5", "!"}, {"blob", "0x", ""},
		{"blob", "x'0aF0'", "\n\xf0"}, {"blob", "0x0", "!"}, {"blob", "x'0g'", "!"},
		{"blob", "_binary 'a\\'\\0\\n\\r\\t\\b\\Z\\\\\\%\\q'", "a'\x00\n\r\t\b\x1a\\\\%q"}, {"blob", "_binary ", "!"},
		{"blob", "_binary x", "!"}, {"blob", "7", "!"},
		{"blob", "x'00", "!"}, {"text", "'a''b'", "a'b"}, {"text", "'a", "!"}, {"text", "'a\\", "!"}, {"text", "0x41", "!"},
		{"text", "'a' 'b'", "!"}, {"text", "", "!"}, {"text", "CURRENT_USER()", "!"}, {"text", "\"a\"", "!"},
		{"date", "'0000-00-00'", "0000-00-00"}, {"datetime", "'2024-02-29 12:34:56'", "2024-02-29T12:34:56"},
		{"datetime", "'2024-00-29 00:00:00'", "2024-00-29 00:00:00"}, {"timestamp", "'2024-02-29 12:34:56.5'",
			"2024-02-29T12:34:56.5Z"},
		{"timestamp", "'0000-00-00 00:00:00'", "0000-00-00 00:00:00"}, {"timestamp", "7", "!"}, {"year(4)", "2024", "2024"},
		{"varchar(9)", "-.5", "-.5"}, {"varchar(9)", "-", "!"}, {"varchar(9)", "1.", "1."}, {"varchar(9)", "1e", "!"},
	} {
		p := NewParser([]sqldump.Column{column(tt.sql)})
		got := sqltest.Read(p, []byte(",("+tt.value+")"), true, func(rec *record.Record) string {
			if rec.Bad != nil {
				return "!"
			}
			return sqltest.Text(rec)
		})
		conformance.Equal(t, slices.Equal(got, []string{tt.want}), true, "%s %s: %q, want %q", tt.sql, tt.value, got, tt.want)
	}
	p := NewParser([]sqldump.Column{column("int"), column("int")})
	for text, want := range map[string]string{",(1)": "RaggedRecord ", ",(1,2,3)": "RaggedRecord ", ",(1,2)": "1|2",
		",(1,x)": "WrongType c", ",(1,2,x)": "WrongType "} {
		conformance.Same(t, sqltest.Read(p, []byte(text), true, sqltest.Text), []string{want}, "%s", text)
	}
}

func FuzzIndex(f *testing.F) {
	text := shop(f)
	f.Add(text)
	for _, part := range strings.SplitAfter(string(text), ";\n\n") {
		f.Add([]byte(part))
	}
	f.Add([]byte("CREATE TABLE `t` (`id` int, `b` blob, `f` float, `ts` timestamp);\nINSERT INTO `t` (`b`,`id`) VALUES " +
		"(_binary 'a\\'''),(x'00',1);\nREPLACE INTO `t` (`b`,`id`) VALUES (b'1',0x);\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Index(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, table := range d.Tables {
			if table.Refused != "" || table.Rows == 0 {
				continue
			}
			conformance.MustTrue(t, table.From <= table.To && table.To <= int64(len(text)), "%+v of %d", table, len(text))
			all := rowsOf(t, text, table, len(text))
			conformance.MustTrue(t, len(all) == int(table.Rows), "%d rows, and %d are read", table.Rows, len(all))
			for _, size := range []int{1, 3, 17} {
				conformance.Same(t, rowsOf(t, text, table, size), all, "%q by %d", text[table.From:table.To], size)
			}
		}
	})
}

// TestDumpsEqualTablesOfRealServer makes dumps with mysqldump and compares every value with the live table's. Floats
// have six digits, as mysqldump writes them.
func TestDumpsEqualTablesOfRealServer(t *testing.T) {
	s := mysqltest.Start(t)
	const rows = " FROM (SELECT CAST(seq AS SIGNED) seq FROM seq_1_to_3000) q"
	s.Exec("CREATE TABLE `odd ``t(;` (id bigint unsigned PRIMARY KEY, i1 tinyint, i2 smallint unsigned, i3 mediumint, "+
		"i4 int, z int(8) zerofill, dc decimal(40,5), f float, d double, b1 bit(1), b9 bit(9), b64 bit(64), y year, "+
		"bi binary(16), vb varbinary(200), tb tinyblob, bl longblob, c char(9), v varchar(99) DEFAULT 'a;b(\\'', t text, "+
		"l1 varchar(50) CHARACTER SET latin1, e enum('a','b\\'c','NULL'), s set('x','y'), j json, da date, ti time(3), "+
		"dt datetime, dt6 datetime(6), ts timestamp NULL, ts3 timestamp(3) NULL, g geometry, u uuid, i6 inet6, "+
		"`PRIMARY` int, `odd ``name(;` int, gen int GENERATED ALWAYS AS (i4 * 2) STORED, "+
		"virt varchar(20) GENERATED ALWAYS AS (CONCAT(c, '!')) VIRTUAL) COMMENT 'it\\'s; PRIMARY KEY (x)'",
		"INSERT INTO `odd ``t(;` "+
			"(id,i1,i2,i3,i4,z,dc,f,d,b1,b9,b64,y,bi,vb,tb,bl,c,v,t,l1,e,s,j,da,ti,dt,dt6,ts,ts3,g,u,i6,`PRIMARY`,`odd "+
			"``name(;`) SELECT seq, seq % 100 - 50, seq, -seq, seq * 7, seq, seq / 7, ROUND(seq / 8, 3), seq / 7e0 * POW(10, "+
			"seq % 300), seq % 2, seq % 512, seq * 12345678901, 1901 + seq % 200, UNHEX(MD5(seq)), CONCAT(UNHEX(MD5(seq)), "+
			"CHAR(seq % 256), '\\\\', \"'\", CHAR(0), CHAR(26)), CHAR(seq % 256), REPEAT(CHAR(seq % 256), seq % 50), "+
			"seq % 1000, CONCAT('v', CHAR(seq % 128), '\\\\\\'\"'), CONCAT(CHAR(seq USING utf32), 'a\\tb\\n\\r\\0\\Z%_;),('), "+
			"'é', 'b\\'c', 'x,y', '{\"a\": \"b\\\\n\"}', DATE_ADD('1000-01-01', INTERVAL seq * 100 DAY), "+
			"SEC_TO_TIME(seq * 500.5 - 700000), DATE_ADD('1970-01-02', INTERVAL seq HOUR), DATE_ADD('1970-01-02', "+
			"INTERVAL seq * 1000001 MICROSECOND), DATE_ADD('1970-01-02', INTERVAL seq HOUR), DATE_ADD('1970-01-02', "+
			"INTERVAL seq HOUR), POINT(seq, -seq), UUID(), '::1', seq, NULL"+rows+" WHERE seq NOT BETWEEN 0xD800 AND 0xDFFF",
		"INSERT INTO `odd ``t(;` (id) VALUES (18446744073709551615)",
		"INSERT INTO `odd ``t(;` (id, da, dt, ts, t, bl, v, d) VALUES (0, '0000-00-00', '0000-00-00', '0000-00-00', '', "+
			"'', 'NULL', -0.0), (9000, '2024-00-00', '2024-00-01', NULL, '\\\\N', '0x41', '\\\\', 5e-324)",
		"CREATE TABLE plain (a varchar(9), b int, PRIMARY KEY (b, a))", "INSERT INTO plain SELECT CONCAT('x', seq), seq"+rows,
		"CREATE TRIGGER tr BEFORE INSERT ON plain FOR EACH ROW SET NEW.a = CONCAT(NEW.a, ';;')", "CREATE VIEW vw AS SELECT 1",
		"CREATE PROCEDURE p() BEGIN SELECT 'INSERT INTO `plain` VALUES (9);'; END")
	address := conformance.Try(url.Parse(s.Address("x"))).Must(t)
	for _, flags := range [][]string{{"--routines", "shop"}, {"--hex-blob", "shop"},
		{"--complete-insert", "--skip-extended-insert", "shop"}, {"--skip-opt", "--quick", "shop"},
		{"--replace", "--no-autocommit", "--databases", "shop"},
		{"--insert-ignore", "--skip-comments", "--net-buffer-length=16384", "shop"}, {"--compact", "shop"},
		{"--single-transaction", "--skip-tz-utc", "shop", "plain"}, {"--all-databases"}} {
		c := exec.Command("mysqldump", append([]string{"--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port=" +
			address.Port(), "--user=root", "--default-character-set=utf8mb4"}, flags...)...)
		var says bytes.Buffer
		c.Stderr = &says
		out, err := c.Output()
		conformance.MustEqual(t, err, nil, "%q: %s", flags, says.String())
		d, err := Index(bytes.NewReader(out))
		conformance.MustTrue(t, err == nil && d.Truncated == nil, "%v %v %v", flags, err, d)
		for _, name := range []string{"odd `t(;", "plain"} {
			if name != "plain" && slices.Contains(flags, "plain") {
				continue
			}
			of := conformance.Try(d.Choose(name)).Must(t)
			live := conformance.Try(mysql.Parse(s.Address(url.QueryEscape(name)))).Must(t)
			for i, c := range of.Columns {
				if slices.Contains(flags, "--compact") && c.Form == asTime { // the dump does not say that the times are in UTC
					of.Columns[i].Form = map[bool]int{true: asUTC, false: asTime}[c.SQL[:4] == "time"]
				}
			}
			sqltest.Compare(t, live, out, of, NewParser(of.Columns))
		}
	}
}
