package partitioner

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/shuffle"
)

const settle = time.Second

// service simulates Tablestore: it holds each key's last applied row, and attempts that may still be applied.
type service struct {
	now     time.Time
	applied map[string]int // row number by key
	late    []late
}

type late struct {
	at  time.Time
	row sent
}

type sent struct {
	key    string
	number int
}

func (s *service) advance(to time.Time) {
	s.now = to
	kept := s.late[:0]
	for _, l := range s.late {
		if l.at.After(to) {
			kept = append(kept, l)
			continue
		}
		s.applied[l.row.key] = l.row.number
	}
	s.late = kept
}

// rowsOf makes blocks of rows that hold the row's number instead of PlainBuffer bytes.
func rowsOf(keys []string, perBlock int) []*table.Block {
	var blocks []*table.Block
	for i, k := range keys {
		if i%perBlock == 0 {
			blocks = append(blocks, &table.Block{Split: new(table.Split)})
		}
		b := blocks[len(blocks)-1]
		start := len(b.Data)
		b.Data = append(b.Data, k...)
		body := len(b.Data)
		b.Data = fmt.Appendf(b.Data, "%d", i)
		b.Append(start, body, 10, table.Span{}, nil)
	}
	return blocks
}

func number(r table.Ref) (n int) {
	fmt.Sscan(string(r.Body()), &n)
	return n
}

// simulation drives a cutter against a randomly failing service, with its own clock, while lanes are recut.
type simulation struct {
	t       *testing.T
	rnd     *rand.Rand
	queues  *shuffle.Lanes
	service service
	cutter  *Cutter
	flying  []*Flight
	landed  []*Flight // to be reused
	keys    []string
	bad     []bool // rows the service refuses permanently
	ends    []int  // how often each row became final
	end     []End
}

var cutterSeeds = flag.Int("cutter-seeds", 250, "number of seeds for the test of failing requests")

func TestRowsOfKeyStayInOrderDespiteFailures(t *testing.T) {
	for seed := range uint64(*cutterSeeds) {
		simulate(t, seed)
		conformance.MustEqual(t, t.Failed(), false, "with seed %d", seed)
	}
}

func simulate(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	s := &simulation{t: t, rnd: rnd}
	s.service = service{now: time.Unix(1000, 0), applied: map[string]int{}}
	n, distinct := 1+rnd.IntN(120), 1+rnd.IntN(20)
	unordered := rnd.IntN(4) == 0
	for i := range n {
		s.keys = append(s.keys, fmt.Sprintf("key%d", rnd.IntN(distinct)))
		if unordered {
			s.keys[i] = fmt.Sprintf("key%d", i) // unique, as Unordered requires
		}
		s.bad = append(s.bad, rnd.IntN(6) == 0)
	}
	s.ends, s.end = make([]int, n), make([]End, n)
	lanes := 1 + rnd.IntN(4)
	s.queues = shuffle.New(lanes, shuffle.Options{Budget: 1 << 20})
	s.cutter = New(Options{
		Lanes: lanes, Route: routeBy(lanes), Unordered: unordered, Supersede: rnd.IntN(3) > 0, SettleFirst: rnd.IntN(4) == 0,
		Settle: settle, SuspectUntil: s.service.now.Add(settle), MaxWaiting: 1 + rnd.IntN(50),
		Backoff: func(attempt int) time.Duration { return time.Duration(attempt) * 10 * time.Millisecond },
		Final: func(r table.Ref, end End, _ table.Outcome) {
			s.ends[number(r)]++
			s.end[number(r)] = end
			s.queues.Final(r)
		},
	})
	s.cutter.OnWritten(func(rows []table.Ref) {
		for _, r := range rows {
			s.ends[number(r)]++
			s.end[number(r)] = Written
		}
		s.queues.AllFinal(rows)
	})
	s.cutter.LimitWaiting(rnd.Int64N(2000))
	blocks := rowsOf(s.keys, 1+rnd.IntN(20))
	if rnd.IntN(2) == 0 && !unordered {
		s.suspect(blocks)
	}
	for _, b := range blocks {
		s.queues.PushRouted(b, nil, routeBy(lanes))
	}
	flights := 1 + rnd.IntN(6)
	for steps := 0; s.queues.Rows() > 0 || s.cutter.Remaining() > 0; steps++ {
		conformance.MustTrue(t, steps <= 100_000, "the rows never become final")
		conformance.MustEqual(t, int(s.queues.Rows())+s.cutter.Remaining(), n-s.ended(), "rows remaining")
		s.step(flights)
		s.checkOut()
	}
	until, unsettled := s.cutter.Unsettled(s.service.now)
	for _, l := range s.service.late {
		conformance.True(t, unsettled && !l.at.After(until),
			"an attempt lands at %v, the cutter thinks that none does after %v (%v)", l.at, until, unsettled)
	}
	s.service.advance(s.service.now.Add(10 * settle))
	s.check()
}

