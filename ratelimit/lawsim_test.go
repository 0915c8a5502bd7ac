package ratelimit

import (
	"cmp"
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/tsimport/engine/limiter"
)

// The simulator runs the control in virtual time, event by event, without goroutines.

// controller decides when and how much a lane sends. It is the Pacer, alone or with its load's share of the table.
type controller interface {
	next(now time.Time, inFlight int, queued float64) (units float64, at time.Time, ok bool)
	sent(now time.Time, units float64)
	answered(sent, now time.Time, units, accepted float64)
}

// paced is a controller made of a Pacer and its lane's Outages.
type paced struct {
	p        *Pacer
	perRow   float64
	outages  Outages
	refusing bool
}

func (l *paced) next(now time.Time, inFlight int, queued float64) (float64, time.Time, bool) {
	return l.p.NextOf(now, inFlight, l.perRow, queued)
}
func (l *paced) sent(now time.Time, units float64) { l.p.Sent(now, units) }
func (l *paced) answered(sent, now time.Time, units, taken float64) {
	if taken > 0 {
		l.p.Answered(sent, now, units, taken)
		l.outages.Accepted(l.p, taken)
		l.refusing = false
		return
	}
	if before, outage := l.outages.Refused(l.p, sent, now); outage {
		l.p, l.refusing = before, true
	}
	if l.refusing {
		l.p.Unavailable(now)
		return
	}
	l.p.Answered(sent, now, units, taken)
}

// lawScene is one load, or several, in front of limiters. Its many fields are the settings of a cell.
type lawScene struct {
	lanes       int
	rtt, length time.Duration
	even        bool                                     // every request takes exactly rtt, not up to a fifth more or less
	late        time.Duration                            // mean lateness of timers, as on a busy machine
	perRow      float64                                  // units of a row
	slots       int                                      // maximum requests of a load in flight; 0 means enough
	fed         float64                                  // rows per second that each lane receives; 0 means all at once
	lane        *limiter.Options                         // limit of each partition; nil means no limit
	uneven      float64                                  // the first partition's rate as a share of the others'; 0 means 1
	table       *limiter.Options                         // limit over all partitions; nil means no limit
	loads       int                                      // loads that share the table; 0 means one
	later       time.Duration                            // when the second load begins
	stall       time.Duration                            // the service's pause every 3 s, and limit of one delay in 100
	takes       func(n int, units float64) time.Duration // time of the n-th request beyond rtt; may be nil
	closed      time.Duration                            // how long a concurrency limit serves a request
}

type lawResult struct {
	share    float64
	refused  float64 // share refused, except spurious refusals, after each load's first five seconds
	begins   float64 // share refused, of all rows
	delay    float64 // seconds that a queue added: the mean after the first five seconds
	late     float64 // 95th percentile of these seconds
	fair     float64 // the smaller load's part of the units after 60 s
	requests int
	rows     float64 // accepted
}

type lawEvent struct {
	at   int64
	seq  uint64
	kind uint8
	lane int32
	req  *lawRequest
	ver  uint32
}

const (
	lawWake = iota
	lawArrive
	lawLeave
	lawAnswer
)

type lawRequest struct {
	lane     int32
	rows     int
	sent     time.Time
	back     time.Duration
	taken    int
	measured bool
}

type lawLane struct {
	part     int // partition
	load     int
	law      controller
	inFlight int
	rows     float64 // accepted or in flight
	last     time.Time
	ver      uint32
	waiting  bool // it waits for a worker
}

type lawSim struct {
	c       *lawScene
	random  *rand.Rand
	base    time.Time
	queue   lawEvents
	seq     uint64
	now     int64
	lanes   []lawLane
	parts   []*limiter.Limiter
	table   *limiter.Limiter
	rows    []limiter.Row
	free    []int   // workers of each load
	ready   [][]int // lanes of each load that wait for a worker
	trace   func(l int, now time.Time, r *lawRequest)
	turns   func(now time.Time) (next time.Time) // if not nil, sends everything that may be sent now, for all lanes
	sent    [2]int                               // number of all rows, and of measured rows
	refused [2]int
	taken   []float64 // units of each load, over the whole time
	fairly  []float64 // units of each load after a minute
	delays  []float32
	result  lawResult
	series  []float64 // units accepted in each second
}

const lawSettled = 5 * time.Second

