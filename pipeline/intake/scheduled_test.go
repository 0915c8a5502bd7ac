package intake

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/shuffle/readorder"
)

// follows returns the flow of a request whose inputs are read by schedules, in sections of the given number of rows.
func follows(t *testing.T, r *plan.Request, rows int, kept *[]*readorder.Schedule) *Flow {
	f := flow(t, r)
	f.Follow(Scheduling{When: Always, Rows: rows, Keep: keeping(kept)})
	return f
}

// keeping returns a function that notes the schedules that it is told to keep.
func keeping(kept *[]*readorder.Schedule) func([]*readorder.Schedule) error {
	return func(all []*readorder.Schedule) error {
		*kept = slices.Clone(all)
		return nil
	}
}

// seen holds the output of a flow: the records in input order, and the rows of each key in order of arrival.
type seen struct {
	records []place
	byKey   map[string][]string
	next    map[int]int64 // next position by source
	moved   bool          // records were not in input order
}

func (s *seen) take(t *testing.T, p *Parsed) {
	at := p.Split.Position
	conformance.Equal(t, at.Record, s.next[at.Source], "where a split of %d records comes, %v", p.Records, at)
	s.next[at.Source] += int64(p.Records)
	all := places(p)
	if n := len(s.records); n > 0 && len(all) > 0 && s.records[n-1].Source == all[0].Source &&
		s.records[n-1].Record > all[0].Record {
		s.moved = true
	}
	s.records = append(s.records, all...)
	for r := range rows(p) {
		s.byKey[string(r.Key())] = append(s.byKey[string(r.Key())], string(r.Reject(table.Reason{}).Raw))
	}
}

func look(t *testing.T, f *Flow) (*seen, error) {
	s := &seen{byKey: map[string][]string{}, next: map[int]int64{}}
	err := runs(t, f, func(p *Parsed) { s.take(t, p) })
	slices.SortStableFunc(s.records, orderOf)
	return s, err
}

func shapes(rnd *rand.Rand, shape string, records int) string {
	var b strings.Builder
	b.WriteString("id,n\n")
	for i := range records {
		k := i
		switch shape {
		case "descending":
			k = records - i
		case "concatenated":
			k = i % (records / 3) * 3
		case "one key":
			k = i / (records / 3)
		case "strays":
			if rnd.IntN(records/60) == 0 {
				k = rnd.IntN(records)
			}
		case "late duplicates":
			if i > records*9/10 {
				k = rnd.IntN(records)
			}
		case "shuffled":
			k = rnd.IntN(records)
		}
		switch rnd.IntN(40) {
		case 0:
			fmt.Fprintf(&b, "k%05d,ragged,%d\n", k, i)
		case 1:
			fmt.Fprintf(&b, ",%d\n", i) // no key
		case 2:
			fmt.Fprintf(&b, "k%05d,\"two\nlines %d\"\n", k, i)
		default:
			fmt.Fprintf(&b, "k%05d,%d\n", k, i)
		}
	}
	return b.String()
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	conformance.Must(t, conformance.ErrorOf(w.Write([]byte(text))))
	conformance.Must(t, w.Close())
	return b.String()
}

var switchSeeds = flag.Uint64("switch-seeds", 2, "number of seeds for each shape of input in the test of schedules")

