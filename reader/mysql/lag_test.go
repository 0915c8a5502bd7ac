package mysql

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/sqltable/sqltest"
)

func TestReplicationOfARealServer(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	s := mysqltest.Start(t)
	s.Exec("CREATE TABLE big (id int PRIMARY KEY, pad text)", "INSERT INTO big SELECT seq, REPEAT('x', 200)"+sequence+"30000")
	sqltest.NoLag(t, addressOf(t, s.Address("big")), "is not a replica")
	replica := mysqltest.Start(t)
	replica.Follow(s)
	watch, err := addressOf(t, replica.Address("big")).Watch(context.Background())
	must(t, err)
	defer watch.Close()
	until := func(what string, is func(lag time.Duration, known bool) bool) {
		t.Helper()
		sqltest.Until(t, what, func() bool {
			lag, known, err := watch.Lag(context.Background())
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
		sqltest.Paused(t, addressOf(t, replica.Address("big")), func() { replica.Exec("STOP SLAVE SQL_THREAD") }, func() { replica.Exec("START SLAVE SQL_THREAD") })
	})
	t.Run("a lag is that of the replica", func(t *testing.T) {
		replica.Exec("STOP SLAVE", "CHANGE MASTER TO MASTER_DELAY = 2", "START SLAVE")
		s.Exec("DELETE FROM big WHERE id = 1")
		until("it lags", func(lag time.Duration, known bool) bool { return known && lag >= time.Second })
		until("it has caught up", func(lag time.Duration, known bool) bool { return known && lag == 0 })
	})
}
