package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestDataClockAdvances(t *testing.T) {
	s := open(t, Options{})
	var got map[string]any
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		tell(t, s, method, "/_engine/clock", map[string]string{http.MethodPost: `{"advance": "36h"}`}[method], &got)
		conformance.True(t, got["ahead_ms"] == float64(36*3600*1000), "%s: %v", method, got)
	}
	for _, bad := range []string{`{"advance": "-1s"}`, `{"advance": "soon"}`, `{"advance": "900000h"}`,
		`{"set": "36h"}`, `{}`} {
		status := admin(t, s, http.MethodPost, "/_engine/clock", bad, &got)
		conformance.True(t, status == http.StatusBadRequest, "%s: %d %v", bad, status, got)
	}
	// A cell with today's timestamp is now older than the deviation of a day allows.
	c := inProcess(s)
	createTable(t, c, "t", 1)
	old := put("t", key("a", 1))
	old.AddColumnWithTimestamp("c", "v", time.Now().UnixMilli())
	conformance.Refused(t, putRow(c, old), "Invalid timestamp. Cell:c.", "error")
}

func TestResetRestoresInitialState(t *testing.T) {
	s := open(t, Options{Simulation: &Simulation{Config: sim.Config{Partitions: 4}}})
	c := inProcess(s)
	var got map[string]any
	for range 2 {
		createTable(t, c, "t", 1)
		writeRows(t, c, batchOf(3))
		must(t, s.Advance(time.Hour))
		tell(t, s, "POST", "/_engine/faults", `{"rate": 1, "kinds": ["refuse"]}`, nil)
		tell(t, s, "POST", "/_engine/reset", "", &got)
		conformance.True(t, got["tables"] == float64(1), "%v", got)
		got := s.store.Tables()
		conformance.True(t, len(got) == 0 && s.Faults() == nil && s.lastPlan.Load() == nil && s.ahead.Load() == 0 &&
			len(s.sim.all()) == 0 && s.sim.on.Load(), "tables %q, faults %v, simulated %d", got, s.Faults(), len(s.sim.all()))
	}
	conformance.Equal(t, admin(t, s, "POST", "/_engine/reset", `{"tables": 1}`, &got), http.StatusBadRequest, "%v", got)
}

func TestAdminAPIMustBeEnabled(t *testing.T) {
	s := open(t, Options{NoAdmin: true})
	for _, path := range []string{"", "stats", "reset", "clock"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/_engine/"+path, nil))
		conformance.True(t, w.Code == http.StatusNotFound && strings.Contains(w.Body.String(), "--admin"),
			"%s: %d %s", path, w.Code, w.Body)
	}
	conformance.Equal(t, conformance.ErrorOf(overHTTP(t, s).ListTable()), nil, "error")
}

func TestAnyCredentialsAreAccepted(t *testing.T) {
	s := open(t, Options{InMemory: true, AnyCredentials: true})
	web := httptest.NewServer(s)
	defer web.Close()
	for _, who := range [][3]string{{"another", "LTAI5tExample", "not the secret"},
		{DefaultInstance, DefaultAccessKeyID, DefaultAccessKeySecret}, {"x", DefaultAccessKeyID, "wrong"}} {
		c := tablestore.NewClient(web.URL, who[0], who[1], who[2])
		conformance.Equal(t, conformance.ErrorOf(c.ListTable()), nil, "%q", who)
	}
	// Unreadable requests are still refused.
	res := conformance.Try(http.Post(web.URL+"/ListTable", "", nil)).Must(t)
	res.Body.Close()
	conformance.Equal(t, res.StatusCode, http.StatusBadRequest, "%v", res.Status)
}

func TestInstancesKeepSeparateTablesAcrossRestart(t *testing.T) {
	dir := t.TempDir()
	for name, o := range map[string]Options{"named": {More: []string{"second", "third"}}, "any": {AnyCredentials: true}} {
		for attempt := range 2 {
			s := reopen(t, filepath.Join(dir, name), o)
			web := httptest.NewServer(s)
			for _, instance := range []string{DefaultInstance, "second", "third"} {
				c := tablestore.NewClient(web.URL, instance, DefaultAccessKeyID, DefaultAccessKeySecret)
				if attempt == 0 {
					createTable(t, c, "of_"+instance, 1)
				}
				list, err := c.ListTable()
				if want := []string{"of_" + instance}; err != nil || !slices.Equal(list.TableNames, want) {
					t.Errorf("%s, %s: %v, %v, want %v", name, instance, list, err, want)
				}
			}
			c := tablestore.NewClient(web.URL, "fourth", DefaultAccessKeyID, DefaultAccessKeySecret)
			_, err := c.ListTable()
			conformance.Equal(t, (err == nil), o.AnyCredentials, "%s: an instance that was not named: %v", name, err)
			web.Close()
			must(t, s.Close())
		}
	}
}

