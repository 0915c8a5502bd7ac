package sim

import (
	"fmt"
	"testing"
	"time"

	"example.com/tsimport/engine/limiter"
	"example.com/tsimport/internal/conformance"
)

func load(table *Table, from, to time.Duration, key func(i int) Key) (verdicts []Verdict) {
	for i, now := 0, from; now < to; i, now = i+1, now+time.Millisecond {
		verdicts = append(verdicts, write(table, at(now), key(i))...)
	}
	return verdicts
}

func hasPartitions(t *testing.T, table *Table, now time.Time, want int) {
	t.Helper()
	conformance.Equal(t, len(table.Bounds(now))+1, want, "partitions %v after the start", now.Sub(start))
}

func digits(i int) Key { return Key(fmt.Sprintf("%04d", i*7919%10000)) }

func TestPlannedSplitsHalveEveryPartitionUntilThereAreEnough(t *testing.T) {
	table := NewTable(Config{Splits: Splits{Start: time.Second, Every: 2 * time.Second, Unavailable: 100 * time.Millisecond, MaxPartitions: 8}}, start)
	for _, step := range []struct {
		until time.Duration
		want  int
	}{{999 * time.Millisecond, 1}, {2 * time.Second, 2}, {4 * time.Second, 4}, {6 * time.Second, 8}, {20 * time.Second, 8}} {
		load(table, step.until-time.Second+time.Millisecond, step.until, digits)
		hasPartitions(t, table, at(step.until), step.want)
	}
	table.Reset()
	load(table, 30*time.Second, 40*time.Second, digits)
	for _, p := range table.Stats(at(time.Minute)).Partitions {
		if p.Rows < 10000/8*6/10 || p.Rows > 10000/8*16/10 {
			t.Errorf("partition %q…%q has %d of 10000 rows", p.Start, p.End, p.Rows)
		}
	}
}

func TestStaggeredSplitsBeginOneAfterTheOther(t *testing.T) {
	sample := make([]Key, 100)
	for i := range sample {
		sample[i] = Key(fmt.Sprintf("%02d", i))
	}
	table := NewTable(Config{Partitions: 4, Sample: sample, Splits: Splits{Start: time.Second, Stagger: 100 * time.Millisecond}}, start)
	write(table, start, "50")
	for i, want := range []int{3, 4, 5, 6, 7, 7} {
		now := at(950*time.Millisecond + time.Duration(i)*100*time.Millisecond)
		hasPartitions(t, table, now, want+1)
	}
}

func TestASinglePartitionKeyIsNeverSplit(t *testing.T) {
	table := NewTable(Config{Splits: Splits{Every: time.Second}, AutoSplit: AutoSplit{Bytes: 1000}}, start)
	v := load(table, 0, 5*time.Second, func(int) Key { return "hot" })
	if n := len(table.Bounds(at(5 * time.Second))); n != 0 || accepted(v) != len(v) {
		t.Errorf("%d bounds, %d of %d rows accepted", n, accepted(v), len(v))
	}
}

func TestATableSplitsBySize(t *testing.T) {
	table := NewTable(Config{AutoSplit: AutoSplit{Bytes: 100_000, MaxPartitions: 6}}, start)
	load(table, 0, 1500*time.Millisecond, digits) // 150 kB
	hasPartitions(t, table, at(2*time.Second), 2) // after 150 kB
	load(table, 2*time.Second, 12*time.Second, digits)
	hasPartitions(t, table, at(20*time.Second), 6)
}

func TestATableSplitsByLastingLoadOnly(t *testing.T) {
	config := Config{PartitionUnits: 1000, AutoSplit: AutoSplit{Load: 0.8, Sustain: 3 * time.Second, MaxPartitions: 2}}
	busy := NewTable(config, start)
	load(busy, 0, 4100*time.Millisecond, digits)
	hasPartitions(t, busy, at(5*time.Second), 2) // after four busy seconds
	calm := NewTable(config, start)
	for s := range 10 {
		load(calm, time.Duration(s)*2*time.Second, time.Duration(s)*2*time.Second+time.Second, digits)
	}
	hasPartitions(t, calm, at(time.Minute), 1) // every other second was idle
}

