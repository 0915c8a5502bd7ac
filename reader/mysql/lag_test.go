package mysql

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
)

func TestReplicationOfARealServer(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	s := mysqltest.Start(t)
	s.Exec("CREATE TABLE big (id int PRIMARY KEY, pad text)", "INSERT INTO big SELECT seq, REPEAT('x', 200)"+sequence+"30000")
	refused := func(a *Address, want string) {
		t.Helper()
		_, err := sqltable.New(sqltable.Config{Server: a, MaxLag: time.Second}).Divide(context.Background())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused(addressOf(t, s.Address("big")), "is not a replica")
	replica := mysqltest.Start(t)
	replica.Follow(s)
	watch, err := addressOf(t, replica.Address("big")).Watch(context.Background())
	must(t, err)
	defer watch.Close()
	until := func(what string, is func(lag time.Duration, known bool) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			lag, known, err := watch.Lag(context.Background())
			if err != nil || time.Now().After(end) {
				t.Fatalf("%s: lag %v, %v, %v", what, lag, known, err)
			}
			if is(lag, known) {
				return
			}
		}
	}
	until("it follows", func(lag time.Duration, known bool) bool { return known && lag == 0 })
	for end := time.Now().Add(time.Minute); len(replica.Rows("SELECT 1 FROM information_schema.TABLES WHERE TABLE_NAME = 'big' AND TABLE_ROWS > 20000")) == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the replica does not follow")
		}
	}
	s.Exec("CREATE USER plain@'127.0.0.1'", "GRANT SELECT ON shop.* TO plain@'127.0.0.1'")
	for end := time.Now().Add(time.Minute); len(replica.Rows("SELECT 1 FROM mysql.db WHERE User = 'plain'")) == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the replica has no user")
		}
	}
	refused(addressOf(t, strings.Replace(replica.Address("big"), "root@", "plain@", 1)), "GRANT REPLICA MONITOR")
	t.Run("reading pauses while replication is stopped", func(t *testing.T) {
		paused := make(chan string, 100)
		_, parts := sqltest.Open(t, addressOf(t, replica.Address("big")), func(c *sqltable.Config) {
			c.MaxLag, c.RetryFor = time.Second, time.Minute
			c.OnPause = func(why string) { paused <- why }
		})
		replica.Exec("STOP SLAVE SQL_THREAD")
		resumed := make(chan struct{})
		go func() {
			defer close(resumed)
			<-paused
			replica.Exec("START SLAVE SQL_THREAD")
		}()
		if rows := sqltest.All(t, parts, nil); len(rows) != 30000 {
			t.Errorf("%d rows", len(rows))
		}
		select {
		case <-resumed:
		default:
			t.Error("it was read while replication was stopped")
		}
	})
	t.Run("a lag is that of the replica", func(t *testing.T) {
		replica.Exec("STOP SLAVE", "CHANGE MASTER TO MASTER_DELAY = 2", "START SLAVE")
		s.Exec("DELETE FROM big WHERE id = 1")
		until("it lags", func(lag time.Duration, known bool) bool { return known && lag >= time.Second })
		until("it has caught up", func(lag time.Duration, known bool) bool { return known && lag == 0 })
	})
}