func TestInstanceLimitRefusesWholeRequests(t *testing.T) {
	at := &clock{time.Now()}
	for _, simulated := range []bool{false, true} {
		s, c := withTable(t, Options{InstanceUnits: 100, Now: at.now})
		if simulated {
			must(t, s.Sim().Simulate("t", Simulation{Config: sim.Config{PartitionUnits: 1000}}))
		}
		_, err := c.BatchWriteRow(rowsOf("a", "b"))
		var ots *tablestore.OtsError
		conformance.MustTrue(t, errors.As(err, &ots) && ots.HttpStatusCode == 429 && ots.Code == "OTSFlowControl" &&
			ots.Message == "The requests have been throttled.", "simulated %v: %v", simulated, err)
		at.at = at.at.Add(time.Second) // a tenth of a second's units is saved
		got := writeRows(t, c, rowsOf("a", "b", "c", "d"))
		conformance.True(t, !slices.ContainsFunc(got, func(c string) bool { return c != "" }), "%v: %v", simulated, got)
		var stats struct{ Instance sim.InstanceCount }
		tell(t, s, "GET", "/_engine/stats", "", &stats)
		conformance.Equal(t, stats.Instance, sim.InstanceCount{Units: 4, Refused: 1, Rows: 2}, "simulated %v: %+v",
			simulated, stats)
		tell(t, s, "DELETE", "/_engine/stats", "", nil)
		tell(t, s, "GET", "/_engine/stats", "", &stats)
		conformance.Equal(t, stats.Instance, sim.InstanceCount{}, "simulated %v: %+v", simulated, stats)
	}
}

func TestIndexesAreDescribedAndCharged(t *testing.T) {
	at := &clock{time.Now()}
	s, c := withTable(t, Options{Now: at.now})
	tell(t, s, "POST", "/_engine/tables/t/simulate", `{"partition_wcu": 10, "indexes": 2}`, nil)
	d, err := c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
	conformance.MustTrue(t, err == nil && len(d.IndexMetas) == 2 && d.IndexMetas[1].IndexName == "t_index2" &&
		slices.Equal(d.IndexMetas[0].Primarykey, []string{"pk1", "pk2"}), "%v, %+v", err, d)
	at.at = at.at.Add(time.Second)
	conformance.Same(t, writeRows(t, c, rowsOf("a", "b", "c", "d")), []string{"", "", "", "OTSNotEnoughCapacityUnit"},
		"ten units are three rows of three")
	off := false
	for _, o := range []struct {
		option tablestore.TableOption
		taken  bool
	}{
		{tablestore.TableOption{TimeToAlive: -1, MaxVersion: 2}, false},
		{tablestore.TableOption{TimeToAlive: 86400, MaxVersion: 1}, false},
		{tablestore.TableOption{TimeToAlive: 86400, MaxVersion: 1, AllowUpdate: &off}, true},
	} {
		_, err := c.UpdateTable(&tablestore.UpdateTableRequest{TableName: "t", TableOption: &o.option})
		conformance.Equal(t, err == nil, o.taken, "%+v: %v", o.option, err)
	}
	conformance.Equal(t, admin(t, s, "POST", "/_engine/tables/t/simulate", `{"indexes": 6}`, nil), 400, "six indexes")
	tell(t, s, "POST", "/_engine/tables/t/simulate", `{}`, nil)
	d, err = c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
	conformance.True(t, err == nil && len(d.IndexMetas) == 0, "%v, %+v", err, d)
}

func panics(t *testing.T) (op string) {
	operations["Panic"] = func(*Server, []byte) (call, *wire.Error) { panic("on purpose") }
	t.Cleanup(func() { delete(operations, "Panic") })
	return "Panic"
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	var out syncBuffer
	s := open(t, Options{Log: log.New(&out, "", 0)})
	op := panics(t)
	a := raw(s, op, nil, nil)
	conformance.True(t, a.status == 500 && strings.Contains(string(a.body), wire.CodeInternalServerError) &&
		a.header.Get("Authorization") != "", "%d %q %v", a.status, a.body, a.header)
	conformance.True(t, strings.Contains(out.String(), "on purpose") && strings.Contains(out.String(), "server.panics"),
		"log: %q", out.String())
	a = raw(s, "ListTable", nil, nil)
	conformance.True(t, a.status == 200, "afterwards: %d %q", a.status, a.body)
}

