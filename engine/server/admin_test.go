package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

func TestAdminAPIErrors(t *testing.T) {
	s, _ := withTable(t, Options{})
	const split, simulate, faults = "/_engine/tables/t/split", "/_engine/tables/t/simulate", "/_engine/faults"
	for _, v := range []struct {
		method, path, body string
		status             int
		message            string
	}{
		{"GET", split, "", 405, "does not accept GET, only POST"},
		{"PUT", "/_engine/stats", "", 405, "only GET, DELETE"},
		{"POST", "/_engine/", "", 405, "does not accept POST, only GET"},
		{"DELETE", "/_engine", "", 405, "does not accept DELETE, only GET"},
		{"GET", "/_engine/nothing", "", 404, "see GET /_engine/"},
		{"POST", "/_engine/tables/t", "", 404, "there is no"},
		{"POST", "/_engine/tables/t/explode", "{}", 404, "there is no"},
		{"POST", "/_engine/tables//split", `{"even":1}`, 404, "there is no"},
		{"POST", "/_engine/tables/no/split", `{"even":1}`, 404, "table no: there is no such table"},
		{"POST", "/_engine/tables/no/simulate", `{}`, 404, "no such table"},
		{"POST", "/_engine/tables/no/move", `{"partition":0}`, 404, "no such table"},
		{"POST", split, `{"evn":1}`, 400, `unknown field \"evn\"`},
		{"POST", split, `{"even":1} {}`, 400, "data follows the object"},
		{"POST", split, `{}`, 400, "give one of"},
		{"POST", split, `{"even":1,"keys":["a"]}`, 400, "give one of"},
		{"POST", split, `{"even":3}`, 400, "no rows"},
		{"POST", split, `{"even":5000}`, 400, "1 to 4096"},
		{"POST", split, `{"even":2,"partitions":3}`, 400, "needs"},
		{"POST", split, `{"keys":[]}`, 400, "empty"},
		{"POST", split, `{"keys":[5]}`, 400, "5 is not a value of the STRING partition key pk1"},
		{"POST", split, `{"keys":[null]}`, 400, "not a value"},
		{"POST", split, `{"keys":["` + strings.Repeat("a", 1025) + `"]}`, 400, "at most 1024 bytes"},
		{"POST", split, `{"keys":["a"],"unavailable_ms":-1}`, 400, "unavailable_ms"},
		{"POST", simulate, `{"jitter":2}`, 400, "jitter must be 0 to 1"},
		{"POST", simulate, `{"slow":{"x":1}}`, 400, "not a partition number"},
		{"POST", simulate, `[]`, 400, "read the request's JSON"},
		{"POST", simulate, `{"latency_ms":1e300}`, 400, "latency must be 0 to 100h0m0s"},
		{"POST", "/_engine/tables/t/move", `{}`, 400, "is missing"},
		{"POST", "/_engine/tables/t/move", `{"partition":1}`, 400, "partition 1 is not in 0…0"},
		{"POST", "/_engine/tables/t/move", `{"partition":0,"unavailable_ms":1e9}`, 400, "unavailable_ms"},
		{"POST", faults, `{"rate":2}`, 400, "from 0 to 1"},
		{"POST", faults, `{"rate":1,"kinds":["x"]}`, 400, "unknown fault"},
		{"POST", faults, `{"kinds":["refuse"]}`, 400, "is missing"},
		{"POST", faults, `{"rate":1,"plan":[]}`, 400, "or"},
		{"POST", faults, `{"rate":1,"operations":["Explode"]}`, 400, "no operation"},
		{"POST", split, strings.Repeat(" ", maxAdminBytes+1), 413, "longer than"},
	} {
		var got struct{ Error string }
		a := askAdmin(s, v.method, v.path, v.body)
		status := admin(t, s, v.method, v.path, v.body, &got)
		conformance.True(t, status == v.status && strings.Contains(string(a.body), v.message) && got.Error != "",
			"%s %s %.60s: %d %s, want %d %s", v.method, v.path, v.body, status, a.body, v.status, v.message)
	}
	st := s.Sim().Stats()["t"]
	conformance.True(t, len(st.Partitions) <= 1, "a refused request cut the table")
}

