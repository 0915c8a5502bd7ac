package keep

import (
	"maps"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
)

// ReadProgress tracks which records all attempts have read, and where sources can be read from. Nil tracks nothing.
type ReadProgress struct {
	sources  []*plan.Source
	Ordered  bool
	live     bool                       // the sources are live
	ends     bool                       // it matters that a source was read to its end
	read     checkpoint.Set             // records read by all attempts
	again    checkpoint.Set             // records handed over by this attempt, including known ones
	starts   map[int][]checkpoint.Start // starts of splits of sources read in order
	held     int                        // bytes of all starts
	most     int                        // limit of held above which starts are forgotten
	first    int                        // first source that may have starts
	leftover leftover
}

// leftover is what remains of the previous attempt.
type leftover struct {
	from   *checkpoint.Snapshot             // the snapshot to resume from; nil in the first attempt
	base   *checkpoint.Snapshot             // same as from, but nil once nothing of it remains
	out    map[checkpoint.Position]struct{} // rows in base's Out that have not left their queue again
	replay *checkpoint.Replay               // what the intake knows of base
	queued int64                            // number of suspect rows in the lanes
	passed bool                             // all suspect rows have arrived
	left   int64                            // number of records of base that are not final and were not read again
	final  bool                             // everything that base has read is final
}

func NewReadProgress(planned *plan.Plan, ordered bool, b *checkpoint.Snapshot) *ReadProgress {
	k := &ReadProgress{
		sources: planned.Sources, Ordered: ordered, live: planned.Live, ends: planned.Live || !ordered,
		starts: map[int][]checkpoint.Start{}, most: maxStartBytes,
	}
	k.leftover.out = map[checkpoint.Position]struct{}{}
	if b == nil {
		return k
	}
	k.leftover.from = b
	k.read = append(k.read, b.Read...)
	for _, s := range b.Starts {
		k.starts[s.Source] = append(k.starts[s.Source], s)
		k.held += startBytes(&s)
	}
	if k.live {
		return k // records already read are not read again under the same numbers
	}
	k.leftover.base, k.leftover.replay = b, checkpoint.NewReplay(&b.State, ordered)
	k.leftover.left = openRecords(b.Counters)
	for _, i := range b.Out {
		for p := i.From; p < i.To; p++ {
			k.leftover.out[p] = struct{}{}
		}
	}
	return k
}

// Leaves notes that a row leaves its queue. It reports whether the previous attempt may have sent the row.
func (k *ReadProgress) Leaves(r table.Ref) (replayed bool) {
	if k.leftover.base == nil || !r.Row().Suspect() {
		return false
	}
	at := PositionOf(r)
	delete(k.leftover.out, at)
	k.leftover.queued--
	return k.Ordered || k.leftover.base.Read.Has(at)
}

// Limits for remembered places: their number in a source, and the bytes of all. Above them, every other one is dropped.
const (
	maxStarts     = 1024
	maxStartBytes = 8 << 20
)

func startBytes(s *checkpoint.Start) int { return 80 + len(s.Key) }

// Counted adds a split that was handed over. bytesBefore is the number of input bytes read before it.
func (k *ReadProgress) Counted(p *intake.Parsed, bytesBefore int64) {
	sp := p.Split
	from, to := PositionAfter(sp.Position, 0), PositionAfter(sp.Position, int64(p.Records))
	k.read, k.again = k.read.Add(from, to), k.again.Add(from, to)
	k.leftover.passed = k.leftover.passed || p.New
	if k.leftover.base != nil {
		k.meet(p)
	}
	if p.Inside {
		return
	}
	source := sp.Position.Source
	starts := k.starts[source]
	if n := len(starts); n > 0 && starts[n-1].Record >= sp.Position.Record {
		return // its records are read again
	}
	start := checkpoint.Start{
		Source: source, Record: sp.Position.Record, Line: sp.FirstLine, Offset: sp.Offset, Bytes: bytesBefore, Key: p.Key,
	}
	k.starts[source] = append(starts, start)
	k.held += startBytes(&start)
	if len(starts) >= maxStarts {
		k.thin(source)
	}
	if k.held > k.most {
		for source := range k.starts {
			k.thin(source)
		}
		k.most = max(maxStartBytes, 2*k.held)
	}
}

