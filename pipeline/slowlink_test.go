package pipeline

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/ratelimit"
)

// virtualLink is a slow link in virtual time. Its line carries one request at a time in each direction.
type virtualLink struct {
	base      http.RoundTripper
	bandwidth float64       // bytes per second in each direction
	trip      time.Duration // round trip
	stalls    float64       // share of 16 KiB writes held back for stall
	stall     time.Duration
	compress  string // --compress of the load
	workers   int    // number of workers, and so of connections, of the load; 0 means the default
	lanes     int    // 0 means 8
	service   sim.Config

	mu       sync.Mutex
	up, down time.Time // when the line is free
	longest  time.Duration
}

const virtualPiece = 16 << 10

func (l *virtualLink) pass(ctx context.Context, free *time.Time, bytes int64) error {
	l.mu.Lock()
	now := time.Now()
	if free.Before(now) {
		*free = now
	}
	*free = free.Add(time.Duration(float64(bytes) / l.bandwidth * float64(time.Second)))
	wait := free.Sub(now) + l.trip/2
	for n := bytes; n > 0; n -= virtualPiece {
		if l.stalls > 0 && rand.Float64() < l.stalls {
			wait += l.stall
		}
	}
	l.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *virtualLink) RoundTrip(r *http.Request) (*http.Response, error) {
	begun := time.Now()
	if err := l.pass(r.Context(), &l.up, r.ContentLength+600); err != nil {
		return nil, err
	}
	res, err := l.base.RoundTrip(r)
	if err == nil {
		err = l.pass(r.Context(), &l.down, res.ContentLength+400)
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, time.Since(begun))
	return res, nil
}

// linkShare loads rows for the given seconds. It returns the used share of the capacity of the link or its round trips.
func linkShare(t *testing.T, l *virtualLink, row int, seconds float64, timeout time.Duration,
	law func() lanes.Pacer) (share float64, r *Report) {
	l.up, l.down, l.longest = time.Time{}, time.Time{}, 0
	possible := l.bandwidth
	if l.trip > 0 {
		possible = min(possible, float64(cmp.Or(l.workers, DefaultConcurrency))*200*float64(row+61)/l.trip.Seconds())
	}
	rnd, filler := rand.New(rand.NewPCG(1, 1)), strings.Repeat("x", row-10)
	text := rowsOf("id,n\n", int(possible*seconds/float64(row+61)), func(int) string {
		return fmt.Sprintf("k%08d,%s\n", rnd.IntN(1e8), filler)
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var bounds []string
		lanes := cmp.Or(l.lanes, 8)
		for i := 1; i < lanes; i++ {
			bounds = append(bounds, fmt.Sprintf("k%08d", i*1e8/lanes))
		}
		w.partitioned(server.Simulation{Config: l.service}, bounds...)
		l.base = w.server.Transport()
		cfg := w.config(w.file("in.csv", text))
		cfg.Target.Client.Transport, cfg.Target.Client.RequestTimeout, cfg.Pacer = l, timeout, law
		cfg.Write.Compress, cfg.Lanes.Concurrency = l.compress, cmp.Or(l.workers, DefaultConcurrency)
		r = w.load(cfg)
		share = float64(r.BytesSent) / r.Seconds / possible
	})
	return share, r
}

