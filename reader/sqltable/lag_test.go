package sqltable

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// scripted is a server whose lags are as they are written down; after the last one it lags no more.
type scripted struct {
	Server
	lags    []any // a time.Duration, an error, or nil for a lag that is not known
	opened  int
	watched bool
}

func (s *scripted) Watch(context.Context) (Watch, error) {
	s.opened++
	s.watched = true
	return s, nil
}

func (s *scripted) Close() { s.watched = false }

func (s *scripted) Lag(context.Context) (time.Duration, bool, error) {
	if len(s.lags) == 0 {
		return 0, true, nil
	}
	one := s.lags[0]
	s.lags = s.lags[1:]
	switch one := one.(type) {
	case error:
		return 0, false, one
	case time.Duration:
		return one, true, nil
	}
	return 0, false, nil
}

func TestReadingPausesWhileReplicationLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lags: []any{6 * time.Second, nil, errors.New("gone"), 5 * time.Second}}
		l := &lagWatch{server: s, max: 5 * time.Second, limit: time.Minute}
		var notes []string
		l.onPause = func(why string) { notes = append(notes, why) }
		begun := time.Now()
		if err := l.wait(t.Context()); err != nil || time.Since(begun) != 3*lagEvery || l.paused.total() != 3*lagEvery || s.opened != 2 {
			t.Errorf("%v after %v, paused for %v, %d sessions", err, time.Since(begun), l.paused.total(), s.opened)
		}
		s.lags = []any{time.Hour} // it is not asked for again so soon
		if err := l.wait(t.Context()); err != nil || l.paused.total() != 3*lagEvery {
			t.Errorf("%v, %v", err, l.paused.total())
		}
		time.Sleep(lagEvery)
		if err := l.wait(t.Context()); err != nil || l.paused.total() != 4*lagEvery {
			t.Errorf("%v, %v", err, l.paused.total())
		}
		if len(notes) != 2 || notes[0] != "reading is held up, for replication lags by 6s, and max-lag allows 5s" {
			t.Errorf("%q", notes)
		}
		if l.close(); s.watched {
			t.Error("its session is open")
		}
	})
}

func TestAReadingThatIsHeldUpForTooLongEnds(t *testing.T) {
	for want, lag := range map[string]any{"lags by 1h0m0s": time.Hour, "not connected": nil, "asked (gone)": errors.New("gone")} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{}
			for range 1000 {
				s.lags = append(s.lags, lag)
			}
			l := &lagWatch{server: s, max: time.Second, limit: time.Minute}
			err := l.wait(t.Context())
			if err == nil || !final(err) || !strings.Contains(err.Error(), want) || l.paused.total() < time.Minute || l.paused.total() > time.Minute+2*lagEvery {
				t.Errorf("%v, paused for %v", err, l.paused.total())
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := l.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
}

func TestALagThatCanNeverBeKnownIsRefused(t *testing.T) {
	l := &lagWatch{server: &scripted{lags: []any{&Unwatched{"nobody says"}, nil}}}
	if err := l.check(t.Context()); err == nil || !strings.Contains(err.Error(), "max-lag: nobody says") {
		t.Error(err)
	}
	if err := l.check(t.Context()); err != nil { // it may come
		t.Error(err)
	}
}
