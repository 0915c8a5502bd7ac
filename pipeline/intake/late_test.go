package intake

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/shuffle/readorder"
)

// partRecords are those of a part: one that is sorted is longer than what a load looks at before it switches.
const partRecords = 22_000

// parts is a text of parts that are sorted, or not.
func parts(rnd *rand.Rand, kinds ...string) string {
	var b strings.Builder
	b.WriteString("id,n\n")
	n := 0
	for _, kind := range kinds {
		keys := make([]int, partRecords)
		for i := range keys {
			keys[i] = n + i
			if kind == "sorted, then shuffled" && i > partRecords/2 || kind == "of all keys" {
				keys[i] = rnd.IntN(1_000_000)
			}
		}
		if kind == "shuffled" || kind == "of all keys" {
			rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		}
		for _, k := range keys {
			fmt.Fprintf(&b, "k%07d,%d\n", k, k)
		}
		n += len(keys)
	}
	return b.String()
}

func TestALoadSwitchesToAScheduleWhereThatPays(t *testing.T) {
	for _, c := range []struct {
		kinds []string
		pays  bool
	}{
		{[]string{"shuffled", "sorted"}, true},
		{[]string{"shuffled", "shuffled"}, false},
		{[]string{"of all keys", "sorted, then shuffled", "of all keys", "of all keys"}, false}, // what is left is not sorted
	} {
		r := ask(file(t, "a.csv", parts(rand.New(rand.NewPCG(1, 1)), c.kinds...)))
		r.Read.SplitBytes = 4000
		var kept []*readorder.Schedule
		f := flow(t, r)
		f.Follow(Scheduling{When: WhenItPays, Keep: func(all []*readorder.Schedule) error {
			kept = all
			return nil
		}})
		got, err := look(t, f)
		if n := partRecords * len(c.kinds); err != nil || len(got.records) != n || got.records[n-1].Record != int64(n) {
			t.Fatalf("%v: %d records, error %v", c.kinds, len(got.records), err)
		}
		if c.pays != (len(kept) == 1) || c.pays != got.moved {
			t.Errorf("%v: %d schedules, moved %v", c.kinds, len(kept), got.moved)
		}
		if c.pays {
			if head := kept[0].Sections[0]; head.Record != 0 || head.Records < partRecords*5/6 || kept[0].Records() != 2*partRecords {
				t.Errorf("%v: the head has %d records of %d", c.kinds, head.Records, kept[0].Records())
			}
		}
	}
	left := ask(file(t, "a.csv", parts(rand.New(rand.NewPCG(1, 1)), "shuffled", "sorted")))
	left.Read.SplitBytes, left.Records = 4000, partRecords*5/3
	f := flow(t, left)
	f.Follow(Scheduling{When: WhenItPays})
	if _, err := look(t, f); err != nil || f.Sections() > 0 {
		t.Errorf("with a limit of records: %d sections, error %v", f.Sections(), err)
	}
}

func TestTablesAreNumberedAsTheyCome(t *testing.T) {
	of := func(names ...string) (keys []readorder.Interval) {
		for _, n := range names {
			keys = append(keys, readorder.Interval{Lower: table.AppendTable(nil, n), Upper: table.AppendTableEnd(nil, n)})
		}
		return keys
	}
	numbers := numberTables(&plan.Plan{Tables: new(plan.Tables)})
	for i, c := range []struct {
		names []string
		want  int32
	}{{[]string{"west"}, 0}, {[]string{"east", "west"}, 0}, {[]string{"east"}, 1}, {nil, 0}, {[]string{"a", "b"}, 2}, {[]string{"b"}, 3}, {[]string{"b", "east"}, 1}} {
		conformance.Equal(t, numbers.of(of(c.names...)), c.want, "%d: section of tables %v has number", i, c.names)
	}
	if numbers = numberTables(&plan.Plan{}); numbers.of(of("west")) != 0 || numbers.of(of("east")) != 0 {
		t.Error("keys of one table have numbers")
	}
}

// A stream cannot be read again from its beginning: nothing may be read of one while reading may stop in a file before it.
func TestASwitchToAScheduleLosesNothingOfTheStreamThatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 9))
		sorted, stream, last := file(t, "a.csv", shapes(rnd, "sorted", 600)), shapes(rnd, "sorted", 100), file(t, "b.csv", shapes(rnd, "sorted", 300))
		reading := func(s Scheduling) *seen {
			r := ask(sorted, "-", last)
			r.Read.SplitBytes, r.Read.Stdin = 1000, strings.NewReader(stream)
			f := flow(t, r)
			f.Follow(s)
			found := &seen{byKey: map[string][]string{}, next: map[int]int64{}}
			must(t, runs(t, f, func(p *Parsed) {
				synctest.Wait() // until as much is read ahead as may be
				found.take(t, p)
			}))
			slices.SortStableFunc(found.records, orderOf)
			return found
		}
		want := reading(Scheduling{When: Never})
		var kept []*readorder.Schedule
		got := reading(Scheduling{When: Always, Rows: 20, SwitchAfter: 1, Keep: func(all []*readorder.Schedule) error {
			kept = slices.Clone(all)
			return nil
		}})
		if len(kept) == 0 {
			t.Error("the load does not switch")
		}
		conformance.Equal(t, cmp.Diff(want.records, got.records), "", "records (-want +got)")
		conformance.Equal(t, cmp.Diff(want.byKey, got.byKey), "", "rows by key (-want +got)")
	})
}
