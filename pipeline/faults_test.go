package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

// randomFaults lets a share of the requests fail in every passing way.
func randomFaults(rnd *rand.Rand) func(faults.Request) faults.Fault {
	share := rnd.Float64() * 0.6
	source := rand.New(rand.NewPCG(rnd.Uint64(), 1))
	var mu sync.Mutex
	return func(faults.Request) faults.Fault {
		mu.Lock()
		defer mu.Unlock()
		if source.Float64() >= share {
			return faults.Fault{}
		}
		return passingFaults[source.IntN(len(passingFaults))]
	}
}

// passingFaults are all the ways in which a request can fail that a later attempt need not meet.
var passingFaults = []faults.Fault{
	{Action: faults.Refuse, Code: "OTSServerBusy"},
	{Action: faults.Refuse, Code: "OTSNotEnoughCapacityUnit"},
	{Action: faults.Refuse, Code: "OTSPartitionUnavailable"},
	{Action: faults.Refuse, Code: "OTSTimeout"},
	{Action: faults.DropBefore},
	{Action: faults.DropAfter},
	{Action: faults.AnswerErrorAfter, Code: "OTSInternalServerError"},
	{Action: faults.AnswerErrorAfter, Code: "OTSServerUnavailable"},
	{Action: faults.ApplyLate, Delay: lateness},
	{Action: faults.ApplyLate, Delay: lateness / 4, Code: "OTSTimeout"},
	{Action: faults.BadBody},
	{Action: faults.BadBody, Code: "404"},
	{Action: faults.PageAfter, Code: "429"},
	{Action: faults.PageAfter, Code: "403"},
	{Action: faults.Redirect},
	{Action: faults.FlipBit, Bit: 77},
	{Action: faults.FlipBit, Bit: 1001},
	{Action: faults.AnswerErrorAfter, Code: "Throttling.User"},
	{Action: faults.TruncateBody},
	{Action: faults.RefuseRows, RowCode: func(i int) string { return everyThird(i, "OTSNotEnoughCapacityUnit") }},
	{Action: faults.RefuseRows, RowCode: func(i int) string { return everyThird(i+1, "OTSRowOperationConflict") }},
	{Action: faults.RefuseRows, RowCode: func(i int) string { return everyThird(i+2, "OTSTimeout") }},
	{Action: faults.RefuseRows, RowCode: func(int) string { return "OTSCapacityUnitExhausted" }},
}

func everyThird(i int, code string) string {
	if i%3 == 0 {
		return code
	}
	return ""
}

// TestEveryRequestMayFailInEveryWay fails request 0, then request 1, … each in every passing way, until a load has no
// such request any more.
func TestEveryRequestMayFailInEveryWay(t *testing.T) {
	text := repeated(60, 12)
	want := lastOf(t, text)
	for f := range passingFaults {
		fault := passingFaults[f]
		t.Run(fmt.Sprintf("fault %d, action %d %s", f, fault.Action, fault.Code), func(t *testing.T) {
			t.Parallel()
			for n, past := 0, false; !past; n++ {
				synctest.Test(t, func(t *testing.T) { past = failsAt(t, text, want, fault, n) })
			}
		})
	}
}

// failsAt loads with request n failing. It reports whether the load had no request n.
func failsAt(t *testing.T, text string, want contents, fault faults.Fault, n int) (past bool) {
	w := newWorld(t)
	hit := false
	w.fail(fault, func(r faults.Request) bool {
		hit = hit || r.N == n
		return r.N == n
	})
	cfg := w.config(w.file("in.csv", text))
	cfg.Lanes.Concurrency, cfg.Lanes.BatchRows = 1, 8 // one request at a time: hit needs no lock
	r := w.load(cfg)
	w.wantRows(want)
	conformance.Equal(t, r.Rejected, 1, "request %d: rejected", n)
	if t.Failed() {
		t.Fatalf("with request %d failing", n)
	}
	return !hit
}