func TestLoadFillsSlowLink(t *testing.T) {
	conformance.NotForRaces(t)
	slow, long := 3.2e6/8, 200*time.Millisecond
	for name, tt := range map[string]struct {
		link    *virtualLink
		row     int           // bytes of a row; 0 means 20,000
		seconds float64       // how long the link needs for the data
		timeout time.Duration // 0 means the default
		free    bool          // no lane is held back: only the load limits requests in flight
		share   float64       // minimum used share
		longest time.Duration // maximum time of a request; 0 means not checked
		rows    int64         // minimum rows of a request
	}{
		"slow and long": {link: &virtualLink{bandwidth: slow, trip: long}, seconds: 20, free: true, share: 0.9,
			longest: client.DefaultRequestTimeout / 3},
		"it stalls": {link: &virtualLink{bandwidth: 10e6 / 8, stalls: 0.01, stall: 2 * long}, seconds: 10, free: true,
			share: 0.9, longest: client.DefaultRequestTimeout / 3},
		"short time-outs": {link: &virtualLink{bandwidth: 2e6 / 8}, seconds: 10, timeout: 3 * time.Second, free: true,
			share: 0.9, longest: 2 * time.Second},
		// Lanes that learn their rates only from the few answers on a connection would fill 0.56 of a long link.
		"one connection of a long way": {link: &virtualLink{bandwidth: 10e6 / 8, trip: long, workers: 1}, seconds: 10,
			share: 0.7, rows: 31},
		"one connection, short rows": {link: &virtualLink{bandwidth: 50e6 / 8, trip: long, workers: 1}, row: 100,
			seconds: 15, share: 0.8},
		// A request that occupies the link for longer than all earlier ones does not count as silent.
		"a large request": {link: &virtualLink{bandwidth: slow, workers: 1, lanes: 2}, seconds: 10, share: 0.9,
			longest: client.DefaultRequestTimeout / 6},
		// Lanes that took the link for their partitions' queue would send 15 short rows per request, mostly headers.
		"short rows": {link: &virtualLink{bandwidth: 1.6e6 / 8}, row: 100, seconds: 30, rows: 50},
		// Lanes that take a long link for such a queue must not underestimate its latency more and more.
		"short rows, a long way that stalls": {row: 100, seconds: 8, share: 0.35,
			link: &virtualLink{bandwidth: 10e6 / 8, trip: long, stalls: 0.01, stall: 2 * long}},
	} {
		var law func() lanes.Pacer
		if tt.free {
			law = func() lanes.Pacer { return restless{} }
		}
		l, timeout := tt.link, cmp.Or(tt.timeout, client.DefaultRequestTimeout)
		share, r := linkShare(t, l, cmp.Or(tt.row, 20_000), tt.seconds, timeout, law)
		if share < tt.share || r.Retried > 0 || tt.longest > 0 && l.longest > tt.longest || r.Written/r.Requests < tt.rows {
			t.Errorf("%s: %.3f of what the link carries, %d rows sent again, a request took %v, %d rows in %d requests",
				name, share, r.Retried, l.longest, r.Written, r.Requests)
		}
	}
}

func TestCompressionHelpsOnSlowLink(t *testing.T) {
	seconds := map[string]float64{}
	for _, mode := range []string{client.CompressOff, client.CompressOn} {
		_, r := linkShare(t, &virtualLink{bandwidth: 1.6e6 / 8, compress: mode}, 20_000, 40,
			client.DefaultRequestTimeout, nil)
		seconds[mode] = r.Seconds
	}
	off := seconds[client.CompressOff]
	conformance.True(t, seconds[client.CompressOn] <= off/4 && off >= 40, "seconds: %v", seconds)
}

// Once a lane gets a connection, it sends at once the rows that it could not send while it waited, and no more.
func TestOneSlowConnectionRespectsPartitionCapacity(t *testing.T) {
	l := &virtualLink{bandwidth: 50e6 / 8, trip: time.Second / 5, workers: 1, service: sim.Config{PartitionUnits: 100}}
	const seconds = 30 // with 1,000 rows each
	share, r := linkShare(t, l, 100, seconds, client.DefaultRequestTimeout, nil)
	conformance.True(t, r.Seconds <= 2*seconds*1000/800 && r.Throttled <= r.Written/10,
		"%d rows in %.1f s, %.3f of 200 rows a trip, %d refused", r.Written, r.Seconds, share, r.Throttled)
}

var linkTable = flag.Bool("link-table", false, "print the share of slow links used, in virtual time (make links)")