func TestMovesComeAtTheirRate(t *testing.T) {
	table := NewTable(Config{Seed: 3, Moves: Moves{PerMinute: 60, Unavailable: 10 * time.Millisecond}}, start)
	v := load(table, 0, 100*time.Second, digits)
	away := len(v) - accepted(v)
	if away < 700 || away > 1300 {
		t.Errorf("%d of %d rows met a moving partition, want about 1000", away, len(v))
	}
}

func TestALongIdleTimeIsCaughtUpQuickly(t *testing.T) {
	table := NewTable(Config{Moves: Moves{PerMinute: maxMovesPerMinute}, Splits: Splits{Every: time.Millisecond}}, start)
	write(table, start, "a")
	write(table, at(99*time.Hour), "a")
	if table.clock.due <= at(99*time.Hour).UnixNano() {
		t.Error("something is still due")
	}
}

func TestATableToBeCutIsCutAtTheKeysSeen(t *testing.T) {
	table := NewTable(Config{Partitions: 10}, start)
	load(table, 0, 900*time.Millisecond, digits)
	hasPartitions(t, table, at(time.Second), 1) // before enough rows
	load(table, time.Second, 2*time.Second, digits)
	hasPartitions(t, table, at(2*time.Second), 10)
}

func TestQuantilesCutEvenly(t *testing.T) {
	var keys []Key
	for i := range 100 {
		keys = append(keys, Key(fmt.Sprintf("%02d", i)))
	}
	conformance.Same(t, Quantiles(keys, 4), []Key{"25", "50", "75"}, "quantiles")
	conformance.Same(t, Quantiles([]Key{"a", "a", "a", "b"}, 4), []Key{"b"}, "quantiles")
	conformance.Equal(t, len(Quantiles(nil, 4)), 0, "quantiles")
}

func TestHalvesAreAsEvenAsKeysAllow(t *testing.T) {
	for _, v := range []struct {
		keys string
		want Key
		ok   bool
	}{{"", "", false}, {"a", "", false}, {"aaaa", "", false}, {"ab", "b", true}, {"aaab", "b", true}, {"abbb", "b", true}, {"abcd", "c", true}, {"abbbbc", "b", true}, {"aabbbc", "b", true}, {"abbbcc", "c", true}} {
		var keys []Key
		for _, c := range v.keys {
			keys = append(keys, Key(c))
		}
		if got, ok := halve(keys); got != v.want || ok != v.ok {
			t.Errorf("%s: %q %v, want %q", v.keys, got, ok, v.want)
		}
	}
}

// offer asks every millisecond about rows with a key until a time, and returns how many were accepted and the longest delay.
func offer(t *Table, from, until time.Duration, n int, keys ...Key) (taken int, longest time.Duration) {
	for d := from; d < until; d += time.Millisecond {
		rows := make([]Row, 0, n*len(keys))
		for range n {
			for _, k := range keys {
				rows = append(rows, Row{Key: []byte(k), Units: 1})
			}
		}
		longest = max(longest, t.Decide(at(d), rows))
		for _, r := range rows {
			if r.Verdict == Accepted {
				taken++
			}
		}
	}
	return taken, longest
}

