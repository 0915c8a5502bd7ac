package mysql

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
)

func TestQueryNeedsKey(t *testing.T) {
	for _, c := range []struct{ arg, query, want string }{
		{"mysql://u@h/d", "SELECT 1", "add key=COLUMN"}, {"mysql://u@h/d?key=", "SELECT 1", "add key=COLUMN"},
		{"mysql://u@h/d?key=a&table=t", "SELECT 1", "leave one out"}, {"mysql://u@h/d?key=a", " ; ", "--query is empty"},
		{"mysql://u@h/d?key=a", "drop table t", "want a SELECT, not drop"}, {"mysql://u@h/d?key=a,b", "SELECT 1;", ""},
		{"mysql://u:planted@h/d?key=a", "SELECT 1", "holds a password"},
	} {
		a, err := ParseQuery(c.arg, c.query)
		conformance.True(t, (c.want != "" || err == nil && a.query == "SELECT 1") &&
			(c.want == "" || err != nil && strings.Contains(err.Error(), c.want) && !strings.Contains(err.Error(), "planted")),
			"%s: %v, want %q", c.arg, err, c.want)
	}
	conformance.Refused(t, conformance.ErrorOf(Parse("mysql://u@h/d?table=t&key=a")), "--query", "error")
}

func TestNamesMatchWholeWords(t *testing.T) {
	for text, want := range map[string]bool{"SELECT * FROM Log": true, "SELECT log.id FROM a": true, "`log`": true,
		"SELECT catalog, login, log_ FROM a, slog WHERE x = log2": false, "": false} {
		conformance.Equal(t, names(text, "log"), want, "%q: %v", text, !want)
	}
}

