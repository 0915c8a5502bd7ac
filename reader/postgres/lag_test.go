package postgres

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/postgres/pgtest"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/sqltable/sqltest"
)

func TestReplicationOnRealServer(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec("CREATE TABLE big (id int PRIMARY KEY, pad text); INSERT INTO big SELECT i, repeat('x', 200) FROM generate_series(1, 30000) i; ANALYZE; CREATE USER plain; GRANT SELECT ON big TO plain")
	sqltest.NoLag(t, addressOf(t, s.Address("big")), "none streams from it")
	standby := s.Standby()
	says := func(what string, of *pgtest.Server, sql, want string) {
		t.Helper()
		sqltest.Until(t, what, func() bool { return of.Exec(sql)[0][0] == want })
	}
	says("the standby streams", s, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1")
	s.Exec("CREATE TABLE other (id int)")
	says("the standby replays", standby, "SELECT to_regclass('other') IS NOT NULL", "t")
	sqltest.NoLag(t, addressOf(t, strings.Replace(s.Address("big"), "postgres@", "plain@", 1)), "GRANT pg_monitor")
	for where, of := range map[string]*pgtest.Server{"at a standby": standby, "at a server with a standby": s} {
		t.Run("reading pauses while replication lags, "+where, func(t *testing.T) {
			// The lag of a standby that does not replay grows with each transaction.
			lag := func() {
				standby.Exec("SELECT pg_wal_replay_pause()")
				sqltest.Until(t, "it lags", func() bool {
					s.Exec("INSERT INTO other VALUES (1)")
					w := conformance.Try(addressOf(t, of.Address("big")).Watch(context.Background())).Must(t)
					defer w.Close()
					lag, known, err := w.Lag(context.Background())
					must(t, err)
					return known && lag > time.Second
				})
			}
			sqltest.Paused(t, addressOf(t, of.Address("big")), lag, func() { standby.Exec("SELECT pg_wal_replay_resume()") })
		})
	}
	t.Run("a standby that is lost holds reading up", func(t *testing.T) {
		_, parts := sqltest.Open(t, addressOf(t, s.Address("big")), func(c *sqltable.Config) { c.MaxLag, c.RetryFor = time.Second, 2*time.Second })
		_, err := parts[0].Next()
		must(t, err)
		standby.Stop("immediate")
		says("nothing streams", s, "SELECT count(*) FROM pg_stat_replication", "0")
		time.Sleep(1100 * time.Millisecond) // the lag is asked for once a second
		_, err = parts[0].Next()
		for _, p := range parts[1:] {
			if err == nil || errors.Is(err, io.EOF) {
				_, err = p.Next()
			}
		}
		conformance.MustTrue(t, err != nil, "it was read")
		conformance.True(t, strings.Contains(err.Error(), "not connected") || strings.Contains(err.Error(), "lags by"),
			"%v", err)
	})
}