func TestPanicOfLateRequestIsLogged(t *testing.T) {
	var out syncBuffer
	s := open(t, Options{Log: log.New(&out, "", 0)})
	decoded := 0
	operations["Late"] = func(*Server, []byte) (call, *wire.Error) {
		if decoded++; decoded > 1 {
			panic("on purpose")
		}
		return &plain{}, nil
	}
	defer delete(operations, "Late")
	s.SetFaults(&faults.Plan{
		Only:   func(op string) bool { return op == "Late" },
		Decide: func(faults.Request) faults.Fault { return faults.Fault{Action: faults.ApplyLate, Delay: time.Hour} },
	})
	a := raw(s, "Late", nil, nil)
	conformance.True(t, a.cut, "%d %q", a.status, a.body)
	if err := s.Close(); err != nil { // applies the late request at once
		t.Error(err)
	}
	got := out.String()
	conformance.True(t, decoded == 2 && strings.Contains(got, "panic in a late Late: on purpose"), "log: %q", got)
}

type gate struct{ entered, open chan struct{} }

func newGate(t *testing.T) *gate {
	g := &gate{make(chan struct{}), make(chan struct{})}
	operations["Gate"] = func(*Server, []byte) (call, *wire.Error) {
		return &plain{f: func(context.Context) ([]byte, *wire.Error) {
			close(g.entered)
			<-g.open
			return nil, nil
		}}, nil
	}
	t.Cleanup(func() { delete(operations, "Gate") })
	return g
}

// inGate serves s until stop is called. When it returns, a request is already waiting in the gate.
func inGate(t *testing.T, s *Server, limits Limits) (g *gate, c net.Conn, stop func(), ended chan error) {
	t.Helper()
	g = newGate(t)
	listener := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	ctx, stop := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	go func() { ended <- s.ServeListener(ctx, listener, limits) }()
	c = dial(t, listener.Addr().String())
	io.WriteString(c, onWire(t, s, "Gate", nil))
	<-g.entered
	return g, c, stop, ended
}

func TestStopLetsRequestsFinish(t *testing.T) {
	g, c, stop, ended := inGate(t, open(t, Options{}), Limits{})
	stop()
	for { // when the port refuses, the server has begun to stop
		probe, err := net.Dial("tcp", c.RemoteAddr().String())
		if err != nil {
			break
		}
		probe.Close()
		runtime.Gosched()
	}
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	close(g.open)
	line, err := bufio.NewReader(c).ReadString('\n')
	conformance.True(t, err == nil && strings.HasPrefix(line, "HTTP/1.1 200 "), "%q %v", line, err)
	must(t, <-ended)
}

func TestStopIsLimitedByGrace(t *testing.T) {
	var out syncBuffer
	g, c, stop, ended := inGate(t, open(t, Options{Log: log.New(&out, "", 0)}), Limits{Grace: time.Millisecond})
	defer close(g.open) // so that the store can close
	stop()
	must(t, <-ended)
	text, _ := io.ReadAll(c)
	conformance.True(t, len(text) == 0, "the connection is not cut: %q", text)
	conformance.Contains(t, out.String(), "still in flight", "log")
}