// A load reads by a schedule, or switches to one. If rows are unordered, no section waits.
func TestScheduleKeepsRecordsAndKeyOrder(t *testing.T) {
	switches := 0
	for _, shape := range []string{"sorted", "descending", "concatenated", "one key", "strays", "late", "shuffled"} {
		for seed := range 4 + *switchSeeds {
			rnd, order, switching := rand.New(rand.NewPCG(seed, 5)), plan.Order(seed%4/2), seed >= 4
			inputs := []string{file(t, "a.csv", shapes(rnd, shape, 600)), file(t, "b.csv", shapes(rnd, shape, 200))}
			s := Scheduling{When: Always, Rows: 1 + rnd.IntN(60)}
			if switching {
				order, s.SwitchAfter = plan.LastWins, 1+rnd.IntN(6)
				inputs = append(inputs, file(t, "c.csv.gz", packed(t, shapes(rnd, shape, 100))),
					file(t, "d.csv", shapes(rnd, shape, 300)))
			}
			var kept []*readorder.Schedule
			s.Keep = keeping(&kept)
			read := func(s Scheduling) (*seen, int) {
				r := ask(inputs...)
				r.Read.SplitBytes, r.Order = 200+rnd.IntN(9000), order
				if switching {
					r.Read.SplitBytes = 200 + rnd.IntN(3000)
				}
				f := flow(t, r)
				f.Follow(s)
				return conformance.Try(look(t, f)).Must(t), f.Sections()
			}
			want, _ := read(Scheduling{When: Never})
			got, sections := read(s)
			conformance.MustEqual(t, cmp.Diff(want.records, got.records), "", "%s, seed %d: records (-want +got)", shape, seed)
			diff := cmp.Diff(want.byKey, got.byKey)
			conformance.MustTrue(t, order != plan.LastWins || diff == "", "%s, seed %d: -want +got:\n%s", shape, seed, diff)
			if switching {
				switches += len(kept)
			} else if len(kept) != 1 || sections != len(kept[0].Sections) {
				t.Fatalf("%s, seed %d: %d schedules, %d sections", shape, seed, len(kept), sections)
			} else if (shape == "sorted" || order == plan.OrderNone) && !got.moved {
				t.Errorf("%s, seed %d: the records came in the order of the file", shape, seed)
			}
			// A later attempt with these schedules finds every record at its former place.
			repeated, _ := read(Scheduling{Kept: kept})
			conformance.True(t, slices.Equal(repeated.records, got.records) && cmp.Diff(got.next, repeated.next) == "" &&
				(order != plan.LastWins || cmp.Diff(want.byKey, repeated.byKey) == ""),
				"%s, seed %d: the schedules read again give other records or places", shape, seed)
			final := flow(t, ask(inputs...))
			final.Follow(Scheduling{Kept: kept})
			final.Resume(&Resumed{Begin: func(int) (from source.Place, known source.Chain, skip bool) {
				return from, known, true
			}})
			none := conformance.Try(look(t, final)).Must(t)
			conformance.Equal(t, len(none.records), 0, "%s, seed %d: records of a load of which all are final", shape, seed)
		}
	}
	if switches < 8*int(*switchSeeds) { // of at most two in each of 7 loads per seed
		t.Errorf("%d switches: the test says little about them", switches)
	}
}

func orderOf(a, b place) int {
	if c := strings.Compare(a.Source, b.Source); c != 0 {
		return c
	}
	return int(a.Record - b.Record)
}

func TestScheduleIsMadeIfItPays(t *testing.T) {
	for shape, pays := range map[string]bool{"sorted": true, "descending": true, "strays": true, "concatenated": true,
		"shuffled": false} {
		r := ask(file(t, "a.csv", shapes(rand.New(rand.NewPCG(1, 1)), shape, 25000)))
		r.Read.SplitBytes = 64 << 10
		f := flow(t, r)
		f.Follow(Scheduling{When: WhenItPays})
		got, err := look(t, f)
		conformance.MustTrue(t, err == nil && len(got.records) == 25000, "%s: %d rows, %v", shape, len(got.records), err)
		conformance.Equal(t, f.Sections() > 0, pays, "%s: %d sections", shape, f.Sections())
	}
	for records, memory := range map[int]int64{1000: 1 << 30, 25_000: 1} { // a small input, then too little memory
		r := ask(file(t, "a.csv", shapes(rand.New(rand.NewPCG(1, 1)), "sorted", records)))
		r.Memory = memory
		f := flow(t, r)
		f.Follow(Scheduling{When: WhenItPays})
		if got, err := look(t, f); err != nil || f.Sections() > 0 || len(got.records) != records {
			t.Errorf("%d records, %d sections, error %v", len(got.records), f.Sections(), err)
		}
	}
}

func TestShuffledInputGetsNoSchedule(t *testing.T) {
	for shape, shuffled := range map[string]bool{"sorted": false, "concatenated": false, "shuffled": true} {
		text := shapes(rand.New(rand.NewPCG(1, 1)), shape, 42000) // one split
		f := flow(t, ask(file(t, "a.csv", text)))
		f.Follow(Scheduling{When: WhenItPays})
		p := newParser(f)
		defer p.close()
		begins := func(data []byte) bool {
			first := &probe{done: make(chan struct{})}
			job := &job{source: f.plan.Sources[0], split: source.Split{Data: data}}
			got := p.shuffled(t.Context(), job, rowsOf{small: sectionRows, these: sectionRows}, first)
			conformance.Equal(t, p.shuffled(t.Context(), job, rowsOf{}, first), got, "%s: whoever looks first sees", shape)
			return got
		}
		_, data, _ := strings.Cut(text, "\n")
		conformance.Equal(t, begins([]byte(data)), shuffled, "%s: shuffled", shape)
		conformance.True(t, !begins([]byte(data[:probeBytes])) && !begins(nil),
			"%s: a split that is hardly longer than the look, or never was text, was looked at", shape)
		got, err := look(t, f)
		conformance.True(t, err == nil && len(got.records) == 42000 && f.Sections() > 0 != shuffled,
			"%s: %d records in %d sections, error %v", shape, len(got.records), f.Sections(), err)
	}
}

