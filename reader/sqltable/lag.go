package sqltable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/tsimport/ratelimit"
)

// Lagging is a Server that knows a replication lag: its own if it is a replica, otherwise that of its replicas.
type Lagging interface {
	Server
	// Watch opens a session for querying the lag.
	Watch(context.Context) (Watch, error)
}

type Watch interface {
	// Lag returns the replication lag. It is unknown while a replica is disconnected, and always after an Unwatched error.
	Lag(context.Context) (lag time.Duration, known bool, err error)
	Close()
}

// Unwatched says why the lag can never be known.
type Unwatched struct{ Says string }

func (e *Unwatched) Error() string { return e.Says }

// lagEvery is the time between queries for the lag.
const lagEvery = time.Second

// lagWatch pauses reading while replication lags.
type lagWatch struct {
	server Lagging
	max    time.Duration
	limit  time.Duration // longest pause

	onPause func(why string)

	mu    sync.Mutex
	watch Watch
	asked time.Time // when the lag was last found to be within max

	paused atomic.Int64 // total time of pauses, a Duration; atomic because mu is held while waiting for a server
}

// check returns an error if the lag cannot be queried.
func (l *lagWatch) check(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _, err := l.ask(ctx)
	if never := new(Unwatched); errors.As(err, &never) {
		return fmt.Errorf("max-lag: %w", err)
	}
	return err
}

// wait returns once the lag is at most max, or fails if that takes too long.
func (l *lagWatch) wait(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	begun := time.Now()
	held := false
	defer func() {
		if held {
			l.paused.Add(int64(time.Since(begun)))
		}
	}()
	if begun.Sub(l.asked) < lagEvery {
		return nil
	}
	for {
		lag, known, err := l.ask(ctx)
		if err == nil && known && lag <= l.max {
			l.asked = time.Now()
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		why := lagText(lag, known, err)
		if !held && l.onPause != nil {
			l.onPause(fmt.Sprintf("reading is paused: %s, and max-lag allows %v", why, l.max))
		}
		if held = true; time.Since(begun) > l.limit {
			return &laggedError{fmt.Sprintf("reading was paused for %v: %s, and max-lag allows %v; the snapshot is given "+
				"up, because a replica may be waiting for it; resume when replication has caught up", l.limit, why, l.max)}
		}
		if err := ratelimit.Wait(ctx, lagEvery); err != nil {
			return err
		}
	}
}

func lagText(lag time.Duration, known bool, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("the replication lag cannot be read (%v)", err)
	case !known:
		return "how far replication lags is not known: a replica is not connected, or was stopped"
	}
	return fmt.Sprintf("replication lags by %v", lag.Round(time.Millisecond))
}

// ask queries the lag. If there is no session, it opens one.
func (l *lagWatch) ask(ctx context.Context) (lag time.Duration, known bool, err error) {
	if l.watch == nil {
		if l.watch, err = l.server.Watch(ctx); err != nil {
			l.watch = nil
			return 0, false, err
		}
	}
	if lag, known, err = l.watch.Lag(ctx); err != nil {
		l.watch.Close()
		l.watch = nil
	}
	return lag, known, err
}

func (l *lagWatch) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch != nil {
		l.watch.Close()
		l.watch = nil
	}
}

// laggedError says that replication lag has paused reading for too long.
type laggedError struct{ says string }

func (e *laggedError) Error() string { return e.says }
