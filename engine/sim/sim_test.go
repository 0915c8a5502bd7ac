package sim

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"example.com/tsimport/engine/limiter"
	"example.com/tsimport/internal/conformance"
)

var start = time.Unix(1_700_000_000, 0)

func at(d time.Duration) time.Time { return start.Add(d) }

func write(t *Table, now time.Time, keys ...Key) []Verdict {
	rows := make([]Row, len(keys))
	for i, k := range keys {
		rows[i] = Row{Key: []byte(k), Units: 1, Bytes: 100}
	}
	t.Decide(now, rows)
	verdicts := make([]Verdict, len(rows))
	for i := range rows {
		verdicts[i] = rows[i].Verdict
	}
	return verdicts
}

func accepted(verdicts []Verdict) (n int) {
	for _, v := range verdicts {
		if v == Accepted {
			n++
		}
	}
	return n
}

func repeated(k Key, n int) []Key { return slices.Repeat([]Key{k}, n) }

func TestBucketStartsEmptyAndHoldsBurst(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 100}, start)
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {10 * time.Millisecond, 1}, {110 * time.Millisecond, 10}, {10 * time.Second, 100}, {10 * time.Second, 0},
		{10500 * time.Millisecond, 50}} {
		conformance.Equal(t, accepted(write(table, at(step.after), repeated("k", 200)...)), step.want, "after %v", step.after)
	}
}

func TestBucketIgnoresClockGoingBack(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 10}, start)
	write(table, at(time.Second), repeated("k", 10)...)
	conformance.Equal(t, accepted(write(table, at(0), "k")), 0, "a row passed")
	conformance.Equal(t, accepted(write(table, at(time.Second), "k")), 0, "the second was paid twice")
}

func TestRowsOfOneRequestReachTheirPartitions(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 1}, start)
	table.Split(start, []Key{"b", "c"}, 0)
	got := write(table, at(time.Second), "c", "a", "b", "a", "c", "b")
	want := []Verdict{Accepted, Accepted, Accepted, Throttled, Throttled, Throttled}
	conformance.Same(t, got, want, "got")
}

func TestSlowPartitionHasReducedCapacity(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 100, Slow: map[int]float64{1: 0.1}}, start)
	table.Split(start, []Key{"b", "c"}, 0)
	v := write(table, at(time.Second), slices.Concat(repeated("a", 200), repeated("b", 200), repeated("c", 200))...)
	a, b, c := accepted(v[:200]), accepted(v[200:400]), accepted(v[400:])
	conformance.True(t, a == 100 && b == 10 && c == 100, "%d, %d and %d rows accepted, want 100, 10, 100", a, b, c)
}

func TestMovedPartitionReturnsWithEmptyBucket(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 10}, start)
	table.Split(start, []Key{"m"}, 0)
	conformance.Refused(t, table.Move(at(time.Second), 2, time.Second), "", "a partition that is not there moved")
	conformance.Must(t, table.Move(at(time.Second), 1, time.Second))
	v := write(table, at(1999*time.Millisecond), "a", "z")
	conformance.True(t, v[0] == Accepted && v[1] == Unavailable, "%v", v)
	read := []Row{{Key: []byte("a")}, {Key: []byte("z")}}
	table.Reach(at(1999*time.Millisecond), read)
	conformance.True(t, read[0].Verdict == Accepted && read[1].Verdict == Unavailable, "%v", read)
	n := accepted(write(table, at(2100*time.Millisecond), repeated("z", 10)...))
	conformance.True(t, n == 1, "%d rows accepted 100 ms after the return, want 1", n)
	conformance.Equal(t, table.Stats(at(3 * time.Second)).Partitions[2].Down, time.Second, "down")
}

