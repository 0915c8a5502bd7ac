package ledger

import (
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/reader/source"
)

// Follower knows how far a load of changes has come in the log of their source. The zero value is ready.
type Follower struct{ marks []followMark }

// followMark is what the changes up to a place say of the log.
type followMark struct {
	end checkpoint.Position
	of  source.Followed
}

// Read notes what a split has said that ends at a place. Splits come in their order.
func (f *Follower) Read(end checkpoint.Position, of source.Followed) {
	if of.Last != nil {
		f.marks = append(f.marks, followMark{end, of})
	}
}

// Settled returns what the last split has said of which all records are before a place, if one has since the last call.
func (f *Follower) Settled(before checkpoint.Position) (last source.Followed, any bool) {
	n := 0
	for n < len(f.marks) && f.marks[n].end <= before {
		n++
	}
	if n > 0 {
		last = f.marks[n-1].of
		f.marks = append(f.marks[:0], f.marks[n:]...)
	}
	return last, n > 0
}