// thin forgets every other place of a source, except the first and the last.
func (k *ReadProgress) thin(source int) {
	starts := k.starts[source]
	kept := starts[:0]
	for i := range starts {
		if i%2 == 0 || i == len(starts)-1 {
			kept = append(kept, starts[i])
		} else {
			k.held -= startBytes(&starts[i])
		}
	}
	clear(starts[len(kept):])
	k.starts[source] = kept
}

// forget forgets the places of a source before the n-th.
func (k *ReadProgress) forget(source, n int) {
	starts := k.starts[source]
	for i := range starts[:n] {
		k.held -= startBytes(&starts[i])
	}
	if k.starts[source] = starts[n:]; n == len(starts) {
		delete(k.starts, source)
	}
}

func (k *ReadProgress) Ended(e *intake.Ended) {
	if k == nil || !k.ends {
		return
	}
	k.read = k.read.AddEnd(e.Source)
}

// meet counts the rows of a split that the previous attempt has read.
func (k *ReadProgress) meet(p *intake.Parsed) {
	for _, b := range p.Blocks {
		for i := range b.Block.Rows {
			r := table.Ref{Block: b.Block, Index: int32(i)}
			if r.Row().Suspect() {
				k.leftover.queued++
			}
			if k.leftover.base.Read.Has(PositionOf(r)) {
				k.leftover.left--
			}
		}
	}
}

// Fresh returns how many of n records of a split from from on were not counted by an earlier attempt.
func (k *ReadProgress) Fresh(sp *table.Split, from, n int64) int64 {
	if k == nil || n <= 0 {
		return max(n, 0)
	}
	first := PositionAfter(sp.Position, from)
	return n - k.read.Count(first, first+checkpoint.Position(n))
}

// Reached reports whether a split reaches the end of what earlier attempts have read, if sources are read in order.
func (k *ReadProgress) Reached(p *intake.Parsed) bool {
	return k == nil || PositionAfter(p.Split.Position, int64(p.Records)) >= k.read.End()
}

// ForIntake returns what the intake needs to know about the previous attempt, or nil if there was none.
func (k *ReadProgress) ForIntake() *intake.Resumed {
	b := k.leftover.from
	if b == nil {
		return nil
	}
	var records intake.Records = k.leftover.replay
	if k.live {
		records = rowsAgain{}
	}
	chains := map[int]source.Chain{}
	for _, c := range b.Chains {
		chains[c.Source] = source.Chain{Every: c.Every, Sums: c.Sums}
	}
	starts := map[int]checkpoint.Start{}
	for _, s := range b.Starts {
		starts[s.Source] = s
	}
	return &intake.Resumed{
		Records: records,
		Begin: func(ordinal int) (source.Place, source.Chain, bool) {
			s := starts[ordinal]
			return source.Place{Record: s.Record, Line: s.Line, Offset: s.Offset, Key: s.Key}, chains[ordinal],
				b.Complete(ordinal, k.Ordered && !k.live)
		},
	}
}

// Resumes reports whether rows that the previous attempt has read may arrive again.
func (k *ReadProgress) Resumes() bool { return k.leftover.base != nil }

// AllFinal reports whether everything that the previous attempt read is final.
func (k *ReadProgress) AllFinal() bool { return k.leftover.base == nil || k.leftover.final }

// ReadTo returns the end of everything that this attempt has read.
func (k *ReadProgress) ReadTo() checkpoint.Position { return k.again.End() }

// Unread returns the number of the previous attempt's unfinished records not read again yet.
func (k *ReadProgress) Unread() int64 { return k.leftover.left }