func TestLinksInVirtualTime(t *testing.T) {
	if !*linkTable {
		t.Skip("set -link-table (make links)")
	}
	fmt.Println("link                          row  share  requests  retried  longest request")
	for _, bandwidth := range []float64{3.2e6 / 8, 10e6 / 8, 50e6 / 8} {
		for _, trip := range []time.Duration{0, 200 * time.Millisecond} {
			for _, stalls := range []float64{0, 0.01} {
				if stalls > 0 && trip > 0 && bandwidth < 6e6 {
					continue // three adversities at once
				}
				for _, row := range []int{20_000, 100} {
					l := &virtualLink{bandwidth: bandwidth, trip: trip, stalls: stalls, stall: 400 * time.Millisecond}
					share, r := linkShare(t, l, row, 40, client.DefaultRequestTimeout, nil)
					fmt.Printf("%4.1f Mbit/s, %5v, stalls %4.2f %5d  %.3f %8d %8d  %v\n", bandwidth*8/1e6, trip, stalls, row, share,
						r.Requests, r.Retried, l.longest.Round(time.Millisecond))
				}
			}
		}
	}
}

// outageCell is a load that meets an outage of the service.
type outageCell struct {
	lasts      time.Duration // 0 means no outage
	kind       string
	partitions int
	units      float64 // units per second of each partition
	numbered   bool    // the service numbers the rows
	after      time.Duration
	continues  time.Duration // time after the outage for which the load has rows
	begins     time.Duration // time after the first write; 0 means outageBegins, -1 at the first write
}

// outageBegins is how long after the first write the outage begins.
const outageBegins = 3 * time.Second

