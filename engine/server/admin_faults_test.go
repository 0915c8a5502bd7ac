package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/engine/faults"
)

func TestFaultsAreSetAndCountedOverTheAdminAPI(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		must(t, s, "POST", "/_engine/faults", `{"plan":[{"n":1,"action":"apply-late","delay_ms":500},{"n":2,"action":"refuse","code":"OTSTableNotReady"},{"n":3,"action":"refuse-rows","code":"OTSServerBusy"}]}`, nil)
		results := make([]string, 0, 4)
		for _, k := range []string{"a", "b", "c"} {
			_, err := c.BatchWriteRow(rowsOf(k))
			results = append(results, code(err))
		}
		if results[0] != "" || !strings.Contains(results[1], "EOF") || results[2] != "OTSTableNotReady" {
			t.Errorf("%q", results)
		}
		if n := rowsIn(t, c); n != 1 {
			t.Errorf("%d rows before the late one", n)
		}
		time.Sleep(501 * time.Millisecond)
		synctest.Wait()
		if n := rowsIn(t, c); n != 2 {
			t.Errorf("%d rows after the late one", n)
		}
		var got struct {
			On       bool
			Requests int
			Done     map[string]int
			Set      map[string]any
		}
		must(t, s, "GET", "/_engine/faults", "", &got)
		if !got.On || got.Requests != 3 || got.Done["apply-late"] != 1 || got.Done["refuse"] != 1 || got.Set["plan"] == nil {
			t.Errorf("%+v", got)
		}
		must(t, s, "POST", "/_engine/faults", `{"rate":1,"kinds":["drop-after"],"operations":["PutRow"]}`, nil)
		if _, err := c.BatchWriteRow(rowsOf("d")); err != nil {
			t.Error(err)
		}
		if _, err := c.PutRow(&tablestore.PutRowRequest{PutRowChange: put("t", key("e", 1))}); err == nil {
			t.Error("no fault")
		}
		must(t, s, "POST", "/_engine/faults", `{"rate":0}`, &got)
		if got.On || s.Faults() != nil {
			t.Error("faults are still on")
		}
	})
}

func TestAnAnswerIsResetInItsMiddle(t *testing.T) {
	eachWay(t, faults.Fault{Action: faults.ResetBody}, func(t *testing.T, c *tablestore.TableStoreClient, p *faults.Plan) {
		_, err := c.BatchWriteRow(batchOf(3))
		if err == nil || !strings.Contains(err.Error(), "reset") && !strings.Contains(err.Error(), "EOF") {
			t.Errorf("%v", err)
		}
		if n := rowsIn(t, c); n != 3 || p.Done()[faults.ResetBody] != 1 {
			t.Errorf("%d rows applied, %v", n, p.Done())
		}
	})
}

func TestASingleRowIsRefusedAsARequest(t *testing.T) {
	plan := &faults.Plan{Only: func(op string) bool { return op == "PutRow" }, Decide: func(faults.Request) faults.Fault {
		return faults.Fault{Action: faults.RefuseRows, RowCode: func(int) string { return "OTSServerBusy" }}
	}}
	s := open(t, Options{Faults: plan})
	c := inProcess(s)
	createTable(t, c, "t", 1)
	if _, err := c.PutRow(&tablestore.PutRowRequest{PutRowChange: put("t", key("a", 1))}); code(err) != "OTSServerBusy" {
		t.Error(err)
	}
	if n := rowsIn(t, c); n != 0 {
		t.Errorf("%d rows", n)
	}
}