// suspect marks the first rows of some keys as suspect: an earlier process sent them, so they may still be applied.
func (s *simulation) suspect(blocks []*table.Block) {
	left := map[string]int{}
	for _, b := range blocks {
		for i := range b.Rows {
			r := table.Ref{Block: b, Index: int32(i)}
			key := string(r.Key())
			n, known := left[key]
			if !known {
				n = s.rnd.IntN(4)
			}
			left[key] = n - 1
			if n <= 0 {
				continue
			}
			b.Rows[i].SetSuspect()
			if !s.bad[number(r)] && s.rnd.IntN(2) == 0 {
				at := s.service.now.Add(time.Duration(s.rnd.Int64N(int64(settle))))
				s.service.late = append(s.service.late, late{at, sent{key, number(r)}})
			}
		}
	}
}

// checkOut checks that Out reports exactly the unfinished rows that have left their lane, and checks the lanes' counts.
func (s *simulation) checkOut() {
	counts := make([]laneKeys, len(s.cutter.lanes))
	for i, l := range s.cutter.lanes {
		counts[i] = laneKeys{ready: l.ready, written: l.written}
		for _, k := range l.ready {
			counts[i].promoted += 1 - min(k.attempts, 1)
		}
	}
	for f := range s.cutter.flying {
		for _, k := range f.keys {
			conformance.Equal(s.t, k.lane, s.cutter.o.Route(k.row.Key()), "lane of a row in flight")
		}
	}
	for _, k := range s.cutter.retry {
		counts[k.lane].retrying++
		if k.settles {
			counts[k.lane].settling++
		}
	}
	s.cutter.keys.each(func(k *key) {
		for _, r := range slices.Concat(k.waiting, k.replaced) {
			counts[k.lane].held += r.Memory()
		}
		if k.lane >= 0 {
			counts[k.lane].waiting += len(k.waiting)
		}
	})
	conformance.True(s.t, reflect.DeepEqual(s.cutter.lanes, counts), "lanes count %+v, want %+v", s.cutter.lanes, counts)
	seen := map[int]bool{}
	s.cutter.Out(func(r table.Ref) {
		n := number(r)
		conformance.True(s.t, !seen[n] && s.ends[n] <= 0, "row %d seems out: twice %v, final %v", n, seen[n], s.ends[n] > 0)
		seen[n] = true
	})
	conformance.True(s.t, len(seen) == s.cutter.Remaining(), "%d rows seem out, %d are", len(seen), s.cutter.Remaining())
	if until, any := s.cutter.Settling(s.service.now); any {
		all, ok := s.cutter.Unsettled(s.service.now)
		conformance.True(s.t, ok && !until.After(all), "a key settles until %v, all until %v", until, all)
	}
}

func routeBy(lanes int) func([]byte) int {
	return func(key []byte) int { return int(key[len(key)-1]) % lanes }
}

func (s *simulation) recut() {
	old, n := s.queues.Len(), 1+s.rnd.IntN(5)
	s.queues.Recut(n, func(i int) int {
		if n == old {
			return i
		}
		return -1
	}, func(int) []int {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}, routeBy(n), nil)
	s.cutter.Recut(n, routeBy(n))
}

func (s *simulation) ended() (n int) {
	for _, e := range s.ends {
		n += e
	}
	return n
}

