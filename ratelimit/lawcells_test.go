package ratelimit

import (
	"fmt"
	"math"
	"strings"
	"time"

	"example.com/tsimport/engine/limiter"
)

type lawCell struct {
	group, name string
	lawScene
}

// at is the setting of a cell: the number of lanes, units per second of each, and the round trip.
type at struct {
	lanes int
	rate  float64
	rtt   time.Duration
}

const ms = time.Millisecond

// length returns the time in which a lane sends 10,000 rows, but at least one and at most ten minutes.
func (a at) length() time.Duration {
	return time.Duration(min(max(10000/a.rate, 60), 600) * float64(time.Second))
}

func (a at) String() string { return fmt.Sprintf("%d × %.0f, %v", a.lanes, a.rate, a.rtt) }

func (a at) scene() lawScene {
	return lawScene{lanes: a.lanes, rtt: a.rtt, length: a.length(), perRow: 1}
}

func partition(group, name string, a at, o limiter.Options) lawCell {
	o.Rate = a.rate
	c := lawCell{group, strings.TrimSpace(name + " " + a.String()), a.scene()}
	c.lane = &o
	c.serve(&o)
	return c
}

// serve sets how long a concurrency limit takes to serve a request.
func (c *lawScene) serve(o *limiter.Options) {
	if o.Kind != limiter.Concurrency {
		return
	}
	if c.closed = 100 * ms; o.Requests > 0 {
		c.closed = time.Duration(maxRows * float64(o.Requests) / o.Rate * float64(time.Second))
	}
}

// overTable returns a cell with a table limit, which is at's rate times its lanes.
func overTable(group, name string, a at, o limiter.Options) lawCell {
	o.Rate = a.rate * float64(a.lanes)
	c := lawCell{group, strings.TrimSpace(name + " " + a.String()), a.scene()}
	c.table = &o
	c.serve(&o)
	return c
}

// both adds a bucket for each partition to a cell with a table limit. Together they have factor times that limit.
func both(factor float64, c lawCell) lawCell {
	c.lane = &limiter.Options{Rate: c.table.Rate / float64(c.lanes) * factor}
	c.name += fmt.Sprintf(", buckets of %.0f", c.lane.Rate)
	return c
}

// shared returns a cell with two loads, one of which begins later.
func shared(c lawCell) lawCell {
	c.group, c.loads, c.later = "two loads", 2, 10*time.Second
	c.length = max(c.length, 130*time.Second)
	return c
}

func (c lawCell) lasting(d time.Duration) lawCell {
	c.length = d
	return c
}

func (c lawCell) stalling(d time.Duration) lawCell {
	c.stall = d
	c.name += fmt.Sprintf(", stalls of %v", d)
	return c
}

func (c lawCell) unevenly(factor float64) lawCell {
	c.uneven = factor
	c.name += fmt.Sprintf(", the first at %g", factor)
	return c
}

func steps(after time.Duration, factor float64, more ...limiter.Step) []limiter.Step {
	return append([]limiter.Step{{After: after, Factor: factor}}, more...)
}

func (c *lawCell) wants() (share, refused, late, fair float64) {
	share, refused, late = 0.95, 0.01, math.Inf(1)
	for _, o := range []*limiter.Options{c.lane, c.table} {
		if o != nil && o.Kind == limiter.FixedWindow {
			refused = 0.02
		}
		if o != nil && o.Kind == limiter.Queue {
			late = 0.2
		}
	}
	if c.loads > 1 {
		fair = 0.4
	}
	return share, refused, late, fair
}

// grid returns cells that combine every limiter with several numbers of lanes, rates and round trips.
func grid() (cells []lawCell) {
	for _, kind := range limiter.Kinds {
		for _, lanes := range []int{1, 8, 32, 256} {
			for _, rate := range []float64{10, 100, 1000, 20000} {
				for _, rtt := range []time.Duration{1, 20, 200} {
					if float64(lanes)*rate > 300_000 {
						continue
					}
					a := at{lanes, rate, rtt * ms}
					cells = append(cells, partition(kind, "", a, limiter.Options{Kind: kind}),
						overTable("table, "+kind, "", a, limiter.Options{Kind: kind}))
				}
			}
		}
	}
	return cells
}

