package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

func keys(secret string) common.CredentialsProvider {
	return &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: secret}
}

func engine(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.InMemory = true
	s := conformance.Try(server.Open("", o)).Must(t)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func of(s *server.Server) Target {
	return Target{Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: s.Transport(),
		Credentials: keys(server.DefaultAccessKeySecret)}
}

func embedded(t *testing.T, plan *faults.Plan) Target {
	t.Helper()
	return of(engine(t, server.Options{Faults: plan}))
}

func sdkOf(t testing.TB, target Target) *tablestore.TableStoreClient {
	t.Helper()
	return conformance.Try(New(t.Context(), target, nil)).Must(t)
}

func admin(t *testing.T, target Target) *Admin {
	t.Helper()
	return &Admin{Client: sdkOf(t, target), Context: context.Background(), Connection: connect(t, target)}
}

func TestTablesAreCreatedDescribedListedAndDropped(t *testing.T) {
	a := admin(t, embedded(t, nil))
	key := []table.KeyColumn{{Name: "s", Type: table.String}, {Name: "i", Type: table.Integer},
		{Name: "b", Type: table.Binary}}
	d := table.Definition{TimeToLive: 86400, MaxVersions: 3, MaxDeviation: 1000, ReservedRead: 0, ReservedWrite: 0}
	must(t, a.Create("t", key, d))
	got := conformance.Try(a.Describe("t")).Must(t)
	conformance.True(t, got.Created != 0, "nothing says when the table was made")
	want := &Table{Name: "t", Key: key, Defined: map[string]table.Type{}, Created: got.Created, Definition: d}
	conformance.Equal(t, cmp.Diff(want, got), "", "(-want +got)")
	conformance.Refused(t, a.Create("t", key, d), "OTSObjectAlreadyExist", "creating it again")
	names, err := a.List()
	conformance.True(t, err == nil && fmt.Sprint(names) == "[t]", "%v, %v", names, err)
	must(t, a.Drop("t"))
	conformance.Is(t, a.Drop("t"), ErrNoTable, "dropping it again")
	conformance.Is(t, conformance.ErrorOf(a.Describe("t")), ErrNoTable, "describing")
	conformance.Is(t, conformance.ErrorOf(a.Splits("t")), ErrNoTable, "its partitions")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	a.Context = ctx
	conformance.Refused(t, conformance.ErrorOf(a.Opened("t")), "", "waiting for it when the load has been stopped")
}

var errorsByName = map[string]error{
	"unsent": &notSent{errors.New("sign request: no key")}, "cut": &cutOff{io.ErrClosedPipe},
	"eof":     fmt.Errorf("read: %w", io.ErrUnexpectedEOF),
	"reset":   &net.OpError{Op: "read", Err: errors.New("connection reset by peer")},
	"refused": fmt.Errorf("post: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")}),
	"host":    &net.DNSError{Name: "nowhere"}, "late": context.DeadlineExceeded,
	"stopped": &stopped{errors.New("the user stopped")}, "canceled": fmt.Errorf("%w: by the user", context.Canceled),
	"other": errors.New("unreadable answer"), "tls": errors.New("first record does not look like a TLS handshake"),
	"refusedkeys": &keysRefused{&tablestore.OtsError{Code: authFailed, HttpStatusCode: 403}},
	"long":        errors.New(strings.Repeat("é\n", 300) + "\r\tb\x1b[0m\x7f end "),
}