func (s *simulation) step(flights int) {
	if s.rnd.IntN(20) == 0 {
		s.recut()
	}
	f := new(Flight)
	if n := len(s.landed); n > 0 {
		f = s.landed[n-1]
	}
	f.MaxRows = 1 + s.rnd.IntN(8)
	lane := s.rnd.IntN(s.queues.Len())
	s.cutter.Wake(s.service.now)
	if len(s.flying) < flights && s.rnd.IntN(2) == 0 && s.cutter.Cut(s.service.now, lane, s.queues.Lane(lane), f,
		1+10*s.rnd.Float64()) {
		s.landed = s.landed[:max(0, len(s.landed)-1)]
		conformance.Equal(s.t, f.Lane, lane, "lane of the flight")
		s.takeOff(f)
		return
	}
	if len(s.flying) > 0 && s.rnd.IntN(3) > 0 {
		i := s.rnd.IntN(len(s.flying))
		landing := s.flying[i]
		s.flying = append(s.flying[:i], s.flying[i+1:]...)
		s.cutter.Done(s.service.now, landing)
		landing.Reset()
		s.landed = append(s.landed, landing)
		for _, k := range s.cutter.spare[:len(s.cutter.spare)*max(0, s.rnd.IntN(8)-6)] {
			if !reflect.DeepEqual(*k, key{hash: k.hash, lane: k.lane, place: k.place, due: k.due, waiting: k.waiting[:0],
				replaced: k.replaced[:0]}) {
				s.t.Fatalf("the memory of a key that is forgotten has %+v", *k)
			}
		}
		return
	}
	pass := time.Duration(s.rnd.IntN(50)) * time.Millisecond
	if wait, ok := s.cutter.Wait(s.service.now); ok && len(s.flying) == 0 {
		pass = wait
	}
	s.service.advance(s.service.now.Add(pass))
}

// takeOff decides what the service does with each row and how it will answer.
func (s *simulation) takeOff(f *Flight) {
	inFlight := map[string]bool{}
	for _, other := range s.flying {
		for _, r := range other.Rows {
			inFlight[string(r.Key())] = true
		}
	}
	for i, r := range f.Rows {
		key := string(r.Key())
		conformance.True(s.t, !inFlight[key], "row %d: its key is in flight already", number(r))
		inFlight[key] = true
		conformance.Equal(s.t, f.Outcomes[i], (table.Outcome{Fate: table.Unknown}),
			"before it is sent, row %d has the outcome", number(r))
		f.Outcomes[i] = s.send(sent{key, number(r)})
	}
	if !slices.ContainsFunc(f.Outcomes, func(o table.Outcome) bool { return o.Fate != table.Written }) &&
		s.rnd.IntN(4) > 0 {
		fill(f.Outcomes)
		f.AllWritten = true
	}
	s.flying = append(s.flying, f)
}

func (s *simulation) send(row sent) table.Outcome {
	switch choice := s.rnd.IntN(10); {
	case choice < 2:
		return table.Outcome{Fate: table.Again, Throttled: choice == 0}
	case s.bad[row.number]:
		return table.Outcome{Fate: table.Refused}
	case choice == 2: // never applied, with unknown outcome
		return table.Outcome{Fate: table.Unknown}
	case choice == 3:
		s.service.applied[row.key] = row.number
		return table.Outcome{Fate: table.Unknown}
	case choice == 4:
		// The answer arrives later than now, so any attempt applied before now + settle is within Settle of the answer.
		s.service.late = append(s.service.late, late{s.service.now.Add(time.Duration(s.rnd.Int64N(int64(settle)))), row})
		return table.Outcome{Fate: table.Unknown}
	}
	s.service.applied[row.key] = row.number
	return table.Outcome{Fate: table.Written}
}

func (s *simulation) check() {
	last := map[string]int{}
	for i, k := range s.keys {
		if !s.bad[i] {
			last[k] = i
		}
		conformance.Equal(s.t, s.ends[i], 1, "row %d became final", i)
		conformance.True(s.t, !s.bad[i] || s.end[i] != Written, "row %d was refused and is called written", i)
	}
	for k, want := range last {
		got, ok := s.service.applied[k]
		conformance.True(s.t, ok && got == want, "%s holds row %d (%v), want row %d", k, got, ok, want)
		conformance.Equal(s.t, s.end[want], Written, "row %d is the last of %s and is not called written", want, k)
	}
	conformance.True(s.t, s.queues.Bytes() == 0, "%d bytes are still counted", s.queues.Bytes())
}