func TestEveryLimiterTakesTheCapacityOfAPartition(t *testing.T) {
	for kind, want := range map[string]struct {
		taken   int
		longest time.Duration
	}{
		limiter.TokenBucket:   {999, 0},
		limiter.FixedWindow:   {1000, 0},
		limiter.SlidingWindow: {1000, 0},
		limiter.Queue:         {11_000, 10_001 * time.Millisecond},
		limiter.Concurrency:   {1000, 100 * time.Millisecond},
	} {
		table := NewTable(Config{PartitionUnits: 1000, Limiter: kind}, start)
		taken, longest := offer(table, 0, time.Second, 20, "k")
		// A queue takes what it serves within 10 s, and as the first row that waits so long is taken, one more.
		if taken < want.taken || taken > want.taken+1 || longest < want.longest || longest > want.longest+2*time.Millisecond {
			t.Errorf("%s: %d rows in a second, delayed by %v; want %d, %v", kind, taken, longest, want.taken, want.longest)
		}
		if got := table.Stats(at(time.Second)).Partitions[0].Throttled; got != int64(20_000-taken) {
			t.Errorf("%s: %d rows are counted as throttled of %d refused", kind, got, 20_000-taken)
		}
	}
}

func TestATableTakesNoMoreThanItsLimit(t *testing.T) {
	for _, kind := range limiter.Kinds {
		table := NewTable(Config{PartitionUnits: 1000, TableUnits: 1500, Limiter: kind}, start)
		must(t, table.Split(start, []Key{"g", "p"}, 0))
		taken, _ := offer(table, 0, time.Second, 10, "a", "h", "q")
		if kind == limiter.Queue {
			taken -= 15_000 // what waits
		}
		if taken < 1498 || taken > 1503 {
			t.Errorf("%s: %d rows in a second of a table of 1,500", kind, taken)
		}
	}
	table := NewTable(Config{TableUnits: 100}, start)
	if taken, _ := offer(table, 0, time.Second, 10, "a"); taken != 99 {
		t.Errorf("%d rows in a second of a table of 100 whose partitions have no limit", taken)
	}
}

func TestChildrenOfASplitHaveLimitsOfTheirOwn(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 1000, Limiter: limiter.FixedWindow}, start)
	offer(table, 0, time.Second, 2, "a", "z")
	must(t, table.Split(at(time.Second), []Key{"m"}, 500*time.Millisecond))
	if taken, _ := offer(table, time.Second, 1500*time.Millisecond, 2, "a", "z"); taken != 0 {
		t.Errorf("%d rows while the partitions are away", taken)
	}
	if taken, _ := offer(table, 1500*time.Millisecond, 2*time.Second, 10, "a", "z"); taken != 2000 {
		t.Errorf("%d rows in the window in which both children serve", taken)
	}
}

func TestALimiterWithoutACapacityIsRefused(t *testing.T) {
	for _, c := range []Config{{Limiter: limiter.Queue}, {PartitionUnits: 1, Limiter: "leaky"}, {TableUnits: -1}} {
		if c.Check() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	for _, c := range []Config{{PartitionUnits: 1, Limiter: limiter.Queue}, {TableUnits: 1, Limiter: limiter.FixedWindow}, {TableUnits: 5}} {
		conformance.Equal(t, c.Check(), nil, "%+v", c)
	}
}

func TestAnInstanceTakesWholeRequestsUpToItsRate(t *testing.T) {
	i := NewInstance(1000, start)
	if i.Take(start, 50, 50) {
		t.Error("an instance begins with something saved up")
	}
	taken := 0.0
	for ms := range 10_000 {
		if i.Take(at(time.Duration(ms)*time.Millisecond), 30, 10) {
			taken += 30
		}
	}
	if taken < 9_900 || taken > 10_000 {
		t.Errorf("%g units in ten seconds", taken)
	}
	c := i.Count()
	if float64(c.Units) != taken || c.Refused != 10_001-int64(taken/30) || c.Rows != 50+10*(c.Refused-1) {
		t.Errorf("%+v", c)
	}
	// A request larger than what is saved up passes when that is full, and is paid for afterwards.
	later := at(20 * time.Second)
	if !i.Take(later, 200, 200) || i.Take(later.Add(99*time.Millisecond), 1, 1) || !i.Take(later.Add(102*time.Millisecond), 1, 1) {
		t.Error("a large request")
	}
	if i.Reset(later); i.Count() != (InstanceCount{}) || i.Take(later, 1, 1) {
		t.Error("after Reset")
	}
}
