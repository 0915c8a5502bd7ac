package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/tsimport/reader/sqltable"
)

type watch struct {
	conn *pgconn.PgConn
	seen bool // whether the server has had standbys
}

// Watch opens a session for querying how far the server, or its standbys, lag.
func (a *Address) Watch(ctx context.Context) (sqltable.Watch, error) {
	conn, err := connect(ctx, a)
	if err != nil {
		return nil, err
	}
	return &watch{conn: conn}, nil
}

func (w *watch) Close() { hangUp(w.conn) }

// ofStandby returns a standby's lag in seconds. It is 0 if everything is replayed, even if that was long ago.
const ofStandby = `SELECT CASE WHEN EXISTS (SELECT FROM pg_stat_wal_receiver) AND pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN '0'
	ELSE coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::text, '') END`

// ofStandbys returns the number of standbys, the number of those hidden from the user, and the largest lag in seconds.
const ofStandbys = `SELECT count(*)::text, count(*) FILTER (WHERE state IS NULL)::text, coalesce(extract(epoch FROM max(replay_lag)), 0)::text FROM pg_stat_replication
	WHERE state IS NULL OR state IN ('streaming', 'catchup')`

// Lag returns the lag of the server if it is a standby, otherwise the largest lag of its standbys.
func (w *watch) Lag(ctx context.Context) (lag time.Duration, known bool, err error) {
	err = within(ctx, w.conn, func() (err error) { lag, known, err = w.lag(ctx); return err })
	return lag, known, err
}

func (w *watch) lag(ctx context.Context) (lag time.Duration, known bool, err error) {
	rows, err := query(ctx, w.conn, "SELECT pg_is_in_recovery()::text")
	if err != nil {
		return 0, false, err
	}
	if rows[0][0] == "true" {
		if rows, err = query(ctx, w.conn, ofStandby); err != nil {
			return 0, false, err
		}
		return seconds(rows[0][0])
	}
	if rows, err = query(ctx, w.conn, ofStandbys); err != nil {
		return 0, false, err
	}
	all, hidden := rows[0][0], rows[0][1]
	switch {
	case hidden != "0":
		return 0, false, &sqltable.Unwatched{Says: "the user may not see the standbys' lag; GRANT pg_monitor to it"}
	case all == "0" && !w.seen:
		return 0, false,
			&sqltable.Unwatched{Says: "the server is not a standby, and none streams from it; give the address of a standby, " +
				"or leave max-lag out"}
	case all == "0":
		return 0, false, nil // a standby has been disconnected
	}
	w.seen = true
	return seconds(rows[0][2])
}

// seconds parses a lag. "" means that it is unknown.
func seconds(text string) (lag time.Duration, known bool, err error) {
	if text == "" {
		return 0, false, nil
	}
	s, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false, fmt.Errorf("cannot parse the server's replication lag %q", text)
	}
	return time.Duration(max(s, 0) * float64(time.Second)), true, nil
}
