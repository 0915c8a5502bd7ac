package advise

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/words"
)

// Present describes how the rows of an existing table are distributed over its partition key. All rows are counted.
type Present struct {
	Key          []string `json:"primary_key"` // the table's columns
	PartitionKey string   `json:"partition_key"`
	// Partitions is set if Ranges are the table's partitions. Otherwise they have about equal numbers of rows.
	Partitions bool         `json:"by_partitions"`
	Ranges     []Range      `json:"ranges"`         // in key order
	Largest    []ValueSize  `json:"largest_values"` // up to ten, largest first
	Uneven     []Unevenness `json:"uneven"`
}

// Range is a range of partition-key values.
type Range struct {
	From   string  `json:"from"` // first value with rows
	Rows   int64   `json:"rows"`
	Bytes  int64   `json:"bytes"`
	Recent float64 `json:"recent_share"` // share of the last quarter of the rows by arrival
}

// ValueSize is the size of one partition-key value.
type ValueSize struct {
	Value string `json:"value"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// Kinds of Unevenness.
const (
	HotValue   = "hot value"   // one value has more rows than a partition's share
	LargeValue = "large value" // one value has more than 10 GB
	Growing    = "growing key" // recent rows are at one end of the key
	HotRange   = "hot range"   // recent rows are in a small range of the keys
	Cold       = "cold keys"   // many keys receive no more rows
)

// Unevenness is a reason why a table cannot use all its partitions.
type Unevenness struct {
	Kind string `json:"kind"`
	Why  string `json:"why"` // sentence with the place and the shares
}

// mostRanges limits the ranges counted. If there are more, neighbours are joined.
const mostRanges = 128

// Thresholds of unevenness.
const (
	recentPart = 4    // the last quarter of the rows is recent
	hotExcess  = 0.25 // minimum by which a hot range's share of recent rows exceeds its share of all rows
	smallRange = 1. / 3
	coldPart   = 0.25 // share of the rows or values without recent rows
	idleRange  = 0.02 // a range is idle if its recent share is below this part of its share of all rows
)

// lies counts the rows of a table by range, as they are read in key order.
type lies struct {
	bounds [][]byte // partition bounds in the form of AppendKey; nil divides the keys by numbers of rows
	each   int64    // rows per range without bounds
	ranges []Range
	ends   []int64 // number of rows up to the end of each range
	last   table.Value
	key    []byte // encoded last
	rows   int64
	value  ValueSize
	top    []ValueSize
}

func newLies(bounds []table.Value) *lies {
	l := &lies{each: 1}
	for _, b := range bounds {
		l.bounds = append(l.bounds, table.AppendKey(nil, b))
	}
	return l
}

func (l *lies) add(v table.Value, size int64) {
	if l.rows == 0 || v.Type != l.last.Type || v.Int != l.last.Int || !bytes.Equal(v.Bytes, l.last.Bytes) {
		l.endValue()
		l.last = table.Value{Type: v.Type, Int: v.Int, Bytes: append(l.last.Bytes[:0], v.Bytes...)}
		if l.begins() {
			l.ranges, l.ends = append(l.ranges, Range{From: showValue(v)}), append(l.ends, l.rows)
		}
	}
	l.rows++
	l.value.Rows++
	l.value.Bytes += size
	r := &l.ranges[len(l.ranges)-1]
	r.Rows++
	r.Bytes += size
	l.ends[len(l.ends)-1] = l.rows
}

// begins reports whether a range begins with the new last value.
func (l *lies) begins() bool {
	if l.bounds == nil {
		if len(l.ranges) > 0 && l.ranges[len(l.ranges)-1].Rows < l.each {
			return false
		}
		if len(l.ranges) == mostRanges {
			l.join()
			l.each = max(2*l.each, l.rows/int64(len(l.ranges)))
		}
		return true
	}
	l.key = table.AppendKey(l.key[:0], l.last)
	passed := 0
	for passed < len(l.bounds) && bytes.Compare(l.bounds[passed], l.key) <= 0 {
		passed++
	}
	l.bounds = l.bounds[passed:]
	if passed > 0 && len(l.ranges) == mostRanges {
		l.join()
	}
	return passed > 0 || len(l.ranges) == 0
}

// join merges pairs of neighbouring ranges.
func (l *lies) join() {
	for i := range l.ranges {
		if i%2 == 0 {
			l.ranges[i/2], l.ends[i/2] = l.ranges[i], l.ends[i]
			continue
		}
		l.ranges[i/2].Rows += l.ranges[i].Rows
		l.ranges[i/2].Bytes += l.ranges[i].Bytes
		l.ends[i/2] = l.ends[i]
	}
	l.ranges, l.ends = l.ranges[:(mostRanges+1)/2], l.ends[:(mostRanges+1)/2]
}

// endValue records the size of the last value if it is one of the largest.
func (l *lies) endValue() {
	const most = 10
	if l.value.Rows > 0 && (len(l.top) < most || l.value.Bytes > l.top[most-1].Bytes) {
		l.value.Value = showValue(l.last)
		at, _ := slices.BinarySearchFunc(l.top, l.value, func(a, b ValueSize) int { return cmp.Compare(b.Bytes, a.Bytes) })
		l.top = slices.Insert(l.top, at, l.value)
		l.top = l.top[:min(len(l.top), most)]
	}
	l.value = ValueSize{}
}

func showValue(v table.Value) string {
	if v.Type == table.Integer {
		return fmt.Sprint(v.Int)
	}
	return shown(v.Bytes)
}

// present describes the distribution of the table's rows after all were read and their write order is known.
func (s *survey) present() {
	l := s.lies
	if l == nil || len(s.own) == 0 || s.kept.rows == 0 {
		return
	}
	l.endValue()
	p := &Present{Key: namesOf(s.own), PartitionKey: s.own[0].name, Partitions: s.Input.Bounds != nil, Ranges: l.ranges,
		Largest: l.top, Uneven: []Unevenness{}}
	s.report.Present = p
	recent := s.recent()
	for i := range p.Ranges {
		p.Ranges[i].Recent = recent[i]
	}
	say := func(kind, format string, a ...any) {
		p.Uneven = append(p.Uneven, Unevenness{kind, fmt.Sprintf(format, a...)})
	}
	if v := l.top[0]; v.Bytes > table.LargestValue {
		say(LargeValue, "%s %s has %s in %s rows; one value of the partition key should stay below 10 GB", p.PartitionKey,
			v.Value, words.Bytes(v.Bytes), words.Grouped(v.Rows))
	}
	most := slices.MaxFunc(l.top, func(a, b ValueSize) int { return cmp.Compare(a.Rows, b.Rows) })
	if share := float64(most.Rows) / float64(l.rows); share > 1.5/float64(s.Partitions) && l.rows >= coldLeast {
		say(HotValue, "%s %s has %s of the rows, a partition of %d %s; one value is never divided", p.PartitionKey,
			most.Value, percent(share), s.Partitions, percent(1/float64(s.Partitions)))
	}
	if s.rows < coldLeast || s.unordered {
		return
	}
	from, to, share, all := hottest(p.Ranges, l.rows)
	where := fmt.Sprintf("from %s %s", p.PartitionKey, p.Ranges[from].From)
	if to < len(p.Ranges) {
		where += " to " + p.Ranges[to].From
	}
	switch idle := idleRows(p.Ranges, l.rows); {
	case s.monotonic(s.own[0]) != "no":
		say(Growing, "%s is %s with arrival: all new rows go to one end of the table", p.PartitionKey, s.monotonic(s.own[0]))
	case share-all >= hotExcess && all <= smallRange:
		say(HotRange, "%s of the recent rows have keys %s, where %s of all rows are", percent(share), where, percent(all))
	case idle >= coldPart:
		say(Cold, "ranges with %s of the rows get no new rows; most new rows have keys %s", percent(idle), where)
	case s.idleValues(s.own[0]) >= coldPart:
		say(Cold, "%s of the values of %s with early rows have no recent ones, and lie among values that do",
			percent(s.idleValues(s.own[0])), p.PartitionKey)
	}
}

// recent returns the share of the recent rows in each range.
func (s *survey) recent() []float64 {
	n, counts := s.kept.rows, make([]float64, len(s.lies.ranges))
	from := n - max(1, n/recentPart)
	for i := from; i < n; i++ {
		row := i
		if s.order != nil {
			row = int(s.order[i])
		}
		at, _ := slices.BinarySearch(s.lies.ends, int64(s.kept.columns[s.ordinal][row])+1)
		counts[at] += 1 / float64(n-from)
	}
	return counts
}

// hottest returns the adjacent ranges whose share of recent rows most exceeds their share of all rows, and both shares.
func hottest(ranges []Range, rows int64) (from, to int, recent, all float64) {
	var best, sum float64
	begin := 0
	for i, r := range ranges {
		if sum <= 0 {
			sum, begin = 0, i
		}
		if sum += r.Recent - float64(r.Rows)/float64(rows); sum > best {
			best, from, to = sum, begin, i+1
		}
	}
	for _, r := range ranges[from:to] {
		recent, all = recent+r.Recent, all+float64(r.Rows)/float64(rows)
	}
	return from, to, recent, all
}

// idleRows returns the share of all rows in ranges without recent ones.
func idleRows(ranges []Range, rows int64) (idle float64) {
	for _, r := range ranges {
		if share := float64(r.Rows) / float64(rows); r.Recent < idleRange*share {
			idle += share
		}
	}
	return idle
}