// TestErrorsAreClassifiedAndDescribed has in each line an answer, the name of an error, or a target.
func TestErrorsAreClassifiedAndDescribed(t *testing.T) {
	names := []string{"permanent", "throttled", "unavailable", "ambiguous", "content", "fatal", "canceled", "unrecognized"}
	conformance.Golden(t, "errors.golden", func(input string) string {
		parts := strings.SplitN(input, " ", 3)
		if parts[0] == "target" {
			_, err := New(t.Context(), Target{Endpoint: parts[1], Instance: parts[2], Credentials: keys("s")}, nil)
			return fmt.Sprint(err)
		}
		err := errorsByName[parts[1]]
		if parts[0] != "error" {
			err = &tablestore.OtsError{Code: parts[1], Message: parts[2], RequestId: "r",
				HttpStatusCode: conformance.Try(strconv.Atoi(parts[0])).Must(t)}
		}
		class := Classify(err)
		facts := []string{names[class]}
		for name, holds := range map[string]bool{"passes": class.Passes(), "open": class.Open(), "slow down": SlowDown(err),
			"timed out": TimedOut(err), "too large": TooLarge(err), "cut while sending": CutWhileSending(err),
			"denied": Denied(err), "refused": Refused(err), "not serving": NotServing(err), "unserved": unserved(err),
			"instance": InstanceThrottled(parts[1]), "may have applied": MayHaveApplied(parts[1]), "no table": IsNoTable(err),
		} {
			if holds {
				facts = append(facts, name)
			}
		}
		slices.Sort(facts[1:])
		return strings.Join(facts, ", ") + "\n" + Describe(err) + "\n" + Needed("GetRow", "t", err).Error()
	})
}

func TestRunContextEndsRequest(t *testing.T) {
	arrived := make(chan bool)
	blocked := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		// The server notices that a client has disconnected only after reading the body.
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- true
		<-r.Context().Done()
	}))
	defer blocked.Close()
	for way := range 2 {
		ctx, cancel := context.WithCancelCause(context.Background())
		send := bothWays(t, ctx, unsignedAt(blocked.URL+"/"), nil)[way]
		done := make(chan error, 1)
		go func() { done <- send("ListTable") }()
		<-arrived
		cancel(errors.New("the user stopped"))
		err := <-done
		conformance.True(t, Classify(err) == Canceled && strings.Contains(Describe(err), "user stopped"), "%d: %v", way, err)
	}
}

// via returns the target of a service that is reached through a transport and signs nothing.
func via(transport http.RoundTripper) Target {
	target := unsignedAt("http://made-up")
	target.Transport = transport
	return target
}

// unsignedAt returns the target of a service that signs nothing.
func unsignedAt(endpoint string) Target {
	return Target{Endpoint: endpoint, Instance: "i", AcceptUnsigned: true, Credentials: keys("s")}
}

// bothWays returns functions that send a request without fields on a Connection and through the SDK.
func bothWays(t *testing.T, ctx context.Context, target Target, traffic *Traffic) [2]func(operation string) error {
	c := conformance.Try(Connect(ctx, target, traffic)).Must(t)
	sdk := conformance.Try(New(ctx, target, traffic)).Must(t)
	return [2]func(string) error{func(operation string) error {
		return conformance.ErrorOf(c.Sender().Post(operation, text("")))
	}, func(operation string) error {
		if operation == "ListTable" {
			return conformance.ErrorOf(sdk.ListTable())
		}
		return conformance.ErrorOf(sdk.DescribeTable(&tablestore.DescribeTableRequest{TableName: "none"}))
	}}
}

// counting starts a server that counts how many connections were made and how many are open.
func counting(t *testing.T, run func(*httptest.Server), h http.Handler) (_ *httptest.Server, made, open *atomic.Int64) {
	made, open = new(atomic.Int64), new(atomic.Int64)
	web := httptest.NewUnstartedServer(h)
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			made.Add(1)
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	run(web)
	t.Cleanup(web.Close)
	return web, made, open
}

func TestErrorsAreOneLineAndSayWhatToDo(t *testing.T) {
	wrong := embedded(t, nil)
	wrong.Credentials = keys("wrong-secret-value")
	_, err := admin(t, wrong).Describe("t")
	conformance.InALine(t, err, "OTSAuthFailed", "wrong secret")
	conformance.Equal(t, strings.Contains(fmt.Sprint(err), "wrong-secret-value"), false, "the secret is shown: %v", err)
}

func TestValuesRoundTripThroughSDK(t *testing.T) {
	for _, v := range []table.Value{
		{}, {Type: table.Integer, Int: -5}, {Type: table.Double, Double: 1.5}, {Type: table.Boolean, Int: 1},
		{Type: table.Boolean}, {Type: table.String, Bytes: []byte("é")}, {Type: table.String, Bytes: []byte{}},
		{Type: table.Binary, Bytes: []byte{0, 255}},
	} {
		got := ValueOf(SDKValue(v))
		conformance.True(t, cmp.Equal(got, v), "%+v became %+v", v, got)
	}
}