func TestFailedListenerEndsServer(t *testing.T) {
	s := open(t, Options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	listener.Close()
	err = s.ServeListener(context.Background(), listener, Limits{})
	conformance.True(t, err != nil && strings.Contains(err.Error(), "serve on 127.0.0.1:"), "%v", err)
}

// must ends the test if err is not the zero value of its type.
func must[E comparable](t testing.TB, err E) {
	t.Helper()
	var none E
	conformance.MustEqual(t, err, none, "error")
}

func reopen(t testing.TB, dir string, o Options) *Server {
	t.Helper()
	s := conformance.Try(Open(dir, o)).Must(t)
	return s
}

func open(t testing.TB, o Options) *Server {
	t.Helper()
	o.InMemory = true
	s := reopen(t, "", o)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func sdk(endpoint string, rt http.RoundTripper) *tablestore.TableStoreClient {
	c := tablestore.NewDefaultTableStoreConfig()
	c.RetryTimes = 0
	c.Transport = rt
	return tablestore.NewClientWithConfig(endpoint, DefaultInstance, DefaultAccessKeyID, DefaultAccessKeySecret, "", c)
}

func inProcess(s *Server) *tablestore.TableStoreClient { return sdk("http://localhost", s.Transport()) }

func overHTTP(t testing.TB, s *Server) *tablestore.TableStoreClient {
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	rt := &http.Transport{}
	t.Cleanup(rt.CloseIdleConnections)
	return sdk(h.URL, rt)
}

func createTable(t testing.TB, c *tablestore.TableStoreClient, name string, versions int) {
	t.Helper()
	meta := &tablestore.TableMeta{TableName: name}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
	must(t, conformance.ErrorOf(c.CreateTable(&tablestore.CreateTableRequest{
		TableMeta:          meta,
		TableOption:        &tablestore.TableOption{TimeToAlive: -1, MaxVersion: versions, DeviationCellVersionInSec: 86400},
		ReservedThroughput: &tablestore.ReservedThroughput{},
	})))
}

func withTable(t testing.TB, o Options) (*Server, *tablestore.TableStoreClient) {
	t.Helper()
	s := open(t, o)
	c := inProcess(s)
	createTable(t, c, "t", 1)
	return s, c
}

func bounds() (low, high *tablestore.PrimaryKey) {
	low, high = &tablestore.PrimaryKey{}, &tablestore.PrimaryKey{}
	for _, name := range []string{"pk1", "pk2"} {
		low.AddPrimaryKeyColumnWithMinValue(name)
		high.AddPrimaryKeyColumnWithMaxValue(name)
	}
	return low, high
}

func key(a string, b int64) *tablestore.PrimaryKey {
	k := &tablestore.PrimaryKey{}
	k.AddPrimaryKeyColumn("pk1", a)
	k.AddPrimaryKeyColumn("pk2", b)
	return k
}

// put returns a PutRow change of alternating column names and values.
func put(table string, k *tablestore.PrimaryKey, columns ...any) *tablestore.PutRowChange {
	c := &tablestore.PutRowChange{TableName: table, PrimaryKey: k}
	for i := 0; i < len(columns); i += 2 {
		c.AddColumn(columns[i].(string), columns[i+1])
	}
	c.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	return c
}

// code returns the service's error code, the text of any other error, or "" if err is nil.
func code(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := err.(*tablestore.OtsError); ok {
		return e.Code
	}
	return err.Error()
}

func headers(s *Server, body []byte) http.Header {
	h := http.Header{}
	h.Set(wire.HeaderDate, s.o.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	h.Set(wire.HeaderAPIVersion, wire.APIVersion)
	h.Set(wire.HeaderAccessKeyID, DefaultAccessKeyID)
	h.Set(wire.HeaderInstance, DefaultInstance)
	h.Set(wire.HeaderMD5, md5Text(body))
	return h
}

// raw sends a signed request with this body, and returns the answer without decoding it.
func raw(s *Server, op string, body []byte, change func(http.Header)) *answer {
	h := headers(s, body)
	if change != nil {
		change(h)
	}
	if h.Get(wire.HeaderSignature) == "" && h.Get(wire.HeaderSignatureV4) == "" {
		h.Set(wire.HeaderSignature, wire.Sign(DefaultAccessKeySecret, "/"+op, h))
	}
	return s.serve(testContext, &request{method: http.MethodPost, path: "/" + op, header: h, body: body,
		tooLong: len(body) > wire.MaxBodyBytes})
}

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func signed(s *Server, op string, body []byte) *http.Request {
	r, err := http.NewRequest(http.MethodPost, "http://localhost/"+op, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header = headers(s, body)
	r.Header.Set(wire.HeaderSignature, wire.Sign(DefaultAccessKeySecret, "/"+op, r.Header))
	return r
}

// nested and varint append fields of a protobuf message, because the SDK cannot send all that the server decodes.
func nested(dst []byte, id protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, id, protowire.BytesType), b)
}

func varint(dst []byte, id protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, id, protowire.VarintType), n)
}

func bulkImport(rows ...*tablestore.PutRowChange) []byte {
	body := nested(nil, 1, []byte("t"))
	for _, p := range rows {
		body = nested(body, 2, nested(varint(nil, 1, 1), 2, p.Serialize()))
	}
	return body
}
