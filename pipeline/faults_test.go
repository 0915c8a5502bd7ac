package pipeline

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"tsimport/engine/faults"
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
	cfg.Write.Concurrency, cfg.Write.BatchRows = 1, 8 // one request at a time: hit needs no lock
	r := w.load(cfg)
	w.wantRows(want)
	if r.Rejected != 1 {
		t.Errorf("request %d: %d rejected, want 1", n, r.Rejected)
	}
	if t.Failed() {
		t.Fatalf("with request %d failing", n)
	}
	return !hit
}