func TestAdminAPIListsEndpoints(t *testing.T) {
	s := open(t, Options{})
	want := map[string][]string{
		"/_engine/clock": {"GET", "POST"}, "/_engine/reset": {"POST"}, "/_engine/faults": {"GET", "POST", "DELETE"},
		"/_engine/simulate": {"POST"}, "/_engine/stats": {"GET", "DELETE"}, "/_engine/tables/TABLE/move": {"POST"},
		"/_engine/tables/TABLE/simulate": {"POST"}, "/_engine/tables/TABLE/split": {"POST"},
	}
	for _, path := range []string{"/_engine", "/_engine/"} {
		var got struct{ Endpoints map[string][]string }
		tell(t, s, "GET", path, "", &got)
		conformance.Equal(t, cmp.Diff(want, got.Endpoints), "", "%s (-want +got)", path)
	}
	a := s.serve(testContext, &request{method: "GET", path: "/_engines", header: http.Header{}})
	conformance.True(t, !strings.Contains(string(a.body), "endpoints"), "/_engines is the admin API: %s", a.body)
}

func TestWebPagesAreRefused(t *testing.T) {
	s := open(t, Options{})
	for _, v := range []struct {
		name, value string
		status      int
	}{{"Origin", "http://elsewhere", 403}, {"Origin", "null", 403}, {"Sec-Fetch-Site", "cross-site", 403},
		{"Sec-Fetch-Site", "same-site", 403},
		{"Sec-Fetch-Site", "same-origin", 200}, {"Sec-Fetch-Site", "none", 200}} {
		a := s.serve(testContext, &request{method: "GET", path: "/_engine/stats", header: http.Header{v.name: {v.value}}})
		conformance.Equal(t, a.status, v.status, "%s: %s", v.name, v.value)
	}
}

func TestAdminAPIAcceptsLargeSample(t *testing.T) {
	s, _ := withTable(t, Options{})
	h := httptest.NewServer(s)
	defer h.Close()
	var body strings.Builder
	body.WriteString(`{"partitions":4,"sample":[""`)
	for i := range 60_000 {
		fmt.Fprintf(&body, `,"%0100d"`, i)
	}
	body.WriteString(`]}`)
	resp, err := http.Post(h.URL+"/_engine/tables/t/split", "application/json", strings.NewReader(body.String()))
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	conformance.MustTrue(t, err == nil && resp.StatusCode == http.StatusOK && body.Len() >= wire.MaxBodyBytes,
		"%v %d %.200s", err, resp.StatusCode, text)
	if n := len(s.Sim().Stats()["t"].Partitions); n != 5 { // one of them has ended
		t.Errorf("%d partitions", n)
	}
}

// createKeyTable creates a table with one primary-key column.

func createKeyTable(t testing.TB, c *tablestore.TableStoreClient, name string, typ tablestore.PrimaryKeyType) error {
	meta := &tablestore.TableMeta{TableName: name}
	meta.AddPrimaryKeyColumn("id", typ)
	_, err := c.CreateTable(&tablestore.CreateTableRequest{
		TableMeta: meta, TableOption: &tablestore.TableOption{TimeToAlive: -1, MaxVersion: 1},
		ReservedThroughput: &tablestore.ReservedThroughput{},
	})
	return err
}

