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

// watch is a session that queries the lag of replication.
type watch struct {
	*session
	ask string // statement that the server supports; "" until known
}

// Watch opens a session for querying how far the server, if it is a replica, lags.
func (a *Address) Watch(ctx context.Context) (sqltable.Watch, error) {
	s, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &watch{session: s}, nil
}

// asking lists statements for the state of replication: MariaDB's, MySQL's, and that of older versions.
var asking = []string{"SHOW ALL REPLICAS STATUS", "SHOW REPLICA STATUS", "SHOW SLAVE STATUS"}

// Lag returns how far the server itself lags. A MySQL server does not know how far its replicas lag.
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
		if value == nil { // replication has stopped or is disconnected
			known = false
			continue
		}
		seconds, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return 0, false, errors.Join(fmt.Errorf("cannot parse the server's replication lag %q", value), r.Close())
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
		if !errors.As(err, &e) || e.Number != 1064 { // anything but a syntax error
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
