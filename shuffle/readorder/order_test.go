package readorder

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// drawSections draws keys from few values, so that sections overlap.
func drawSections(r *rand.Rand, n, values int) []Section {
	var all []Section
	record := int64(0)
	for i := range n {
		var keys [][]byte
		for range r.IntN(9) {
			keys = append(keys, fmt.Appendf(nil, "%03d", (i*values/n+r.IntN(1+r.IntN(values)))%values))
		}
		records := 1 + int64(r.IntN(9))
		if r.IntN(8) == 0 {
			records = 1 + int64(1)<<r.IntN(30) // sections get their turns even if they are very unequal
		}
		all = append(all, Section{Record: record, Records: records, Keys: Cover(keys)})
		record += records
	}
	return all
}

func meet(a, b *Section) bool {
	for _, x := range a.Keys {
		for _, y := range b.Keys {
			if bytes.Compare(x.Lower, y.Upper) <= 0 && bytes.Compare(y.Lower, x.Upper) <= 0 {
				return true
			}
		}
	}
	return false
}

func TestOverlappingSectionsKeepOrder(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 1))
		sections := drawSections(r, 1+r.IntN(60), 1+r.IntN(300))
		head := 0
		if r.IntN(2) == 0 {
			head = r.IntN(len(sections) + 1)
		}
		order := Order(sections, head)
		conformance.MustEqual(t, len(order), len(sections), "seed %d: sections", seed)
		at := make([]int, len(sections))
		for i := range at {
			at[i] = -1
		}
		for place, s := range order {
			conformance.MustTrue(t, at[s] < 0, "seed %d: section %d comes twice", seed, s)
			at[s] = place
		}
		for i := range head {
			conformance.MustEqual(t, at[i], i, "seed %d: place of a section of the head", seed)
		}
		for i := range sections {
			for j := range i {
				conformance.MustTrue(t, !meet(&sections[j], &sections[i]) || at[j] <= at[i],
					"seed %d: section %d (%q) comes before section %d (%q)", seed, i, sections[i].Keys, j, sections[j].Keys)
			}
		}
	}
}

// Sections that wait for more than the intervals require would be correct, but slow.
func TestDisjointSectionsDoNotWait(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		sections := drawSections(r, 1+r.IntN(40), 1+r.IntN(300))
		o := &ordering{waits: make([]int32, len(sections))}
		o.bind(sections)
		o.rank(sections, 0)
		done := make([]bool, len(sections))
		for _, got := range Order(sections, 0) {
			best := -1
			for i := range sections {
				free := !done[i]
				for j := range i {
					free = free && (done[j] || !meet(&sections[i], &sections[j]))
				}
				if free && (best < 0 || o.turn[i] < o.turn[best]) {
					best = i
				}
			}
			conformance.MustEqual(t, int(got), best, "seed %d: place of section %d", seed, got)
			done[got] = true
		}
	}
}

func TestSortedSectionsSpreadEvenly(t *testing.T) {
	for _, descending := range []bool{false, true} {
		var sections []Section
		for i := range 1024 {
			k := i
			if descending {
				k = 1023 - i
			}
			sections = append(sections, Section{Record: int64(i), Records: 1,
				Keys: Cover([][]byte{fmt.Appendf(nil, "%05d", k)})})
		}
		order := Order(sections, 0)
		// At any point after the first 64 sections, the eighths of the keys have about equal numbers of sections.
		for from := 64; from <= len(order); from++ {
			counts := make([]int, 8)
			for _, s := range order[:from] {
				counts[s/128]++
			}
			conformance.MustTrue(t, slices.Max(counts)-slices.Min(counts) <= 6,
				"descending %v: of the first %d, eighths have %v", descending, from, counts)
		}
	}
}

