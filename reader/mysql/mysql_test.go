package mysql

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	mysql "github.com/go-sql-driver/mysql"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
)

var must = conformance.Must

// No test reads the option file of the user.
func init() { must(conformance.Sure{}, os.Setenv("HOME", "/nonexistent")) }

func TestAddressHoldsNoSecret(t *testing.T) {
	sqltest.Addresses(t, Parse, map[string]string{
		"mysql://u:planted@h/d?table=t":                  "holds a password",
		"mysql://u@h/d?table=t&password=planted":         "holds a password",
		"mysql://u:planted@h:bad port/d?table=t":         "cannot be read",
		"mysql://u@h/d":                                  "names no table",
		"mysql://u@h?table=t":                            "names no database",
		"mysql://u@h/d?table=t&ssl-mode=sometimes":       "SOMETIMES",
		"mysql://u@h/d?table=t&sslmode=disable":          "there is no parameter sslmode",
		"mysql://u@h/d?table=t&ssl-ca=/does/not/exist":   "/does/not/exist",
		"mysql://u@h/d?table=t&defaults-file=/not/there": "/not/there",
		"mariadb://u@h:3307/d?table=a.b":                 "",
		"mysql://h?table=shop.orders":                    "",
	})
}

func TestOptionsComeFromServersOptionFile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("MYSQL_PWD", "")
	write := func(name, text string) string {
		name = home + "/" + name
		must(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	write(".my.cnf", "[mysqld]\nuser = other\n# user = another\n[client]\nuser=me\npassword = \"a \\\"b "+
		"#c\"\nport=3307\nhost = db.example # here\nssl_mode = DISABLED\n")
	a := addressOf(t, "mysql:///shop?table=orders")
	c := a.config
	conformance.True(t, c.User == "me" && c.Passwd == `a \"b #c` && c.Addr == "db.example:3307" && c.TLS == nil &&
		c.DBName == "shop", "%+v", c)
	t.Setenv("MYSQL_PWD", "of the environment")
	a, err := Parse("mysql://you@h/shop?table=orders&defaults-file=" +
		write("else.cnf", "[client]\nsocket=/run/x.sock\npassword='x\\sy'\n"))
	must(t, err)
	c = a.config
	conformance.True(t, c.User == "you" && c.Passwd == "x y" && c.Addr == "h:3306" && c.TLS != nil, "%+v", c)
	t.Setenv("MYSQL_PWD", "")
	a, err = Parse("mysql:///shop?table=orders&defaults-file=" + home + "/else.cnf")
	conformance.True(t, err == nil && a.config.Net == "unix" && a.config.Addr == "/run/x.sock" && a.config.Passwd == "x y",
		"%+v, %v", a, err)
}

func TestTimesBecomeRFC3339IfPossible(t *testing.T) {
	var scratch []byte
	for from, to := range map[string]string{
		"2024-02-29 12:34:56.789": "2024-02-29T12:34:56.789Z", "2024-02-29 12:34:56": "2024-02-29T12:34:56Z",
		"0000-00-00 00:00:00": "0000-00-00 00:00:00",
		"2024-00-01 00:00:00": "2024-00-01 00:00:00", "2024-01-00 00:00:00": "2024-01-00 00:00:00", "": "",
	} {
		var d record.Datum
		err := readUTC(&d, []byte(from), &scratch)
		conformance.True(t, err == nil && string(d.Bytes) == to, "%s: %s, want %s: %v", from, d.Bytes, to, err)
	}
}

func TestLostSessionsAreReplacedAndWrongQueriesNotRepeated(t *testing.T) {
	server := func(number uint16) error {
		return fmt.Errorf("page: %w", &mysql.MySQLError{Number: number, Message: "says so"})
	}
	sqltest.Lost(t, new(Address), map[string]error{
		"a query that was killed":                     server(1317),
		"a session that was killed":                   server(1927),
		"a server that stops":                         server(1053),
		"too many sessions":                           server(1040),
		"a table that was altered since the snapshot": server(1412),
		"a connection that ended":                     sqltable.ErrCut,
	}, map[string]error{
		"a table that was dropped":  server(1146),
		"a column that was dropped": server(1054),
		"a user who may not":        server(1142),
		"a refusal":                 refusef("no"),
	})
}

func TestPageBoundsUseWholeKey(t *testing.T) {
	table := &sqltable.Table{Key: []int{0, 1}, Columns: []sqltable.Column{{Name: "a", Of: &column{base: "int"}},
		{Name: "b`", Of: &column{base: "varchar"}}}}
	var sql bytes.Buffer
	where(&sql, table, sqltable.Query{Lower: [][]byte{[]byte("-5"), []byte("x'")}, Past: true,
		Upper: [][]byte{[]byte("7"), {}}})
	want := " WHERE (`a` > -5 OR `a` = -5 AND `b``` > _utf8mb4 x'7827') AND (`a` < 7 OR `a` = 7 AND `b``` < _utf8mb4 x'')"
	conformance.True(t, sql.String() == want, "%s\nwant %s", &sql, want)
}

func open(t *testing.T, s *mysqltest.Server, table string, change func(*sqltable.Config)) (*sqltable.Origin,
	[]source.Source) {
	t.Helper()
	return sqltest.Open(t, addressOf(t, s.Address(table)), change)
}

func addressOf(t *testing.T, address string) *Address {
	t.Helper()
	return conformance.Try(Parse(address)).Must(t)
}

// parseQuery parses a query of a server, with a key.
func parseQuery(t *testing.T, s *mysqltest.Server, key, sql string) *Address {
	t.Helper()
	return conformance.Try(ParseQuery(strings.Replace(s.Address(""), "table=", "key="+key, 1), sql)).Must(t)
}

// openTransactions returns the sessions with an open transaction. InnoDB's information is stale if it was requested a
// tenth of a second before.
func openTransactions(s *mysqltest.Server) [][]string {
	s.Rows("SELECT SLEEP(0.15)")
	return s.Rows("SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX ORDER BY 1")
}

// sequence selects from MariaDB's own table of numbers.
const sequence = " FROM seq_1_to_"

func TestRealServer(t *testing.T) {
	s := mysqltest.Start(t)
	s.Exec("CREATE TABLE numbers (id bigint PRIMARY KEY, text text)",
		"INSERT INTO numbers SELECT CAST(seq AS INT) * 10 - 20000, CONCAT('row ', seq)"+sequence+"5000",
		"CREATE TABLE wide (id bigint unsigned PRIMARY KEY, text text)",
		"INSERT INTO wide SELECT 18446744073709551615 - seq, CONCAT('row ', seq)"+sequence+"3000",
		`CREATE TABLE texts (a varchar(20) COLLATE utf8mb4_unicode_ci, b char(3) CHARACTER SET latin1, n decimal(10,3), y binary(16), at timestamp(3), d date, v int, PRIMARY KEY (a, b, n, y, at, d))`,
		`INSERT INTO texts SELECT CONCAT(SUBSTR('aBcÄéz', 1 + seq MOD 6, 1), seq MOD 100), CONCAT('é', seq MOD 7), CAST(seq AS INT) / 100 - 15, UNHEX(MD5(seq)), '2024-01-01 00:00:00.5' + INTERVAL seq SECOND, '2024-01-01' + INTERVAL seq DAY, seq`+sequence+"3000",
		"CREATE TABLE parted (id int PRIMARY KEY, v text) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (500), "+
			"PARTITION b VALUES LESS THAN MAXVALUE)", "INSERT INTO parted SELECT seq, REPEAT('x', 100)"+sequence+"3000")
	server := func(table string) sqltable.Server { return addressOf(t, s.Address(url.QueryEscape(table))) }
	for _, table := range []string{"numbers", "wide", "texts", "parted"} {
		t.Run("keeps the contract of sources: "+table, func(t *testing.T) {
			sqltest.Contract(t, func() sqltable.Server { return server(table) }, 8<<10)
		})
	}

	t.Run("a row that would not fit in memory ends the reading", func(t *testing.T) {
		s.Exec("CREATE TABLE large (id int PRIMARY KEY, v longblob)",
			"INSERT INTO large SELECT seq, REPEAT('x', IF(seq = 3, 5000000, 100)) FROM seq_1_to_5")
		sqltest.Large(t, server("large"))
	})

	t.Run("values of every type are exact", func(t *testing.T) {
		s.Exec(`CREATE TABLE kinds (id smallint PRIMARY KEY, i8 bigint, u8 bigint unsigned, i3 mediumint, u1 tinyint(1), z int(8) zerofill, f float, d double, fd float(7,3), n decimal(40,5), b1 bit(1), b9 bit(9), t text, c char(5), v varchar(9),
			l varchar(9) CHARACTER SET latin1, g varchar(9) CHARACTER SET gbk, bi binary(4), bl blob, j json, e enum('sad','ok'), se set('a','b','c'), da date, dt datetime(6), ts timestamp(3) NULL, tm time(1), y year, u uuid, ip inet6, p point,
			gen int AS (id * 2) STORED, hid int INVISIBLE DEFAULT 7)`,
			`INSERT INTO kinds (id, i8, u8, i3, u1, z, f, d, fd, n, b1, b9, t, c, v, l, g, bi, bl, j, e, se, da, dt, ts, tm, y, u, ip, p) VALUES (1, -9223372036854775808, 18446744073709551615, -8388608, 3, 42, 0.1, 1/3e0, 1234.5678, -12345678901234567890.12345, 1, 257, 'tab\t"é😀', 'ab', '',
			'é€', '中文', x'0102', x'00ff', '{"a": 1.50,  "a":2}', 'ok', 'a,c', '2024-02-29', '2024-02-29 12:34:56.000001', '2024-03-10 02:30:00.5', '-838:59:58.9', 2155, '00112233-4455-6677-8899-aabbccddeeff', '::ffff:1.2.3.4', POINT(1, 2))`,
			"SET SESSION sql_mode = ''")
		conn := conformance.Try(s.DB.Conn(context.Background())).Must(t)
		defer conn.Close()
		for _, sql := range []string{"SET sql_mode = ''", "INSERT INTO kinds (id, da, dt, ts, e, d) VALUES (2, " +
			"'0000-00-00', '2024-00-00 00:00:00', '0000-00-00 00:00:00', '', 1.7976931348623157e308)"} {
			must(t, conformance.ErrorOf(conn.ExecContext(context.Background(), sql)))
		}
		sqltest.Exact(t, server("kinds"), []string{
			`3 1 0 ""|`, `3 -9223372036854775808 0 ""|`, `4 -1 0 ""|`, `3 -8388608 0 ""|`, `3 3 0 ""|`, `3 42 0 ""|`,
			`5 0 0.10000000149011612 ""|`, `5 0 0.3333333333333333 ""|`, `5 0 1234.5679931640625 ""|`,
			`"-12345678901234567890.12345"|`,
			`6 1 0 ""|`, `4 257 0 ""|`, `"tab\t\"é😀"|`, `"ab"|`, `7 0 0 ""|`, `"é€"|`, `"中文"|`, `8 0 0 "\x01\x02\x00\x00"|`,
			`8 0 0 "\x00\xff"|`, `"{\"a\": 1.50,  \"a\":2}"|`, `"ok"|`, `"a,c"|`, `"2024-02-29"|`,
			`"2024-02-29T12:34:56.000001"|`,
			`"2024-03-10T02:30:00.500Z"|`, `"-838:59:58.9"|`, `3 2155 0 ""|`, `"00112233-4455-6677-8899-aabbccddeeff"|`,
			`"::ffff:1.2.3.4"|`, `8 0 0 "\x00\x00\x00\x00\x01\x01`, `3 2 0 ""|`, `3 7 0 ""|`,
		}, []string{`5 0 1.7976931348623157e+308 ""|`, `"0000-00-00"|`, `"2024-00-00 00:00:00.000000"|`,
			`"0000-00-00 00:00:00.000"|`})
	})

	t.Run("what cannot be exact is refused by name", func(t *testing.T) {
		s.Exec("CREATE TABLE nokey (id int)", "CREATE VIEW v AS SELECT 1", "CREATE TABLE floats (f double PRIMARY KEY)",
			"CREATE TABLE prefix (t text, PRIMARY KEY (t(10)))", "CREATE TABLE enums (e enum('b','a') PRIMARY KEY)",
			"CREATE TABLE aria (id int PRIMARY KEY) ENGINE = Aria",
			"CREATE TABLE chinese (c varchar(9) CHARACTER SET gbk PRIMARY KEY)")
		sqltest.Refused(t, server, map[string]string{"nokey": "no primary key", "v": "is not a table",
			"floats": "column f of the primary key", "prefix": "the first 10 characters", "enums": "enum('b','a')",
			"aria": "ENGINE = InnoDB", "chinese": "character set gbk", "nothere": "there is no table"})
	})

	t.Run("what is refused as a table is loaded by the query that the refusal names", func(t *testing.T) {
		s.Exec("CREATE TABLE moods (m enum('sad','ok'), b bit(3), n decimal(4,2), id int, PRIMARY KEY (m, b, n, id))",
			"INSERT INTO moods VALUES ('sad', b'101', 1.5, 1), ('ok', b'101', 1.5, 1), ('sad', b'100', 1.5, 1), ('sad', "+
				"b'101', 1.25, 1)",
			"CREATE VIEW `it's` AS SELECT id FROM numbers", "INSERT INTO nokey VALUES (1), (2), (3), (4)",
			"INSERT INTO prefix VALUES ('a'), ('b')")
		query := func(key, sql string) sqltable.Server { return parseQuery(t, s, key, sql) }
		sqltest.Named(t, server, query, map[string]int{"moods": 4, "it's": 5000, "nokey": 4, "prefix": 2})
	})

	t.Run("unique indexes of parts of the key are known, those of the beginning of a column are not", func(t *testing.T) {
		s.Exec("CREATE TABLE indexed (a int, b varchar(90), c int, PRIMARY KEY (a, b, c), UNIQUE (b(10)), UNIQUE (c, a), " +
			"INDEX (a))")
		sqltest.Unique(t, server("indexed"), []string{"a", "c"})
	})

	remake := func() {
		s.Exec("DROP TABLE IF EXISTS big", "CREATE TABLE big (id int PRIMARY KEY, v int, pad text)",
			"INSERT INTO big SELECT seq, 0, REPEAT('x', 200)"+sequence+"40000", "ANALYZE TABLE big")
	}
	t.Run("all ranges are of one snapshot while rows change", func(t *testing.T) {
		remake()
		sqltest.Changed(t, server("big"), 1, 1, func() {
			s.Exec("UPDATE big SET v = 1", "DELETE FROM big WHERE id % 2 = 0", "INSERT INTO big SELECT seq + 40000, 2, ''"+
				sequence+"1000")
		})
		sqltest.Until(t, "no session holds a snapshot", func() bool { return len(openTransactions(s)) == 0 })
	})
	// kill ends the newest sessions with a transaction, or all of them.
	kill := func(all bool) {
		ids := openTransactions(s)
		if !all {
			ids = ids[:len(ids)-1]
		}
		conformance.True(t, len(ids) != 0, "no session to kill")
		for _, id := range ids {
			s.Exec("KILL " + id[0])
		}
	}
	t.Run("while a session is left the snapshot is", func(t *testing.T) {
		remake()
		sqltest.Changed(t, server("big"), 3, 1, func() {
			kill(false)
			s.Exec("UPDATE big SET v = 1")
		})
	})
	for what, lose := range map[string]func(){"all sessions were killed": func() { kill(true) },
		"a crash of the server": func() { s.Kill(); s.Go() }} {
		t.Run("the rest is of another snapshot after "+what, func(t *testing.T) {
			remake()
			sqltest.Changed(t, server("big"), 3, 2, lose)
		})
	}
	t.Run("a reading that needs one snapshot stops when it is lost", func(t *testing.T) {
		sqltest.Whole(t, server("big"), func() { kill(true) })
	})
	t.Run("a table that is replaced meanwhile fails the reading", func(t *testing.T) {
		remake()
		sqltest.Replaced(t, server("big"), func() {
			kill(true)
			s.Exec("DROP TABLE big", "CREATE TABLE big (id bigint PRIMARY KEY, v int, pad text)")
		}, "")
	})
	t.Run("a table that is being written to for long cannot be locked", func(t *testing.T) {
		remake()
		tx := conformance.Try(s.DB.Begin()).Must(t)
		must(t, conformance.ErrorOf(tx.Exec("UPDATE big SET v = 9 WHERE id = 1")))
		_, parts := open(t, s, "big", func(c *sqltable.Config) {
			c.RetryFor = time.Second
			c.Server.(*Address).lockPause = 0
		})
		_, err := parts[0].Next()
		conformance.True(t, err != nil && strings.Contains(err.Error(), "lock"), "%v", err)
		must(t, tx.Rollback())
	})
	t.Run("a user who may not read all columns reads none", func(t *testing.T) {
		s.Exec("CREATE USER some@'127.0.0.1'", "GRANT SELECT (id, text) ON shop.numbers TO some@'127.0.0.1'",
			"GRANT SELECT (id) ON shop.wide TO some@'127.0.0.1'")
		some := func(table string) sqltable.Server {
			return addressOf(t, strings.Replace(s.Address(table), "root@", "some@", 1))
		}
		sqltest.Refused(t, some, map[string]string{"wide": "all columns"})
		must(t, conformance.ErrorOf(sqltable.New(sqltable.Config{Server: some("numbers")}).Divide(t.Context())))
	})
	t.Run("sessions at several servers, and a server that took over, are refused", func(t *testing.T) {
		other := mysqltest.Start(t)
		other.Exec("CREATE TABLE big (id int PRIMARY KEY, v int, pad text)")
		remake()
		a := addressOf(t, s.Address("big"))
		b := addressOf(t, other.Address("big"))
		_, parts := sqltest.Open(t, a, func(c *sqltable.Config) { c.RetryFor = time.Second })
		n := 0
		dial := a.config.DialFunc
		a.config.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
			n++
			return dial(ctx, network, []string{a.config.Addr, b.config.Addr}[n%2])
		}
		conformance.Refused(t, conformance.ErrorOf(parts[0].Next()), "several servers", "error")
		at := a.config.Addr
		a.config.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, at) }
		sqltest.Replaced(t, a, func() { at = b.config.Addr; kill(true) }, "server_id ")
	})
	t.Run("a user who may only read has one session, and one snapshot", func(t *testing.T) {
		remake()
		s.Exec("CREATE USER reader@'127.0.0.1'", "GRANT SELECT ON shop.big TO reader@'127.0.0.1'")
		sqltest.Changed(t, addressOf(t, strings.Replace(s.Address("big"), "root@", "reader@", 1)), 2, 1,
			func() { s.Exec("UPDATE big SET v = 1") })
	})
}
