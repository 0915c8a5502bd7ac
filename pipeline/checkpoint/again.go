package checkpoint

import (
	"fmt"
	"slices"
)

// mark returns a position that no record has. In a set, it stands for a source that was read to its end.
func mark(source int) Position { return At(source+1, 0) - 1 }

// AddEnd returns the set with the mark that a source was read to its end.
func (s Set) AddEnd(source int) Set { return s.Add(mark(source), mark(source)+1) }

// AddWhole returns the set with all positions of a source: it was read to its end, and all its records are final.
func (s Set) AddWhole(source int) Set { return s.Add(At(source, 0), At(source+1, 0)) }

// Ended reports whether a source was read to its end.
func (s Set) Ended(source int) bool { return s.Has(mark(source)) }

// Numbered returns how many record numbers a source read in order has used, including those of earlier attempts.
func (s Set) Numbered(source int) int64 {
	from := At(source, 0)
	if i := s.after(from); i < len(s) && s[i].From <= from {
		return int64(min(s[i].To, mark(source)) - from)
	}
	return 0
}

// FirstOpens returns, by source, the first record that was read and is not final. Sources without one are missing.
func (s *State) FirstOpens() map[int]int64 {
	first := map[int]int64{}
	look := func(set Set) {
		for _, i := range set {
			for p := i.From; p < i.To; p = At(p.Source()+1, 0) {
				if old, known := first[p.Source()]; !known || p.Record() < old {
					first[p.Source()] = p.Record()
				}
			}
		}
	}
	look(s.Out)
	for i := range s.Pieces {
		look(s.Pieces[i].Waiting)
	}
	return first
}

// ReadAgain makes the snapshot the base of an attempt that reads live sources. Records that are read again may have
// changed, and get new numbers above all earlier ones. All records before each source's Start are final.
//
// ReadAgain returns how many counted records are read again, including unfinished ones. Numbers of records read after
// the snapshot may be used again, because the run's files are truncated to the snapshot.
func (s *Snapshot) ReadAgain(sources int) (records int64, err error) {
	starts := map[int]Start{}
	for _, from := range s.Starts {
		starts[from.Source] = from
	}
	var read Set
	s.Starts = nil
	for source := range sources {
		if s.Complete(source, false) { // incomplete sources may have used numbers in earlier attempts
			read = read.AddWhole(source)
			continue
		}
		from, numbers := starts[source], s.Read.Numbered(source)
		if from.Record > numbers {
			return 0, fmt.Errorf("the checkpoint has %d records of input %d, but its position is after record %d", numbers,
				source+1, from.Record)
		}
		records += numbers - from.Record
		from.Source, from.Record = source, numbers
		if numbers > 0 || from.Key != nil {
			s.Starts = append(s.Starts, from)
			read = read.Add(At(source, 0), At(source, numbers))
		}
	}
	s.State = State{Read: slices.Clip(read), Pieces: []Piece{{}}}
	return records, nil
}
