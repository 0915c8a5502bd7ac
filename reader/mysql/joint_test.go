package mysql

import (
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
)

func TestTablesShareOneSnapshot(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	s := mysqltest.Start(t)
	server := func(name string) sqltable.Server {
		a := conformance.Try(Parse(s.Address(name))).Must(t)
		return a
	}
	s.Exec("CREATE TABLE a (id int PRIMARY KEY, v text)", "INSERT INTO a SELECT seq, REPEAT('x', 200)"+sequence+"40000",
		"CREATE TABLE b (id varchar(20) PRIMARY KEY, v text)", "INSERT INTO b SELECT CONCAT('k', seq), 'x'"+sequence+"300")
	t.Run("rows are those of each table", func(t *testing.T) { sqltest.Alike(t, server("a"), server("b")) })
	t.Run("loads that end cost the others nothing", func(t *testing.T) { sqltest.Cancelled(t, server("a"), server("b")) })
	t.Run("tables that cannot be read are refused, and the others are read", func(t *testing.T) {
		s.Exec("CREATE VIEW seen AS SELECT 1", "CREATE TABLE keyless (v int)", "CREATE TABLE isam (id int PRIMARY KEY) ENGINE=MyISAM")
		_, open := sqltest.Joined(t, true, server("seen"), server("a"), server("none"), server("keyless"), server("isam"), server("later"))
		for n, says := range []string{"is not a table", "", "there is no table", "has no primary key", "has no snapshots", "could not be read when the snapshot"} {
			sqltest.Says(t, func() error { _, err := open(n, t.Context()); return err }, says)
			if n == 1 {
				s.Exec("CREATE TABLE later (id int PRIMARY KEY)")
			}
		}
	})
	t.Run("tables are not altered while they are of the moment", func(t *testing.T) {
		_, open := sqltest.Joined(t, true, server("a"), server("b"))
		part, err := open(0, t.Context())
		must(t, err)
		_, err = s.DB.Exec("SET STATEMENT lock_wait_timeout = 1 FOR TRUNCATE b")
		conformance.Refused(t, err, "Lock wait timeout", "a table was emptied")
		must(t, conformance.ErrorOf(part[0].Next()))
	})
	t.Run("a statement that runs for long holds the moment up, and no writer for more than a second", func(t *testing.T) {
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
