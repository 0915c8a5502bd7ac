package ratelimit

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// controller is what decides when a lane sends how much: the Pacer, or one of those that it is compared with. It counts in rows
// of one unit unless the scenario says otherwise.
type controller interface {
	next(now time.Time, inFlight int, queued float64) (units float64, at time.Time, ok bool)
	sent(now time.Time, units float64)
	answered(sent, now time.Time, units, accepted float64)
	unavailable(now time.Time)
	child(now time.Time) controller
}

// maker makes the controller of a lane whose partition takes rate units a second, which only some controllers may look at.
type maker func(random *rand.Rand, c *scenario, rate float64) controller

type order int

const (
	scattered order = iota // cursors all over the input feed every lane at once, as --order none does
	shuffled               // the input is in random order
	sorted                 // one lane's rows after the other
)

// scenario is one load: a table, a way to it, an input.
type scenario struct {
	rows        int
	rates       []float64 // units a second, for each partition
	burst       float64   // seconds of the rate that a partition's bucket holds
	full        bool      // buckets are full at the start, not empty
	rtt         time.Duration
	workers     int
	maxInFlight int     // of a lane
	perRow      float64 // units
	readRate    float64 // rows a second
	order       order
	linger      time.Duration
	fixedWindow bool                        // quota per second of the clock instead of a bucket
	ceiling     float64                     // units a second of the whole table
	factor      func(time.Duration) float64 // of the rates, over time
	splits      int                         // times that every partition splits in two
	stop        time.Duration               // 0 loads everything
	seed        uint64
}

// fleet is the scenario of design and documents: 32 partitions of 1,000 units a second, 5 ms away.
func fleet(rows int) scenario {
	c := scenario{rows: rows, burst: 1, rtt: 5 * time.Millisecond, workers: 16, maxInFlight: 8, perRow: 1, readRate: 1e6, linger: 250 * time.Millisecond}
	for range 32 {
		c.rates = append(c.rates, 1000)
	}
	return c
}

const unlimited = 1e12

// shard is a partition of the fake service.
type shard struct {
	rate, tokens, burst float64
	at                  time.Time
	window              int64
	used                float64
	out, back           time.Time // it does not serve in between; zero is never
	children            []*shard
	acks                []ack
	lastAck             time.Time
	accepted            float64
}

type ack struct {
	at    time.Time
	units float64
}

// lane is a queue of rows, which are all alike.
type lane struct {
	shard      *shard
	queued     int
	unread     int
	inFlight   int
	controller controller
	lastSend   time.Time
	gone       bool
}

// world is a run of a scenario. Whoever touches it holds turn.
type world struct {
	c        scenario
	random   *rand.Rand
	began    time.Time
	turn     chan struct{}
	changed  chan struct{}
	jobs     chan job
	free     int
	lanes    []*lane
	shards   []*shard
	permuted []uint16
	unread   int
	table    *shard // of the ceiling
	result
}

type job struct {
	lane *lane
	rows int
	sent time.Time
}

// result is what a run came to.
type result struct {
	requests, sentRows, throttledRows, acceptedRows int
	lastAck                                         time.Duration
	share                                           float64 // capacity share
}

func (r result) throttled() float64 { return float64(r.throttledRows) / float64(r.sentRows) }

// simulate runs a scenario in virtual time.
func simulate(t *testing.T, c scenario, make maker) (w *world) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(c, make)
		stop := w.startGoroutines()
		w.dispatch()
		stop()
	})
	if c.stop == 0 && w.acceptedRows != c.rows {
		t.Fatalf("%d of %d rows were written", w.acceptedRows, c.rows)
	}
	capacity := 0.0
	for _, s := range w.shards {
		capacity += s.rate
	}
	w.share = float64(w.acceptedRows) * c.perRow / (capacity * w.lastAck.Seconds())
	return w
}