func newLawSim(c *lawScene, law lawMaker, seed uint64) *lawSim {
	s := &lawSim{c: c, random: rand.New(rand.NewPCG(seed, 7)), base: time.Unix(1_000_000, 0)}
	s.base = s.base.Add(time.Duration(s.random.Int64N(int64(time.Second))))
	loads := max(1, c.loads)
	s.taken, s.fairly = make([]float64, loads), make([]float64, loads)
	s.rows = make([]limiter.Row, int(maxRows))
	for i := range s.rows {
		s.rows[i].Units = c.perRow
	}
	for i := range c.lanes {
		s.parts = append(s.parts, s.limit(c.lane, i, seed))
	}
	s.table = s.limit(c.table, -1, seed)
	for load := range loads {
		lane := law(s.random, c)
		s.free = append(s.free, c.workers())
		s.ready = append(s.ready, nil)
		from := int64(0)
		if load > 0 {
			from = int64(c.later)
		}
		for i := range c.lanes {
			s.lanes = append(s.lanes, lawLane{part: i, load: load, law: lane(i)})
			s.push(lawEvent{at: from, kind: lawWake, lane: int32(len(s.lanes) - 1)})
		}
	}
	s.series = make([]float64, int(c.length/time.Second)+1)
	return s
}

func (s *lawSim) limit(o *limiter.Options, i int, seed uint64) *limiter.Limiter {
	if o == nil {
		o = &limiter.Options{}
	}
	options := s.c.optionsOf(o, i)
	options.Seed = seed<<16 + uint64(i+1)
	l, err := limiter.New(options, s.base)
	if err != nil {
		panic(err)
	}
	return l
}

func (c *lawScene) optionsOf(o *limiter.Options, i int) limiter.Options {
	options := *o
	if i == 0 && c.uneven > 0 {
		options.Rate *= c.uneven
	}
	return options
}

// possible returns the units that could have been accepted.
func (s *lawSim) possible() float64 {
	end := s.base.Add(s.c.length)
	of := func(o limiter.Options) float64 {
		units := possible(o, s.base, end)
		if o.Full {
			units += o.Burst.Seconds() * o.Rate
		}
		return units
	}
	units := math.Inf(1)
	if s.c.lane != nil {
		units = 0
		for i := range s.parts {
			units += of(s.c.optionsOf(s.c.lane, i))
		}
	}
	if s.c.table != nil {
		units = min(units, of(*s.c.table))
	}
	if s.c.closed > 0 {
		units *= s.c.closed.Seconds() / (s.c.closed + s.c.rtt).Seconds()
	}
	return units
}

func (c *lawScene) isNoise() float64 {
	clean := 1.0
	for _, o := range []*limiter.Options{c.lane, c.table} {
		if o != nil {
			clean *= 1 - o.Spurious
		}
	}
	return 1 - clean
}

// workers returns the number of requests that a load may have in flight: slots, or enough not to limit it.
func (c *lawScene) workers() int { return cmp.Or(c.slots, max(32, 4*c.lanes)) }

func (c *lawScene) maxInFlight() int { return max(8, c.workers()/c.lanes) }

func (s *lawSim) run() lawResult {
	end := int64(s.c.length)
	for len(s.queue) > 0 {
		e := heap.Pop(&s.queue).(*lawEvent)
		if e.at > end {
			break
		}
		s.now = e.at
		now := s.base.Add(time.Duration(e.at))
		switch e.kind {
		case lawWake:
			if l := &s.lanes[e.lane]; e.ver == l.ver {
				s.ask(int(e.lane), now)
			}
		case lawArrive:
			s.arrive(e.req, now)
		case lawLeave:
			s.leave(e.req, now)
		case lawAnswer:
			s.answer(e.req, now)
		}
	}
	return s.sum()
}

// ask lets a lane send everything that it may send now.
func (s *lawSim) ask(i int, now time.Time) {
	l := &s.lanes[i]
	if s.turns != nil {
		l = &s.lanes[0]
		l.ver++
		if next := s.turns(now); next.After(now) {
			s.push(lawEvent{at: s.now + int64(next.Sub(now)+s.lateness()), kind: lawWake, ver: l.ver})
		}
		return
	}
	l.ver++
	for {
		units, at, ok := l.law.next(now, l.inFlight, math.Inf(1))
		if !ok {
			return
		}
		if s.c.fed > 0 {
			units, at = s.fed(l, now, units, at)
		}
		if at.After(now) {
			s.push(lawEvent{at: s.now + int64(at.Sub(now)+s.lateness()), kind: lawWake, lane: int32(i), ver: l.ver})
			return
		}
		if s.free[l.load] == 0 {
			if !l.waiting {
				l.waiting = true
				s.ready[l.load] = append(s.ready[l.load], i)
			}
			return
		}
		s.send(i, now, units)
	}
}

// fed returns how many units a lane waiting for rows may send, and when. It waits 0.25 s for a full batch.
func (s *lawSim) fed(l *lawLane, now time.Time, units float64, at time.Time) (float64, time.Time) {
	have := math.Floor(s.c.fed*now.Sub(s.base).Seconds()+1e-6-l.rows) * s.c.perRow
	if have >= units {
		return units, at
	}
	first := s.base.Add(duration((l.rows + 1) / s.c.fed))
	return max(have, s.c.perRow), later(at, later(first, l.last.Add(250*ms)))
}