// No part of a section that has changed since the schedule was made is handed over.
func TestChangedSectionStopsReading(t *testing.T) {
	text := shapes(rand.New(rand.NewPCG(1, 1)), "sorted", 2000)
	changed := func(path string) error {
		return os.WriteFile(path, []byte(strings.Replace(text, "k01500", "k01501", 1)), 0o600)
	}
	for name, change := range map[string]func(path string) error{
		"changed":           changed,
		"changed meanwhile": changed, // before an attempt that has the schedule reads it
		"cut short":         func(path string) error { return os.Truncate(path, int64(len(text)*3/4)) },
	} {
		path := file(t, "a.csv", text)
		f := flow(t, ask(path))
		var made *readorder.Schedule
		f.Follow(Scheduling{When: Always, Rows: 50, Keep: func(all []*readorder.Schedule) error {
			if made = all[0]; name == "changed meanwhile" {
				return nil
			}
			return change(path)
		}})
		if name == "changed meanwhile" {
			_, err := look(t, f)
			conformance.Must(t, errors.Join(err, change(path)))
			f = flow(t, ask(path))
			f.Follow(Scheduling{Kept: []*readorder.Schedule{made}})
		}
		got, err := look(t, f)
		conformance.MustTrue(t, err != nil && strings.Contains(err.Error(), "a.csv") &&
			strings.Contains(err.Error(), "later records may be loaded"), "%s: error %v", name, err)
		handed := map[int64]bool{}
		for _, r := range got.records {
			handed[r.Record] = true
		}
		count := int64(0)
		for _, s := range made.Sections {
			bad := strings.Contains(err.Error(), fmt.Sprintf("records %d to %d:", s.Record+1, s.Record+s.Records))
			conformance.True(t, bad == !handed[s.Record+1] || !bad, "%s: section %+v was handed over", name, s)
			if bad {
				break
			}
			count += s.Records
		}
		conformance.Equal(t, int64(len(got.records)), count, "%s: %d records were handed over", name, len(got.records))
	}
}

func TestFileDamagedBeforeFirstRowIsReadInOrder(t *testing.T) {
	text := shapes(rand.New(rand.NewPCG(1, 1)), "sorted", 1000)
	damaged := packed(t, text)
	a, b := file(t, "a.csv", text), file(t, "b.csv.gz", damaged[:len(damaged)/2])
	var kept []*readorder.Schedule
	got, err := look(t, follows(t, ask(a, b), 50, &kept))
	conformance.True(t, err != nil && len(kept) == 1 && len(got.records) >= 1000,
		"%d records, %d schedules, error %v", len(got.records), len(kept), err)
}

func TestLoadStopsHandOverIfScheduleCannotBeKept(t *testing.T) {
	cause := errors.New("disk full")
	for _, after := range []int{0, 3} {
		r := ask(file(t, "a.csv", shapes(rand.New(rand.NewPCG(1, 1)), "sorted", 3000)))
		r.Read.SplitBytes = 1000
		f := flow(t, r)
		f.Follow(Scheduling{When: Always, Rows: 20, SwitchAfter: after,
			Keep: func([]*readorder.Schedule) error { return cause }})
		got, err := look(t, f)
		if n := len(got.records); !errors.Is(err, cause) || n > 2000 || n > 0 != (after > 0) {
			t.Errorf("a switch after %d splits: %d records, error %v", after, n, err)
		}
	}
}

func TestLimitWithScheduleTakesFirstRecordsOfInput(t *testing.T) {
	text := shapes(rand.New(rand.NewPCG(3, 1)), "sorted", 1000)
	for _, n := range []int64{1, 49, 50, 51, 700, 1000, 5000} {
		r := ask(file(t, "a.csv", text))
		r.Records = n
		var kept []*readorder.Schedule
		got := conformance.Try(look(t, follows(t, r, 50, &kept))).Must(t)
		first := map[int64]bool{}
		for _, one := range got.records {
			first[one.Record] = true
		}
		for i := range min(n, 1000) {
			conformance.True(t, first[i+1], "of the first %d records, %d is missing", n, i+1)
		}
		sections := kept[0].Sections
		if last := sections[len(sections)-1]; n < 1000 && (last.Record >= n || last.Record+last.Records < n) {
			t.Errorf("record %d is in the last section, which has %d after %d", n, last.Records, last.Record)
		}
	}
}

// partRecords is more records than a load reads before it switches.
const partRecords = 22_000

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