// DescribeRows adds the records read and the unfinished ones, out or queued, to s. whole means that all input was read.
// It forgets the state of the previous attempt once all records that it had read are final.
func (k *ReadProgress) DescribeRows(s *checkpoint.Snapshot, out []checkpoint.Position, ranges []checkpoint.LaneRange,
	waiting []checkpoint.Queued, whole bool) {
	s.Read = append(checkpoint.Set(nil), k.read...)
	for p := range k.leftover.out {
		out = append(out, p)
	}
	s.Out = checkpoint.OfPositions(out)
	s.Pieces = checkpoint.Tile(ranges, waiting)
	if k.leftover.base == nil {
		return
	}
	// A queue covers all records of a split from its first row on, even final ones, which only base distinguishes.
	gone := s.Done(&k.leftover.base.State)
	s.Pieces = checkpoint.Continue(&k.leftover.base.State, k.again, s.Pieces)
	if s.Done(&k.leftover.base.State) && (!k.Ordered || k.leftover.queued == 0 && (whole || k.leftover.passed)) {
		k.leftover.final = true
	}
	if k.leftover.final && gone && (k.Ordered || whole) {
		k.leftover.base = nil
	}
}

// DescribeSources adds where to begin each source, and the known parts of streams, to s. It forgets unneeded starts.
func (k *ReadProgress) DescribeSources(s *checkpoint.Snapshot) {
	if k.Ordered {
		// Sources before the one with the first unfinished record are not read again; later ones are read from the beginning.
		open := k.open(s)
		k.describeStarts(s, open.Source(), open.Record())
		for ; k.first < open.Source(); k.first++ {
			k.forget(k.first, len(k.starts[k.first]))
			k.complete(s, k.first)
		}
		if k.live {
			// Live sources begin where this attempt began with them.
			for _, source := range slices.Sorted(maps.Keys(k.starts)) {
				if source > open.Source() {
					s.Starts = append(s.Starts, k.starts[source][0])
				}
			}
		}
	} else {
		opens := s.FirstOpens()
		for _, source := range slices.Sorted(maps.Keys(k.starts)) {
			open, any := opens[source]
			if !any && k.complete(s, source) {
				k.forget(source, len(k.starts[source]))
				continue
			}
			if read := s.Read.Numbered(source); !any || read < open {
				open = read
			}
			k.describeStarts(s, source, open)
		}
	}
	for _, source := range k.sources {
		if source.Chain == nil {
			continue
		}
		if c := source.Chain(); len(c.Sums) > 0 {
			s.Chains = append(s.Chains, checkpoint.Chain{Source: source.Ordinal, Every: c.Every, Sums: c.Sums})
		}
	}
}

// open returns the first unfinished record of a load that reads its sources in order. In live sources, records read
// again get new numbers, so that reading has not yet reached lower ones.
func (k *ReadProgress) open(s *checkpoint.Snapshot) checkpoint.Position {
	if !k.live {
		return s.Open()
	}
	source := k.first
	for source < len(k.sources) && k.read.Ended(source) {
		source++
	}
	return s.OpenBefore(checkpoint.At(source, s.Read.Numbered(source)))
}

// complete notes that a source has nothing left to read or send, if it was read to its end, and reports whether it was.
func (k *ReadProgress) complete(s *checkpoint.Snapshot, source int) bool {
	if !k.read.Ended(source) {
		return false
	}
	k.read, s.Read = k.read.AddWhole(source), s.Read.AddWhole(source)
	return true
}

// describeStarts adds the last start of a source that is not after open, its first unfinished record.
func (k *ReadProgress) describeStarts(s *checkpoint.Snapshot, source int, open int64) {
	starts := k.starts[source]
	if len(starts) == 0 {
		return
	}
	n := 0
	for n+1 < len(starts) && starts[n+1].Record <= open {
		n++
	}
	k.forget(source, n)
	if starts[n].Record <= open {
		s.Starts = append(s.Starts, starts[n])
	}
}

func PositionOf(r table.Ref) checkpoint.Position {
	return PositionAfter(r.Position(), 0)
}

// PositionAfter returns the position of the record that is the given number of records after p.
func PositionAfter(p table.Position, after int64) checkpoint.Position {
	return checkpoint.At(p.Source, p.Record+after)
}
