package sim

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

var start = time.Unix(1_700_000_000, 0)

func at(d time.Duration) time.Time { return start.Add(d) }

var must = conformance.Must

// write asks about rows of one unit with the keys and gives the verdicts.
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

func TestABucketIsEmptyAtTheStartAndHoldsABurst(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 100}, start)
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {10 * time.Millisecond, 1}, {110 * time.Millisecond, 10}, {10 * time.Second, 100}, {10 * time.Second, 0}, {10500 * time.Millisecond, 50}} {
		if n := accepted(write(table, at(step.after), repeated("k", 200)...)); n != step.want {
			t.Errorf("after %v: %d rows accepted, want %d", step.after, n, step.want)
		}
	}
}

func TestAClockThatGoesBackGivesNothing(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 10}, start)
	write(table, at(time.Second), repeated("k", 10)...)
	conformance.Equal(t, accepted(write(table, at(0), "k")), 0, "a row passed")
	conformance.Equal(t, accepted(write(table, at(time.Second), "k")), 0, "the second was paid twice")
}

// numbers gives the present partition of each key.
func numbers(t *Table, keys ...Key) (list []int) {
	for _, k := range keys {
		list = append(list, t.Owner(k))
	}
	return list
}

func TestRangesAreClosedOnTheLeftAndOpenOnTheRight(t *testing.T) {
	for name, v := range map[string]struct{ points, keys []Key }{
		"strings":         {[]Key{"b", "c"}, []Key{"", "azzz", "b", "b\x00", "bzz", "c", "\xff"}},
		"zero bytes":      {[]Key{"b", "b\x00"}, []Key{"\x00", "a\xff", "b", "b", "b", "b\x00", "b\x00\x00"}},
		"a proper prefix": {[]Key{"abc", "abcd"}, []Key{"ab", "abb\xff", "abc", "abc\x00", "abcc", "abcd", "b"}},
	} {
		table := NewTable(Config{}, start)
		must(t, table.Split(start, v.points, 0))
		n := numbers(table, v.keys...)
		if !(n[0] == n[1] && n[1] != n[2] && n[2] == n[3] && n[3] == n[4] && n[4] != n[5] && n[5] == n[6] && n[0] != n[5]) {
			t.Errorf("%s: %v", name, n)
		}
	}
}

func TestIntegersAreRoutedByTheirValue(t *testing.T) {
	table := NewTable(Config{}, start)
	must(t, table.Split(start, []Key{IntegerKey(-5), IntegerKey(0), IntegerKey(300)}, 0))
	var keys []Key
	for _, v := range []int64{math.MinInt64, -6, -5, -1, 0, 299, 300, math.MaxInt64} {
		keys = append(keys, IntegerKey(v))
		if back, ok := keys[len(keys)-1].Integer(); !ok || back != v {
			t.Errorf("%d is read back as %d", v, back)
		}
	}
	n := numbers(table, keys...)
	for i := 0; i < len(n); i += 2 {
		if n[i] != n[i+1] || i > 0 && n[i] == n[i-1] {
			t.Errorf("%v", n)
		}
	}
	conformance.Same(t, table.Bounds(start), []Key{IntegerKey(-5), IntegerKey(0), IntegerKey(300)}, "bounds")
}

func TestRowsOfOneRequestMeetTheirOwnPartitions(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 1}, start)
	table.Split(start, []Key{"b", "c"}, 0)
	got := write(table, at(time.Second), "c", "a", "b", "a", "c", "b")
	want := []Verdict{Accepted, Accepted, Accepted, Throttled, Throttled, Throttled}
	conformance.Same(t, got, want, "got")
}

func TestChildrenServeAfterTheSplitWithTheFullCapacityEach(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 100}, start)
	write(table, at(5*time.Second), "a")
	must(t, table.Split(at(5*time.Second), []Key{"m"}, 500*time.Millisecond))
	if v := write(table, at(5499*time.Millisecond), "a", "z"); v[0] != Unavailable || v[1] != Unavailable {
		t.Errorf("%v while splitting", v)
	}
	conformance.Equal(t, len(table.Bounds(at(5*time.Second))), 1, "while splitting")
	v := write(table, at(5600*time.Millisecond), append(repeated("a", 20), repeated("z", 20)...)...)
	if a, z := accepted(v[:20]), accepted(v[20:]); a != 10 || z != 10 {
		t.Errorf("%d and %d rows accepted 100 ms after, want 10 and 10", a, z)
	}
	s := table.Stats(at(6 * time.Second))
	if len(s.Partitions) != 3 || !s.Partitions[0].Ended.Equal(at(5*time.Second)) || s.Partitions[0].Rows != 1 || s.Partitions[0].Position != -1 ||
		!s.Partitions[1].Since.Equal(at(5500*time.Millisecond)) || s.Rows != 21 || s.Unavailable != 2 {
		t.Errorf("%+v", s)
	}
}

func TestAPartitionThatKeepsItsRangeIsNotTouchedByASplit(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 100}, start)
	table.Split(start, []Key{"m"}, 0)
	before := numbers(table, "a", "z")
	table.Split(at(time.Second), []Key{"t", "m"}, time.Second)
	after := numbers(table, "a", "z")
	if before[0] != after[0] || before[1] == after[1] {
		t.Errorf("%v, then %v", before, after)
	}
	if v := write(table, at(time.Second), "a", "n"); v[0] != Accepted || v[1] != Unavailable {
		t.Error(v)
	}
}