func TestKeysOfEveryTypeAreReadAndWritten(t *testing.T) {
	s := open(t, Options{})
	c := inProcess(s)
	for typ, v := range map[tablestore.PrimaryKeyType]struct{ keys, want string }{
		tablestore.PrimaryKeyType_INTEGER: {`[5, -7]`, "[<nil> -7 5]"},
		tablestore.PrimaryKeyType_STRING:  {`["\u0000", "ü"]`, "[<nil> \x00 ü]"},
		tablestore.PrimaryKeyType_BINARY: {`[{"binary":"/w=="}, {"binary":"AAE="}]`,
			"[<nil> map[binary:AAE=] map[binary:/w==]]"},
	} {
		name := fmt.Sprintf("t%d", typ)
		must(t, createKeyTable(t, c, name, typ))
		var list struct{ Partitions []map[string]any }
		tell(t, s, "POST", "/_engine/tables/"+name+"/split", `{"keys":`+v.keys+`}`, &list)
		var starts []any
		for _, p := range list.Partitions {
			starts = append(starts, p["start"])
		}
		conformance.Equal(t, fmt.Sprint(starts), v.want, "starts")
		r, err := c.DescribeTable(&tablestore.DescribeTableRequest{TableName: name})
		conformance.True(t, err == nil && r.TableMeta.TableName == name, "%v", err)
	}
	for _, keys := range []string{`["a"]`, `[{"binary":"%"}]`, `[{"binary":"","x":1}]`, `[{}]`} {
		name := fmt.Sprintf("/_engine/tables/t%d/split", tablestore.PrimaryKeyType_BINARY)
		conformance.Equal(t, admin(t, s, "POST", name, `{"keys":`+keys+`}`, nil), http.StatusBadRequest, "%s", keys)
	}
}

func TestTableIsSplitEvenlyByRows(t *testing.T) {
	s, c := withTable(t, Options{})
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprintf("%02d", i))
	}
	writeRows(t, c, rowsOf(keys...))
	cut := func(want string) {
		t.Helper()
		conformance.Equal(t, fmt.Sprintf("%q", s.sim.present("t").Bounds(time.Now())), want, "bounds")
	}
	must(t, s.Sim().Simulate("", Simulation{Config: sim.Config{Partitions: 5}})) // applied when the simulation begins
	cut(`["20" "40" "60" "80"]`)
	tell(t, s, "POST", "/_engine/tables/t/split", `{"even":4}`, nil)
	cut(`["25" "50" "75"]`)
	tell(t, s, "POST", "/_engine/tables/t/split", `{"even":2}`, nil)
	cut(`["50"]`)
}

func TestDefaultSampleCutsLaterTables(t *testing.T) {
	s := open(t, Options{Simulation: &Simulation{Config: sim.Config{Partitions: 2},
		SampleLines: []string{"30", "-5", "10", "20"}}})
	c := inProcess(s)
	must(t, createKeyTable(t, c, "numbers", tablestore.PrimaryKeyType_INTEGER))
	must(t, createKeyTable(t, c, "texts", tablestore.PrimaryKeyType_STRING))
	b := s.sim.present("numbers").Bounds(time.Now())
	conformance.True(t, len(b) == 1 && b[0] == sim.IntegerKey(20), "%q", b)
	b = s.sim.present("texts").Bounds(time.Now())
	conformance.True(t, len(b) == 1 && b[0] == "20", "%q", b)
	err := s.Sim().Simulate("", Simulation{Config: sim.Config{Partitions: 2}, SampleLines: []string{"x"}})
	conformance.Refused(t, err, `sample value 1: "x" is not a value of the INTEGER`, "simulate")
	other := open(t, Options{Simulation: &Simulation{Config: sim.Config{Partitions: 2}, SampleLines: []string{"x"}}})
	err = createKeyTable(t, inProcess(other), "numbers", tablestore.PrimaryKeyType_INTEGER)
	conformance.Equal(t, code(err), wire.CodeParameterInvalid, "a table that the sample does not fit: %v", err)
}