func TestQueriesOnRealServer(t *testing.T) {
	s := mysqltest.Start(t)
	s.Exec("CREATE TABLE customers (id int PRIMARY KEY, name varchar(40) COLLATE utf8mb4_general_ci)",
		"CREATE TABLE orders (id int PRIMARY KEY, customer int, price decimal(10,2), at timestamp NULL, c varchar(9) "+
			"CHARACTER SET gbk, b bit(3))",
		"INSERT INTO customers SELECT seq, CONCAT(IF(seq % 2, 'Customer ', 'customer '), seq DIV 2)"+sequence+"100",
		"INSERT INTO orders SELECT seq, seq % 100 + 1, seq / 100, '2024-01-01' + INTERVAL seq SECOND, '中文', 5"+
			sequence+"30000",
		"CREATE TABLE old (id int PRIMARY KEY) ENGINE = MyISAM", "CREATE VIEW seen AS SELECT id FROM old")
	const joined = "SELECT o.id, c.name, o.price, UPPER(c.name) AS `Upper`, REPEAT('x', 200) AS pad FROM orders o JOIN " +
		"customers c ON c.id = o.customer # all of them"
	address := func(t *testing.T, key, query string) *Address { return parseQuery(t, s, key, query) }
	server := func(query string) sqltable.Server { return address(t, "id", query) }
	for key, query := range map[string]string{
		"id":      "SELECT id, price FROM orders WHERE id < 1000 -- some",
		"name,id": "SELECT o.id, c.name, o.price FROM orders o JOIN customers c ON c.id = o.customer WHERE o.id <= 1000",
		"day,n":   "SELECT CAST(at AS DATE) AS day, id AS n, price FROM orders WHERE id <= 1000",
		"at":      "SELECT at, id FROM orders WHERE id <= 1000",
		"k":       "SELECT CAST(seq * 7919 % 1001 AS CHAR) AS k, seq FROM seq_1_to_1000",
		"h":       "SELECT UNHEX(MD5(seq)) AS h FROM seq_1_to_1000",
	} {
		t.Run("keeps the contract of sources: "+key, func(t *testing.T) {
			sqltest.Contract(t, func() sqltable.Server { return address(t, key, query) }, 4<<10)
		})
	}
	t.Run("texts that a collation treats as equal are different keys", func(t *testing.T) {
		_, parts := sqltest.Open(t, address(t, "k", "SELECT 'a' AS k UNION ALL SELECT 'A' UNION ALL SELECT 'a ' UNION ALL "+
			"SELECT 'ä'"), nil)
		parts[0].SetSplitBytes(1)
		conformance.Equal(t, len(sqltest.All(t, parts, nil)), 4, "all")
	})
	t.Run("values have the types of the columns", func(t *testing.T) {
		got := sqltest.Values(t, address(t, "id", "SELECT id, c, b, at, price, NULL AS n, 18446744073709551615 AS u, "+
			"CAST(0.1 AS FLOAT) AS f FROM orders WHERE id = 1"), []string{"id", "c", "b", "at", "price", "n", "u", "f"})
		want := `3 "1"|7 "中文"|4 "5"|7 "2024-01-01T00:00:01Z"|7 "0.01"|null|4 "18446744073709551615"|5 "0.10000000149011612"|`
		conformance.True(t, len(got) == 1 && got[0] == want, "%q, want %q", got, want)
	})
	t.Run("the query is run once, in one snapshot", func(t *testing.T) {
		o, parts := sqltest.Open(t, address(t, "id", joined), nil)
		asked := func() string { return s.Rows("SHOW GLOBAL STATUS LIKE 'Com_select'")[0][1] }
		first := ""
		rows := sqltest.All(t, parts, func(n int) {
			if n == 1 {
				s.Exec("UPDATE orders SET price = -1", "DELETE FROM customers WHERE id > 50")
				first = asked()
			}
		})
		got, last := o.Snapshots(), asked()
		conformance.True(t, len(rows) == 30000 && len(got) == 1 && !strings.Contains(strings.Join(rows, ""), `"-1.00"`) &&
			last == first, "%d rows, snapshots %+v, %s and %s statements", len(rows), got, first, last)
		s.Exec("DELETE FROM customers", "INSERT INTO customers SELECT seq, CONCAT('customer ', seq)"+sequence+"100")
	})
	t.Run("reading continues after its session is killed", func(t *testing.T) {
		sqltest.Continued(t, server(joined), 2, func() {
			for _, id := range openTransactions(s) {
				s.Exec("KILL " + id[0])
			}
		})
	})
	t.Run("columns that are not a key end the reading", func(t *testing.T) {
		sqltest.Keyless(t, server, map[string]string{
			"SELECT CAST(seq DIV 2 AS INT) AS id FROM seq_1_to_1000":                      "have the key id",
			"SELECT CAST(IF(seq <> 700, seq, NULL) AS INT) AS id FROM seq_1_to_1000":      "has no id",
			"SELECT CAST(seq AS INT) AS id FROM seq_1_to_1000 UNION ALL SELECT 200":       "have the key id",
			"SELECT CONCAT(REPEAT('x', 1020), seq) AS id FROM seq_1_to_100000":            "the server sorts by the first 1024",
			"SELECT seq AS id, (SELECT id FROM orders WHERE id < seq) FROM seq_1_to_1000": "more than 1 row",
		})
	})
	t.Run("inexact tables are refused by name", func(t *testing.T) {
		sqltest.Refused(t, server, map[string]string{
			"SELECT 1.5 AS id": "cast it", "SELECT 1 AS id, 2 AS id": "Duplicate column", "SELECT 1 AS other": "no column id",
			"SELECT 1 AS id) q; SELECT (1": "columns of the query", "SELECT id FROM old O": "old, whose engine MyISAM",
			"SELECT id FROM seen": "old, whose engine MyISAM", "SELECT id FROM nothing": "doesn't exist",
		})
	})
	t.Run("a table altered between snapshot and query is read from another snapshot", func(t *testing.T) {
		a := address(t, "id", joined)
		c := conformance.Try(a.connect(t.Context())).Must(t)
		defer c.Close()
		must(t, c.exec(t.Context(), "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"))
		s.Exec("TRUNCATE customers")
		err := c.exec(t.Context(), "SELECT 1"+a.source()+" LIMIT 1")
		conformance.True(t, err != nil && a.Lost(err), "%v", err)
	})
}