func TestLoadSwitchesToScheduleIfItPays(t *testing.T) {
	for _, c := range []struct {
		kinds []string
		pays  bool
	}{
		{[]string{"shuffled", "sorted"}, true},
		{[]string{"shuffled", "shuffled"}, false},
		{[]string{"of all keys", "sorted, then shuffled", "of all keys", "of all keys"}, false}, // the rest is not sorted
	} {
		r := ask(file(t, "a.csv", parts(rand.New(rand.NewPCG(1, 1)), c.kinds...)))
		r.Read.SplitBytes = 4000
		var kept []*readorder.Schedule
		f := flow(t, r)
		f.Follow(Scheduling{When: WhenItPays, Keep: keeping(&kept)})
		got, err := look(t, f)
		if n := partRecords * len(c.kinds); err != nil || len(got.records) != n || got.records[n-1].Record != int64(n) {
			t.Fatalf("%v: %d records, error %v", c.kinds, len(got.records), err)
		}
		conformance.True(t, c.pays == (len(kept) == 1) && c.pays == got.moved,
			"%v: %d schedules, moved %v", c.kinds, len(kept), got.moved)
		if c.pays {
			head := kept[0].Sections[0]
			conformance.True(t, head.Record == 0 && head.Records >= partRecords*5/6 && kept[0].Records() == 2*partRecords,
				"%v: the head has %d records of %d", c.kinds, head.Records, kept[0].Records())
		}
	}
	left := ask(file(t, "a.csv", parts(rand.New(rand.NewPCG(1, 1)), "shuffled", "sorted")))
	left.Read.SplitBytes, left.Records = 4000, partRecords*5/3
	f := flow(t, left)
	f.Follow(Scheduling{When: WhenItPays})
	_, err := look(t, f)
	conformance.True(t, err == nil && f.Sections() == 0, "with a limit: %d sections, %v", f.Sections(), err)
}

// A section of which only a part was handed over must not be left out.
func TestSectionOfHeadAndRestEndsFirstPass(t *testing.T) {
	c := &collector{pass: pass{head: 5}, head: readorder.NewHead(1 << 20), rest: readorder.NewBuilder(20, 1<<20)}
	for i, s := range []readorder.Section{{Records: 5}, {Record: 4, Records: 2}, {Record: 5, Records: 1}, {Source: 1,
		Records: 1}} {
		conformance.Equal(t, c.add(s), i != 1, "section %d is added", i)
	}
	conformance.True(t, len(c.head.Sections()) == 1 && len(c.rest.Sections()) == 2, "%+v", c)
}

func TestTablesAreNumberedByFirstRow(t *testing.T) {
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
	}{{[]string{"west"}, 0}, {[]string{"east", "west"}, 0}, {[]string{"east"}, 1}, {nil, 0}, {[]string{"a", "b"}, 2},
		{[]string{"b"}, 3}, {[]string{"b", "east"}, 1}} {
		conformance.Equal(t, numbers.of(of(c.names...)), c.want, "%d: section of tables %v has number", i, c.names)
	}
	numbers = numberTables(&plan.Plan{})
	conformance.True(t, numbers.of(of("west")) == 0 && numbers.of(of("east")) == 0, "keys of one table have numbers")
}

// A stream cannot be read again, so it must not be read while reading may stop in an earlier file.
func TestSwitchToScheduleKeepsFollowingStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 9))
		sorted, stream, last := file(t, "a.csv", shapes(rnd, "sorted", 600)), shapes(rnd, "sorted", 100),
			file(t, "b.csv", shapes(rnd, "sorted", 300))
		reading := func(s Scheduling) *seen {
			r := ask(sorted, "-", last)
			r.Read.SplitBytes, r.Read.Stdin = 1000, strings.NewReader(stream)
			f := flow(t, r)
			f.Follow(s)
			found := &seen{byKey: map[string][]string{}, next: map[int]int64{}}
			conformance.Must(t, runs(t, f, func(p *Parsed) {
				synctest.Wait() // until reading ahead has reached its limit
				found.take(t, p)
			}))
			slices.SortStableFunc(found.records, orderOf)
			return found
		}
		want := reading(Scheduling{When: Never})
		var kept []*readorder.Schedule
		got := reading(Scheduling{When: Always, Rows: 20, SwitchAfter: 1, Keep: keeping(&kept)})
		conformance.True(t, len(kept) != 0, "the load does not switch")
		conformance.Equal(t, cmp.Diff(want.records, got.records), "", "records (-want +got)")
		conformance.Equal(t, cmp.Diff(want.byKey, got.byKey), "", "rows by key (-want +got)")
	})
}
