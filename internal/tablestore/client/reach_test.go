package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/table"
)

// broken fails requests with an error of the network, before or after the service has seen them.
type broken struct {
	http.RoundTripper
	fail  error
	times int // the first ones
	after bool
	page  int // in place of fail: the status of a page of HTML
	sent  int
}

func (b *broken) RoundTrip(r *http.Request) (*http.Response, error) {
	b.sent++
	if b.sent > b.times {
		return b.RoundTripper.RoundTrip(r)
	}
	if b.after {
		res, err := b.RoundTripper.RoundTrip(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
	if b.page > 0 {
		return &http.Response{StatusCode: b.page, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<html><body>not now</body></html>")), Request: r}, nil
	}
	return nil, b.fail
}

type timedOut struct{}

func (timedOut) Error() string   { return "timed out" }
func (timedOut) Timeout() bool   { return true }
func (timedOut) Temporary() bool { return true }

var (
	refusedDial = &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}, Err: syscall.ECONNREFUSED}
	noSuchHost  = &net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true}
	noResolver  = &net.DNSError{Err: "server misbehaving", Name: "somewhere", IsTemporary: true}
)

// unreachable is a service that cannot be reached at first.
func unreachable(t *testing.T, fail error, times int, after bool) (*Admin, *broken) {
	t.Helper()
	s := engine(t, server.Options{Faults: new(faults.Plan)})
	b := &broken{RoundTripper: s.Transport(), fail: fail, times: times, after: after}
	target := embedded(t, nil)
	target.Transport = b
	sdk := sdkOf(t, target)
	return &Admin{Client: sdk, Context: t.Context(), ReachFor: time.Minute}, b
}

var stringKey = []table.KeyColumn{{Name: "s", Type: table.String}}

func TestAnEndpointThatIsDownAtTheStartIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fail  error
		after bool
		page  int
	}{
		"nothing comes in": {fail: fmt.Errorf("nothing came in for 30s: %w", context.DeadlineExceeded)},
		"a page of 503":    {page: 503}, "a page of 502": {page: 502}, "a page of 504 after it was applied": {page: 504, after: true},
		"refused": {fail: refusedDial}, "the resolver is down": {fail: noResolver}, "cut off": {fail: io.ErrUnexpectedEOF},
		"timed out": {fail: timedOut{}}, "timed out after it was applied": {fail: timedOut{}, after: true}, "reset after it was applied": {fail: syscall.ECONNRESET, after: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := unreachable(t, tt.fail, 2, tt.after)
			b.page = tt.page
			told := 0
			a.OnWait = func(why string, most time.Duration) {
				if told++; why == "" || most != time.Minute {
					t.Errorf("%q for %v", why, most)
				}
			}
			if err := a.Create("t", stringKey, table.Definition{TimeToLive: -1, MaxVersions: 1}); err != nil || b.sent < 3 || told != 1 {
				t.Errorf("%v after %d requests, told %d times", err, b.sent, told)
			}
		})
	}
}

func TestAnEndpointThatIsWrongIsNotWaitedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		fail error
		want string
	}{
		"no such host":        {noSuchHost, "cannot find host nowhere; check --endpoint"},
		"another certificate": {errors.New("tls: failed to verify certificate"), "certificate"},
	} {
		a, b := unreachable(t, tt.fail, 1000, false)
		a.OnWait = func(string, time.Duration) { t.Errorf("%s: it waits", name) }
		if _, err := a.Describe("t"); err == nil || !strings.Contains(err.Error(), tt.want) || b.sent != 1 {
			t.Errorf("%s: %v after %d requests", name, err, b.sent)
		}
	}
	a, b := unreachable(t, refusedDial, 1000, false)
	a.ReachFor = 0 // what a user waits for at a terminal
	if _, err := a.Describe("t"); err == nil || !strings.Contains(err.Error(), "cannot connect to 10.0.0.1:80") || b.sent != 1 {
		t.Errorf("%v after %d requests", err, b.sent)
	}
}

func TestWaitingForAnEndpointEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		a := &Admin{Context: context.Background(), ReachFor: time.Minute}
		begun := time.Now()
		err := a.try(func() error {
			requests++
			return refusedDial
		})
		if took := time.Since(begun); !errors.Is(err, syscall.ECONNREFUSED) || took < time.Minute || took > 2*time.Minute || requests > 100 {
			t.Errorf("%v after %d requests in %v", err, requests, took)
		}
		ctx, stop := context.WithCancelCause(context.Background())
		a.Context = ctx
		time.AfterFunc(time.Second, func() { stop(errors.New("the user stopped")) })
		if err := a.try(func() error { return refusedDial }); err == nil || err.Error() != "the user stopped" {
			t.Errorf("%v", err)
		}
	})
}

// A table of the same name that somebody else has made is not the one whose answer was lost.
func TestATableCreatedByAnotherProcessIsNotOurs(t *testing.T) {
	for name, tt := range map[string]struct {
		key  []table.KeyColumn
		d    table.Definition
		ours bool
	}{
		"as asked for":    {stringKey, table.Definition{TimeToLive: -1, MaxVersions: 1}, true},
		"another key":     {[]table.KeyColumn{{Name: "n", Type: table.Integer}}, table.Definition{TimeToLive: -1, MaxVersions: 1}, false},
		"another ttl":     {stringKey, table.Definition{TimeToLive: 86400, MaxVersions: 1}, false},
		"more versions":   {stringKey, table.Definition{TimeToLive: -1, MaxVersions: 3}, false},
		"other deviation": {stringKey, table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 1000}, false},
	} {
		a, b := unreachable(t, nil, 0, false)
		must(t, a.Create("t", tt.key, tt.d))
		b.fail, b.times, b.sent = timedOut{}, 1, 0 // the first request is lost before it arrives
		err := a.Create("t", stringKey, table.Definition{TimeToLive: -1, MaxVersions: 1})
		if tt.ours != (err == nil) || err != nil && !errors.Is(err, ErrTableExists) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

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

// pieces is an answer whose bytes come in one after the other, each after a pause.
type pieces struct {
	ctx   context.Context
	text  string
	pause time.Duration
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	select {
	case <-time.After(p.pause):
	case <-p.ctx.Done():
		return 0, p.ctx.Err()
	}
	n := copy(b[:1], p.text)
	p.text = p.text[n:]
	return n, nil
}

func (p *pieces) Close() error { return nil }

// slowly answers so.
type slowly time.Duration

func (pause slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: -1, Body: &pieces{r.Context(), "answer", time.Duration(pause)}}, nil
}

func TestAnAnswerThatComesInSlowlyIsReadToItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		pause  time.Duration
		stalls bool
	}{"slow": {900 * time.Millisecond, false}, "stalled": {1100 * time.Millisecond, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &transport{base: slowly(c.pause), run: t.Context(), timeout: time.Second, keys: &signedWith{CredentialsProvider: keys("s")}, accept: true, traffic: new(Traffic)}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://service/ListTable", http.NoBody)
				must(t, err)
				began := time.Now()
				res, err := to.RoundTrip(r)
				took := time.Since(began)
				if c.stalls {
					if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "nothing came in for 1s") || took != time.Second {
						t.Errorf("%v after %v", err, took)
					}
					return
				}
				if err != nil || took != 6*c.pause {
					t.Fatalf("%v after %v", err, took)
				}
				if body, err := io.ReadAll(res.Body); string(body) != "answer" || err != nil {
					t.Errorf("%q, %v", body, err)
				}
			})
		})
	}
}

// whole takes the body of a request as an engine in the same process does.
type whole struct{ pieces [][]byte }

func (w *whole) Write(p []byte) (int, error) {
	w.pieces = append(w.pieces, p)
	return len(p), nil
}

func TestABodyIsHandedOverInOnePieceWithoutACopy(t *testing.T) {
	sent := []byte("rows of a request")
	told := 0
	b := &requestBody{rest: sent, progress: func() { told++ }}
	if n, err := io.ReadFull(b, make([]byte, 4)); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	var to whole
	for range 2 {
		_, err := b.WriteTo(&to)
		must(t, err)
	}
	if len(to.pieces) != 1 || &to.pieces[0][0] != &sent[4] || len(to.pieces[0]) != len(sent)-4 || told != 2 {
		t.Errorf("%q, progress %d times", to.pieces, told)
	}
	if n, err := b.Read(make([]byte, 4)); n != 0 || err != io.EOF {
		t.Errorf("%d bytes more, %v", n, err)
	}
}
