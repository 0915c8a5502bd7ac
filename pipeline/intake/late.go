package intake

import (
	"bytes"
	"context"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/shuffle/readorder"
)

// An input may begin shuffled and continue sorted. So sources read in order are watched: when consecutive splits have
// disjoint keys, a schedule reads the rest. For a resumed load, the schedule's head has the records handed over before.

const (
	tellingSplits = 32 // consecutive splits that show whether a schedule is worthwhile
	keysOfBlock   = 16 // approximate number of keys examined
	// A switch reads the input so far again, so the rest must have at least 1/worthReading of its bytes.
	worthReading = 4
)

// watch observes sources that are read in order. It belongs to the goroutine that hands over. A nil watch does nothing.
type watch struct {
	sources []*plan.Source
	after   int // for tests, the number of splits after which reading stops; if 0, the keys decide
	splits  int
	read    int64 // bytes of the current source

	window  []readorder.Section // the last splits, with the keys of each
	tables  tableNumbers
	present readorder.Interval // keys of the current split

	wants bool // the watch wants to stop reading
	// source and place are where reading has stopped; source is nil if it has not.
	source *plan.Source
	place  source.Place
}

// watching returns the watch of sources, or nil if they must be read in order.
func (f *Flow) watching(sources []*plan.Source) *watch {
	s := &f.scheduling
	if s.When == Never || s.When == Always && s.SwitchAfter == 0 || f.stays || f.resumed != nil ||
		f.plan.Request.Records > 0 || f.plan.Live {
		return nil
	}
	return &watch{sources: sources, after: s.SwitchAfter, tables: numberTables(f.plan)}
}

// beforeStream returns the sources before the first stream, but at least one. Sources are read ahead of the hand-over.
// If reading stops, a file can be read again from its beginning, but data read ahead from a stream would be lost.
func beforeStream(sources []*plan.Source) []*plan.Source {
	for i, s := range sources {
		if s.Chain != nil && i > 0 {
			return sources[:i]
		}
	}
	return sources
}

func (w *watch) looks(p *Parsed) {
	if w == nil || w.wants {
		return
	}
	k := &w.present
	for _, b := range p.Blocks {
		n := len(b.Block.Rows)
		for i := 0; i < n; i += max(1, n/keysOfBlock) {
			key := table.Ref{Block: b.Block, Index: int32(i)}.Key()
			if k.Lower == nil || bytes.Compare(key, k.Lower) < 0 {
				k.Lower = bytes.Clone(key)
			}
			if k.Upper == nil || bytes.Compare(key, k.Upper) > 0 {
				k.Upper = bytes.Clone(key)
			}
		}
	}
}

func (w *watch) ends(j *job) {
	if w == nil {
		return
	}
	if j.first {
		w.read = 0
	}
	w.splits++
	w.read += j.split.Bytes
	switch {
	case w.wants:
	case w.after > 0:
		w.wants = w.splits >= w.after
	default:
		if w.present.Lower != nil {
			w.window = append(w.window, readorder.Section{Records: 1, Table: w.tables.of([]readorder.Interval{w.present}),
				Keys: []readorder.Interval{w.present}})
		}
		if w.present = (readorder.Interval{}); len(w.window) < tellingSplits {
			return
		}
		w.wants = worthwhile(w.window)
		w.window = w.window[:0]
	}
}

// stops reports whether reading stops before a split, given the numbers of records and lines so far.
func (w *watch) stops(j *job, records, lines int64) bool {
	if w == nil || !w.wants || !divisible(j.source) {
		return false
	}
	read := w.read
	if j.first {
		read = 0
	}
	left := -read
	for _, s := range together(w.sources[slices.Index(w.sources, j.source):]) {
		left += max(0, s.About().Bytes)
	}
	if w.after == 0 && (left < minScheduledBytes || left < read/worthReading) {
		w.wants = false
		return false
	}
	w.source, w.place = j.source, source.Place{}
	if !j.first {
		w.place = source.Place{Record: records, Line: lines, Offset: j.split.Offset}
	}
	return true
}

// switchOver makes the schedule of consecutive sources. The first was handed over up to the place where reading
// stopped. It returns nil if reading continues in order from that place.
func (f *Flow) switchOver(ctx context.Context, w *watch, sources []*plan.Source) (*readorder.Schedule, error) {
	for _, s := range sources {
		if err := s.Suspend(); err != nil { // some were being read
			return nil, err
		}
	}
	sources = together(sources)
	head, rest, err := f.firstPass(ctx, sources, pass{head: w.place.Record, decided: true})
	if ctx.Err() != nil {
		return nil, nil
	}
	if err == nil && (w.after > 0 || worthwhile(rest)) {
		all := append(head, rest...)
		made := readorder.Make(sources[0].Ordinal, len(sources), all, f.arrange(all, len(head)))
		if f.scheduling.Keep == nil {
			return made, nil
		}
		f.followed = append(slices.Clip(f.followed), made)
		return made, f.scheduling.Keep(f.followed)
	}
	f.stays = true // do not repeat a useless first pass
	if w.place.Record > 0 {
		sources[0].Seek(w.place, source.Chain{})
	}
	return nil, nil
}

// together returns the leading sources that may share one schedule.
func together(sources []*plan.Source) []*plan.Source {
	n := 0
	for n < len(sources) && n < maxScheduled && divisible(sources[n]) {
		n++
	}
	return sources[:n]
}