// Groups of tables follow each other in the order of their rows, not of their names; within a group, sections spread.
func TestTableGroupsFollowEachOther(t *testing.T) {
	const groups, each = 3, 16 * tablesTogether // sections of a group
	var sections []Section
	for table := range groups * tablesTogether {
		for i := range 16 {
			sections = append(sections, Section{Record: int64(len(sections)), Records: 1, Table: int32(table),
				Keys: Cover([][]byte{fmt.Appendf(nil, "t%03d\x00%05d", 999-table, i)})})
		}
	}
	for name, order := range map[string][]int32{"by a schedule": Order(sections, 0), "in any order": Spread(sections, 0)} {
		conformance.MustEqual(t, len(order), groups*each, "%s: sections", name)
		for group := range groups {
			counts := make([]int, 8)
			for k, s := range order[group*each : (group+1)*each] {
				conformance.MustEqual(t, int(s)/each, group, "%s: group of the section at place %d", name, k)
				if counts[int(s)%each/(each/8)]++; k >= 64 && slices.Max(counts)-slices.Min(counts) > 6 {
					t.Fatalf("%s: of the first %d of group %d, eighths have %v", name, k+1, group, counts)
				}
			}
		}
	}
}

func TestShortSectionsComeFirst(t *testing.T) {
	var sections []Section
	for i := range 200 {
		records := int64(10)
		if i%2 == 1 {
			records = 90
		}
		sections = append(sections, Section{Records: records, Keys: Cover([][]byte{fmt.Appendf(nil, "%05d", i)})})
	}
	for place, s := range Order(sections, 0) {
		conformance.MustEqual(t, s%2 == 0, place < 100, "section %d of %d rows comes at %d", s, sections[s].Records, place)
	}
}

func TestOutliersDoNotBindSections(t *testing.T) {
	var sections []Section
	for i := range 64 {
		var keys [][]byte
		for k := range 20 {
			keys = append(keys, fmt.Appendf(nil, "%06d", 1000*i+50*k))
		}
		keys = append(keys, fmt.Appendf(nil, "%06d", (i*37%64)*1000+25)) // outlier
		sections = append(sections, Section{Record: int64(i), Records: 21, Keys: Cover(keys)})
	}
	moved := 0
	for place, s := range Order(sections, 0) {
		if place != int(s) {
			moved++
		}
	}
	conformance.True(t, moved >= 48, "%d of 64 sections are elsewhere than in the input", moved)
}

func TestCoverHoldsAllKeys(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		var all []Interval
		var keys [][]byte
		for range 1 + r.IntN(4) { // joined from parts
			var part [][]byte
			for range r.IntN(12) {
				k := make([]byte, r.IntN(12))
				for i := range k {
					k[i] = byte(r.IntN(3) * r.IntN(128))
				}
				part = append(part, k)
			}
			keys = append(keys, part...)
			cover := Cover(slices.Clone(part))
			conformance.MustTrue(t, len(cover) <= MaxIntervals, "seed %d: %d intervals", seed, len(cover))
			all = joinKeys(all, cover)
		}
		conformance.MustTrue(t, len(all) <= MaxIntervals, "seed %d: %d intervals", seed, len(all))
		for i, k := range all {
			conformance.MustTrue(t, bytes.Compare(k.Lower, k.Upper) <= 0 &&
				(i == 0 || bytes.Compare(all[i-1].Upper, k.Lower) < 0), "seed %d: intervals %q", seed, all)
		}
		for _, k := range keys {
			if !slices.ContainsFunc(all,
				func(i Interval) bool { return bytes.Compare(i.Lower, k) <= 0 && bytes.Compare(k, i.Upper) <= 0 }) {
				t.Fatalf("seed %d: %q is not in %q", seed, k, all)
			}
		}
	}
}

func TestBuilderStaysWithinBytesLosingNothing(t *testing.T) {
	b := NewBuilder(1, 20000)
	var whole Sum
	r := rand.New(rand.NewPCG(4, 4))
	offset := int64(10)
	for i := range 5000 {
		text := fmt.Appendf(nil, "%06d,%d\n", i, r.IntN(1000))
		whole.Write(text)
		s := Section{Record: int64(i), Records: 1, Line: 1 + int64(i), Lines: 1, Offset: offset, Bytes: int64(len(text)),
			Keys: Cover([][]byte{text[:6]})}
		s.Sum.Write(text)
		offset += s.Bytes
		b.Add(s)
		conformance.MustTrue(t, b.held <= 20000, "%d bytes after %d sections", b.held, i)
	}
	var sum Sum
	at, records := int64(10), int64(0)
	for _, s := range b.Sections() {
		conformance.MustTrue(t, s.Offset == at && s.Record == records && s.Line == records+1 && s.Lines == s.Records,
			"section %+v where %d bytes and %d records come before it", s, at, records)
		at, records = at+s.Bytes, records+s.Records
		sum.Add(s.Sum)
	}
	conformance.True(t, at == offset && records == 5000 && sum == whole,
		"%d records to byte %d, sum %v; want 5000 to %d, sum %v", records, at, sum, offset, whole)
	conformance.True(t, b.Rows() >= 64 && b.Rows() <= 1024 && !b.Full(),
		"sections of %d rows are asked for, full %v", b.Rows(), b.Full())
}