// TestServerRowLimitDoesNotTruncateResults sets a small sql_select_limit for all sessions of the server.
func TestServerRowLimitDoesNotTruncateResults(t *testing.T) {
	s := mysqltest.Start(t)
	s.Exec("CREATE TABLE wide (id int PRIMARY KEY, a int, b int, c int, d int)", "INSERT INTO wide SELECT seq, 1, 2, 3, 4"+
		sequence+"1000", "SET GLOBAL sql_select_limit = 2")
	a := parseQuery(t, s, "id", "SELECT * FROM wide")
	_, table := open(t, s, "wide", nil)
	_, query := sqltest.Open(t, a, nil)
	for what, parts := range map[string][]source.Source{"the table": table, "the query": query} {
		columns := len(parts[0].About().Columns)
		rows := sqltest.All(t, parts, nil)
		conformance.True(t, len(rows) == 1000 && columns == 5, "%s: %d rows of %d columns", what, len(rows), columns)
	}
}

func TestTablesAreListed(t *testing.T) {
	s := mysqltest.Start(t)
	s.Exec("CREATE TABLE customers (id int PRIMARY KEY)", "INSERT INTO customers SELECT seq"+sequence+"1000",
		"CREATE TABLE `o.1 ``x` (b int, a varchar(9), PRIMARY KEY (a, b))", "CREATE TABLE nokey (id int)",
		"CREATE VIEW seen AS SELECT * FROM nokey",
		"CREATE TABLE versions (id int PRIMARY KEY) WITH SYSTEM VERSIONING", "CREATE SEQUENCE numbers",
		"CREATE TABLE gone (id int)", "CREATE VIEW broken AS SELECT * FROM gone", "DROP TABLE gone",
		"ANALYZE TABLE customers")
	for pattern, want := range map[string]string{
		"": "broken view [] is not a table, customers table 1000 [id], nokey table 0 [] no primary key, o.1 `x " +
			"table 0 [a b], seen view 0 [] is not a table, versions table 0 [id], ",
		"c*":      "customers table 1000 [id], ",
		"nothing": "",
	} {
		all := conformance.Try(List(t.Context(), s.Address(pattern))).Must(t)
		got := ""
		for _, one := range all {
			conformance.True(t, one.Rows <= 0 || one.Bytes > 0, "%+v", one)
			of, err := Parse(one.Address)
			conformance.True(t, err == nil && of.table == one.Table, "%+v: %v", one, err)
			why := ""
			for _, part := range []string{"no primary key", "is not a table"} {
				if strings.Contains(one.Refused, part) {
					why = " " + part
				}
			}
			rows := " 0"
			if one.Rows > 900 {
				rows = " 1000"
			}
			if one.Table == "broken" {
				rows = ""
			}
			got += fmt.Sprintf("%s %s%s %v%s, ", one.Table, one.Kind, rows, one.Key, why)
		}
		conformance.Equal(t, got, want, "%s", pattern)
	}
	conformance.Refused(t, conformance.ErrorOf(List(t.Context(), s.Address("["))), "", "pattern")
	_, err := List(t.Context(), strings.Replace(s.Address(""), "/shop", "/", 1))
	conformance.Refused(t, err, "names no database", "error")
	s.Kill()
	conformance.Refused(t, conformance.ErrorOf(List(t.Context(), s.Address(""))), "", "no server")
}

