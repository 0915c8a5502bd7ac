package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
	mysql "github.com/go-sql-driver/mysql"
)

var must = conformance.Must

// The option file of the user who runs the tests must not be read.
func init() { must(conformance.Sure{}, os.Setenv("HOME", "/nonexistent")) }

func TestAddressesWithSecretsAreRefused(t *testing.T) {
	sqltest.Addresses(t, Parse, map[string]string{
		"mysql://u:planted@h/d?table=t":                  "holds a password",
		"mysql://u@h/d?table=t&password=planted":         "holds a password",
		"mysql://u:planted@h:bad port/d?table=t":         "cannot parse",
		"mysql://u@h/d":                                  "names no table",
		"mysql://u@h?table=t":                            "names no database",
		"mysql://u@h/d?table=t&ssl-mode=sometimes":       "SOMETIMES",
		"mysql://u@h/d?table=t&sslmode=disable":          "unknown parameter sslmode",
		"mysql://u@h/d?table=t&ssl-ca=/does/not/exist":   "/does/not/exist",
		"mysql://u@h/d?table=t&defaults-file=/not/there": "/not/there",
		"mariadb://u@h:3307/d?table=a.b":                 "",
		"mysql://h?table=shop.orders":                    "",
	})
}

func TestOptionsAreReadFromOptionFile(t *testing.T) {
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

func TestPageConditionsUseWholeKey(t *testing.T) {
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

// parseQuery returns the address of a query with a key on a server.
func parseQuery(t *testing.T, s *mysqltest.Server, key, sql string) *Address {
	t.Helper()
	return conformance.Try(ParseQuery(strings.Replace(s.Address(""), "table=", "key="+key, 1), sql)).Must(t)
}

// openTransactions returns the sessions with open transactions. It waits first, because InnoDB's information can be out
// of date for a tenth of a second after a query.
func openTransactions(s *mysqltest.Server) [][]string {
	s.Rows("SELECT SLEEP(0.15)")
	return s.Rows("SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX ORDER BY 1")
}

// sequence selects from a virtual table of numbers in MariaDB.
const sequence = " FROM seq_1_to_"

func TestTablesOnRealServer(t *testing.T) {
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

	t.Run("inexact tables are refused by name", func(t *testing.T) {
		s.Exec("CREATE TABLE nokey (id int)", "CREATE VIEW v AS SELECT 1", "CREATE TABLE floats (f double PRIMARY KEY)",
			"CREATE TABLE prefix (t text, PRIMARY KEY (t(10)))", "CREATE TABLE enums (e enum('b','a') PRIMARY KEY)",
			"CREATE TABLE aria (id int PRIMARY KEY) ENGINE = Aria",
			"CREATE TABLE chinese (c varchar(9) CHARACTER SET gbk PRIMARY KEY)")
		sqltest.Refused(t, server, map[string]string{"nokey": "no primary key", "v": "is not a table",
			"floats": "column f of the primary key", "prefix": "the first 10 characters", "enums": "enum('b','a')",
			"aria": "ENGINE = InnoDB", "chinese": "character set gbk", "nothere": "there is no table"})
	})

	t.Run("refused tables are loaded by the query in the error", func(t *testing.T) {
		s.Exec("CREATE TABLE moods (m enum('sad','ok'), b bit(3), n decimal(4,2), id int, PRIMARY KEY (m, b, n, id))",
			"INSERT INTO moods VALUES ('sad', b'101', 1.5, 1), ('ok', b'101', 1.5, 1), ('sad', b'100', 1.5, 1), ('sad', "+
				"b'101', 1.25, 1)",
			"CREATE VIEW `it's` AS SELECT id FROM numbers", "INSERT INTO nokey VALUES (1), (2), (3), (4)",
			"INSERT INTO prefix VALUES ('a'), ('b')")
		query := func(key, sql string) sqltable.Server { return parseQuery(t, s, key, sql) }
		sqltest.Named(t, server, query, map[string]int{"moods": 4, "it's": 5000, "nokey": 4, "prefix": 2})
	})

	t.Run("unique indexes of parts of the key count, but not indexes of column prefixes", func(t *testing.T) {
		s.Exec("CREATE TABLE indexed (a int, b varchar(90), c int, PRIMARY KEY (a, b, c), UNIQUE (b(10)), UNIQUE (c, a), " +
			"INDEX (a))")
		sqltest.Unique(t, server("indexed"), []string{"a", "c"})
	})

	remake := func() {
		s.Exec("DROP TABLE IF EXISTS big", "CREATE TABLE big (id int PRIMARY KEY, v int, pad text)",
			"INSERT INTO big SELECT seq, 0, REPEAT('x', 200)"+sequence+"40000", "ANALYZE TABLE big")
	}
	t.Run("all ranges are from one snapshot while rows change", func(t *testing.T) {
		remake()
		sqltest.Changed(t, server("big"), 1, 1, func() {
			s.Exec("UPDATE big SET v = 1", "DELETE FROM big WHERE id % 2 = 0", "INSERT INTO big SELECT seq + 40000, 2, ''"+
				sequence+"1000")
		})
		sqltest.Until(t, "no session holds a snapshot", func() bool { return len(openTransactions(s)) == 0 })
	})
	// kill ends the newest session that has a transaction, or all that have one.
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
	t.Run("the snapshot lasts as long as a session", func(t *testing.T) {
		remake()
		sqltest.Changed(t, server("big"), 3, 1, func() {
			kill(false)
			s.Exec("UPDATE big SET v = 1")
		})
	})
	for what, lose := range map[string]func(){"all sessions were killed": func() { kill(true) },
		"a crash of the server": func() { s.Kill(); s.Go() }} {
		t.Run("the rest is from another snapshot after "+what, func(t *testing.T) {
			remake()
			sqltest.Changed(t, server("big"), 3, 2, lose)
		})
	}
	t.Run("a reading that needs one snapshot stops when it is lost", func(t *testing.T) {
		sqltest.Whole(t, server("big"), func() { kill(true) })
	})
	t.Run("replacing the table ends the reading", func(t *testing.T) {
		remake()
		sqltest.Replaced(t, server("big"), func() {
			kill(true)
			s.Exec("DROP TABLE big", "CREATE TABLE big (id bigint PRIMARY KEY, v int, pad text)")
		}, "")
	})
	t.Run("a table in a long write transaction cannot be locked", func(t *testing.T) {
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
	t.Run("a user without access to all columns is refused", func(t *testing.T) {
		s.Exec("CREATE USER some@'127.0.0.1'", "GRANT SELECT (id, text) ON shop.numbers TO some@'127.0.0.1'",
			"GRANT SELECT (id) ON shop.wide TO some@'127.0.0.1'")
		some := func(table string) sqltable.Server {
			return addressOf(t, strings.Replace(s.Address(table), "root@", "some@", 1))
		}
		sqltest.Refused(t, some, map[string]string{"wide": "all columns"})
		must(t, conformance.ErrorOf(sqltable.New(sqltable.Config{Server: some("numbers")}).Divide(t.Context())))
	})
	t.Run("sessions on several servers, and a promoted server, are refused", func(t *testing.T) {
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
	t.Run("a user who may only read gets one session and one snapshot", func(t *testing.T) {
		remake()
		s.Exec("CREATE USER reader@'127.0.0.1'", "GRANT SELECT ON shop.big TO reader@'127.0.0.1'")
		sqltest.Changed(t, addressOf(t, strings.Replace(s.Address("big"), "root@", "reader@", 1)), 2, 1,
			func() { s.Exec("UPDATE big SET v = 1") })
	})
}

func TestPositionOfRealServerMissesNothing(t *testing.T) {
	t.Setenv("TZ", "America/New_York") // InnoDB reports times in the machine's zone
	s := mysqltest.Start(t)
	s.Exec("CREATE TABLE orders (id int PRIMARY KEY, v text, updated_at timestamp(6) NOT NULL DEFAULT "+
		"CURRENT_TIMESTAMP(6))", "INSERT INTO orders (id, v) SELECT -CAST(seq AS INT), 'old'"+sequence+"1000",
		"CREATE USER reader@'127.0.0.1'", "GRANT SELECT ON shop.orders TO reader@'127.0.0.1'",
		"CREATE USER seeing@'127.0.0.1'", "GRANT SELECT ON shop.orders TO seeing@'127.0.0.1'",
		"GRANT PROCESS, REPLICA MONITOR ON *.* TO seeing@'127.0.0.1'")
	as := func(user string) *Address {
		return addressOf(t, strings.Replace(s.Address("orders"), "root@", user+"@", 1))
	}
	connect := func(statements ...string) *sql.Conn {
		t.Helper()
		conn := conformance.Try(s.DB.Conn(t.Context())).Must(t)
		for _, one := range statements {
			must(t, conformance.ErrorOf(conn.ExecContext(t.Context(), one)))
		}
		return conn
	}
	end := func(conn *sql.Conn, how string) {
		t.Helper()
		must(t, conformance.ErrorOf(conn.ExecContext(t.Context(), how)))
		must(t, conn.Close())
	}
	since := func(p source.Position) time.Time {
		t.Helper()
		return conformance.Try(time.Parse(time.RFC3339, p.SafeSince)).Must(t)
	}
	unknown := func(what, says, want string) {
		t.Helper()
		conformance.Equal(t, strings.Contains(says, want), true, "%s: %q, want %q", what, says, want)
	}

	t.Run("a quiet server", func(t *testing.T) {
		master := s.Rows("SHOW MASTER STATUS")[0]
		p := sqltest.Position(t, as("seeing"))
		want := source.Resume{File: master[0], GTID: s.Rows("SELECT @@gtid_binlog_pos")[0][0]}
		must(t, conformance.ErrorOf(fmt.Sscan(master[1], &want.Position)))
		conformance.Equal(t, *p.ResumeFrom, want, "resume_from")
		d := time.Since(since(p))
		conformance.True(t, want.GTID != "" && d >= time.Second && d <= time.Minute, "%v", p)
		p = sqltest.Position(t, as("reader"))
		conformance.Equal(t, *p.ResumeFrom, want, "of a user without rights")
		unknown("open transactions", p.SafeSince, "unknown: needs the privilege REPLICA MONITOR")
		s.Exec("GRANT REPLICA MONITOR ON *.* TO reader@'127.0.0.1'")
		unknown("open transactions", sqltest.Position(t, as("reader")).SafeSince, "unknown: needs the privilege PROCESS")
	})
	t.Run("an open transaction, and a statement waiting to begin one", func(t *testing.T) {
		began := time.Now()
		w := connect("START TRANSACTION", "INSERT INTO orders (id) VALUES (-5000)")
		sqltest.Until(t, "it is older than the lead", func() bool { return time.Since(began) > 2500*time.Millisecond })
		at := since(sqltest.Position(t, as("seeing")))
		conformance.True(t, !at.After(began) && began.Sub(at) <= 3*time.Second, "%v, and it began at %v", at, began)
		end(w, "ROLLBACK")
		lock := connect("LOCK TABLES orders WRITE")
		waits := connect()
		began = time.Now()
		ended := make(chan error, 1)
		go func() {
			_, err := waits.ExecContext(context.Background(), "INSERT INTO orders (id) VALUES (-5001)")
			ended <- err
		}()
		sqltest.Until(t, "it is older than the lead", func() bool { return time.Since(began) > 2500*time.Millisecond })
		a := as("seeing")
		look := conformance.Try(a.connect(t.Context())).Must(t)
		defer look.Close()
		p := conformance.Try(a.Position(t.Context(), look, nil, 1)).Must(t)
		conformance.True(t, !since(p).After(began), "%v, and a statement of %v that waits", p, began)
		end(lock, "UNLOCK TABLES")
		must(t, <-ended)
		end(waits, "DELETE FROM orders WHERE id = -5001")
	})
	t.Run("a transaction without a session is unknown", func(t *testing.T) {
		w := connect("XA START 'x'", "INSERT INTO orders (id) VALUES (-5002)", "XA END 'x'", "XA PREPARE 'x'")
		_ = w.Raw(func(any) error { return driver.ErrBadConn }) // closes the connection
		_ = w.Close()
		sqltest.Until(t, "the session has ended", func() bool { return openTransactions(s)[0][0] == "0" })
		unknown("prepared", sqltest.Position(t, as("seeing")).SafeSince, "XA RECOVER")
		s.Exec("XA ROLLBACK 'x'")
	})
	t.Run("InnoDB's list is stale while others keep querying it", func(t *testing.T) {
		asking, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			for asking.Err() == nil {
				s.Rows("SELECT COUNT(*) FROM information_schema.INNODB_TRX")
			}
			close(ended)
		}()
		began := time.Now()
		w := connect("START TRANSACTION", "INSERT INTO orders (id) VALUES (-5004)")
		sqltest.Until(t, "it is older than the lead", func() bool { return time.Since(began) > 2500*time.Millisecond })
		p := sqltest.Position(t, as("seeing"))
		stop()
		<-ended
		conformance.True(t, strings.Contains(p.SafeSince, "others query INNODB_TRX") || !since(p).After(began),
			"%s, and a transaction that began at %v", p.SafeSince, began)
		end(w, "ROLLBACK")
	})
	t.Run("a logged transaction that is not yet visible is not missed", func(t *testing.T) {
		s.Exec("SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'", "SET GLOBAL rpl_semi_sync_master_timeout = 60000",
			"SET GLOBAL rpl_semi_sync_master_enabled = ON")
		before := sqltest.Position(t, as("root"))
		w := connect()
		ended := make(chan error, 1)
		go func() {
			_, err := w.ExecContext(context.Background(), "INSERT INTO orders (id) VALUES (-5003)")
			ended <- err
		}()
		place := func() string { return strings.Join(s.Rows("SHOW MASTER STATUS")[0][:2], " ") }
		sqltest.Until(t, "the log has it",
			func() bool { return place() != fmt.Sprint(before.ResumeFrom.File, " ", before.ResumeFrom.Position) })
		now := sqltest.Position(t, as("root"))
		conformance.Equal(t, *now.ResumeFrom, *before.ResumeFrom, "resume_from, while the log is at %s", place())
		conformance.Equal(t, s.Rows("SELECT COUNT(*) FROM orders WHERE id = -5003")[0][0], "0", "it is seen")
		s.Exec("SET GLOBAL rpl_semi_sync_master_enabled = OFF")
		must(t, <-ended)
		end(w, "DELETE FROM orders WHERE id = -5003")
	})
	t.Run("rows of 1,000 open transactions are found by the next delta", func(t *testing.T) {
		s.Options("--max-connections=1100")
		const rows = 1000
		changed := func(since string) sqltable.Server {
			return parseQuery(t, s, "id", "SELECT id, v FROM orders WHERE updated_at >= '"+since+"'")
		}
		for what, table := range map[string]sqltable.Server{"one session": addressOf(t, s.Address("orders")),
			"a query": parseQuery(t, s, "id", "SELECT id, v FROM orders")} {
			t.Run(what, func(t *testing.T) {
				sqltest.Followed(t, table, changed, rows, func() func() {
					var open []*sql.Conn
					for i := range rows {
						open = append(open, connect("START TRANSACTION", fmt.Sprintf("INSERT INTO orders (id, v) VALUES (%d, 'new')", i)))
					}
					return func() {
						for _, conn := range open {
							end(conn, "COMMIT")
						}
					}
				})
				s.Exec("DELETE FROM orders WHERE id >= 0")
			})
		}
	})
	t.Run("a replica", func(t *testing.T) {
		r := mysqltest.Start(t)
		r.Exec("CREATE TABLE orders (id int PRIMARY KEY)")
		r.Follow(s)
		p := sqltest.Position(t, addressOf(t, r.Address("orders")))
		unknown("log_slave_updates is off", p.ResumeFrom.Unknown, "log_slave_updates")
		unknown("open transactions", p.SafeSince, "a replica does not know")
		r.Exec("STOP SLAVE") // rows will arrive later, with their original times
		unknown("open transactions", sqltest.Position(t, addressOf(t, r.Address("orders"))).SafeSince,
			"a replica does not know")
		r.Options("--log-slave-updates=ON")
		p = sqltest.Position(t, addressOf(t, r.Address("orders")))
		conformance.True(t, p.ResumeFrom.File != "", "%v", p)
	})
	t.Run("a server without a binary log", func(t *testing.T) {
		s.Options("--skip-log-bin")
		unknown("no log", sqltest.Position(t, as("root")).ResumeFrom.Unknown, "writes no binary log")
	})
}

// mysqlServer answers as MySQL would, because tests cannot run MySQL. It recognises statements by their beginnings.
type mysqlServer struct {
	driver.Conn
	answers map[string][][]driver.Value
	refused map[string]uint16 // by statement: number of the error
	asked   []string
}

func (m *mysqlServer) answer(sql string) ([][]driver.Value, error) {
	m.asked = append(m.asked, sql)
	for begins, number := range m.refused {
		if strings.HasPrefix(sql, begins) {
			return nil, &mysql.MySQLError{Number: number, Message: "refused"}
		}
	}
	for begins, rows := range m.answers {
		if strings.HasPrefix(sql, begins) {
			return rows, nil
		}
	}
	return nil, nil
}

func (m *mysqlServer) ExecContext(_ context.Context, sql string, _ []driver.NamedValue) (driver.Result, error) {
	_, err := m.answer(sql)
	return driver.RowsAffected(0), err
}

func (m *mysqlServer) QueryContext(_ context.Context, sql string, _ []driver.NamedValue) (driver.Rows, error) {
	rows, err := m.answer(sql)
	if err != nil {
		return nil, err
	}
	return &mysqlRows{rows}, nil
}

type mysqlRows struct{ rows [][]driver.Value }

func (r *mysqlRows) Columns() []string { return make([]string, 5) }
func (r *mysqlRows) Close() error      { return nil }
func (r *mysqlRows) Next(to []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(to, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

// TestPositionInBinaryLog expects a log position only for a locked table: otherwise it may follow the visible rows.
func TestPositionInBinaryLog(t *testing.T) {
	log := [][]driver.Value{{"bin.000003", int64(157), "", "",
		"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:1"}}
	const gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,4e11fa47-71ca-11e1-9e33-c80aa9429562:1"
	noGTID := [][]driver.Value{{"bin.000003", int64(157), "", "", ""}}
	for name, c := range map[string]struct {
		log      [][]driver.Value
		refused  map[string]uint16
		sessions int
		query    string
		want     source.Resume
		since    string
	}{
		"it is locked": {log: log, sessions: 4, want: source.Resume{File: "bin.000003", Position: 157, GTID: gtid},
			since: "2026-01-02T03:04:05Z"},
		"before version 8.2": {log: log, sessions: 4, refused: map[string]uint16{"SHOW BINARY LOG STATUS": 1064},
			want: source.Resume{File: "bin.000003", Position: 157, GTID: gtid}, since: "2026"},
		"one session": {log: log, sessions: 1, want: source.Resume{GTID: gtid}, since: "2026"},
		"a query":     {log: log, sessions: 4, query: "SELECT 1", want: source.Resume{GTID: gtid}, since: "2026"},
		"it is not lockable": {log: log, sessions: 4, refused: map[string]uint16{"LOCK TABLES": 1142},
			want: source.Resume{GTID: gtid}, since: "2026"},
		"it is written to": {log: log, sessions: 4, refused: map[string]uint16{"LOCK TABLES": 1205},
			want: source.Resume{GTID: gtid}, since: "2026"},
		"without GTIDs": {log: noGTID, sessions: 1, want: source.Resume{
			Unknown: "needs gtid_mode=ON at the server or, for tables read by several sessions, the privilege LOCK TABLES"},
			since: "2026"},
		"locked, no GTIDs": {log: noGTID, sessions: 2, want: source.Resume{File: "bin.000003", Position: 157},
			since: "2026"},
		"no binary log": {sessions: 4, want: source.Resume{Unknown: "the server writes no binary log (log_bin)"},
			since: "2026"},
		"no right to see the log": {log: log, sessions: 4, refused: map[string]uint16{"SHOW BINARY LOG STATUS": 1064,
			"SHOW MASTER STATUS": 1227, "SHOW REPLICA STATUS": 1227},
			want:  source.Resume{Unknown: "needs the privilege REPLICATION CLIENT"},
			since: "unknown: needs the privilege REPLICA MONITOR (MariaDB) or REPLICATION CLIENT"},
		"no right to PROCESS": {log: log, sessions: 4, refused: map[string]uint16{"SELECT DATE_FORMAT": 1227},
			want: source.Resume{File: "bin.000003", Position: 157, GTID: gtid}, since: "unknown: needs the privilege PROCESS"},
	} {
		refused := map[string]uint16{"SHOW ALL REPLICAS STATUS": 1064}
		maps.Copy(refused, c.refused)
		m := &mysqlServer{refused: refused, answers: map[string][][]driver.Value{
			"SHOW BINARY LOG STATUS": c.log, "SHOW MASTER STATUS": c.log, "SELECT DATE_FORMAT(UTC": {{"2026-01-02T03:04:06Z"}},
			"SELECT DATE_FORMAT(MIN": {{"2026-01-02T03:04:05Z", int64(1), int64(0)}},
			"SHOW GLOBAL VARIABLES":  {{"log_replica_updates", "ON"}},
		}}
		a := &Address{query: c.query}
		p := conformance.Try(a.Position(t.Context(), &session{conn: m}, &sqltable.Table{Name: "t"}, c.sessions)).Must(t)
		conformance.True(t, *p.ResumeFrom == c.want && strings.HasPrefix(p.SafeSince, c.since), "%s: %s", name, p)
		asked := strings.Join(m.asked, "; ")
		locked := strings.Index(asked, "LOCK TABLES t READ")
		conformance.True(t, c.want.File == "" || locked >= 0 && locked <= strings.LastIndex(asked, " STATUS") &&
			strings.Contains(asked, "UNLOCK TABLES"), "%s: %s", name, asked)
	}
}