func TestBuilderOfManySmallSourcesIsFull(t *testing.T) {
	b := NewBuilder(100, 20000)
	for i := range 1000 {
		b.Add(Section{Source: i, Records: 1})
	}
	conformance.Equal(t, b.Full(), true, "%d bytes of 20000, and not full", b.held)
}

// A large input is cut into larger and larger sections while it is examined. The beginning of its schedule must still
// cover all keys evenly, so that the median of a partition's rows so far, where it may be split, is near their median.
func TestLargeInputIsReadEvenlyFromBeginning(t *testing.T) {
	const (
		rows, parts  = 1_000_000, 16
		rowsOfSplits = 9_973
	)
	for _, bytes := range []int{512 << 10, 1 << 20, 4 << 20} {
		b := NewBuilder(20, bytes)
		for from := 0; from < rows; from += rowsOfSplits {
			to := min(from+rowsOfSplits, rows)
			these, short := b.Rows(), true
			for at := from; at < to; short = !short {
				n := Short(20)
				if !short {
					n = 2*these - n
				}
				n = min(n, to-at)
				b.Add(Section{Record: int64(at), Records: int64(n), Lines: int64(n), Line: int64(at) + 1, Offset: int64(10*at) + 10,
					Bytes: int64(10 * n), Keys: Cover([][]byte{fmt.Appendf(nil, "%08d", at), fmt.Appendf(nil, "%08d", at+n-1)})})
				at += n
			}
		}
		sections := b.Sections()
		var read, longest int64
		var of [parts]int64
		next := int64(len(sections)) // rows after which the keys are counted
		for _, i := range Order(sections, 0) {
			s := &sections[i]
			of[s.Record*parts/rows] += s.Records
			longest = max(longest, s.Records)
			if read += s.Records; read < next {
				continue
			}
			next *= 2
			// A difference of one section is unavoidable.
			least, most := slices.Min(of[:]), slices.Max(of[:])
			if mean, some := read/parts, read/parts/20+2*longest; most > mean+some || least < mean-some {
				t.Errorf("%d sections: of the first %d rows a sixteenth of the keys has %d to %d", len(sections), read, least, most)
			}
		}
		conformance.Equal(t, read, rows, "rows in the sections")
	}
}

func TestSpreadIgnoresOverlaps(t *testing.T) {
	const n, parts = 4000, 16
	var sections []Section
	for i := range n { // each section shares a key with the next one
		sections = append(sections, Section{Record: int64(10 * i), Records: 10,
			Keys: Cover([][]byte{fmt.Appendf(nil, "%06d", i), fmt.Appendf(nil, "%06d", i+1)})})
	}
	order := Spread(sections, 0)
	var of [parts]int
	for k, i := range order {
		of[int(i)*parts/n]++
		least, most := slices.Min(of[:]), slices.Max(of[:])
		conformance.MustTrue(t, most-least <= 6, "of %d sections a sixteenth of the keys has %d to %d", k+1, least, most)
	}
	slices.Sort(order)
	order = slices.Compact(order)
	conformance.True(t, len(order) == n && order[0] == 0 && order[n-1] == n-1, "the order has not every section once")
	first := Order(sections, 0)
	conformance.True(t, first[0] == 0 && slices.IsSorted(first), "sections lose their order: %v", first[:10])
}

