package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/wire"
)

// honestPlan is fixed: refusals of requests and of rows, lost answers and late applications, one after the other.
func honestPlan() *faults.Plan {
	some := func(row int) string {
		return []string{"", wire.CodeServerBusy, "", "", wire.CodePartitionUnavailable, wire.CodeNotEnoughCapacityUnit}[row%6]
	}
	turns := []faults.Fault{
		{}, {Action: faults.RefuseRows, RowCode: some}, {Action: faults.Refuse, Code: wire.CodeServerBusy}, {Action: faults.DropBefore},
		{Action: faults.RefuseRows, RowCode: some}, {Action: faults.DropAfter}, {Action: faults.Refuse, Code: wire.CodeServerUnavailable},
		{Action: faults.AnswerErrorAfter}, {Action: faults.ApplyLate, Delay: 5 * time.Millisecond}, {Action: faults.BadBody, Code: "503"},
	}
	return &faults.Plan{
		Only:   func(op string) bool { return op == "BatchWriteRow" || op == "BulkImport" },
		Decide: func(r faults.Request) faults.Fault { return turns[r.N%len(turns)] },
	}
}

// TestARowIsAcknowledgedOnlyIfItWasApplied sends rows with keys of their own under the plan, in front of partitions that refuse most of
// them for their capacity: each row that is acknowledged is there, and none that is refused.
func TestARowIsAcknowledgedOnlyIfItWasApplied(t *testing.T) {
	for _, operation := range []string{"BatchWriteRow", "BulkImport"} {
		t.Run(operation, func(t *testing.T) {
			plan := honestPlan()
			s, c := withTable(t, Options{Faults: plan, Simulation: &Simulation{Config: sim.Config{PartitionUnits: 300, Burst: 100 * time.Millisecond}}})
			send := sendBatch
			if operation == "BulkImport" {
				send = sendBulk
			}
			const requests, rows = 60, 50
			fate := map[int64]string{} // by row; missing is unknown
			seen := map[string]int{}
			for n := range int64(requests) {
				for i, got := range send(t, s, n*rows, rows) {
					if got == "unknown" {
						continue
					}
					fate[n*rows+int64(i)] = got
					seen[got]++
				}
			}
			s.SetFaults(nil)
			plan.WaitLate()
			there := map[int64]bool{}
			for _, row := range scan(t, c, "t", tablestore.FORWARD, 0) {
				n, err := strconv.ParseInt(strings.Fields(row)[1], 10, 64)
				must(t, err)
				there[n] = true
			}
			for n, got := range fate {
				if there[n] != (got == "applied") {
					t.Errorf("row %d was %s, and is in the table: %t", n, got, there[n])
				}
			}
			if seen["applied"] == 0 || seen["refused"] == 0 || len(fate) == requests*rows {
				t.Errorf("rows by answer: %v of %d: the plan shows nothing", seen, requests*rows)
			}
		})
	}
}

// sendBatch sends rows and says what the answer says of each: applied, refused or unknown.
func sendBatch(t *testing.T, s *Server, from int64, rows int) []string {
	b := &tablestore.BatchWriteRowRequest{}
	for i := range int64(rows) {
		b.AddRowChange(put("t", key(fmt.Sprint("k", i%9), from+i), "v", i))
	}
	r, err := inProcess(s).BatchWriteRow(b)
	fates := make([]string, rows)
	for i := range fates {
		switch {
		case err != nil:
			fates[i] = fateOf(err)
		case r.TableToRowsResult["t"][i].IsSucceed:
			fates[i] = "applied"
		default:
			fates[i] = "refused"
		}
	}
	return fates
}

// fateOf is what a request's failure says of its rows.
func fateOf(err error) string {
	var e *tablestore.OtsError
	if errors.As(err, &e) && (e.Code == wire.CodeServerBusy || e.HttpStatusCode < 500) {
		return "refused"
	}
	return "unknown"
}

func sendBulk(t *testing.T, s *Server, from int64, rows int) []string {
	var puts []*tablestore.PutRowChange
	for i := range int64(rows) {
		puts = append(puts, put("t", key(fmt.Sprint("k", i%9), from+i), "v", i))
	}
	body := bulkImport(puts...)
	fates := make([]string, rows)
	for i := range fates {
		fates[i] = "unknown"
	}
	resp, err := s.Transport().RoundTrip(signed(s, "BulkImport", body))
	if err != nil {
		return fates
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fates
	}
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode < 500 || bytes.Contains(answer, []byte(wire.CodeServerBusy)) {
			for i := range fates {
				fates[i] = "refused"
			}
		}
		return fates
	}
	for i := 0; len(answer) > 0; {
		id, _, n := protowire.ConsumeTag(answer)
		value, m := protowire.ConsumeBytes(answer[n:])
		if answer = answer[n+m:]; id != 2 {
			continue
		}
		_, _, n = protowire.ConsumeTag(value)
		ok, _ := protowire.ConsumeVarint(value[n:])
		fates[i] = map[bool]string{true: "applied", false: "refused"}[ok == 1]
		i++
	}
	return fates
}