func TestLatencyIsDrawnAroundItsMean(t *testing.T) {
	table := NewTable(Config{Latency: 10 * time.Millisecond, Jitter: 0.2}, start)
	table.Split(start, []Key{"b", "c", "d"}, 0)
	mean := func(keys ...Key) time.Duration {
		rows := make([]Row, len(keys))
		for i, k := range keys {
			rows[i].Key = []byte(k)
		}
		var sum time.Duration
		for range 1000 {
			d := table.Latency(start, rows)
			conformance.MustTrue(t, d >= 8*time.Millisecond && d <= 12*time.Millisecond, "latency %v", d)
			sum += d
		}
		return sum / 1000
	}
	m := mean("a", "a")
	conformance.True(t, m >= 9800*time.Microsecond && m <= 10200*time.Microsecond, "mean of one partition: %v", m)
	if m := mean("a", "b", "c", "d"); m < 10800*time.Microsecond { // expected maximum of four: 10 + 2·(3/5)
		t.Errorf("mean of four partitions: %v, the slowest should count", m)
	}
}

func TestInvalidConfigurationErrors(t *testing.T) {
	for want, c := range map[string]Config{
		"partition capacity must be 0 to 1e+12":        {PartitionUnits: -1},
		"jitter must be 0 to 1":                        {Jitter: 1.5},
		"slow: partition -1 is not in 0…4095":          {PartitionUnits: 1, Slow: map[int]float64{-1: 0.5}},
		"slow partitions need a partition capacity":    {Slow: map[int]float64{1: 0.5}},
		"splitting by load needs a partition capacity": {AutoSplit: AutoSplit{Load: 0.5}},
		"splits every must be at least a millisecond":  {Splits: Splits{Every: 1}},
		"latency must be 0 to 100h0m0s":                {Latency: -1},
		"burst must be 0 to 100h0m0s":                  {Burst: math.MaxInt64},
		"partitions must be 0 to 4096":                 {Partitions: MaxPartitions + 1},
		"moves per minute must be 0 to 6000":           {Moves: Moves{PerMinute: math.NaN()}},

		"slow: the share of partition 1 must be above 0 and at most 1, not 2": {
			PartitionUnits: 1, Slow: map[int]float64{1: 2}},
		`unknown throttle code "x"; want one of OTSNotEnoughCapacityUnit, OTSCapacityUnitExhausted, OTSServerBusy`: {
			ThrottleCode: "x"},
	} {
		err := c.Check()
		conformance.True(t, err != nil && err.Error() == want, "%+v: %v, want %s", c, err, want)
	}
	conformance.Must(t, (&Config{}).Check())
}

func TestPartitionLimit(t *testing.T) {
	table := NewTable(Config{}, start)
	points := make([]Key, MaxPartitions)
	for i := range points {
		points[i] = IntegerKey(int64(i))
	}
	conformance.Refused(t, table.Split(start, points, 0), "", "no error")
	conformance.Must(t, table.Split(start, points[1:], 0))
}

func TestPartitionKeepsRecentCountsBySecond(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 1}, start)
	write(table, at(1500*time.Millisecond), "a", "a")
	write(table, at(2500*time.Millisecond), "a")
	p := table.Stats(at(3 * time.Second)).Partitions[0]
	want := []Second{{start.Unix() + 1, Count{Rows: 1, Units: 1, Throttled: 1}},
		{start.Unix() + 2, Count{Rows: 1, Units: 1}}}
	conformance.True(t, slices.Equal(p.Seconds, want) && p.FirstRow.Equal(at(1500*time.Millisecond)) &&
		p.LastRow.Equal(at(2500*time.Millisecond)), "%+v", p)
	for i := range 2 * maxSeconds {
		write(table, at(time.Duration(i)*time.Second), "a")
	}
	n := len(table.Stats(start).Partitions[0].Seconds)
	conformance.True(t, n <= maxSeconds, "%d seconds are kept", n)
	table.Reset()
	s := table.Stats(start)
	conformance.True(t, s.Rows == 0 && len(s.Partitions[0].Seconds) == 0 && s.Requests == 0, "%+v after Reset", s)
}