func TestCutSupersedesEarlierRowsOfKey(t *testing.T) {
	for _, tt := range []struct {
		fate table.Fate
		want map[int]End
	}{{table.Written, map[int]End{0: Superseded, 1: Written, 2: Superseded, 3: Written}},
		{table.Refused, map[int]End{0: Superseded, 1: Written, 2: Written, 3: Rejected}}} {
		ends := map[int]End{}
		final := func(r table.Ref, end End, _ table.Outcome) { ends[number(r)] = end }
		c, q := pour(Options{Supersede: true, Final: final}, "k", "other", "k", "k")
		f := new(Flight)
		conformance.MustTrue(t, c.Cut(time.Unix(1, 0), 0, q, f, 200) && len(f.Rows) == 2 && number(f.Rows[0]) == 3 &&
			number(f.Rows[1]) == 1, "the batch is %v, want rows 3 and 1", f.Rows)
		f.Outcomes[0], f.Outcomes[1] = table.Outcome{Fate: tt.fate}, table.Outcome{Fate: table.Written}
		for c.Done(time.Unix(1, 0), f); c.Remaining() > 0; c.Done(time.Unix(1, 0), f) {
			f = new(Flight)
			conformance.MustEqual(t, c.Cut(time.Unix(1, 0), 0, q, f, 200), true, "nothing to send")
			f.Outcomes[0] = table.Outcome{Fate: table.Written}
		}
		conformance.Equal(t, fmt.Sprint(ends), fmt.Sprint(tt.want), "ends")
	}
}

func TestUnorderedRowsOfKeyDoNotWaitForEachOther(t *testing.T) {
	c, q := pour(Options{Unordered: true}, "k", "k", "k")
	for _, want := range []int{0, 1, 2} {
		f := new(Flight)
		f.MaxRows = 1
		conformance.MustTrue(t, c.Cut(time.Unix(1, 0), 0, q, f, 200) && number(f.Rows[0]) == want, "row %d is not sent", want)
	}
}

func TestBatchKeepsUnitLimit(t *testing.T) {
	for _, tt := range []struct {
		units float64
		want  int
	}{{0.5, 1}, {1, 1}, {2, 1}, {4, 2}, {5.9, 2}, {6, 3}, {100, 3}} {
		queues := shuffle.New(1, shuffle.Options{Budget: 1 << 20})
		c := New(Options{Final: func(table.Ref, End, table.Outcome) {}})
		b := &table.Block{Split: new(table.Split)}
		for _, k := range "abc" {
			start := len(b.Data)
			b.Data = append(b.Data, byte(k))
			b.Append(start, len(b.Data), 2*table.CapacityUnitBytes, table.Span{}, nil)
		}
		queues.Push(0, b)
		f := new(Flight)
		conformance.True(t, c.Cut(time.Unix(1, 0), 0, queues.Lane(0), f, tt.units) && len(f.Rows) == tt.want &&
			f.Units == 2*tt.want, "%v units: %d rows of %d units, want %d rows", tt.units, len(f.Rows), f.Units, tt.want)
	}
}

func TestKeysWithEqualHashDoNotSupersedeEachOther(t *testing.T) {
	ends := map[int]End{}
	queues := shuffle.New(1, shuffle.Options{Budget: 1 << 20})
	c := New(Options{Supersede: true, Final: func(r table.Ref, end End, _ table.Outcome) { ends[number(r)] = end }})
	blocks := rowsOf([]string{"a", "b", "a", "b"}, 4)
	for i := range blocks[0].Rows {
		blocks[0].Rows[i].Hash = 7 // as if all keys collided
	}
	queues.Push(0, blocks[0])
	now := time.Unix(1, 0)
	for c.Remaining() > 0 || queues.Rows() > 0 {
		f := new(Flight)
		conformance.MustEqual(t, c.Cut(now, 0, queues.Lane(0), f, 200), true, "nothing to send")
		for i := range f.Outcomes {
			f.Outcomes[i] = table.Outcome{Fate: table.Written}
		}
		c.Done(now, f)
	}
	conformance.True(t, ends[2] == Written && ends[3] == Written, "the last rows of a and b are not written: %v", ends)
}

func TestBatchesStayWithinLimits(t *testing.T) {
	for _, tt := range []struct{ rows, want int }{{0, 0}, {1, 1}, {199, 1}, {200, 1}, {201, 2}, {400, 2}, {401, 3}} {
		var keys []string
		for i := range tt.rows {
			keys = append(keys, fmt.Sprint(i))
		}
		c, q := pour(Options{}, keys...)
		got := 0
		for f := new(Flight); c.Cut(time.Unix(1, 0), 0, q, f, 1000); f = new(Flight) {
			conformance.True(t, len(f.Rows) <= table.MaxBatchRows, "a batch of %d rows", len(f.Rows))
			got++
		}
		conformance.Equal(t, got, tt.want, "batches of %d rows", tt.rows)
	}
}
