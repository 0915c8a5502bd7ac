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
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// engine opens an engine in memory.
func engine(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.InMemory = true
	s := conformance.Try(server.Open("", o)).Must(t)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// of returns a target for an engine in this process.
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

func TestTableOperationsSurviveTemporaryFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, f := range []faults.Fault{
			{Action: faults.Refuse, Code: "OTSServerBusy"},
			{Action: faults.Refuse, Code: "OTSTableNotReady"},
			{Action: faults.AnswerErrorAfter, Code: "OTSTimeout"}, // the request is applied, so the next attempt finds the table
		} {
			failed := map[string]bool{}
			plan := &faults.Plan{Only: func(string) bool { return true }, Decide: func(r faults.Request) faults.Fault {
				if failed[r.Operation] {
					return faults.Fault{}
				}
				failed[r.Operation] = true
				return f
			}}
			a := admin(t, embedded(t, plan))
			conformance.Equal(t, a.Create("t", stringKey, defaults), nil, "create after %s", f.Code)
			conformance.Equal(t, conformance.ErrorOf(a.Describe("t")), nil, "describe after %s", f.Code)
			delete(failed, "DescribeTable")
			conformance.Equal(t, conformance.ErrorOf(a.Splits("t")), nil, "bounds of partitions after %s", f.Code)
			conformance.Equal(t, a.Drop("t"), nil, "drop after %s", f.Code)
			conformance.Equal(t, len(failed), 3, "%v failed", failed)
		}
	})
}

func TestErrorsAreClassified(t *testing.T) {
	ots := func(status int, code, message string) error {
		return &tablestore.OtsError{Code: code, Message: message, HttpStatusCode: status}
	}
	for _, tt := range []struct {
		err  error
		want Class
	}{
		{ots(403, "OTSNotEnoughCapacityUnit", ""), Throttled},
		{ots(403, "OTSCapacityUnitExhausted", ""), Throttled},
		{ots(503, "OTSServerBusy", ""), Throttled},
		{ots(503, "OTSPartitionUnavailable", ""), Unavailable},
		{ots(404, "OTSTableNotReady", ""), Unavailable},
		{ots(409, "OTSRowOperationConflict", ""), Unavailable},
		{ots(403, "OTSQuotaExhausted", "Too frequent table operations."), Unavailable},
		{ots(403, "OTSQuotaExhausted", "Number of tables exceeded the quota."), Fatal},
		{ots(503, "OTSTimeout", ""), Ambiguous},
		{ots(500, "OTSInternalServerError", ""), Ambiguous},
		{ots(503, "OTSServerUnavailable", "<html>"), Ambiguous},
		{ots(500, "OTSSomethingNew", ""), Ambiguous},
		{ots(400, "OTSSomethingNew", ""), Unrecognized},
		{ots(429, "Throttling.User", ""), Unrecognized},
		{ots(429, "OTSFlowControl", ""), Throttled},
		{ots(403, "OTSQuotaExhausted", "Too frequent table operations. "), Unavailable},
		{ots(403, "OTSConditionCheckFail", ""), Permanent},
		{ots(400, "OTSParameterInvalid", ""), Content},
		{ots(413, "OTSRequestBodyTooLarge", ""), Content},
		{ots(429, tablestore.OTS_CLIENT_UNKNOWN, "<html>slow down"), Ambiguous},
		{ots(408, tablestore.OTS_CLIENT_UNKNOWN, ""), Ambiguous},
		{ots(404, tablestore.OTS_CLIENT_UNKNOWN, "<html>"), Ambiguous},
		{ots(403, tablestore.OTS_CLIENT_UNKNOWN, "<html>"), Ambiguous},
		{ots(413, tablestore.OTS_CLIENT_UNKNOWN, "<html>"), Ambiguous},
		{ots(307, tablestore.OTS_CLIENT_UNKNOWN, "moved"), Ambiguous},
		{&notSent{errors.New("sign request: no key")}, Unavailable},
		{ots(403, "OTSAuthFailed", ""), Fatal},
		{ots(404, "OTSObjectNotExist", ""), Fatal},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), Ambiguous},
		{&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, Ambiguous},
		{fmt.Errorf("post: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")}), Unavailable},
		{context.DeadlineExceeded, Ambiguous},
		{fmt.Errorf("%w: by the user", context.Canceled), Canceled},
		{errors.New("unreadable answer"), Ambiguous},
	} {
		conformance.Equal(t, Classify(tt.err), tt.want, "class of %v", tt.err)
	}
}

func TestThrottlingResponsesSlowDown(t *testing.T) {
	for _, tt := range []struct {
		status int
		code   string
		want   bool
	}{
		{429, tablestore.OTS_CLIENT_UNKNOWN, true}, {429, "Throttling.User", true}, {429, "OTSFlowControl", true},
		{503, "OTSServerBusy", true}, {503, "OTSServerUnavailable", false}, {400, "Throttling", false},
		{403, tablestore.OTS_CLIENT_UNKNOWN, false},
	} {
		conformance.Equal(t, SlowDown(&tablestore.OtsError{HttpStatusCode: tt.status, Code: tt.code}), tt.want, "%v", tt)
	}
}

func TestRefusalByVPCBoundInstanceIsExplained(t *testing.T) {
	text := Describe(&tablestore.OtsError{HttpStatusCode: 403, Code: "OTSAuthFailed",
		Message: "Request denied because this instance can only be accessed from the binded VPC."})
	conformance.True(t, strings.Contains(text, "VPC endp") && !strings.Contains(text, "check the access key"), "%s", text)
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

func TestEndpointsAreChecked(t *testing.T) {
	for _, endpoint := range []string{"", "host", "ftp://host", "http://", "http://host/path", "://",
		"http://user:secret@host", "http://host?key=secret"} {
		_, err := New(context.Background(), unsignedAt(endpoint), nil)
		conformance.True(t, err != nil && !strings.Contains(err.Error(), "secret"), "endpoint %q: %v", endpoint, err)
	}
	_, err := New(context.Background(), Target{Endpoint: "http://host", Credentials: keys("s")}, nil)
	conformance.True(t, err != nil, "no instance was accepted")
}

func TestErrorsAreOneLineAndSayWhatToDo(t *testing.T) {
	wrong := embedded(t, nil)
	wrong.Credentials = keys("wrong-secret-value")
	_, err := admin(t, wrong).Describe("t")
	conformance.True(t, err != nil && strings.Contains(err.Error(), "OTSAuthFailed") &&
		strings.Contains(err.Error(), "check the access key"),
		"wrong secret: %v", err)
	conformance.Equal(t, strings.Contains(fmt.Sprint(err), "wrong-secret-value"), false, "the secret is shown: %v", err)
	requests := 0
	down := Target{Endpoint: "http://127.0.0.1:1", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"),
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			requests++
			return http.DefaultTransport.RoundTrip(r)
		})}
	_, err = admin(t, down).Describe("t")
	conformance.Refused(t, err, "cannot connect to 127.0.0.1:1", "endpoint down")
	conformance.Equal(t, requests, 1, "tries of a wrong endpoint")
	conformance.Equal(t, OneLine("a\nb\r\tc\x1b[0m  "), "a; b c [0m", "one line")
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

// dated returns the header of a response at a given time of the service.
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

func TestClockRefusalIsExplained(t *testing.T) {
	target := of(engine(t, server.Options{Now: func() time.Time { return time.Now().Add(time.Hour) }}))
	_, err := admin(t, target).List()
	conformance.Refused(t, err, "this machine's clock is too far from the service's: set it", "error")
}
