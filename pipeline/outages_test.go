package pipeline

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/ratelimit"
)

// outageCell is a load through an outage of the service.
type outageCell struct {
	lasts      time.Duration // 0 is none
	kind       string
	partitions int
	units      float64 // a second of each partition
	numbered   bool    // the service numbers the rows
	after      time.Duration
	continues  time.Duration // that the load has rows for after the outage
	begins     time.Duration // 0 is outageBegins, -1 with the first write
}

// outageBegins is when it does, after the first write.
const outageBegins = 3 * time.Second

// load returns how long the load takes, and how many rows of the input are missing or there twice.
func (c outageCell) load(t *testing.T) (r *Report, missing, doubled int) {
	key, column := []table.KeyColumn{{Name: "id", Type: table.String}}, "id"
	if c.numbered {
		key, column = numberedKey, "user"
	}
	rows := int(c.units * float64(c.partitions) * (c.after + c.continues).Seconds())
	rnd := rand.New(rand.NewPCG(1, 1))
	text := rowsOf(column+",what\n", rows, func(i int) string { return fmt.Sprintf("k%08d-%d,w%d\n", rnd.IntN(1e8), i, i) })
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		admin := w.admin()
		must(t, admin.Create("t", key, table.Definition{TimeToLive: -1, MaxVersions: 1}))
		must(t, w.server.Sim().Simulate("t", server.Simulation{Config: sim.Config{PartitionUnits: c.units, Latency: 5 * time.Millisecond}}))
		var bounds []string
		for i := 1; i < c.partitions; i++ {
			bounds = append(bounds, fmt.Sprintf("k%08d", i*1e8/c.partitions))
		}
		w.cutAt(0, bounds...)
		if c.lasts > 0 {
			w.plan.Outage = &faults.Outage{For: c.lasts, Kind: c.kind, After: max(0, cmp.Or(c.begins, outageBegins))}
		}
		cfg := w.config(w.file("in.csv", text))
		cfg.Target.Key, cfg.Write.Settle, cfg.Lanes.Backoff, cfg.Lanes.RetryFor = key, 0, Config{}.Lanes.Backoff, 0
		r = w.load(cfg)
		there := map[string]int{}
		for _, cells := range w.rows() {
			there[cells["what"]]++
		}
		for i := range rows {
			switch n := there[fmt.Sprintf("w%d", i)]; {
			case n == 0:
				missing++
			case n > 1:
				doubled++
			}
		}
	})
	return r, missing, doubled
}

// beyond returns the seconds that the load takes longer than one without the outage and the outage together.
func (c outageCell) beyond(t *testing.T) (dearer float64, r *Report, missing, doubled int) {
	r, missing, doubled = c.load(t)
	c.lasts = 0
	without, _, _ := c.load(t)
	return r.Seconds - without.Seconds, r, missing, doubled
}

// Requests that nobody answers hold no load up, and one that begins in an outage finds its rate after it.
func TestALoadContinuesSoonAfterAnOutage(t *testing.T) {
	t.Parallel()
	long := outageCell{lasts: 5 * time.Second, kind: faults.Timeout, after: outageBegins, continues: 45 * time.Second}
	for _, kind := range append([]string{"in the middle"}, faults.Busy, faults.Throttle, faults.Timeout) {
		for _, partitions := range []int{1, 4} {
			for _, numbered := range []bool{false, true} {
				c := long
				c.partitions, c.units, c.numbered = partitions, 40/float64(partitions), numbered
				if kind != "in the middle" {
					c.kind, c.units, c.after, c.begins = kind, 25, 0, -1
					if numbered != (kind == faults.Timeout) { // a load that ends sooner waits for the rows in doubt
						continue
					}
					if !numbered {
						c.lasts, c.continues = 10*time.Second, 10*time.Second
					}
				}
				dearer, r, missing, doubled := c.beyond(t)
				if dearer > c.lasts.Seconds()+2 || missing > 0 || doubled > 0 || c.begins == 0 && r.MaybeTwice > 0 {
					t.Errorf("%s, %d partitions: %.1f s dearer after an outage of %v; %d rows are missing, %d twice; %+v",
						kind, partitions, dearer, c.lasts, missing, doubled, r.ReportAttempts)
				}
				limits := func(l ledger.ReportLimit) bool { return l.By == "outage" && l.Seconds > 6 }
				if c.kind != faults.Timeout && !slices.ContainsFunc(r.LimitedBy, limits) {
					t.Errorf("%s, %d partitions: %+v", kind, partitions, r.LimitedBy)
				}
			}
		}
	}
}

var outageTable = flag.Bool("outage-table", false, "print what outages cost loads, in virtual time (make outages)")