func TestASlowPartitionHasItsShareOfTheCapacity(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 100, Slow: map[int]float64{1: 0.1}}, start)
	table.Split(start, []Key{"b", "c"}, 0)
	v := write(table, at(time.Second), slices.Concat(repeated("a", 200), repeated("b", 200), repeated("c", 200))...)
	if a, b, c := accepted(v[:200]), accepted(v[200:400]), accepted(v[400:]); a != 100 || b != 10 || c != 100 {
		t.Errorf("%d, %d and %d rows accepted, want 100, 10, 100", a, b, c)
	}
}

func TestAMovingPartitionIsAwayAndReturnsWithAnEmptyBucket(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 10}, start)
	table.Split(start, []Key{"m"}, 0)
	conformance.Refused(t, table.Move(at(time.Second), 2, time.Second), "", "a partition that is not there moved")
	must(t, table.Move(at(time.Second), 1, time.Second))
	if v := write(table, at(1999*time.Millisecond), "a", "z"); v[0] != Accepted || v[1] != Unavailable {
		t.Error(v)
	}
	read := []Row{{Key: []byte("a")}, {Key: []byte("z")}}
	table.Reach(at(1999*time.Millisecond), read)
	if read[0].Verdict != Accepted || read[1].Verdict != Unavailable {
		t.Error(read)
	}
	if n := accepted(write(table, at(2100*time.Millisecond), repeated("z", 10)...)); n != 1 {
		t.Errorf("%d rows accepted 100 ms after the return, want 1", n)
	}
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
			if d < 8*time.Millisecond || d > 12*time.Millisecond {
				t.Fatalf("latency %v", d)
			}
			sum += d
		}
		return sum / 1000
	}
	if m := mean("a", "a"); m < 9800*time.Microsecond || m > 10200*time.Microsecond {
		t.Errorf("mean of one partition: %v", m)
	}
	if m := mean("a", "b", "c", "d"); m < 10800*time.Microsecond { // the largest of four: 10 + 2·(3/5)
		t.Errorf("mean of four partitions: %v, the slowest should count", m)
	}
}

func TestWrongConfigurationsAreNamed(t *testing.T) {
	for want, c := range map[string]Config{
		"partition capacity must not be negative":                                                        {PartitionUnits: -1},
		"jitter is too large":                                                                            {Jitter: 1.5},
		"slow: partition -1 is not in 0…4095":                                                            {PartitionUnits: 1, Slow: map[int]float64{-1: 0.5}},
		"slow: the share of partition 1 must be above 0 and at most 1, not 2":                            {PartitionUnits: 1, Slow: map[int]float64{1: 2}},
		"slow partitions need a partition capacity":                                                      {Slow: map[int]float64{1: 0.5}},
		"splitting by load needs a partition capacity":                                                   {AutoSplit: AutoSplit{Load: 0.5}},
		`throttle code "x" is none of OTSNotEnoughCapacityUnit, OTSCapacityUnitExhausted, OTSServerBusy`: {ThrottleCode: "x"},
		"splits every must be at least a millisecond":                                                    {Splits: Splits{Every: 1}},
		"latency must not be negative":                                                                   {Latency: -1},
		"burst is too large":                                                                             {Burst: math.MaxInt64},
		"partitions is too large":                                                                        {Partitions: MaxPartitions + 1},
		"moves per minute must not be negative":                                                          {Moves: Moves{PerMinute: math.NaN()}},
	} {
		if err := c.Check(); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
	must(t, (&Config{}).Check())
}

func TestPartitionLimit(t *testing.T) {
	table := NewTable(Config{}, start)
	points := make([]Key, MaxPartitions)
	for i := range points {
		points[i] = IntegerKey(int64(i))
	}
	conformance.Refused(t, table.Split(start, points, 0), "", "no error")
	must(t, table.Split(start, points[1:], 0))
}

func TestSecondsAreCountedAndForgottenInTime(t *testing.T) {
	table := NewTable(Config{PartitionUnits: 1}, start)
	write(table, at(1500*time.Millisecond), "a", "a")
	write(table, at(2500*time.Millisecond), "a")
	p := table.Stats(at(3 * time.Second)).Partitions[0]
	want := []Second{{start.Unix() + 1, Count{Rows: 1, Units: 1, Throttled: 1}}, {start.Unix() + 2, Count{Rows: 1, Units: 1}}}
	if !slices.Equal(p.Seconds, want) || !p.FirstRow.Equal(at(1500*time.Millisecond)) || !p.LastRow.Equal(at(2500*time.Millisecond)) {
		t.Errorf("%+v", p)
	}
	for i := range 2 * maxSeconds {
		write(table, at(time.Duration(i)*time.Second), "a")
	}
	if n := len(table.Stats(start).Partitions[0].Seconds); n > maxSeconds {
		t.Errorf("%d seconds are kept", n)
	}
	table.Reset()
	if s := table.Stats(start); s.Rows != 0 || len(s.Partitions[0].Seconds) != 0 || s.Requests != 0 {
		t.Errorf("%+v after Reset", s)
	}
}

func TestADecidedRowCostsNoAllocation(t *testing.T) {
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
	for range 2000 { // at first most keys are kept
		request()
	}
	if n := testing.AllocsPerRun(100, request); n > 5 {
		t.Errorf("%g allocations for 200 rows", n)
	}
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