func TestDecideDoesNotAllocate(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 1e9}, start)
	table.Split(start, []Key{"2", "4", "6", "8"}, 0)
	rows := make([]Row, 200)
	for i := range rows {
		rows[i] = Row{Key: []byte(digits(i)), Units: 1}
	}
	request := func() {
		for i := range rows {
			rows[i].Verdict = Undecided
		}
		table.Decide(at(2*time.Second), rows)
	}
	for range 2000 { // initially most keys are kept
		request()
	}
	n := testing.AllocsPerRun(100, request)
	conformance.True(t, n <= 5, "%g allocations for 200 rows", n)
}

func BenchmarkDecide(b *testing.B) {
	table := NewTable(Config{PartitionUnits: 1e9}, start)
	var points []Key
	for i := 1; i < 32; i++ {
		points = append(points, Key(fmt.Sprintf("%04d", i*10000/32)))
	}
	table.Split(start, points, 0)
	rows := make([]Row, 200)
	for i := range rows {
		rows[i] = Row{Key: []byte(digits(i)), Units: 1}
	}
	now := start
	b.ReportAllocs()
	for b.Loop() {
		for i := range rows {
			rows[i].Verdict = Undecided
		}
		now = now.Add(time.Millisecond)
		table.Decide(now, rows)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200, "ns/row")
}

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

func TestPlannedSplitsHalvePartitionsUpToLimit(t *testing.T) {
	table := NewTable(Config{Splits: Splits{Start: time.Second, Every: 2 * time.Second,
		Unavailable: 100 * time.Millisecond, MaxPartitions: 8}}, start)
	for _, step := range []struct {
		until time.Duration
		want  int
	}{{999 * time.Millisecond, 1}, {2 * time.Second, 2}, {4 * time.Second, 4}, {6 * time.Second, 8},
		{20 * time.Second, 8}} {
		load(table, step.until-time.Second+time.Millisecond, step.until, digits)
		hasPartitions(t, table, at(step.until), step.want)
	}
	table.Reset()
	load(table, 30*time.Second, 40*time.Second, digits)
	for _, p := range table.Stats(at(time.Minute)).Partitions {
		conformance.True(t, p.Rows >= 10000/8*6/10 && p.Rows <= 10000/8*16/10, "%q…%q: %d rows", p.Start, p.End, p.Rows)
	}
}

func TestStaggeredSplitsStartInTurn(t *testing.T) {
	sample := make([]Key, 100)
	for i := range sample {
		sample[i] = Key(fmt.Sprintf("%02d", i))
	}
	table := NewTable(Config{Partitions: 4, Sample: sample,
		Splits: Splits{Start: time.Second, Stagger: 100 * time.Millisecond}}, start)
	write(table, start, "50")
	for i, want := range []int{3, 4, 5, 6, 7, 7} {
		now := at(950*time.Millisecond + time.Duration(i)*100*time.Millisecond)
		hasPartitions(t, table, now, want+1)
	}
}

func TestTableSplitsBySize(t *testing.T) {
	table := NewTable(Config{AutoSplit: AutoSplit{Bytes: 100_000, MaxPartitions: 6}}, start)
	load(table, 0, 1500*time.Millisecond, digits) // 150 kB
	hasPartitions(t, table, at(2*time.Second), 2) // after 150 kB
	load(table, 2*time.Second, 12*time.Second, digits)
	hasPartitions(t, table, at(20*time.Second), 6)
}

