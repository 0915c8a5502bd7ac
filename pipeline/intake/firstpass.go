package intake

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/shuffle/readorder"
)

// A first pass reads only the ordering keys of sources, and cuts the sources into sections for a schedule.

// Sizes of sections.
const (
	// sectionRows is the average number of rows in a section. The service splits a partition in the middle of the keys
	// received so far: many small sections show it the middle of all keys, but after few large ones the parts are uneven.
	sectionRows = 20
	// A section of binary records has up to pagedRows times as many rows, but at most 1/pagedShare of its split.
	pagedRows  = 100
	pagedShare = 32
	// tellingSections is the number of sections that are enough to decide whether a schedule is worthwhile.
	tellingSections = 32
	// probeBytes of the first split's text reveal most shuffled inputs. Otherwise each worker would read about 1 MB.
	probeBytes = 256 << 10
)

// errFileOrder ends a first pass over sources that must be read in their own order.
var errFileOrder = errors.New("the sources are read in their own order")

// pass configures a first pass.
type pass struct {
	decided bool  // the schedule is known to be worthwhile
	head    int64 // number of records of the first source that were handed over
}

// firstPass returns the sections of consecutive sources: those of the head and of the rest. It may return errFileOrder.
func (f *Flow) firstPass(ctx context.Context, sources []*plan.Source, l pass) (head, rest []readorder.Section,
	err error) {
	bytes := f.plan.Shares().Sections()
	c := &collector{flow: f, pass: l, first: sources[0].Ordinal, head: readorder.NewHead(bytes / 4),
		rest: readorder.NewBuilder(f.scheduling.rows(), bytes), tables: numberTables(f.plan)}
	if l.head > 0 {
		c.rest = readorder.NewBuilder(f.scheduling.rows(), bytes*3/4)
	}
	first := &probe{done: make(chan struct{})}
	if first.decided = l.decided || f.scheduling.When != WhenItPays; first.decided {
		close(first.done)
	}
	err = f.readThrough(ctx, sources, func(ctx context.Context, p *parser, j *job) {
		p.anyOrder = true
		if p.shuffled(ctx, j, rowsOf{f.scheduling.rows(), c.rest.Rows(), c.rest.Even()}, first) {
			j.parsed <- part{handed: Handed{Err: errFileOrder}, last: true} // never blocks, as it is buffered
			return
		}
		p.findSections(ctx, j, rowsOf{f.scheduling.rows(), c.rest.Rows(), c.rest.Even()})
	}, c.collect)
	for _, s := range sources {
		err = errors.Join(err, s.Suspend()) // to be read again from the first record
	}
	return c.head.Sections(), c.rest.Sections(), err
}