func TestTLSOnRealServer(t *testing.T) {
	s := mysqltest.Start(t)
	s.Exec("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)",
		"CREATE USER safe@'127.0.0.1' REQUIRE SSL", "CREATE USER known@'127.0.0.1' REQUIRE X509",
		"GRANT SELECT ON shop.* TO safe@'127.0.0.1'", "GRANT SELECT ON shop.* TO known@'127.0.0.1'")
	address := func(user, host, parameters string) (*Address, error) {
		return Parse(strings.NewReplacer("root@", user+"@", "127.0.0.1", host).Replace(s.Address("t")) + parameters)
	}
	s.Options("--skip-ssl")
	sqltest.Tried(t, address, []sqltest.TLS{
		{"root", "127.0.0.1", "", ""},
		{"root", "127.0.0.1", "&ssl-mode=PREFERRED", ""},
		{"root", "127.0.0.1", "&ssl-mode=DISABLED", ""},
		{"root", "127.0.0.1", "&ssl-mode=REQUIRED", "the server does not support TLS, which the address requires; turn TLS " +
			"on at the server or, where the network is trusted, give ssl-mode=DISABLED"},
		{"root", "127.0.0.1", "&ssl-mode=VERIFY_CA", "does not support TLS"},
	})
	ours, others := sqltest.NewAuthority(t), sqltest.NewAuthority(t)
	cert, key := ours.Server()
	s.Options("--ssl-ca="+s.Own(ours.File), "--ssl-cert="+s.Own(cert), "--ssl-key="+s.Own(key))
	cert, key = ours.Client("known")
	strange, strangeKey := others.Client("known")
	pair := func(cert, key string) string { return "&ssl-cert=" + cert + "&ssl-key=" + key }
	sqltest.Tried(t, address, []sqltest.TLS{
		{"safe", "127.0.0.1", "", ""},
		{"safe", "127.0.0.1", "&ssl-mode=DISABLED", "Access denied"},
		{"safe", "127.0.0.1", "&ssl-mode=REQUIRED", ""},
		{"safe", "127.0.0.1", "&ssl-mode=VERIFY_CA&ssl-ca=" + ours.File, ""},
		{"safe", "127.0.0.1", "&ssl-ca=" + ours.File, ""},
		{"safe", "127.0.0.1", "&ssl-ca=" + others.File,
			"unknown authority; give the authority's certificate with ssl-ca=FILE"},
		{"safe", "127.0.0.1", "&ssl-mode=VERIFY_CA", "unknown authority"}, // checked with the certificates of the machine
		{"safe", "127.0.0.1", "&ssl-mode=VERIFY_IDENTITY&ssl-ca=" + ours.File, ""},
		{"safe", "localhost", "&ssl-mode=VERIFY_IDENTITY&ssl-ca=" + ours.File,
			"match localhost); connect by one of them or, to trust any that the authority has signed, give ssl-mode=VERIFY_CA"},
		{"safe", "localhost", "&ssl-mode=VERIFY_CA&ssl-ca=" + ours.File, ""},
		{"safe", "127.0.0.1", "&ssl-mode=SOMETIMES", "want DISABLED"},
		{"safe", "127.0.0.1", "&ssl-ca=" + key, "no certificate"},
		{"known", "127.0.0.1", "&ssl-mode=REQUIRED", "Access denied"},
		{"known", "127.0.0.1", "&ssl-mode=VERIFY_CA&ssl-ca=" + ours.File + pair(cert, key), ""},
		{"known", "127.0.0.1", "&ssl-mode=REQUIRED" + pair(strange, strangeKey),
			"check that it trusts the certificate that ssl-cert and ssl-key give"},
		{"known", "127.0.0.1", pair(cert, strangeKey), "ssl-cert, ssl-key"},
	})
}

func TestReplicationOnRealServer(t *testing.T) {
	s := mysqltest.Start(t)
	s.Exec("CREATE TABLE big (id int PRIMARY KEY, pad text)", "INSERT INTO big SELECT seq, REPEAT('x', 200)"+
		sequence+"30000")
	sqltest.NoLag(t, addressOf(t, s.Address("big")), "is not a replica")
	replica := mysqltest.Start(t)
	replica.Follow(s)
	watch := conformance.Try(addressOf(t, replica.Address("big")).Watch(t.Context())).Must(t)
	defer watch.Close()
	until := func(what string, is func(lag time.Duration, known bool) bool) {
		t.Helper()
		sqltest.Until(t, what, func() bool {
			lag, known, err := watch.Lag(t.Context())
			must(t, err)
			return is(lag, known)
		})
	}
	until("it follows", func(lag time.Duration, known bool) bool { return known && lag == 0 })
	has := func(what, sql string) {
		t.Helper()
		sqltest.Until(t, what, func() bool { return len(replica.Rows(sql)) > 0 })
	}
	has("the replica follows", "SELECT 1 FROM information_schema.TABLES WHERE TABLE_NAME = 'big' AND TABLE_ROWS > 20000")
	s.Exec("CREATE USER plain@'127.0.0.1'", "GRANT SELECT ON shop.* TO plain@'127.0.0.1'")
	has("the replica has the user", "SELECT 1 FROM mysql.db WHERE User = 'plain'")
	sqltest.NoLag(t, addressOf(t, strings.Replace(replica.Address("big"), "root@", "plain@", 1)), "GRANT REPLICA MONITOR")
	t.Run("reading pauses while replication is stopped", func(t *testing.T) {
		sqltest.Paused(t, addressOf(t, replica.Address("big")), func() { replica.Exec("STOP SLAVE SQL_THREAD") },
			func() { replica.Exec("START SLAVE SQL_THREAD") })
	})
	t.Run("the lag is the replica's", func(t *testing.T) {
		replica.Exec("STOP SLAVE", "CHANGE MASTER TO MASTER_DELAY = 2", "START SLAVE")
		s.Exec("DELETE FROM big WHERE id = 1")
		until("it lags", func(lag time.Duration, known bool) bool { return known && lag >= time.Second })
		until("it has caught up", func(lag time.Duration, known bool) bool { return known && lag == 0 })
	})
}

