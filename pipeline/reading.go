package pipeline

import (
	"tsimport/internal/table"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/intake"
	"tsimport/pipeline/plan"
	"tsimport/reader/source"
)

// reading knows which records have been read, by this attempt and those before it, and where each source can be read from
// again. A nil reading is that of a load that keeps nothing.
type reading struct {
	sources []*plan.Source
	ordered bool
	read    checkpoint.Set             // of all attempts
	again   checkpoint.Set             // of this one: what was handed over, even if an earlier attempt had it too
	starts  map[int][]checkpoint.Start // of splits of sources that are read in order
	first   int                        // source of which there may be starts
	leftover
}

// leftover is what is left of the attempt before.
type leftover struct {
	base   *checkpoint.Snapshot             // what the attempt resumes from, nil if nothing of it is left
	out    map[checkpoint.Position]struct{} // of its rows out, those that have not left their queue again
	replay *checkpoint.Replay               // what the intake is told of base
	queued int64                            // suspect rows that are in the lanes
	passed bool                             // all suspect rows have come
	left   int64                            // records of base that are not final and were not read again
}

func newReading(sources []*plan.Source, ordered bool, b *checkpoint.Snapshot) *reading {
	k := &reading{sources: sources, ordered: ordered, starts: map[int][]checkpoint.Start{}}
	k.out = map[checkpoint.Position]struct{}{}
	if b == nil {
		return k
	}
	k.base, k.replay = b, checkpoint.NewReplay(&b.State, ordered)
	k.read = append(k.read, b.Read...)
	k.left = b.Counters["read"] - b.Counters["written"] - b.Counters["rejected"] - b.Counters["superseded"] - b.Counters["archived"]
	for _, i := range b.Out {
		for p := i.From; p < i.To; p++ {
			k.out[p] = struct{}{}
		}
	}
	for _, s := range b.Starts {
		k.starts[s.Source] = append(k.starts[s.Source], s)
	}
	return k
}

// leaves takes a row that leaves its queue. It reports whether the attempt before may have sent it.
func (k *reading) leaves(r table.Ref) (replayed bool) {
	if k.base == nil || !r.Row().Suspect() {
		return false
	}
	at := position(r)
	delete(k.out, at)
	k.queued--
	return k.ordered || k.base.Read.Has(at)
}

// maxStarts bounds the places that are remembered of a source: of more, every other one is forgotten.
const maxStarts = 1024

// counted enters a split that was handed over, and returns which of its records no attempt has counted before.
func (k *reading) counted(p *intake.Parsed, bytesBefore int64) {
	sp := p.Split
	from, to := checkpoint.At(sp.Ordinal, sp.FirstRecord), checkpoint.At(sp.Ordinal, sp.FirstRecord+int64(p.Records))
	k.read, k.again = k.read.Add(from, to), k.again.Add(from, to)
	k.passed = k.passed || p.New
	if k.base != nil {
		k.meet(p)
	}
	if !k.ordered && k.sources[sp.Ordinal].Anywhere() {
		return
	}
	starts := k.starts[sp.Ordinal]
	if n := len(starts); n > 0 && starts[n-1].Record >= sp.FirstRecord {
		return // it is read again
	}
	starts = append(starts, checkpoint.Start{
		Source: sp.Ordinal, Record: sp.FirstRecord, Line: sp.FirstLine, Offset: sp.Offset, Bytes: bytesBefore,
	})
	if len(starts) > maxStarts {
		kept := starts[:0]
		for i := range starts {
			if i%2 == 0 || i == len(starts)-1 {
				kept = append(kept, starts[i])
			}
		}
		starts = kept
	}
	k.starts[sp.Ordinal] = starts
}

// meet counts the rows of a split that are known of the attempt before.
func (k *reading) meet(p *intake.Parsed) {
	for _, b := range p.Blocks {
		for i := range b.Block.Rows {
			r := table.Ref{Block: b.Block, Index: int32(i)}
			if r.Row().Suspect() {
				k.queued++
			}
			if k.base.Read.Has(position(r)) {
				k.left--
			}
		}
	}
}

// fresh returns how many of n records of a split from one on no attempt has counted before.
func (k *reading) fresh(sp *table.Split, from, n int64) int64 {
	if k == nil || n <= 0 {
		return max(n, 0)
	}
	at := checkpoint.At(sp.Ordinal, sp.FirstRecord+from)
	return n - k.read.Count(at, at+checkpoint.Position(n))
}

// reached reports whether a split comes to the end of what earlier attempts have read in order.
func (k *reading) reached(p *intake.Parsed) bool {
	return k == nil || checkpoint.At(p.Split.Ordinal, p.Split.FirstRecord+int64(p.Records)) >= k.read.End()
}

// past is what the attempt before has left to the intake.
func (k *reading) past() *intake.Resumed {
	b := k.base
	if b == nil {
		return nil
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
		Records: k.replay,
		Begin: func(ordinal int) (source.Place, source.Chain, bool) {
			s := starts[ordinal]
			return source.Place{Record: s.Record, Line: s.Line, Offset: s.Offset}, chains[ordinal], k.ordered && b.Complete(ordinal)
		},
	}
}

// describeSources adds where each source is to be read from, and what streams were. Starts that will not be asked for again
// are forgotten.
func (k *reading) describeSources(s *checkpoint.Snapshot) {
	if k.ordered {
		// One source has the first record that is not final: those before it are not read again, those after it from their
		// beginning.
		open := s.Open()
		k.describeStarts(s, open.Source(), open.Record())
		for ; k.first < open.Source(); k.first++ {
			delete(k.starts, k.first)
		}
	}
	for _, source := range k.sources {
		if !k.ordered {
			k.describeStarts(s, source.Ordinal, -1)
		}
		if c, ok := source.Chain(); ok && len(c.Sums) > 0 {
			s.Chains = append(s.Chains, checkpoint.Chain{Source: source.Ordinal, Every: c.Every, Sums: c.Sums})
		}
	}
}

// describeStarts adds the last start of a source that is not after its first open record; -1 finds that out.
func (k *reading) describeStarts(s *checkpoint.Snapshot, source int, open int64) {
	starts := k.starts[source]
	if len(starts) == 0 {
		return
	}
	if open < 0 {
		open = s.FirstOpen(source)
	}
	n := 0
	for n+1 < len(starts) && starts[n+1].Record <= open {
		n++
	}
	k.starts[source] = starts[n:]
	if starts[n].Record <= open {
		s.Starts = append(s.Starts, starts[n])
	}
}
