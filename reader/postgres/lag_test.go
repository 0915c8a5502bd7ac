package postgres

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/reader/postgres/pgtest"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
)

func TestReplicationOfARealServer(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec("CREATE TABLE big (id int PRIMARY KEY, pad text); INSERT INTO big SELECT i, repeat('x', 200) FROM generate_series(1, 30000) i; ANALYZE; CREATE USER plain; GRANT SELECT ON big TO plain")
	refused := func(a *Address, want string) {
		t.Helper()
		_, err := sqltable.New(sqltable.Config{Server: a, MaxLag: time.Second}).Divide(context.Background())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused(addressOf(t, s.Address("big")), "none streams from it")
	standby := s.Standby()
	for end := time.Now().Add(time.Minute); s.Exec("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")[0][0] != "1"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the standby does not stream")
		}
	}
	s.Exec("CREATE TABLE other (id int)")
	for end := time.Now().Add(time.Minute); standby.Exec("SELECT to_regclass('other') IS NOT NULL")[0][0] != "t"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the standby replays nothing")
		}
	}
	refused(addressOf(t, strings.Replace(s.Address("big"), "postgres@", "plain@", 1)), "GRANT pg_monitor")
	for where, of := range map[string]*pgtest.Server{"at a standby": standby, "at a server with a standby": s} {
		t.Run("reading pauses while replication lags, "+where, func(t *testing.T) {
			paused := make(chan string, 100)
			_, parts := sqltest.Open(t, addressOf(t, of.Address("big")), func(c *sqltable.Config) {
				c.MaxLag, c.RetryFor = time.Second, time.Minute
				c.OnPause = func(why string) { paused <- why }
			})
			// A standby that does not replay lags further with each transaction.
			standby.Exec("SELECT pg_wal_replay_pause()")
			s.Exec("INSERT INTO other VALUES (1)")
			for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
				w, err := addressOf(t, of.Address("big")).Watch(context.Background())
				must(t, err)
				lag, known, err := w.Lag(context.Background())
				if w.Close(); err != nil || time.Now().After(end) {
					t.Fatalf("lag %v, %v, %v", lag, known, err)
				}
				if known && lag > time.Second {
					break
				}
				s.Exec("INSERT INTO other VALUES (1)")
			}
			resumed := make(chan struct{})
			go func() {
				defer close(resumed)
				<-paused
				standby.Exec("SELECT pg_wal_replay_resume()")
			}()
			if rows := sqltest.All(t, parts, nil); len(rows) != 30000 {
				t.Errorf("%d rows", len(rows))
			}
			select {
			case <-resumed:
			default:
				t.Error("it was read while replication lagged")
				standby.Exec("SELECT pg_wal_replay_resume()")
			}
		})
	}
	t.Run("a standby that is lost holds reading up", func(t *testing.T) {
		_, parts := sqltest.Open(t, addressOf(t, s.Address("big")), func(c *sqltable.Config) { c.MaxLag, c.RetryFor = time.Second, 2*time.Second })
		_, err := parts[0].Next()
		must(t, err)
		standby.Stop("immediate")
		for s.Exec("SELECT count(*) FROM pg_stat_replication")[0][0] != "0" {
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(1100 * time.Millisecond) // the lag is asked for once a second
		_, err = parts[0].Next()
		for _, p := range parts[1:] {
			if err == nil || errors.Is(err, io.EOF) {
				_, err = p.Next()
			}
		}
		if err == nil {
			t.Fatal("it was read")
		}
		if !strings.Contains(err.Error(), "not connected") && !strings.Contains(err.Error(), "lags by") {
			t.Error(err)
		}
	})
}