func TestSumDetectsAnyChangedByte(t *testing.T) {
	text := []byte("0,1,2\n\x00\x00,1\n7,8,9\n")
	sum := func(p []byte) Sum {
		var s Sum
		s.Write(p)
		return s
	}
	want := sum(text)
	for i := range text {
		for _, by := range []byte{1, 128} {
			changed := bytes.Clone(text)
			changed[i] ^= by
			conformance.True(t, sum(changed) != want, "byte %d changed by %d has the same sum", i, by)
		}
		parts, written := sum(text[:i]), sum(text[:i])
		parts.Add(sum(text[i:]))
		for k := range text[i:] { // byte by byte
			written.Write(text[i+k : i+k+1])
		}
		conformance.True(t, parts == want && written == want,
			"the sum of two parts at %d is %v, or %v, want %v", i, parts, written, want)
	}
}

func TestSchedulesRoundTrip(t *testing.T) {
	sections := drawSections(rand.New(rand.NewPCG(1, 9)), 100, 500)
	for i := range sections {
		sections[i].Source, sections[i].Line, sections[i].Offset = 3+i/50, int64(i)<<20, int64(i)<<40
		sections[i].Sum.Write([]byte{byte(i)})
	}
	all := []*Schedule{Make(3, 2, sections, Order(sections, 0)), Make(7, 1, nil, nil)}
	all[1].Sections = nil
	file := Encode(all)
	got, err := Decode(file)
	conformance.MustTrue(t, err == nil && reflect.DeepEqual(got, all), "%v, error %v", got, err)
	for n := range file {
		_, err := Decode(file[:n])
		conformance.MustTrue(t, err != nil, "the first %d bytes of %d are taken for a whole file", n, len(file))
	}
	foreign := Encode([]*Schedule{{Source: 3, Sources: 1, Sections: []Section{{Source: 4, Records: 1}}}})
	conformance.Refused(t, conformance.ErrorOf(Decode(foreign)), "", "a section of another source is taken")
}

func FuzzDecode(f *testing.F) {
	sections := drawSections(rand.New(rand.NewPCG(2, 9)), 5, 20)
	f.Add(Encode([]*Schedule{Make(0, 1, sections, Order(sections, 0))}))
	f.Fuzz(func(t *testing.T, file []byte) {
		all, err := Decode(file)
		if err != nil {
			return
		}
		again, err := Decode(Encode(all))
		conformance.True(t, err == nil && reflect.DeepEqual(again, all), "%v becomes %v, error %v", all, again, err)
	})
}

func TestPlacesFollowScheduleOrInput(t *testing.T) {
	sections := drawSections(rand.New(rand.NewPCG(3, 9)), 60, 100)
	second, record := 30, sections[30].Record // where the second source begins
	for i := second; i < len(sections); i++ {
		sections[i].Source, sections[i].Record = 1, sections[i].Record-record
	}
	s := Make(4, 2, sections, Order(sections, 0))
	for i := range s.Sections {
		s.Sections[i].Source += 4
	}
	left := s.Sections[len(s.Sections)-1]
	s.Sections = s.Sections[:len(s.Sections)-1] // as with --limit
	places := NewPlaces([]*Schedule{s, {Source: 9, Sources: 1, Sections: []Section{{Source: 9, Records: 2}}}})
	number := int64(0)
	for _, one := range s.Sections {
		for record := one.Record; record < one.Record+one.Records; record++ {
			at, n, comes := places.Find(one.Source, record)
			conformance.MustTrue(t, at == 4 && n == number && comes, "record %d comes as %d of %d (%v)", record, n, at, comes)
			number++
		}
	}
	for _, tt := range []struct {
		source      int
		record      int64
		at          int
		number      int64
		doesNotCome bool
	}{{source: 3, record: 7, at: 3, number: 7}, {source: 6, record: 0, at: 6, number: 0},
		{source: 9, record: 1, at: 9, number: 1}, {source: left.Source, record: left.Record, doesNotCome: true},
		{source: 9, record: 2, doesNotCome: true}, {source: 5, record: 1 << 30, doesNotCome: true}} {
		at, n, comes := places.Find(tt.source, tt.record)
		conformance.True(t, comes != tt.doesNotCome && (!comes || at == tt.at && n == tt.number),
			"record %d of source %d comes as %d of %d (%v), want %+v", tt.record, tt.source, n, at, comes, tt)
	}
	at, n, comes := NewPlaces(nil).Find(2, 5)
	conformance.True(t, at == 2 && n == 5 && comes, "without schedules it is %d of %d (%v)", n, at, comes)
}