// readThrough reads sources in order without handing over rows. find processes a split; collect takes its result.
func (f *Flow) readThrough(
	outer context.Context, sources []*plan.Source, find func(context.Context, *parser, *job),
	collect func(j *job, made *Parsed, records, lines int64) error,
) error {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	splits := f.stages(ctx, group, slices.Values(sources))
	f.parsers(group, func(p *parser) error {
		return p.run(ctx, splits.work, func(ctx context.Context, j *job) { find(ctx, p, j) })
	})
	var failed error
	group.Go(func() error {
		defer cancel() // as in readInOrder
		failed = splits.each(ctx, collect)
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if outer.Err() != nil {
		return context.Cause(outer)
	}
	return failed
}

// collector passes the sections of splits to builders.
type collector struct {
	flow *Flow
	pass
	first      int // ordinal of the first source
	head, rest *readorder.Builder
	tables     tableNumbers
}

// tableNumbers numbers tables in the order of their first rows. It is nil if all rows go to one table.
type tableNumbers map[string]int32

func numberTables(p *plan.Plan) tableNumbers {
	if p.Tables == nil {
		return nil
	}
	return tableNumbers{}
}

// of returns the number of the table of a section's keys, or the lowest number if there are several.
func (t tableNumbers) of(keys []readorder.Interval) int32 {
	if t == nil || len(keys) == 0 {
		return 0
	}
	first := int32(math.MaxInt32)
	for _, k := range keys {
		name, _ := table.CutTable(k.Lower)
		if n, ok := t[string(name)]; ok {
			first = min(first, n)
		}
	}
	if first == math.MaxInt32 {
		name, _ := table.CutTable(keys[0].Lower)
		first = int32(len(t))
		t[string(name)] = first
	}
	return first
}

// collect takes the result of a split. Calls must be in source order.
func (c *collector) collect(j *job, made *Parsed, records, lines int64) error {
	for _, s := range made.sections {
		s.Source = j.source.Ordinal
		s.Record += records
		s.Line += lines
		s.Table = c.tables.of(s.Keys)
		if !c.add(s) {
			return errFileOrder
		}
	}
	if c.head.Full() || c.rest.Full() {
		return errFileOrder
	}
	if all := c.rest.Sections(); !c.decided && len(all) >= tellingSections {
		if c.decided = true; c.flow.scheduling.When == WhenItPays && !worthwhile(all) {
			return errFileOrder
		}
	}
	return nil
}

// each calls one with the result of every split, in a pass that hands nothing over.
func (s stream) each(ctx context.Context, one func(j *job, made *Parsed, records, lines int64) error) error {
	var records, lines int64
	for {
		j, ok := receive(ctx, s.splits)
		switch {
		case !ok:
			return nil
		case j.last:
			continue
		case j.err != nil:
			return j.err
		}
		close(j.turn)
		made, ok := receive(ctx, j.parsed)
		s.budget.add(-j.bytes)
		switch {
		case !ok:
			return nil
		case made.handed.Err != nil:
			return made.handed.Err
		}
		if j.first {
			records, lines = 0, j.source.Begin().Line
		}
		if err := one(j, made.handed.Parsed, records, lines); err != nil {
			return err
		}
		records += int64(made.handed.Records)
		lines += int64(made.handed.lines)
	}
}

// add adds a section. It returns false if only part of the section was handed over, as splits now end elsewhere.
func (c *collector) add(s readorder.Section) bool {
	switch head := c.pass.head; {
	case s.Source != c.first || s.Record >= head:
		c.rest.Add(s)
	case s.Record+s.Records > head:
		return false
	default:
		s.Keys = nil // it is read first in any case
		c.head.Add(s)
	}
	return true
}

// worthwhile reports whether a schedule of the sections differs enough from their own order. If most share keys, the
// input is already shuffled or nothing can move. Short sections do not count, as their few keys seldom overlap.
func worthwhile(sections []readorder.Section) bool { return moved(sections) > 0.5 }

// moved returns the share of sections, except short ones, that a schedule moves.
func moved(sections []readorder.Section) float64 {
	records := int64(0)
	for i := range sections {
		records += sections[i].Records
	}
	telling := func(i int32) bool { return 2*sections[i].Records*int64(len(sections)) >= records }
	var own, made []int32
	for i, s := range readorder.Order(sections, 0) {
		if telling(int32(i)) {
			own = append(own, int32(i))
		}
		if telling(s) {
			made = append(made, s)
		}
	}
	moved := 0
	for k := range own {
		if own[k] != made[k] {
			moved++
		}
	}
	return float64(moved) / float64(max(len(own), 1))
}

// rowsOf has the average numbers of rows in sections of a small input and of this one. even means one length for all.
type rowsOf struct {
	small, these int
	even         bool
}

func (r rowsOf) of() (short, long int) {
	if r.even {
		return r.these, r.these
	}
	short = readorder.Short(r.small)
	return short, 2*r.these - short
}

// probe is the first look at the sources of a first pass. The worker with the first split takes it for all workers.
type probe struct {
	decided  bool // decided without looking
	begun    atomic.Bool
	done     chan struct{}
	shuffled bool
}

// shuffled reports whether the first split's beginning shows that a schedule is useless. One worker looks; others wait.
func (p *parser) shuffled(ctx context.Context, j *job, rows rowsOf, first *probe) bool {
	if first.decided || first.begun.Swap(true) {
		select {
		case <-first.done:
		case <-ctx.Done():
		}
		return first.isShuffled()
	}
	defer close(first.done)
	end := bytes.LastIndexByte(j.split.Data[:min(len(j.split.Data), probeBytes)], '\n') + 1
	if end == 0 || 2*end > len(j.split.Data) {
		return false
	}
	sp, err := p.forKeys(j.source)
	if err != nil {
		return false // findSections will report the error
	}
	head := j.split
	head.Data = head.Data[:end:end]
	made, err := sp.sections(head, rows) // it may fail if a record is truncated or has a line break
	first.shuffled = err == nil && len(made.sections) >= tellingSections && moved(made.sections) == 0
	return first.shuffled
}

func (p *probe) isShuffled() bool {
	select {
	case <-p.done:
		return p.shuffled
	default:
		return false
	}
}

func (p *parser) findSections(ctx context.Context, j *job, rows rowsOf) {
	sp, err := p.forKeys(j.source)
	var made *Parsed
	if err == nil {
		made, err = p.inTurn(ctx, sp, j.turn, func() (*Parsed, error) { return sp.sections(j.split, rows) })
	}
	j.parsed <- part{handed: Handed{Parsed: made, Err: err}, last: true} // never blocks, as it is buffered
}

func (sp *sourceParser) sections(split source.Split, rows rowsOf) (*Parsed, error) {
	if split.Data == nil && split.Rows == 0 {
		return nil, errFileOrder // a record too long to hold
	}
	if split.Data == nil {
		// Reading a section decodes everything before it in its page.
		rows.small = max(rows.small, min(pagedRows*rows.small, int(split.Rows/pagedShare)))
		rows.these = max(rows.these, rows.small)
	}
	m := &sectionMaker{split: split, made: &Parsed{}}
	m.rows, m.next = rows.of()
	records, lines, err := sp.parser.Parse(split,
		func(rec *record.Record) { m.add(rec.Span, sp.values.appendKey(m.buffer[:0], rec)) })
	if err != nil {
		return nil, err
	}
	m.end(table.Span{Start: uint32(len(split.Data)), Record: uint32(records), Line: uint32(lines)})
	m.made.Records, m.made.lines = records, lines
	return m.made, nil
}

// sectionMaker cuts one split into sections, alternately short and long. It looks ahead by the length of a section, so
// that, if possible, a section ends where all its keys are less than all keys that follow, or greater.
type sectionMaker struct {
	split   source.Split
	made    *Parsed
	rows    int           // rows of this section
	next    int           // rows of the next section
	records []keyedRecord // records of the section and the next one
	text    []byte        // text of their keys
	buffer  []byte
	before  []extremes // extremes of the keys before each record
}

// keyedRecord is the place of a record in its split, and of its key in text. from is -1 if the record makes no row.
type keyedRecord struct {
	at       table.Span
	from, to int
}

// extremes has the least and the greatest of some keys; both are nil if there are none.
type extremes struct{ least, greatest []byte }

func (e extremes) with(key []byte) extremes {
	switch {
	case key == nil:
	case e.least == nil:
		return extremes{key, key}
	case bytes.Compare(key, e.least) < 0:
		e.least = key
	case bytes.Compare(key, e.greatest) > 0:
		e.greatest = key
	}
	return e
}

// below reports whether all keys of either are less than all keys of the other.
func (e extremes) below(other extremes) bool {
	return e.least == nil || other.least == nil || bytes.Compare(e.greatest, other.least) < 0 ||
		bytes.Compare(other.greatest, e.least) < 0
}

// add adds a record and its key, which is nil if the record makes no row.
func (m *sectionMaker) add(at table.Span, key []byte) {
	if len(m.records) >= 2*m.rows {
		m.cut(m.choose())
	}
	one := keyedRecord{at: at, from: -1}
	if key != nil {
		m.buffer = key
		one.from = len(m.text)
		m.text = append(m.text, key...)
		one.to = len(m.text)
	}
	m.records = append(m.records, one)
}

func (m *sectionMaker) key(i int) []byte {
	if r := &m.records[i]; r.from >= 0 {
		return m.text[r.from:r.to:r.to]
	}
	return nil
}

// choose returns how many of the records the section takes: about the target number, such that its keys and those after
// it do not overlap. If that is impossible, it ends where the keys change most.
func (m *sectionMaker) choose() int {
	n := min(len(m.records), 2*m.rows)
	m.before = append(m.before[:0], extremes{})
	for i := range n {
		m.before = append(m.before, m.before[i].with(m.key(i)))
	}
	best, nearest := 0, n
	shared, change := 1<<30, m.rows
	var after extremes
	for i := n - 1; i >= (m.rows+1)/2; i-- {
		after = after.with(m.key(i))
		if far := max(i-m.rows, m.rows-i); far <= nearest && m.before[i].below(after) {
			best, nearest = i, far
		}
		if i >= m.rows {
			if s := table.SharedPrefix(m.key(i-1), m.key(i)); s <= shared {
				change, shared = i, s
			}
		}
	}
	if best > 0 {
		return best
	}
	return max(change, 1)
}

// end cuts the rest of the split into sections.
func (m *sectionMaker) end(at table.Span) {
	for len(m.records) > m.rows+m.rows/2 {
		m.cut(m.choose())
	}
	m.records = append(m.records, keyedRecord{at: at, from: -1})
	m.cut(len(m.records) - 1)
}

func (m *sectionMaker) cut(n int) {
	first, next := m.records[0].at, m.records[n].at
	if len(m.made.sections) == 0 {
		first = table.Span{} // the section includes text before the first record
	}
	s := readorder.Section{
		Record: int64(first.Record), Records: int64(next.Record - first.Record),
		Line: int64(first.Line), Lines: int64(next.Line - first.Line),
	}
	var keys [][]byte
	for i := range n {
		key := m.key(i)
		if key != nil && (len(keys) == 0 || !bytes.Equal(key, keys[len(keys)-1])) {
			keys = append(keys, key)
		}
		if m.split.Data == nil {
			sumKey(&s.Sum, key)
		}
	}
	if m.split.Data != nil {
		text := m.split.Data[first.Start:next.Start]
		s.Offset, s.Bytes = m.split.Offset+int64(first.Start), int64(len(text))
		s.Sum.Write(text)
	} else if m.split.Rows > 0 {
		s.Bytes = m.split.Bytes * s.Records / m.split.Rows
	}
	s.Keys = readorder.Cover(keys)
	m.made.sections = append(m.made.sections, s)
	m.rows, m.next = m.next, m.rows

	rest := m.records[:0]
	from := len(m.text)
	for _, r := range m.records[n:] {
		if r.from >= 0 {
			from = min(from, r.from)
			r.from, r.to = r.from-from, r.to-from
		}
		rest = append(rest, r)
	}
	m.records = rest
	m.text = append(m.text[:0], m.text[from:]...)
}

// sumKey adds the key of a binary record to a sum. The key is nil if the record has none.
func sumKey(sum *readorder.Sum, key []byte) {
	var size [4]byte
	if key != nil {
		binary.LittleEndian.PutUint32(size[:], uint32(len(key))+1)
	}
	sum.Write(size[:])
	sum.Write(key)
}