func TestStatsCountBySecond(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		tell(t, s, "POST", "/_engine/tables/t/simulate", `{"partition_wcu":10}`, nil)
		time.Sleep(time.Second)
		tell(t, s, "POST", "/_engine/tables/t/split", `{"keys":["m"],"unavailable_ms":1000}`, nil)
		c.BatchWriteRow(rowsOf("a"))
		time.Sleep(1100 * time.Millisecond)
		c.BatchWriteRow(rowsOf("a", "b"))
		var got struct {
			Tables map[string]struct {
				Rows, Throttled, Unavailable, Requests int
				Partitions                             []struct {
					Partition   *int
					Start       any
					Capacity    float64
					Ended       *float64 `json:"ended_ms"`
					First       float64  `json:"first_ms"`
					Unavailable int
					Seconds     []struct{ T, Rows, Throttled, Unavailable int }
				}
			}
		}
		tell(t, s, "GET", "/_engine/stats", "", &got)
		table := got.Tables["t"]
		p := table.Partitions
		conformance.MustTrue(t, table.Rows == 1 && table.Throttled == 1 && table.Unavailable == 1 && table.Requests == 2 &&
			len(p) == 3, "%+v", table)
		conformance.True(t, p[0].Ended != nil && p[0].Partition == nil && *p[1].Partition == 0 && p[2].Start == "m" &&
			p[1].Capacity == 10 && p[1].Unavailable == 1, "%+v", p)
		seconds := p[1].Seconds
		conformance.True(t, len(seconds) == 2 && seconds[0].Unavailable == 1 && seconds[1].Rows == 1 &&
			seconds[1].Throttled == 1 && p[1].First == float64(time.Now().UnixMilli()), "%+v", p[1])
		tell(t, s, "DELETE", "/_engine/stats", "", nil)
		st := s.Sim().Stats()["t"]
		conformance.True(t, st.Rows == 0 && len(st.Partitions) == 2, "%+v", st)
	})
}

func TestReadsWaitForTheirPartition(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		writeRows(t, c, rowsOf("a", "z"))
		tell(t, s, "POST", "/_engine/tables/t/split", `{"keys":["m"]}`, nil)
		tell(t, s, "POST", "/_engine/tables/t/move", `{"partition":1,"unavailable_ms":500}`, nil)
		read := func(k *tablestore.PrimaryKey) error {
			_, err := c.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{
				TableName: "t", PrimaryKey: k, MaxVersion: 1}})
			return err
		}
		conformance.Equal(t, read(key("a", 0)), nil, "contents read")
		conformance.Equal(t, code(read(key("z", 1))), wire.CodePartitionUnavailable, "read")
		both := &tablestore.MultiRowQueryCriteria{TableName: "t", MaxVersion: 1}
		both.AddRow(key("a", 0))
		both.AddRow(key("z", 1))
		r, err := c.BatchGetRow(&tablestore.BatchGetRowRequest{
			MultiRowQueryCriteria: []*tablestore.MultiRowQueryCriteria{both}})
		must(t, err)
		rows := r.TableToRowsResult["t"]
		conformance.True(t, rows[0].IsSucceed && rows[1].Error.Code == wire.CodePartitionUnavailable, "%+v", rows)
		time.Sleep(500 * time.Millisecond)
		conformance.Equal(t, read(key("z", 1)), nil, "contents read")
	})
}

func TestRequestCancelledEarlyIsNotApplied(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		body := batchBody(t, s, 0)
		tell(t, s, "DELETE", "/_engine/stats", "", nil)
		tell(t, s, "POST", "/_engine/simulate", `{"latency_ms":1000}`, nil)
		done := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		r := signed(s, "BatchWriteRow", body).WithContext(ctx)
		go func() {
			_, err := s.Transport().RoundTrip(r)
			done <- err
		}()
		time.Sleep(100 * time.Millisecond)
		cancel()
		conformance.Refused(t, <-done, "", "no error")
		_, err := s.Transport().RoundTrip(signed(s, "BatchWriteRow", body).WithContext(ctx))
		conformance.True(t, errors.Is(err, context.Canceled), "a request whose client has gone: %v", err)
		conformance.Equal(t, s.Sim().Stats()["t"].Rows, 0, "rows were let through")
	})
}

