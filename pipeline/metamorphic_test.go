package pipeline

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tsimport/engine/faults"
	"tsimport/engine/server"
	"tsimport/engine/sim"
	"tsimport/internal/table"
	"tsimport/pipeline/plan"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run the metamorphic test with this seed only")
	seedsFlag = flag.Int("seeds", 3, "how many seeds the metamorphic test runs with")
)

// TestAnyRunLeavesTheTableOfASequentialLoad draws an input with repeated keys, the way it is loaded (mode, condition,
// workers, batch size, split size, memory) and passing faults from a seed. In every case the table must be that of
// a plain sequential load and the ledger must balance. A failure is repeated with -seed.
func TestAnyRunLeavesTheTableOfASequentialLoad(t *testing.T) {
	if *seedFlag != 0 {
		metamorphic(t, *seedFlag)
		return
	}
	for seed := range uint64(few(*seedsFlag)) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			t.Parallel()
			metamorphic(t, seed+1)
		})
	}
}

func metamorphic(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	w := newWorld(t)
	if rand.New(rand.NewPCG(seed, 8)).IntN(3) == 0 {
		w.template = "t_{bucket(id, 7)}" // the tables together must hold what one would
	}
	keys := 1 + rnd.IntN(300)
	before := contents{}
	m := model{mode: table.Mode(rnd.IntN(3)), condition: table.Existence(rnd.IntN(3))}
	if m.mode == table.Delete && m.condition == table.ExpectExist {
		// Whether a delete that was repeated found its row is not known; the count of rejects would not be either.
		m.condition = table.Ignore
	}
	m.deleteNull = m.mode == table.Update && rnd.IntN(2) == 0
	// Two records that say the same of one key cannot be distinguished when the answer for the second is lost and its
	// condition then fails: the table is right, the count may say written instead of rejected. The same holds for a record that
	// says what was there before.
	distinct := m.condition == table.ExpectNotExist
	order, records := plan.Order(rnd.IntN(2)), 500+rnd.IntN(2500)
	text := randomCSV(rnd, records, keys, distinct)
	if order == plan.OrderNone {
		keys = records
		text = uniqueKeys(rnd, text)
	}
	if rnd.IntN(2) == 0 || m.mode == table.Delete {
		first := earlier(randomCSV(rnd, 200, keys, false))
		before, _ = model{}.apply(t, before, first)
		w.load(w.config(w.file("before.csv", first)))
		w.wantRows(before)
	}
	want, rejected := m.apply(t, before, text)

	cfg := w.config(w.file("in.csv", text))
	cfg.Write.Mode, cfg.Write.Condition, cfg.Write.DeleteNull = m.mode, m.condition, m.deleteNull
	cfg.Write.Concurrency = 1 + rnd.IntN(16)
	cfg.Write.BatchRows = 1 + rnd.IntN(table.MaxBatchRows)
	cfg.Read.SplitBytes = 64 + rnd.IntN(8<<10)
	cfg.Read.Parsers = 1 + rnd.IntN(4)
	cfg.Limits.Memory = int64(1 + rnd.IntN(1<<20))
	cfg.Limits.TempDir = w.dir
	cfg.Limits.TempMax = int64(rnd.IntN(3)) * 50_000
	cfg.Write.Order = order
	cfg.surveyEvery = 2 * time.Millisecond
	cfg.pacer = func() pacer { return restless{} }
	w.plan.Decide = w.splitting(rnd, keys, randomFaults(rnd))
	r := w.load(cfg)
	w.plan.Change(w.plan.Only, nil) // a look at the partitions may still be on its way

	w.wantRows(want)
	w.verifies(cfg, r)
	if r.Read != int64(strings.Count(text, "\n")-1) || r.Rejected != rejected {
		t.Errorf("%d read, %d rejected; want %d and %d", r.Read, r.Rejected, strings.Count(text, "\n")-1, rejected)
	}
	t.Logf("%v, %d partitions, %d recuts, %d rows spilled, %d sent in %d requests", order, r.Partitions, r.Recuts, r.SpilledRows, r.RowsSent, r.Requests)
	if t.Failed() {
		t.Logf("%+v, %d keys, %+v, split %d, memory %d: repeat with -run TestAnyRun -seed %d",
			m, keys, cfg.Write, cfg.Read.SplitBytes, cfg.Limits.Memory, seed)
	}
}

