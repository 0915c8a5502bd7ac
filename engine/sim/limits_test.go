package sim

import (
	"testing"
	"time"

	"example.com/tsimport/engine/limiter"
	"example.com/tsimport/internal/conformance"
)

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
