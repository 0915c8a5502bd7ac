package pipeline

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tsimport/engine/faults"
	"tsimport/engine/server"
	"tsimport/engine/sim"
	"tsimport/pipeline/plan"
)

var faultSeedsFlag = flag.Int("fault-seeds", 1, "how many seeds the test of a tenth of failing requests runs with")

// TestATenthOfTheRequestsMayFailInEveryWay loads into a table of four partitions, each with a capacity, that are split on
// the way, with the rate controller that paces lanes, while every tenth request fails: refused as a whole or in part with every passing
// code, cut off before and after it was applied, applied and answered with an error or garbage, applied late. In both orders
// the table must be that of a plain sequential load and the ledger must balance.
func TestATenthOfTheRequestsMayFailInEveryWay(t *testing.T) {
	for seed := range uint64(few(*faultSeedsFlag)) {
		for _, order := range []plan.Order{plan.LastWins, plan.OrderNone} {
			t.Run(fmt.Sprintf("seed %d, %v", seed+1, order), func(t *testing.T) {
				t.Parallel()
				aTenthFails(t, seed+1, order)
			})
		}
	}
}

func aTenthFails(t *testing.T, seed uint64, order plan.Order) {
	rnd := rand.New(rand.NewPCG(seed, 11))
	w := newWorld(t)
	const records = 20_000
	keys := records / 4
	text := randomCSV(rnd, records, keys, false)
	if order == plan.OrderNone {
		keys = records
		text = uniqueKeys(rnd, text)
	}
	want, rejected := model{}.apply(t, contents{}, text)
	w.partitioned(server.Simulation{Config: sim.Config{PartitionUnits: 20_000, Burst: 100 * time.Millisecond, Latency: time.Millisecond, Jitter: 0.5}},
		"key3", "key5", "key7")
	plan, err := faults.Random{Rate: 0.1, Delay: lateness, Seed: seed}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	w.plan.Decide = w.splitting(rnd, keys, plan.Decide)
	cfg := w.config(w.file("in.csv", text))
	cfg.Write.Order = order
	cfg.surveyEvery = 20 * time.Millisecond
	cfg.Limits.Memory, cfg.Limits.TempDir = 8<<20, w.dir
	cfg.Read.SplitBytes = 16 << 10
	r := w.load(cfg)
	w.plan.Change(w.plan.Only, nil)
	w.wantRows(want)
	if r.Read != records || r.Rejected != rejected || r.Unfinished != 0 {
		t.Errorf("%d read, %d rejected, %d unfinished; want %d, %d, 0", r.Read, r.Rejected, r.Unfinished, records, rejected)
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, "tsimport-spill-*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind: %v", left, err)
	}
	t.Logf("%d partitions, %d recuts, %d spilled, %d sent, %d throttled, %d unavailable, %d requests, %.1f s",
		r.Partitions, r.Recuts, r.SpilledRows, r.RowsSent, r.Throttled, r.Unavailable, r.Requests, r.Seconds)
	if t.Failed() {
		t.Logf("first lines:\n%s", strings.Join(strings.SplitAfterN(text, "\n", 5)[:4], ""))
	}
}