// randomCSV makes records with the header id, a, b, c over few keys, some cells and some keys empty. With distinct, no
// two records have the same cells.
func randomCSV(rnd *rand.Rand, records, keys int, distinct bool) string {
	var b strings.Builder
	b.WriteString("id,a,b,c\n")
	for i := range records {
		id := fmt.Sprintf("key%d", rnd.IntN(keys))
		if rnd.IntN(200) == 0 {
			id = ""
		}
		cells := []string{id}
		for _, c := range "abc" {
			v := fmt.Sprintf("%c%d", c, i)
			if rnd.IntN(3) == 0 && !(distinct && c == 'c') {
				v = ""
			}
			cells = append(cells, v)
		}
		b.WriteString(strings.Join(cells, ",") + "\n")
	}
	return b.String()
}

// earlier changes the cells in the last column of records, so that no record of another randomCSV says the same.
func earlier(text string) string {
	header, records, _ := strings.Cut(text, "\n")
	return header + "\n" + strings.ReplaceAll(records, ",c", ",before")
}

// uniqueKeys gives every record that has a key one of its own: those of a shuffled, or a sorted, key1, key2, ….
func uniqueKeys(rnd *rand.Rand, text string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	numbers := rnd.Perm(len(lines))
	if rnd.IntN(2) == 0 {
		slices.SortFunc(numbers, func(a, b int) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	for i, line := range lines[1:] {
		if _, cells, _ := strings.Cut(line, ","); line[0] != ',' {
			lines[i+1] = fmt.Sprintf("key%d,%s", numbers[i], cells)
		}
	}
	return strings.Join(lines, "") + "\n"
}

// splitting cuts the table into other partitions every now and then, which do not serve for a moment.
func (w *world) splitting(rnd *rand.Rand, keys int, decide func(faults.Request) faults.Fault) func(faults.Request) faults.Fault {
	every := 5 + rnd.IntN(40)
	source := rand.New(rand.NewPCG(rnd.Uint64(), 2))
	var mu sync.Mutex
	return func(r faults.Request) faults.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.N%every == 0 && r.N/every < 8 {
			at := sim.Key(fmt.Sprintf("key%d", source.IntN(keys)))
			name := "t"
			if w.template != "" {
				name = fmt.Sprintf("t_%d", source.IntN(7))
			}
			err := w.engine().Sim().Split(context.Background(), name, server.Cut{Keys: []sim.Key{at}, Unavailable: time.Duration(source.IntN(10)) * time.Millisecond})
			if err != nil && w.template == "" { // a table among several may not be there yet
				w.t.Error(err)
			}
		}
		return decide(r)
	}
}

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
	rnd := rand.New(rand.NewPCG(3, 3))
	text := randomCSV(rnd, 60, 12, false)
	want, rejected := model{}.apply(t, contents{}, text)
	for f := range passingFaults {
		fault := passingFaults[f]
		t.Run(fmt.Sprintf("fault %d, action %d %s", f, fault.Action, fault.Code), func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n++ {
				if failsAt(t, text, want, rejected, fault, n) {
					break
				}
			}
		})
	}
}

// failsAt loads with request n failing. It reports whether the load had no request n.
func failsAt(t *testing.T, text string, want contents, rejected int64, fault faults.Fault, n int) (past bool) {
	w := newWorld(t)
	hit := false
	w.plan.Decide = func(r faults.Request) faults.Fault {
		if r.N == n {
			hit = true
			return fault
		}
		return faults.Fault{}
	}
	cfg := w.config(w.file("in.csv", text))
	cfg.Write.Concurrency, cfg.Write.BatchRows = 1, 8 // one request at a time: hit needs no lock
	r := w.load(cfg)
	w.wantRows(want)
	if r.Rejected != rejected {
		t.Errorf("request %d: %d rejected, want %d", n, r.Rejected, rejected)
	}
	if t.Failed() {
		t.Fatalf("with request %d failing", n)
	}
	return !hit
}