func (s *lawSim) send(i int, now time.Time, units float64) {
	l := &s.lanes[i]
	rows := min(max(1, int(units/s.c.perRow+1e-9)), len(s.rows))
	s.free[l.load]--
	l.inFlight++
	l.rows += float64(rows)
	l.last = now
	l.law.sent(now, float64(rows)*s.c.perRow)
	way := s.c.rtt
	if !s.c.even {
		way = time.Duration(float64(s.c.rtt) * (0.8 + 0.4*s.random.Float64()))
	}
	if s.c.takes != nil {
		way += s.c.takes(s.result.requests, units)
	}
	way += s.lateness() + s.lateness()
	r := &lawRequest{lane: int32(i), rows: rows, sent: now, back: way - way/2}
	s.push(lawEvent{at: s.stalled(s.now + int64(way/2)), kind: lawArrive, req: r})
	s.result.requests++
}

func (s *lawSim) lateness() time.Duration {
	if s.c.late == 0 {
		return 0
	}
	return time.Duration(s.random.ExpFloat64() * float64(s.c.late))
}

// stalled returns the time at which the service handles a request that arrives at a given time.
func (s *lawSim) stalled(at int64) int64 {
	stall := int64(s.c.stall)
	if stall == 0 {
		return at
	}
	if s.random.IntN(100) == 0 {
		at += s.random.Int64N(stall)
	}
	const every = int64(3 * time.Second)
	if left := stall - (at+every/2)%every; left > 0 {
		at += left
	}
	return at
}

// arrive lets the limiters decide: first the partition's, then the table's about the units that the partition accepts.
func (s *lawSim) arrive(r *lawRequest, now time.Time) {
	l := &s.lanes[r.lane]
	taken, delay := limiter.Admit(now, s.rows[:r.rows], s.parts[l.part], s.table)
	r.taken = taken
	if s.now >= int64(lawSettled) && (len(s.taken) == 1 || s.now < int64(s.c.later) ||
		s.now >= int64(s.c.later+lawSettled)) {
		r.measured = true
		if taken > 0 {
			s.delays = append(s.delays, float32(delay.Seconds()))
		}
	}
	s.push(lawEvent{at: s.now + int64(delay), kind: lawLeave, req: r})
}

func (s *lawSim) leave(r *lawRequest, now time.Time) {
	l := &s.lanes[r.lane]
	units := float64(r.taken) * s.c.perRow
	s.taken[l.load] += units
	if s.now >= int64(time.Minute+s.c.later) {
		s.fairly[l.load] += units
	}
	s.series[s.now/int64(time.Second)] += units
	for i := range s.sent {
		if i == 0 || r.measured {
			s.sent[i] += r.rows
			s.refused[i] += r.rows - r.taken
		}
	}
	s.push(lawEvent{at: s.now + int64(r.back), kind: lawAnswer, req: r})
}

func (s *lawSim) answer(r *lawRequest, now time.Time) {
	l := &s.lanes[r.lane]
	l.inFlight--
	l.rows -= float64(r.rows - r.taken)
	s.free[l.load]++
	l.law.answered(r.sent, now, float64(r.rows)*s.c.perRow, float64(r.taken)*s.c.perRow)
	if s.trace != nil {
		s.trace(int(r.lane), now, r)
	}
	s.ask(int(r.lane), now)
	for ready := s.ready[l.load]; len(ready) > 0 && s.free[l.load] > 0; {
		i := s.random.IntN(len(ready))
		next := ready[i]
		ready[i] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		s.ready[l.load] = ready
		s.lanes[next].waiting = false
		s.ask(next, now)
		ready = s.ready[l.load]
	}
}

func (s *lawSim) sum() lawResult {
	r := &s.result
	all, fair := 0.0, 0.0
	for i := range s.taken {
		all += s.taken[i]
		fair += s.fairly[i]
	}
	r.share, r.rows = all/s.possible(), all/s.c.perRow
	share := func(i int) float64 { return max(0, float64(s.refused[i])/float64(max(1, s.sent[i]))-s.c.isNoise()) }
	r.begins, r.refused = share(0), share(1)
	r.fair = 0.5
	if len(s.fairly) > 1 && fair > 0 {
		r.fair = slices.Min(s.fairly) / fair
	}
	if len(s.delays) > 0 {
		slices.Sort(s.delays)
		for _, d := range s.delays {
			r.delay += float64(d) / float64(len(s.delays))
		}
		r.late = float64(s.delays[len(s.delays)*95/100])
	}
	return *r
}

func (s *lawSim) push(e lawEvent) {
	s.seq++
	e.seq = s.seq
	heap.Push(&s.queue, &e)
}

// lawEvents is a heap; events at the same time are in the order in which they were pushed.
type lawEvents []*lawEvent

func (q lawEvents) Len() int { return len(q) }
func (q lawEvents) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].at, q[j].at), cmp.Compare(q[i].seq, q[j].seq)) < 0
}
func (q lawEvents) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *lawEvents) Push(e any)   { *q = append(*q, e.(*lawEvent)) }
func (q *lawEvents) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