func TestTablesShareOneSnapshot(t *testing.T) {
	s := mysqltest.Start(t)
	server := func(name string) sqltable.Server {
		return conformance.Try(Parse(s.Address(name))).Must(t)
	}
	s.Exec("CREATE TABLE a (id int PRIMARY KEY, v text)", "INSERT INTO a SELECT seq, REPEAT('x', 200)"+sequence+"40000",
		"CREATE TABLE b (id varchar(20) PRIMARY KEY, v text)", "INSERT INTO b SELECT CONCAT('k', seq), 'x'"+sequence+"300")
	t.Run("each table gives its own rows", func(t *testing.T) { sqltest.Alike(t, server("a"), server("b")) })
	t.Run("loads that end cost others no session", func(t *testing.T) { sqltest.Cancelled(t, server("a"), server("b")) })
	t.Run("unreadable tables are refused and the others read", func(t *testing.T) {
		s.Exec("CREATE VIEW seen AS SELECT 1", "CREATE TABLE keyless (v int)",
			"CREATE TABLE isam (id int PRIMARY KEY) ENGINE=MyISAM")
		_, open := sqltest.Joined(t, true, server("seen"), server("a"), server("none"), server("keyless"), server("isam"),
			server("later"))
		for n, says := range []string{"is not a table", "", "there is no table", "has no primary key", "has no snapshots",
			"could not be read when the snapshot"} {
			sqltest.Says(t, func() error { _, err := open(n, t.Context()); return err }, says)
			if n == 1 {
				s.Exec("CREATE TABLE later (id int PRIMARY KEY)")
			}
		}
	})
	t.Run("tables cannot be altered during the snapshot", func(t *testing.T) {
		_, open := sqltest.Joined(t, true, server("a"), server("b"))
		part := conformance.Try(open(0, t.Context())).Must(t)
		_, err := s.DB.Exec("SET STATEMENT lock_wait_timeout = 1 FOR TRUNCATE b")
		conformance.Refused(t, err, "Lock wait timeout", "a table was emptied")
		must(t, conformance.ErrorOf(part[0].Next()))
	})
	t.Run("a long statement delays the snapshot, but no writer by more than a second", func(t *testing.T) {
		a := server("a").(*Address)
		a.lockPause = 0
		long := make(chan error, 1)
		go func() {
			_, err := s.DB.Exec("UPDATE b SET v = 'y' WHERE id = 'k1' AND SLEEP(3) = 0")
			long <- err
		}()
		for len(s.Rows("SELECT 1 FROM information_schema.PROCESSLIST WHERE state = 'User sleep'")) == 0 {
		}
		_, open := sqltest.Joined(t, true, a, server("b"))
		must(t, conformance.ErrorOf(open(0, t.Context())))
		must(t, <-long)
	})
	t.Run("shards", func(t *testing.T) { sqltest.Sharded(t, server, func(sql string) { s.Exec(sql) }) })
}