func TestTableSplitsBySustainedLoad(t *testing.T) {
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

func TestPartitionsMoveAtConfiguredRate(t *testing.T) {
	table := NewTable(Config{Seed: 3, Moves: Moves{PerMinute: 60, Unavailable: 10 * time.Millisecond}}, start)
	v := load(table, 0, 100*time.Second, digits)
	away := len(v) - accepted(v)
	conformance.True(t, away >= 700 && away <= 1300, "%d of %d rows met a moving partition, want about 1000", away, len(v))
}

func TestLongIdleTimeIsSkipped(t *testing.T) {
	table := NewTable(Config{Moves: Moves{PerMinute: maxMovesPerMinute}, Splits: Splits{Every: time.Millisecond}}, start)
	write(table, start, "a")
	write(table, at(99*time.Hour), "a")
	conformance.True(t, table.clock.due > at(99*time.Hour).UnixNano(), "something is still due")
}

func TestPlannedCutUsesSeenKeys(t *testing.T) {
	table := NewTable(Config{Partitions: 10}, start)
	load(table, 0, 900*time.Millisecond, digits)
	hasPartitions(t, table, at(time.Second), 1) // too few rows so far
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
	}{{"", "", false}, {"a", "", false}, {"aaaa", "", false}, {"ab", "b", true}, {"aaab", "b", true}, {"abbb", "b", true},
		{"abcd", "c", true}, {"abbbbc", "b", true}, {"aabbbc", "b", true}, {"abbbcc", "c", true}} {
		var keys []Key
		for _, c := range v.keys {
			keys = append(keys, Key(c))
		}
		got, ok := halve(keys)
		conformance.True(t, got == v.want && ok == v.ok, "%s: %q %v, want %q", v.keys, got, ok, v.want)
	}
}

// offer sends n rows of each key every millisecond, and returns how many are accepted and the longest delay.
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

func TestChildrenOfSplitHaveTheirOwnLimits(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 1000, Limiter: limiter.FixedWindow}, start)
	offer(table, 0, time.Second, 2, "a", "z")
	conformance.Must(t, table.Split(at(time.Second), []Key{"m"}, 500*time.Millisecond))
	taken, _ := offer(table, time.Second, 1500*time.Millisecond, 2, "a", "z")
	conformance.True(t, taken == 0, "%d rows while the partitions are away", taken)
	taken, _ = offer(table, 1500*time.Millisecond, 2*time.Second, 10, "a", "z")
	conformance.True(t, taken == 2000, "%d rows in the window in which both children serve", taken)
}

func TestLimiterWithoutCapacityIsRefused(t *testing.T) {
	for _, c := range []Config{{Limiter: limiter.Queue}, {PartitionUnits: 1, Limiter: "leaky"}, {TableUnits: -1}} {
		conformance.True(t, c.Check() != nil, "%+v is taken", c)
	}
	for _, c := range []Config{{PartitionUnits: 1, Limiter: limiter.Queue}, {TableUnits: 1, Limiter: limiter.FixedWindow},
		{TableUnits: 5}} {
		conformance.Equal(t, c.Check(), nil, "%+v", c)
	}
}

func TestInstanceLimitsWholeRequests(t *testing.T) {
	i := NewInstance(1000, start)
	conformance.Equal(t, i.Take(start, 50, 50), false, "an instance begins with something saved up")
	taken := 0.0
	for ms := range 10_000 {
		if i.Take(at(time.Duration(ms)*time.Millisecond), 30, 10) {
			taken += 30
		}
	}
	conformance.True(t, taken >= 9_900 && taken <= 10_000, "%g units in ten seconds", taken)
	c := i.Count()
	conformance.True(t, float64(c.Units) == taken && c.Refused == 10_001-int64(taken/30) && c.Rows == 50+10*(c.Refused-1),
		"%+v", c)
	// A request larger than the bucket passes when the bucket is full, and is charged to later time.
	later := at(20 * time.Second)
	conformance.True(t, i.Take(later, 200, 200) && !i.Take(later.Add(99*time.Millisecond), 1, 1) &&
		i.Take(later.Add(102*time.Millisecond), 1, 1), "a large request")
	i.Reset(later)
	conformance.True(t, i.Count() == (InstanceCount{}) && !i.Take(later, 1, 1), "after Reset")
}