func TestAdminAPISetsAndCountsFaults(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		tell(t, s, "POST", "/_engine/faults",
			`{"plan":[{"n":1,"action":"apply-late","delay_ms":500},{"n":2,"action":"refuse","code":"OTSTableNotReady"},{"n":3,"action":"refuse-rows","code":"OTSServerBusy"}]}`, nil)
		results := make([]string, 0, 4)
		for _, k := range []string{"a", "b", "c"} {
			_, err := c.BatchWriteRow(rowsOf(k))
			results = append(results, code(err))
		}
		conformance.True(t, results[0] == "" && strings.Contains(results[1], "EOF") && results[2] == "OTSTableNotReady",
			"%q", results)
		hasRows(t, c, 1) // before the late request
		time.Sleep(501 * time.Millisecond)
		synctest.Wait()
		hasRows(t, c, 2) // after the late request
		var got faultsShown
		tell(t, s, "GET", "/_engine/faults", "", &got)
		conformance.True(t, got.On && got.Requests == 3 && got.Done["apply-late"] == 1 && got.Done["refuse"] == 1 &&
			got.Set["plan"] != nil, "%+v", got)
		tell(t, s, "POST", "/_engine/faults", `{"rate":1,"kinds":["drop-after"],"operations":["PutRow"]}`, nil)
		writeRows(t, c, rowsOf("d"))
		conformance.True(t, putRow(c, put("t", key("e", 1))) != nil, "no fault")
		tell(t, s, "POST", "/_engine/faults", `{"rate":0}`, &got)
		conformance.True(t, !got.On && s.Faults() == nil, "faults are still on")
	})
}

type faultsShown struct {
	Set      map[string]any
	On       bool
	Requests int
	Done     map[string]int
}

func TestFaultsFromTheOptionsAreShown(t *testing.T) {
	random, err := faults.Random{Rate: 0.25, Kinds: []string{"refuse:OTSServerBusy"}, Delay: 2 * time.Second,
		Seed: 7}.Plan()
	must(t, err)
	scripted, err := faults.Scripted([]faults.Step{{N: 3, Action: "apply-late", Delay: time.Second}}, []string{"PutRow"})
	must(t, err)
	for name, tt := range map[string]struct {
		plan *faults.Plan
		want map[string]any
	}{
		"random": {random, map[string]any{"rate": 0.25, "kinds": []any{"refuse:OTSServerBusy"}, "delay_ms": 2000.0,
			"seed": 7.0}},
		"scripted": {scripted, map[string]any{"operations": []any{"PutRow"},
			"plan": []any{map[string]any{"n": 3.0, "action": "apply-late", "delay_ms": 1000.0}}}},
		"by hand": {&faults.Plan{}, nil},
	} {
		s := open(t, Options{Faults: tt.plan})
		var got faultsShown
		tell(t, s, "GET", "/_engine/faults", "", &got)
		diff := cmp.Diff(tt.want, got.Set)
		conformance.True(t, diff == "" && got.On, "%s: on %v (-want +got)\n%s", name, got.On, diff)
	}
}

func TestFaultCountsOutliveTheirPlan(t *testing.T) {
	s, c := withTable(t, Options{})
	refused := func() {
		t.Helper()
		tell(t, s, "POST", "/_engine/faults", `{"rate":1,"kinds":["refuse:OTSServerBusy"]}`, nil)
		_, err := c.BatchWriteRow(rowsOf("a"))
		conformance.MustEqual(t, code(err), "OTSServerBusy", "%v", err)
	}
	check := func(when string, on bool, requests, done int) {
		t.Helper()
		var got faultsShown
		tell(t, s, "GET", "/_engine/faults", "", &got)
		conformance.True(t, got.On == on && (got.Set != nil) == on && got.Requests == requests && got.Done["refuse"] == done,
			"%s: %+v", when, got)
	}
	check("before any", false, 0, 0)
	refused()
	check("on", true, 1, 1)
	tell(t, s, "POST", "/_engine/faults", `{}`, nil)
	writeRows(t, c, rowsOf("b"))
	check("off", false, 1, 1)
	tell(t, s, "POST", "/_engine/faults", `{"rate":0.5}`, nil)
	check("others set", true, 0, 0)
	refused()
	tell(t, s, "DELETE", "/_engine/faults", "", nil)
	check("deleted", false, 0, 0)
}

func TestResetBodyResetsConnection(t *testing.T) {
	s, _ := faulty(t, faults.Fault{Action: faults.ResetBody})
	createTable(t, inProcess(s), "t", 1)
	c := sdk("http://"+onPort(t, s, Limits{}), nil)
	_, err := c.BatchWriteRow(batchOf(3))
	conformance.True(t, err != nil && strings.Contains(err.Error(), "reset by peer"), "%v", err)
}
