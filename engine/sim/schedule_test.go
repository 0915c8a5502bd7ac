package sim

import (
	"fmt"
	"testing"
	"time"

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