// A row that the service can neither take nor refuse is rejected, regardless of what is sent with it, and the others are written.
func TestARowThatAlwaysFailsIsRejected(t *testing.T) {
	poisoned := func(r table.Ref) bool { return bytes.Contains(r.Body(), []byte("poison")) }
	for name, fault := range map[string]func(sent []table.Ref) faults.Fault{
		"of its own": func(sent []table.Ref) faults.Fault {
			return faults.Fault{Action: faults.RefuseRows, RowCode: func(row int) string {
				if poisoned(sent[row]) {
					return "OTSInternalServerError"
				}
				return ""
			}}
		},
		"with its request": func(sent []table.Ref) faults.Fault {
			if slices.ContainsFunc(sent, poisoned) {
				return faults.Fault{Action: faults.Refuse, Code: "OTSInternalServerError"}
			}
			return faults.Fault{}
		},
		"applied": func(sent []table.Ref) faults.Fault {
			if slices.ContainsFunc(sent, poisoned) {
				return faults.Fault{Action: faults.AnswerErrorAfter, Code: "OTSInternalServerError"}
			}
			return faults.Fault{}
		},
	} {
		for _, order := range []plan.Order{plan.LastWins, plan.OrderNone} {
			t.Run(fmt.Sprint(name, " ", order), virtual(func(t *testing.T, w *world) {
				text := "id,a\n"
				for i := range 500 {
					value := "good"
					if i == 0 || i == 250 {
						value = "poison"
					}
					text += fmt.Sprintf("key%03d,%s\n", i, value)
				}
				cfg := w.config(w.file("in.csv", text))
				cfg.Write.Order, cfg.Lanes.RetryFor = order, 3*time.Second
				w.plan.Only = func(op string) bool { return op == "BatchWriteRow" }
				cfg.Lanes.Concurrency = 1 // a request is decided about right after its rows were seen
				var sent []table.Ref
				cfg.onSend = func(rows []table.Ref) { sent = slices.Clone(rows) }
				w.plan.Decide = func(faults.Request) faults.Fault { return fault(sent) }
				r := w.load(cfg)
				if r.Written != 498 || r.Rejected != 2 || r.MaybeApplied != 2 || r.ExitCode != exitcode.Rejects {
					t.Errorf("%d written, %d rejected, %d of them maybe applied, exit code %d: %s", r.Written, r.Rejected, r.MaybeApplied, r.ExitCode, r.Error)
				}
				for _, line := range lines(t, filepath.Join(cfg.RunDir, rundir.ReasonsFile)) {
					var reason rundir.Reason
					if err := json.Unmarshal([]byte(line), &reason); err != nil || !reason.MaybeApplied || reason.Code != "OTSInternalServerError" ||
						!strings.Contains(reason.Message, "of them alone, while other rows were written") {
						t.Errorf("%s, %v", line, err)
					}
				}
			}))
		}
	}
}

// While nothing at all is written, the service is down: no row is rejected for that, however often it fails.
func TestAnOutageRejectsNothing(t *testing.T) {
	for _, code := range []string{"OTSInternalServerError", "OTSServerUnavailable", "OTSTimeout", ""} {
		t.Run(code, virtual(func(t *testing.T, w *world) {
			text, want := plainCSV(80)
			cfg := w.config(w.file("in.csv", text))
			cfg.Pacer = func() lanes.Pacer { return restless{} }
			cfg.Lanes.BatchRows = 1
			var mu sync.Mutex
			sent := map[string]int{}
			w.plan.Only = func(op string) bool { return op == "BatchWriteRow" }
			outage := 0
			w.plan.Decide = func(r faults.Request) faults.Fault {
				mu.Lock()
				defer mu.Unlock()
				if outage++; outage < 20 || outage > 3000 {
					return faults.Fault{}
				}
				if code == "" {
					return faults.Fault{Action: faults.DropBefore}
				}
				return faults.Fault{Action: faults.Refuse, Code: code}
			}
			cfg.onSend = func(rows []table.Ref) {
				mu.Lock()
				defer mu.Unlock()
				for _, r := range rows {
					sent[string(r.Key())]++
				}
			}
			r := w.load(cfg)
			w.wantRows(want)
			most := 0
			for _, n := range sent {
				most = max(most, n)
			}
			if r.Rejected != 0 || most < 30 {
				t.Errorf("%d rejected; a row was sent %d times", r.Rejected, most)
			}
		}))
	}
}