func dated(layout string, at time.Time) http.Header {
	h := http.Header{}
	if layout == http.TimeFormat {
		h.Set("Date", at.UTC().Format(layout))
	} else {
		h.Set("x-ots-date", at.UTC().Format(layout))
	}
	return h
}

func TestClockLearnsFromResponses(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Now()
	for name, tt := range map[string]struct {
		layout        string
		lies          int // wrong dates among ten responses
		answers       int
		within, width time.Duration
	}{
		"milliseconds":          {layout: "2006-01-02T15:04:05.000Z", answers: 30, width: 60 * time.Millisecond},
		"seconds":               {layout: "2006-01-02T15:04:05Z", answers: 60, width: 400 * time.Millisecond},
		"HTTP dates":            {layout: http.TimeFormat, answers: 60, width: 400 * time.Millisecond},
		"some answers lie":      {layout: "2006-01-02T15:04:05.000Z", lies: 4, answers: 64, width: 60 * time.Millisecond},
		"the first answer lies": {layout: "2006-01-02T15:04:05.000Z", lies: -1, answers: 3, width: 200 * time.Millisecond},
	} {
		for _, ahead := range []time.Duration{0, 10 * time.Second, -14 * time.Minute, 17 * time.Millisecond} {
			c, now := new(Clock), start
			for i := range tt.answers {
				now = now.Add(time.Duration(random.IntN(700)) * time.Millisecond)
				sent, there := now, now.Add(time.Duration(random.IntN(100))*time.Millisecond)
				now = there.Add(time.Duration(random.IntN(100)) * time.Millisecond)
				at := there.Add(ahead)
				if i%10 < tt.lies || tt.lies < 0 && i == 0 {
					at = at.Add(time.Hour + time.Duration(i)*time.Minute)
				}
				c.Answered(dated(tt.layout, at), sent, now)
			}
			earliest, latest, known := c.Range(now)
			want := now.Add(ahead)
			conformance.True(t, known && !want.Before(earliest) && !want.After(latest) && latest.Sub(earliest) <= tt.width,
				"%s, %v ahead: known %v, %v to %v of the time", name, ahead, known, earliest.Sub(want), latest.Sub(want))
			earliest, _, _ = c.Range(time.Now())
			between := c.Now()
			_, latest, _ = c.Range(time.Now())
			conformance.True(t, !between.Before(earliest) && !between.After(latest), "%s: now is %v", name, between)
		}
	}
}

// A machine's monotonic clock stops while the machine sleeps, so the service is far ahead afterwards.
func TestClockRecoversAfterPause(t *testing.T) {
	c, now := new(Clock), time.Now()
	answer := func(ahead time.Duration) {
		now = now.Add(time.Second)
		c.Answered(dated("2006-01-02T15:04:05.000Z", now.Add(ahead)), now.Add(-time.Millisecond), now)
	}
	for range 50 {
		answer(0)
	}
	answer(time.Hour)
	answer(time.Hour)
	_, latest, _ := c.Range(now)
	conformance.True(t, latest.Sub(now) <= time.Second, "two answers are believed")
	answer(time.Hour)
	earliest, _, _ := c.Range(now)
	conformance.True(t, !now.Add(59*time.Minute).After(earliest), "three answers in a row are not believed")
}

func TestClockWithoutDatesUsesLocalTime(t *testing.T) {
	c, now := new(Clock), time.Now()
	for _, h := range []http.Header{{}, {"X-Ots-Date": {"yesterday"}}, dated(time.RFC3339, now.Add(time.Hour)),
		dated(time.RFC3339, now.Add(time.Hour))} {
		c.Answered(h, now, now)
	}
	from, to, known := c.Range(now)
	conformance.True(t, !known && from.Equal(now) && to.Equal(now) && !c.Measured() && c.SkewWarning() == "", "%v", from)
	var none *Clock
	_, _, known = none.Range(now)
	conformance.True(t, !known && !none.Measured(), "no clock knows the time")
}
