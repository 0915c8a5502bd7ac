package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	mysql "github.com/go-sql-driver/mysql"

	"example.com/tsimport/reader/sqltable"
)

// watch is a session that queries the lag.
type watch struct {
	*session
	ask string // the statement that the server supports; empty until known
}

// Watch opens a session to query how far the server lags as a replica.
func (a *Address) Watch(ctx context.Context) (sqltable.Watch, error) {
	s, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &watch{session: s}, nil
}

// asking lists statements for the state of replication: MariaDB's for several sources, MySQL's, and older versions'.
var asking = []string{"SHOW ALL REPLICAS STATUS", "SHOW REPLICA STATUS", "SHOW SLAVE STATUS"}

// Lag returns the server's own lag. MySQL servers do not know how far their replicas lag.
func (w *watch) Lag(ctx context.Context) (lag time.Duration, known bool, err error) {
	if w.ask == "" {
		if w.ask, err = w.findAsk(ctx); err != nil {
			return 0, false, err
		}
	}
	r, err := w.rows(ctx, w.ask)
	if err != nil {
		return 0, false, mayNotWatch(err)
	}
	at := slices.IndexFunc(r.rows.Columns(), func(name string) bool {
		return name == "Seconds_Behind_Master" || name == "Seconds_Behind_Source"
	})
	known = true
	n := 0
	for ; r.Next(); n++ {
		if at < 0 {
			continue
		}
		value := r.Values()[at]
		if value == nil { // replication is stopped or disconnected
			known = false
			continue
		}
		seconds, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return 0, false, errors.Join(fmt.Errorf("cannot parse the server's lag %q", value), r.Close())
		}
		lag = max(lag, time.Duration(seconds)*time.Second)
	}
	if err := r.Close(); err != nil {
		return 0, false, err
	}
	if n == 0 || at < 0 {
		return 0, false, &sqltable.Unwatched{Says: "the server is not a replica, and does not know how far its replicas " +
			"lag; give the address of a replica, or leave the flag out"}
	}
	return lag, known, nil
}

func (w *watch) findAsk(ctx context.Context) (string, error) {
	var err error
	for _, ask := range asking {
		if _, err = w.query(ctx, ask); err == nil {
			return ask, nil
		}
		var e *mysql.MySQLError
		if !errors.As(err, &e) || e.Number != 1064 { // the error is not a syntax error
			return "", mayNotWatch(err)
		}
	}
	return "", err
}

func mayNotWatch(err error) error {
	if mayNot(err) {
		return &sqltable.Unwatched{Says: "the user may not see how far replication lags; GRANT REPLICA MONITOR (MariaDB) " +
			"or REPLICATION CLIENT (MySQL) to it"}
	}
	return err
}
