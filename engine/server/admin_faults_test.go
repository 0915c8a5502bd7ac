package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
)

func TestFaultsAreSetAndCountedOverTheAdminAPI(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		tell(t, s, "POST", "/_engine/faults", `{"plan":[{"n":1,"action":"apply-late","delay_ms":500},{"n":2,"action":"refuse","code":"OTSTableNotReady"},{"n":3,"action":"refuse-rows","code":"OTSServerBusy"}]}`, nil)
		results := make([]string, 0, 4)
		for _, k := range []string{"a", "b", "c"} {
			_, err := c.BatchWriteRow(rowsOf(k))
			results = append(results, code(err))
		}
		if results[0] != "" || !strings.Contains(results[1], "EOF") || results[2] != "OTSTableNotReady" {
			t.Errorf("%q", results)
		}
		hasRows(t, c, 1) // before the late one
		time.Sleep(501 * time.Millisecond)
		synctest.Wait()
		hasRows(t, c, 2) // after the late one
		var got faultsShown
		tell(t, s, "GET", "/_engine/faults", "", &got)
		if !got.On || got.Requests != 3 || got.Done["apply-late"] != 1 || got.Done["refuse"] != 1 || got.Set["plan"] == nil {
			t.Errorf("%+v", got)
		}
		tell(t, s, "POST", "/_engine/faults", `{"rate":1,"kinds":["drop-after"],"operations":["PutRow"]}`, nil)
		writeRows(t, c, rowsOf("d"))
		if putRow(c, put("t", key("e", 1))) == nil {
			t.Error("no fault")
		}
		tell(t, s, "POST", "/_engine/faults", `{"rate":0}`, &got)
		if got.On || s.Faults() != nil {
			t.Error("faults are still on")
		}
	})
}

// faultsShown is what the admin API says of faults.
type faultsShown struct {
	Set      map[string]any
	On       bool
	Requests int
	Done     map[string]int
}

func TestFaultsFromTheOptionsAreShown(t *testing.T) {
	random, err := faults.Random{Rate: 0.25, Kinds: []string{"refuse:OTSServerBusy"}, Delay: 2 * time.Second, Seed: 7}.Plan()
	must(t, err)
	scripted, err := faults.Scripted([]faults.Step{{N: 3, Action: "apply-late", Delay: time.Second}}, []string{"PutRow"})
	must(t, err)
	for name, tt := range map[string]struct {
		plan *faults.Plan
		want map[string]any
	}{
		"random":   {random, map[string]any{"rate": 0.25, "kinds": []any{"refuse:OTSServerBusy"}, "delay_ms": 2000.0, "seed": 7.0}},
		"scripted": {scripted, map[string]any{"operations": []any{"PutRow"}, "plan": []any{map[string]any{"n": 3.0, "action": "apply-late", "delay_ms": 1000.0}}}},
		"by hand":  {&faults.Plan{}, nil},
	} {
		s := open(t, Options{Faults: tt.plan})
		var got faultsShown
		tell(t, s, "GET", "/_engine/faults", "", &got)
		if diff := cmp.Diff(tt.want, got.Set); diff != "" || !got.On {
			t.Errorf("%s: on %v (-want +got)\n%s", name, got.On, diff)
		}
	}
}

func TestTheCountsOfFaultsOutliveThemUntilTheyAreDeletedOrOthersAreSet(t *testing.T) {
	s, c := withTable(t, Options{})
	refused := func() {
		t.Helper()
		tell(t, s, "POST", "/_engine/faults", `{"rate":1,"kinds":["refuse:OTSServerBusy"]}`, nil)
		if _, err := c.BatchWriteRow(rowsOf("a")); code(err) != "OTSServerBusy" {
			t.Fatal(err)
		}
	}
	check := func(when string, on bool, requests, done int) {
		t.Helper()
		var got faultsShown
		tell(t, s, "GET", "/_engine/faults", "", &got)
		if got.On != on || (got.Set != nil) != on || got.Requests != requests || got.Done["refuse"] != done {
			t.Errorf("%s: %+v", when, got)
		}
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

func TestAnAnswerIsResetAtAPort(t *testing.T) {
	s, _ := faulty(t, faults.Fault{Action: faults.ResetBody})
	createTable(t, inProcess(s), "t", 1)
	c := sdk("http://"+onPort(t, s, Limits{}), nil)
	if _, err := c.BatchWriteRow(batchOf(3)); err == nil || !strings.Contains(err.Error(), "reset by peer") {
		t.Errorf("%v", err)
	}
}

func TestASingleRowIsRefusedAsARequest(t *testing.T) {
	plan := &faults.Plan{Only: func(op string) bool { return op == "PutRow" }, Decide: func(faults.Request) faults.Fault {
		return faults.Fault{Action: faults.RefuseRows, RowCode: func(int) string { return "OTSServerBusy" }}
	}}
	_, c := withTable(t, Options{Faults: plan})
	conformance.Equal(t, code(putRow(c, put("t", key("a", 1)))), "OTSServerBusy", "put row")
	hasRows(t, c, 0)
}
