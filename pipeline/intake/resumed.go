package intake

import (
	"cmp"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
)

// Resumed describes the work of earlier attempts of a load.
type Resumed struct {
	// Records answers for records that were read before.
	Records Records
	// Begin returns where to begin a source read in order, and the known part of a stream. skip means that all is final.
	Begin func(source int) (from source.Place, known source.Chain, skip bool)
}

// Records tells what is known about records. One goroutine calls it in reading order, or many if sources are parallel.
type Records interface {
	// Row reports whether a record with a key is final or, if not, may have been sent.
	Row(source int, record int64, key []byte) (final, suspect bool)
	// Counted reports whether the record was read. If it cannot become a row, it was then rejected.
	Counted(source int, record int64) bool
	// Known reports whether any of n records of a source from from on was read. A negative n means all later records.
	Known(source int, from, n int64) bool
	// Unknown reports whether nothing is known about any record of a source from from on.
	Unknown(source int, from int64) bool
}

// Resume makes Run continue the work of earlier attempts; nil means that there are none. Call it before Run.
func (f *Flow) Resume(p *Resumed) { f.resumed = p }

// seek returns the sources to read, each beginning at its first unfinished record.
func (f *Flow) seek(sources []*plan.Source) []*plan.Source {
	if f.resumed == nil {
		return sources
	}
	var read []*plan.Source
	for _, s := range sources {
		from, known, skip := f.resumed.Begin(s.Ordinal)
		if skip {
			continue
		}
		if from.Record == 0 && from.Line == 0 && from.Offset == 0 && from.Key == nil {
			from = s.Source.Begin()
		}
		s.Seek(from, known)
		read = append(read, s)
	}
	return read
}

// dropFinal drops the final records of a split, which must have its position, and marks rows that may have been sent.
func (p *Resumed) dropFinal(made *Parsed) {
	first, source := made.Split.Position.Record, made.Split.Position.Source
	if p == nil {
		return
	}
	if made.New = p.Records.Unknown(source, first); made.New {
		return
	}
	made.Rejects = slices.DeleteFunc(made.Rejects, func(r Reject) bool {
		return p.Records.Counted(source, first+int64(r.Span.Record))
	})
	made.Archived = slices.DeleteFunc(made.Archived, func(a Archived) bool {
		return p.Records.Counted(source, first+int64(a.Span.Record))
	})
	made.Expired = slices.DeleteFunc(made.Expired,
		func(e Expired) bool { return p.Records.Counted(source, first+int64(e.Record)) })
	// Records are looked up in order, not lane by lane.
	type row struct {
		record uint32
		block  int
		index  int32
	}
	var rows []row
	for n, b := range made.Blocks {
		for i := range b.Block.Rows {
			rows = append(rows, row{b.Block.Place(int32(i)), n, int32(i)})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.record, b.record) })
	final := make([][]bool, len(made.Blocks))
	for n, b := range made.Blocks {
		final[n] = make([]bool, len(b.Block.Rows))
	}
	for _, r := range rows {
		ref := table.Ref{Block: made.Blocks[r.block].Block, Index: r.index}
		done, suspect := p.Records.Row(source, first+int64(r.record), ref.Key())
		final[r.block][r.index] = done
		if suspect {
			ref.Row().SetSuspect()
		}
	}
	kept := made.Blocks[:0]
	for n, b := range made.Blocks {
		if b.Block.Keep(func(i int32) bool { return !final[n][i] }); len(b.Block.Rows) > 0 {
			kept = append(kept, b)
		}
	}
	made.Blocks = kept
}