// load runs the load. It returns its report, and how many rows of the input are missing from the table or doubled.
func (c outageCell) load(t *testing.T) (r *Report, missing, doubled int) {
	key, column := []table.KeyColumn{{Name: "id", Type: table.String}}, "id"
	if c.numbered {
		key, column = numberedKey, "user"
	}
	rows := int(c.units * float64(c.partitions) * (c.after + c.continues).Seconds())
	rnd := rand.New(rand.NewPCG(1, 1))
	text := rowsOf(column+",what\n", rows,
		func(i int) string { return fmt.Sprintf("k%08d-%d,w%d\n", rnd.IntN(1e8), i, i) })
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		must(t, w.admin().Create("t", key, table.Definition{TimeToLive: -1, MaxVersions: 1}))
		must(t, w.server.Sim().Simulate("t", server.Simulation{Config: sim.Config{PartitionUnits: c.units,
			Latency: 5 * time.Millisecond}}))
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

// beyond returns how many seconds the load takes beyond the outage and a load without one.
func (c outageCell) beyond(t *testing.T) (dearer float64, r *Report, missing, doubled int) {
	r, missing, doubled = c.load(t)
	c.lasts = 0
	without, _, _ := c.load(t)
	return r.Seconds - without.Seconds, r, missing, doubled
}

// Unanswered requests do not hold up a load, and a load that begins during an outage finds its rate after it.
func TestLoadContinuesSoonAfterOutage(t *testing.T) {
	conformance.NotForRaces(t)
	t.Parallel()
	long := outageCell{lasts: 5 * time.Second, kind: faults.Timeout, after: outageBegins, continues: 45 * time.Second}
	for _, kind := range append([]string{"in the middle"}, faults.Busy, faults.Throttle, faults.Timeout) {
		for _, partitions := range []int{1, 4} {
			for _, numbered := range []bool{false, true} {
				c := long
				c.partitions, c.units, c.numbered = partitions, 40/float64(partitions), numbered
				if kind != "in the middle" {
					c.kind, c.units, c.after, c.begins = kind, 25, 0, -1
					if numbered != (kind == faults.Timeout) { // a load that ends sooner must wait for rows in doubt
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
				conformance.True(t, c.kind == faults.Timeout || slices.ContainsFunc(r.LimitedBy, limits),
					"%s, %d partitions: %+v", kind, partitions, r.LimitedBy)
			}
		}
	}
}

var outageTable = flag.Bool("outage-table", false, "print the cost of outages, in virtual time (make outages)")

func TestOutagesInVirtualTime(t *testing.T) {
	if !*outageTable {
		t.Skip("set -outage-table (make outages)")
	}
	for _, begins := range []time.Duration{outageBegins, -1} {
		begun := max(0, begins)
		fmt.Printf("begins %v after the first write\noutage          partitions  rows      seconds beyond it  missing  "+
			"doubled  in doubt\n", begun)
		for _, numbered := range []bool{false, true} {
			for _, partitions := range []int{1, 32} {
				without := -1.0
				for _, lasts := range []time.Duration{5 * time.Second, 15 * time.Second, time.Minute} {
					for _, kind := range faults.Outages {
						c := outageCell{lasts: lasts, kind: kind, partitions: partitions, units: 1000 / float64(partitions),
							numbered: numbered, after: begun, continues: time.Minute, begins: begins}
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
						fmt.Printf("%-15s %10d  %s %18.1f  %7d  %7d  %8d\n", fmt.Sprintf("%v %s", lasts, kind), partitions, name,
							r.Seconds-without-lasts.Seconds(), missing, doubled, r.MaybeTwice)
					}
				}
			}
		}
	}
}

// A batch not sent while the last checkpoint is valid is never sent, as a resumed load would consider it settled.
func TestRequestDelayedByPauseIsNotSent(t *testing.T) {
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
		conformance.True(t, requests.Load() == tries.Load()-1 && r.Written == 1,
			"%d requests of %d that were cut, %d rows written", requests.Load(), tries.Load(), r.Written)
	})
}

// A process that is suspended for hours while it writes a checkpoint has not failed to write others meanwhile.
func TestPauseDuringCheckpointDoesNotEndLoad(t *testing.T) {
	now := time.Unix(1e9, 0)
	d := &dispatcher{stopper: newStopper(func() {}), checkpointer: &keep.Checkpointer{Schedule: &keep.Schedule{Busy: true},
		Patience: ratelimit.Patience{For: time.Minute}, Failed: errors.New("the disk is full")}}
	d.keep(now)
	for range 3 {
		now = now.Add(5 * time.Hour)
		d.keep(now)
		conformance.MustTrue(t, !d.stopper.stopped(), "the load fails because of a pause: %v", d.stopper.cause)
	}
	for range 8 {
		now = now.Add(d.checkpointer.Patience.LookEvery())
		d.keep(now)
	}
	conformance.True(t, d.stopper.stopped() &&
		strings.Contains(d.stopper.cause.Error(), "no checkpoint could be written for 1m0s: the disk is full"),
		"a load without checkpoints: %v", d.stopper.cause)
}

// A delete on condition that the row exists is refused if its first attempt, whose answer was lost, deleted the row.
func TestDeleteOfUnknownOutcomeIsRejectedAsMaybeApplied(t *testing.T) {
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
			conformance.True(t, r.Rejected == 1 && r.MaybeApplied == tt.maybe,
				"first answer %v: %d rejected, %d of them maybe applied", tt.fault, r.Rejected, r.MaybeApplied)
			reasons := strings.Join(lines(t, cfg.RunDir+"/rejects.jsonl"), "\n")
			conformance.Equal(t, strings.Contains(reasons, `"maybe_applied":true`), (tt.maybe > 0), "%v: %s", tt.fault, reasons)
		}
	})
}

func TestClockOffsetOfOneSecondWarns(t *testing.T) {
	for ahead, want := range map[time.Duration]string{500 * time.Millisecond: "", -500 * time.Millisecond: "",
		1600 * time.Millisecond: "behind the service's", -1600 * time.Millisecond: "ahead of the service's"} {
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
			conformance.True(t, (want != "" || !strings.Contains(text, "clock")) && strings.Contains(text, want), "%q", text)
		})
	}
}
