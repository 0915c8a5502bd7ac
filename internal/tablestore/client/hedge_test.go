package client

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// silentAtFirst answers no request until it serves, and those after that by an error page.
type silentAtFirst struct {
	serves   time.Time
	requests atomic.Int64
}

func (s *silentAtFirst) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests.Add(1)
	if time.Now().Before(s.serves) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Request: r}, nil
}

func TestATableThatNobodyDescribesIsAskedForAgain(t *testing.T) {
	for _, c := range []struct {
		name     string
		lasts    time.Duration
		stop     time.Duration // 0 is never
		took     time.Duration
		requests int64
	}{
		{"a service that answers", 0, 0, 0, 1},
		{"silence of some seconds", 5 * time.Second, 0, 6 * time.Second, 4},
		{"silence that is longer than the time-out", time.Hour, 0, 29 * time.Second, 15},
		{"a load that is stopped", time.Hour, 3 * time.Second, 3 * time.Second, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.stop > 0 {
					time.AfterFunc(c.stop, cancel)
				}
				base := &silentAtFirst{serves: time.Now().Add(c.lasts)}
				sdk, err := New(run, Target{Endpoint: "http://tablestore.test", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"), Transport: base, RequestTimeout: 29 * time.Second}, nil)
				must(t, err)
				begun := time.Now()
				if _, _, err := (&Admin{Client: sdk}).describe("t"); err == nil {
					t.Error("there is no table to describe")
				}
				if took := time.Since(begun); took.Round(time.Second) != c.took || base.requests.Load() != c.requests {
					t.Errorf("after %v and %d requests; want %v and %d", took, base.requests.Load(), c.took, c.requests)
				}
			})
		})
	}
}
