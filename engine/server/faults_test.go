package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
)

func faulty(t *testing.T, f faults.Fault) (*Server, *faults.Plan) {
	plan := &faults.Plan{Decide: func(r faults.Request) faults.Fault {
		if r.N == 0 {
			return f
		}
		return faults.Fault{}
	}}
	return open(t, Options{Faults: plan}), plan
}

func eachWay(t *testing.T, fault faults.Fault, f func(t *testing.T, c *tablestore.TableStoreClient, p *faults.Plan)) {
	for way, client := range map[string]func(testing.TB, *Server) *tablestore.TableStoreClient{
		"direct": func(_ testing.TB, s *Server) *tablestore.TableStoreClient { return inProcess(s) }, "over HTTP": overHTTP,
	} {
		t.Run(way, func(t *testing.T) {
			s, p := faulty(t, fault)
			createTable(t, inProcess(s), "t", 1)
			f(t, client(t, s), p)
		})
	}
}

func batchOf(n int) *tablestore.BatchWriteRowRequest {
	b := &tablestore.BatchWriteRowRequest{}
	for i := range n {
		b.AddRowChange(put("t", key("k", int64(i)), "v", int64(i)))
	}
	return b
}

func rowsIn(t *testing.T, c *tablestore.TableStoreClient) int {
	t.Helper()
	return len(scan(t, c, "t", tablestore.FORWARD, 0))
}

func hasRows(t *testing.T, c *tablestore.TableStoreClient, want int) {
	t.Helper()
	conformance.Equal(t, rowsIn(t, c), want, "rows")
}

func TestWholeRequestFaults(t *testing.T) {
	for name, v := range map[string]struct {
		fault   faults.Fault
		err     string // part of the code or of the text
		applied int
	}{
		"busy":         {faults.Fault{Action: faults.Refuse, Code: "OTSServerBusy"}, "OTSServerBusy", 0},
		"an odd code":  {faults.Fault{Action: faults.Refuse, Code: "OTSStorageServerBusy"}, "OTSStorageServerBusy", 0},
		"cut before":   {faults.Fault{Action: faults.DropBefore}, "EOF", 0},
		"cut after":    {faults.Fault{Action: faults.DropAfter}, "EOF", 3},
		"then timeout": {faults.Fault{Action: faults.AnswerErrorAfter}, "OTSTimeout", 3},
		"then internal": {faults.Fault{Action: faults.AnswerErrorAfter, Code: "OTSInternalServerError"},
			"OTSInternalServerError", 3},
		"a proxy's page": {faults.Fault{Action: faults.BadBody}, "OTSServerUnavailable", 0},
		"a cut answer":   {faults.Fault{Action: faults.TruncateBody}, "EOF", 3},
		"reset midway":   {faults.Fault{Action: faults.ResetBody}, "", 3},
		"late, and cut":  {faults.Fault{Action: faults.ApplyLate, Delay: 20 * time.Millisecond}, "", 3},
		"late, then timeout": {faults.Fault{Action: faults.ApplyLate, Code: "OTSTimeout", Delay: 20 * time.Millisecond},
			"OTSTimeout", 3},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, v.fault, func(t *testing.T, c *tablestore.TableStoreClient, p *faults.Plan) {
				_, err := c.BatchWriteRow(batchOf(3))
				conformance.True(t, err != nil && strings.Contains(code(err), v.err) && p.Done()[v.fault.Action] == 1,
					"got %v, %v, want %s", err, p.Done(), v.err)
				p.WaitLate()
				n := rowsIn(t, c)
				conformance.True(t, n == v.applied && p.Late() == 0, "%d rows applied, want %d", n, v.applied)
				writeRows(t, c, batchOf(5))
				n = rowsIn(t, c)
				conformance.True(t, n == 5 && p.Requests() == 2, "%d rows after %d requests", n, p.Requests())
			})
		})
	}
}

func TestRowsAreRefusedOneByOne(t *testing.T) {
	fault := faults.Fault{Action: faults.RefuseRows, RowCode: func(i int) string {
		return map[int]string{1: "OTSServerBusy", 3: "OTSNotEnoughCapacityUnit"}[i]
	}}
	eachWay(t, fault, func(t *testing.T, c *tablestore.TableStoreClient, p *faults.Plan) {
		for i, got := range writeRows(t, c, batchOf(5)) {
			conformance.Equal(t, got, fault.RowCode(i), "row %d", i)
		}
		hasRows(t, c, 3)
	})
}

// Of five rows a fault refuses one, its partition's capacity another. Later rows are lost before and after applying.
func TestARowOfABulkImportIsAcknowledgedOnlyIfItWasApplied(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		var rows []*tablestore.PutRowChange
		for i := range int64(5) {
			rows = append(rows, put("t", key("k", i), "v", i))
		}
		s.SetFaults(&faults.Plan{Only: func(op string) bool { return op == "BulkImport" },
			Decide: func(r faults.Request) faults.Fault {
				refused := func(i int) string { return map[int]string{1: "OTSServerBusy"}[i] }
				return []faults.Fault{{Action: faults.RefuseRows, RowCode: refused}, {Action: faults.DropBefore},
					{Action: faults.DropAfter}}[min(r.N, 2)]
			}})
		tell(t, s, "POST", "/_engine/tables/t/simulate", `{"partition_wcu": 3, "burst_ms": 1000}`, nil)
		time.Sleep(time.Second)
		var applied []bool
		answer := raw(s, "BulkImport", bulkImport(rows...), nil).body
		for b := answer; len(b) > 0; {
			id, _, n := protowire.ConsumeTag(b)
			row, m := protowire.ConsumeBytes(b[n:])
			if b = b[n+m:]; id == 2 {
				applied = append(applied, row[1] == 1)
			}
		}
		conformance.Same(t, applied, []bool{true, false, true, true, false}, "%q", answer)
		for _, want := range []int{3, 3, 5} {
			hasRows(t, c, want)
			time.Sleep(time.Second)
			raw(s, "BulkImport", bulkImport(rows[1], rows[4]), nil)
		}
	})
}

func TestAClosedServerSaysThatNothingWasApplied(t *testing.T) {
	s := reopen(t, "", Options{InMemory: true})
	must(t, s.Close())
	conformance.Equal(t, raw(s, "ListTable", nil, nil).status, http.StatusServiceUnavailable, "status")
	must(t, s.Close())
}

func TestARequestIsNotAppliedLaterThanThePlanAllows(t *testing.T) {
	for within, want := range map[time.Duration]int{0: 3, time.Nanosecond: 0, time.Hour: 3} {
		s, plan := faulty(t, faults.Fault{Action: faults.ApplyLate, Delay: time.Millisecond})
		plan.Within = within
		c := inProcess(s)
		createTable(t, c, "t", 1)
		_, err := c.BatchWriteRow(batchOf(3))
		conformance.MustTrue(t, err != nil, "the request was answered")
		plan.WaitLate()
		hasRows(t, c, want)
	}
}