// TestOutagesInVirtualTime shows what outages cost on any machine.
func TestOutagesInVirtualTime(t *testing.T) {
	if !*outageTable {
		t.Skip("set -outage-table (make outages)")
	}
	for _, begins := range []time.Duration{outageBegins, -1} {
		begun := max(0, begins)
		fmt.Printf("begins %v after the first write\noutage          partitions  rows      seconds beyond it  missing  doubled  in doubt\n", begun)
		for _, numbered := range []bool{false, true} {
			for _, partitions := range []int{1, 32} {
				without := -1.0
				for _, lasts := range []time.Duration{5 * time.Second, 15 * time.Second, time.Minute} {
					for _, kind := range faults.Outages {
						c := outageCell{lasts: lasts, kind: kind, partitions: partitions, units: 1000 / float64(partitions), numbered: numbered, after: begun, continues: time.Minute, begins: begins}
						name := "own keys"
						if numbered {
							name = "numbered"
						}
						r, missing, doubled := c.load(t)
						if without < 0 {
							c.lasts = 0
							plain, _, _ := c.load(t)
							without = plain.Seconds
						}
						fmt.Printf("%-15s %10d  %s %18.1f  %7d  %7d  %8d\n", fmt.Sprintf("%v %s", lasts, kind), partitions, name, r.Seconds-without-lasts.Seconds(), missing, doubled, r.MaybeTwice)
					}
				}
			}
		}
	}
}

// What is cut and not sent while the last checkpoint counts is not sent at all: the attempt that resumes would take it for
// settled.
func TestARequestDelayedByAPauseIsNotSent(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		cfg := w.config(w.file("in.csv", "id,a\nx,1\n"))
		cfg.keeping.KeptFor, cfg.Checkpoint.Every = 100*time.Millisecond, 5*time.Millisecond
		var tries, requests atomic.Int64
		cfg.onSend = func([]table.Ref) {
			if tries.Add(1) == 1 {
				time.Sleep(2 * cfg.keeping.KeptFor)
			}
		}
		w.plan.Only = func(op string) bool { return op == "BatchWriteRow" }
		w.plan.Decide = func(faults.Request) faults.Fault { requests.Add(1); return faults.Fault{} }
		r := w.load(cfg)
		if requests.Load() != tries.Load()-1 || r.Written != 1 {
			t.Errorf("%d requests of %d that were cut, %d rows written", requests.Load(), tries.Load(), r.Written)
		}
	})
}

// A process that is stopped for hours while a checkpoint is being written has not tried to write one meanwhile.
func TestAPauseWhileACheckpointIsWrittenEndsNoLoad(t *testing.T) {
	now := time.Unix(1e9, 0)
	d := &dispatcher{stopper: newStopper(func() {}), checkpointer: &keep.Checkpointer{
		Schedule: &keep.Schedule{Busy: true}, Patience: ratelimit.Patience{For: time.Minute}, Failed: errors.New("the disk is full"),
	}}
	d.keep(now)
	for range 3 {
		now = now.Add(5 * time.Hour)
		if d.keep(now); d.stopper.stopped() {
			t.Fatalf("the load fails because of a pause: %v", d.stopper.cause)
		}
	}
	for range 8 {
		now = now.Add(d.checkpointer.Patience.LookEvery())
		d.keep(now)
	}
	if !d.stopper.stopped() || !strings.Contains(d.stopper.cause.Error(), "no checkpoint could be written for 1m0s: the disk is full") {
		t.Errorf("a load without checkpoints: %v", d.stopper.cause)
	}
}

// A delete under the condition that the row exists is refused when its own first attempt, whose answer was lost, has deleted it.
func TestADeleteThatMayBeDoneIsRejectedAndSaysSo(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.load(w.config(w.file("rows.csv", "id,n\na,1\nb,2\n")))
		for i, tt := range []struct {
			fault faults.Action
			maybe int64
		}{{faults.DropAfter, 1}, {faults.None, 0}} {
			cfg := w.config(w.file("keys.csv", "id\na\n"))
			cfg.Write.Mode, cfg.Write.Condition, cfg.Target.Key, cfg.Target.Create = table.Delete, table.ExpectExist, nil, false
			cfg.RunDir += string(rune('1' + i))
			w.failNext(faults.Fault{Action: tt.fault})
			r := w.load(cfg)
			if r.Rejected != 1 || r.MaybeApplied != tt.maybe {
				t.Errorf("first answer %v: %d rejected, %d of them maybe applied", tt.fault, r.Rejected, r.MaybeApplied)
			}
			reasons := strings.Join(lines(t, cfg.RunDir+"/rejects.jsonl"), "\n")
			if got := strings.Contains(reasons, `"maybe_applied":true`); got != (tt.maybe > 0) {
				t.Errorf("first answer %v: %s", tt.fault, reasons)
			}
		}
	})
}

// Who is a second off is told.
func TestTheClockIsWarnedOfFromASecondOn(t *testing.T) {
	for ahead, want := range map[time.Duration]string{
		500 * time.Millisecond: "", -500 * time.Millisecond: "", 1600 * time.Millisecond: "behind the service's", -1600 * time.Millisecond: "ahead of the service's",
	} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			w := skewed(t, func() time.Duration { return ahead })
			cfg := w.versioned("id,a\nx,old\n")
			var warnings []string
			cfg.Watch.OnPlan = func(p *plan.Plan) { warnings = p.Warnings }
			w.load(cfg)
			cfg.RunDir += "2"
			w.load(cfg)
			text := strings.Join(warnings, "\n")
			if want == "" && strings.Contains(text, "clock") || !strings.Contains(text, want) {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
}