// lawCells returns the cells that `make laws` runs.
func lawCells() []lawCell {
	bucket := limiter.Options{Kind: limiter.TokenBucket, Burst: time.Second}
	full, whole, noise, spuriousWhole, lag2, lag5, long, longFull, small := bucket, bucket, bucket, bucket, bucket,
		bucket, bucket, bucket, bucket
	full.Full, whole.Whole, noise.Spurious, long.Burst, small.Burst = true, true, 0.01, 300*time.Second, 100*ms
	spuriousWhole.Spurious, spuriousWhole.Whole = 0.01, true
	longFull.Burst, longFull.Full = 300*time.Second, true
	lag2.Lag, lag5.Lag = 2*time.Second, 5*time.Second
	fixed := limiter.Options{Kind: limiter.FixedWindow}
	unaligned, fixedWhole, fixedSpurious := fixed, fixed, fixed
	unaligned.Unaligned, fixedWhole.Whole, fixedSpurious.Spurious = true, true, 0.01
	sliding := limiter.Options{Kind: limiter.SlidingWindow}
	slidingWhole, slidingSpurious, slidingLag := sliding, sliding, sliding
	slidingWhole.Whole, slidingSpurious.Spurious, slidingLag.Lag = true, 0.01, 2*time.Second
	queue := limiter.Options{Kind: limiter.Queue}
	queueShort := queue
	queueShort.MaxDelay = time.Second
	requests := func(n int) limiter.Options { return limiter.Options{Kind: limiter.Concurrency, Requests: n} }
	hold := limiter.Options{Kind: limiter.Concurrency}
	changing := func(o limiter.Options, s []limiter.Step) limiter.Options {
		o.Steps = s
		return o
	}
	half := steps(60*time.Second, 0.5, limiter.Step{After: 90 * time.Second, Factor: 1})
	double := steps(120*time.Second, 2)

	return []lawCell{
		partition("token bucket", "", at{1, 10, 20 * ms}, bucket),
		partition("token bucket", "", at{1, 1000, 5 * ms}, bucket),
		partition("token bucket", "", at{1, 20000, 1 * ms}, bucket),
		partition("token bucket", "", at{1, 20000, 200 * ms}, bucket),
		partition("token bucket", "", at{8, 100, 200 * ms}, bucket),
		partition("token bucket", "", at{32, 10, 1 * ms}, bucket),
		partition("token bucket", "", at{32, 1000, 5 * ms}, bucket),
		partition("token bucket", "", at{32, 1000, 200 * ms}, bucket),
		partition("token bucket", "", at{256, 300, 20 * ms}, bucket),
		partition("token bucket", "full", at{32, 1000, 5 * ms}, full),
		partition("token bucket", "300 s", at{8, 1000, 5 * ms}, long),
		partition("token bucket", "300 s, full", at{8, 100, 5 * ms}, longFull),
		partition("token bucket", "0.1 s", at{8, 1000, 5 * ms}, small),
		partition("token bucket", "whole requests", at{8, 1000, 5 * ms}, whole),
		partition("token bucket", "whole requests", at{32, 100, 50 * ms}, whole),
		partition("token bucket", "1 % of rows", at{8, 1000, 5 * ms}, noise),
		partition("token bucket", "1 % of rows", at{32, 100, 200 * ms}, noise),
		partition("token bucket", "1 % of requests", at{8, 1000, 5 * ms}, spuriousWhole),
		partition("token bucket", "2 s late", at{8, 1000, 5 * ms}, lag2).lasting(120 * time.Second),
		partition("token bucket", "5 s late", at{8, 100, 20 * ms}, lag5),
		partition("token bucket", "", at{8, 1000, 5 * ms}, bucket).unevenly(0.1),
		partition("token bucket", "", at{8, 1000, 5 * ms}, bucket).stalling(400 * ms),
		partition("token bucket", "", at{32, 1000, 5 * ms}, bucket).stalling(150 * ms),

		partition("changes", "doubles", at{8, 1000, 5 * ms}, changing(bucket, double)).lasting(240 * time.Second),
		partition("changes", "eight times", at{8, 1000, 5 * ms}, changing(bucket, steps(120*time.Second, 8))).lasting(
			240 * time.Second),
		partition("changes", "half for 30 s", at{8, 1000, 5 * ms}, changing(bucket, half)).lasting(240 * time.Second),
		partition("changes", "half for 30 s", at{32, 100, 50 * ms}, changing(bucket, half)).lasting(240 * time.Second),
		partition("changes", "window, doubles", at{8, 1000, 5 * ms}, changing(fixed, double)).lasting(240 * time.Second),
		partition("changes", "window, half for 30 s", at{8, 1000, 5 * ms}, changing(fixed, half)).lasting(240 * time.Second),
		partition("changes", "queue, half for 30 s", at{8, 1000, 5 * ms}, changing(queue, half)).lasting(240 * time.Second),
		overTable("changes", "table, half for 30 s", at{8, 1000, 5 * ms}, changing(bucket, half)).lasting(240 * time.Second),

		partition("fixed window", "", at{1, 1000, 5 * ms}, fixed),
		partition("fixed window", "", at{1, 20000, 20 * ms}, fixed),
		partition("fixed window", "", at{8, 10, 20 * ms}, fixed),
		partition("fixed window", "", at{8, 1000, 5 * ms}, fixed),
		partition("fixed window", "", at{8, 1000, 200 * ms}, fixed),
		partition("fixed window", "", at{32, 100, 50 * ms}, fixed),
		partition("fixed window", "", at{256, 1000, 5 * ms}, fixed),
		partition("fixed window", "whole requests", at{8, 1000, 5 * ms}, fixedWhole),
		partition("fixed window", "1 % of rows", at{8, 1000, 5 * ms}, fixedSpurious),
		partition("fixed window", "unaligned", at{8, 1000, 5 * ms}, unaligned),
		partition("fixed window", "unaligned", at{32, 100, 50 * ms}, unaligned),

		partition("sliding window", "", at{1, 1000, 5 * ms}, sliding),
		partition("sliding window", "", at{1, 20000, 20 * ms}, sliding),
		partition("sliding window", "", at{8, 1000, 5 * ms}, sliding),
		partition("sliding window", "", at{32, 100, 100 * ms}, sliding),
		partition("sliding window", "whole requests", at{8, 1000, 5 * ms}, slidingWhole),
		partition("sliding window", "1 % of rows", at{8, 1000, 5 * ms}, slidingSpurious),
		partition("sliding window", "2 s late", at{8, 1000, 5 * ms}, slidingLag).lasting(120 * time.Second),

		partition("queue", "", at{1, 10, 20 * ms}, queue),
		partition("queue", "", at{1, 1000, 5 * ms}, queue),
		partition("queue", "", at{1, 20000, 50 * ms}, queue),
		partition("queue", "", at{8, 1000, 5 * ms}, queue),
		partition("queue", "", at{32, 100, 50 * ms}, queue),
		partition("queue", "", at{32, 1000, 200 * ms}, queue),
		partition("queue", "1 s at most", at{8, 1000, 5 * ms}, queueShort),

		partition("concurrency", "1 request", at{8, 1000, 5 * ms}, requests(1)),
		partition("concurrency", "4 requests", at{8, 1000, 5 * ms}, requests(4)),
		partition("concurrency", "16 requests", at{1, 20000, 20 * ms}, requests(16)),
		partition("concurrency", "units of 0.1 s", at{8, 1000, 5 * ms}, hold),
		partition("concurrency", "units of 0.1 s", at{1, 20000, 20 * ms}, hold),
		overTable("concurrency", "table, 16 requests", at{32, 1000, 5 * ms}, requests(16)),
		overTable("concurrency", "table, units of 0.1 s", at{32, 1000, 5 * ms}, hold),

		overTable("table", "bucket", at{8, 1000, 5 * ms}, bucket),
		overTable("table", "bucket", at{256, 100, 20 * ms}, bucket),
		overTable("table", "bucket, whole requests", at{32, 500, 5 * ms}, whole),
		overTable("table", "fixed window", at{8, 1000, 5 * ms}, fixed),
		overTable("table", "sliding window", at{32, 500, 5 * ms}, sliding),
		overTable("table", "queue", at{32, 500, 5 * ms}, queue),
		both(2, overTable("table", "bucket", at{32, 500, 5 * ms}, bucket)),
		both(2, overTable("table", "fixed window", at{32, 500, 5 * ms}, fixed)),
		both(2, overTable("table", "sliding window", at{32, 500, 50 * ms}, sliding)),
		both(1.25, overTable("table", "bucket", at{32, 800, 5 * ms}, bucket)),
		both(2, overTable("table", "bucket", at{32, 500, 5 * ms}, bucket)).unevenly(0.1),

		shared(partition("", "bucket", at{8, 1000, 5 * ms}, bucket)),
		shared(partition("", "fixed window", at{8, 1000, 5 * ms}, fixed)),
		shared(partition("", "sliding window", at{8, 1000, 5 * ms}, sliding)),
		shared(partition("", "queue", at{8, 1000, 5 * ms}, queue)),
		shared(partition("", "concurrency, 4 requests", at{8, 1000, 5 * ms}, requests(4))),
		shared(partition("", "concurrency, units of 0.1 s", at{8, 1000, 5 * ms}, hold)),
		shared(overTable("", "table, bucket", at{8, 1000, 5 * ms}, bucket)),
		shared(overTable("", "table, fixed window", at{8, 1000, 5 * ms}, fixed)),
		shared(overTable("", "table, sliding window", at{8, 1000, 5 * ms}, sliding)),
		shared(overTable("", "table, queue", at{8, 1000, 5 * ms}, queue)),
		shared(overTable("", "table, concurrency, 16 requests", at{8, 1000, 5 * ms}, requests(16))),
		shared(both(2, overTable("", "table, bucket", at{32, 500, 5 * ms}, bucket))),
	}
}