func newWorld(c scenario, controller maker) *world {
	w := &world{c: c, random: rand.New(rand.NewPCG(c.seed, 1)), began: time.Now(), free: c.workers, unread: c.rows,
		turn: make(chan struct{}, 1), changed: make(chan struct{}, 1), jobs: make(chan job)}
	for i, rate := range c.rates {
		s := &shard{rate: rate, burst: rate * c.burst, at: w.began, window: -1}
		if c.full {
			s.tokens = s.burst
		}
		if c.splits > 0 {
			s.out = w.began.Add(10 * time.Second)
			s.back = s.out.Add(time.Second)
		}
		w.shards = append(w.shards, s)
		n := c.rows*(i+1)/len(c.rates) - c.rows*i/len(c.rates)
		w.lanes = append(w.lanes, &lane{shard: s, unread: n, controller: controller(w.random, &c, rate)})
	}
	if c.ceiling > 0 {
		w.table = &shard{rate: c.ceiling, burst: c.ceiling * c.burst, at: w.began}
	}
	if c.order == shuffled {
		for i, l := range w.lanes {
			for range l.unread {
				w.permuted = append(w.permuted, uint16(i))
			}
		}
		w.random.Shuffle(len(w.permuted), func(i, j int) { w.permuted[i], w.permuted[j] = w.permuted[j], w.permuted[i] })
	}
	return w
}

// locked runs f while nobody else touches the world.
func (w *world) locked(f func()) {
	w.turn <- struct{}{}
	f()
	<-w.turn
}

func (w *world) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// startGoroutines starts the reader and the workers; the function returned ends them.
func (w *world) startGoroutines() (stop func()) {
	done := make(chan struct{})
	go func() {
		for w.read() {
			select {
			case <-time.After(time.Millisecond):
			case <-done:
				return
			}
		}
	}()
	for range w.c.workers {
		go func() {
			for j := range w.jobs {
				w.request(j)
			}
		}()
	}
	return func() { close(done); close(w.jobs); synctest.Wait() }
}

// read puts a millisecond's rows into their lanes and reports whether there are more to come.
func (w *world) read() (more bool) {
	w.locked(func() {
		n := min(int(w.c.readRate/1000), w.unread)
		for n > 0 {
			l, rows := w.nextBlock(n)
			if l == nil {
				break
			}
			l.queued += rows
			l.unread -= rows
			w.unread -= rows
			n -= rows
		}
		more = w.unread > 0
	})
	w.wake()
	return more
}

// nextBlock says which lane gets the next rows: at most limit.
func (w *world) nextBlock(limit int) (*lane, int) {
	if w.c.order == shuffled && w.c.splits == 0 {
		return w.lanes[w.permuted[w.unread-1]], 1
	}
	var best *lane
	for _, l := range w.lanes {
		switch {
		case l.unread == 0:
		case w.c.order == sorted:
			return l, min(limit, l.unread)
		case l.queued < 4000 && (best == nil || l.queued < best.queued):
			best = l
		}
	}
	if best == nil {
		return nil, 0
	}
	return best, min(limit, 256, best.unread)
}

// dispatch gives batches of random ready lanes to free workers until everything is written.
func (w *world) dispatch() {
	timer := time.NewTimer(time.Hour)
	for {
		var next job
		var wait time.Duration
		finished, idle := false, false
		w.locked(func() {
			wait = time.Second
			if finished = w.acceptedRows == w.c.rows || w.c.stop > 0 && time.Since(w.began) >= w.c.stop; !finished {
				next, wait = w.pick()
			}
			idle = w.free == w.c.workers
		})
		if finished && idle {
			return
		}
		if next.lane != nil {
			w.jobs <- next
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-w.changed:
		}
	}
}

// pick takes a batch from a random lane that is ready, or says for how long there will be none.
func (w *world) pick() (job, time.Duration) {
	wait := time.Second
	if w.free == 0 {
		return job{}, wait
	}
	now := time.Now()
	var ready job
	count := 0
	for _, l := range w.lanes {
		if l.queued == 0 {
			continue
		}
		units, at, ok := l.controller.next(now, l.inFlight, math.Inf(1))
		rows := max(1, int(units/w.c.perRow+1e-9))
		if ok && rows > l.queued {
			if l.unread > 0 {
				at = later(at, l.lastSend.Add(w.c.linger))
			} else {
				_, at, ok = l.controller.next(now, l.inFlight, float64(l.queued)*w.c.perRow)
			}
			rows = l.queued
		}
		switch {
		case !ok:
		case at.After(now):
			wait = min(wait, at.Sub(now))
		default:
			if count++; w.random.IntN(count) == 0 {
				ready = job{lane: l, rows: min(rows, 200), sent: now}
			}
		}
	}
	if l := ready.lane; l != nil {
		w.free--
		l.queued -= ready.rows
		l.inFlight++
		l.lastSend = now
		l.controller.sent(now, float64(ready.rows)*w.c.perRow)
		w.requests++
	}
	return ready, wait
}
