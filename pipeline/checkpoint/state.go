package checkpoint

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"example.com/tsimport/internal/table"
)

// State tells which records are final: those that were read and are neither waiting nor out.
//
// A State is exact. One mark for each fixed slice of a job would not be: after a split, rows queue in their parent's
// order, and a mark could name only the earliest unfinished one, so counted rows after it would not be final.
type State struct {
	// Read holds the records counted as read: queued, or rejected as invalid.
	Read Set
	// Pieces are adjacent ranges, in key order, that cover all keys.
	Pieces []Piece
	// Out holds the records that have left their queue and are not final.
	Out Set
}

// Piece holds the waiting records of a range of keys.
type Piece struct {
	Lower   []byte // encoding of the first key, nil in the first piece; a piece ends where the next begins
	Waiting Set    // records with a key of the piece that are queued or that an earlier attempt left unfinished
	// Allowance is the number of rows, the piece's first unfinished ones in source order, that may precede the next state.
	Allowance int64
}

// Queued is a part of a queue: the records of an interval that have keys in a range.
type Queued struct {
	Keys table.KeyRange
	Interval
}

// LaneRange is the range of keys of a lane.
type LaneRange struct {
	Lower     []byte
	Allowance int64
}

func (s *State) pieceOf(key []byte) int {
	return sort.Search(len(s.Pieces), func(i int) bool { return bytes.Compare(s.Pieces[i].Lower, key) > 0 }) - 1
}

// Final reports whether a record is final. Invalid records have no key: use Replay.Counted.
func (s *State) Final(p Position, key []byte) bool {
	if !s.Read.Has(p) || s.Out.Has(p) {
		return false
	}
	i := s.pieceOf(key)
	return i < 0 || !s.Pieces[i].Waiting.Has(p)
}

// firstOpen returns the first position, p or later, that was read and is not final.
func (s *State) firstOpen(p Position) (first Position, ok bool) {
	first, ok = s.Out.Next(p)
	for i := range s.Pieces {
		if next, any := s.Pieces[i].Waiting.Next(p); any && (!ok || next < first) {
			first, ok = next, true
		}
	}
	return first, ok
}

// Open returns the first position that is not final, in a load that reads its sources in order.
func (s *State) Open() Position { return s.OpenBefore(s.Read.End()) }

// OpenBefore returns the first position that was read and is not final, or unread if that comes first.
func (s *State) OpenBefore(unread Position) Position {
	if p, ok := s.firstOpen(0); ok {
		return min(p, unread)
	}
	return unread
}

// Complete reports whether a source was read to its end and all its records are final. If sources are read in order, a
// source has ended once a later one has records.
func (s *State) Complete(source int, ordered bool) bool {
	if !s.Read.Ended(source) && !(ordered && s.Read.End() > At(source+1, 0)) {
		return false
	}
	p, ok := s.firstOpen(At(source, 0))
	return !ok || p >= At(source+1, 0)
}

// Done reports whether no record that was read by base, the attempt's first state, is waiting or out.
func (s *State) Done(base *State) bool {
	if len(Intersect(s.Out, base.Read)) > 0 {
		return false
	}
	return !slices.ContainsFunc(s.Pieces, func(p Piece) bool { return len(Intersect(p.Waiting, base.Read)) > 0 })
}

// Tile makes adjacent pieces from the lanes, in key order, and their queues. It cuts where a key range begins or ends.
func Tile(lanes []LaneRange, queued []Queued) []Piece {
	type group struct {
		keys table.KeyRange
		set  Set
	}
	// Parts with the same keys are grouped first, as there are many of them if rows are unordered.
	var groups []group
	slices.SortStableFunc(queued, func(a, b Queued) int { return compareRanges(a.Keys, b.Keys) })
	for from := 0; from < len(queued); {
		to := from
		var all []Interval
		for ; to < len(queued) && compareRanges(queued[to].Keys, queued[from].Keys) == 0; to++ {
			all = append(all, queued[to].Interval)
		}
		groups = append(groups, group{queued[from].Keys, Of(all)})
		from = to
	}
	var bounds [][]byte
	for _, l := range lanes {
		bounds = append(bounds, l.Lower)
	}
	for _, g := range groups {
		bounds = append(bounds, g.keys.Lower)
		if g.keys.Upper != nil {
			bounds = append(bounds, g.keys.Upper)
		}
	}
	s := State{Pieces: piecesFrom(bounds)}
	lane := 0
	for i := range s.Pieces {
		for lane+1 < len(lanes) && bytes.Compare(lanes[lane+1].Lower, s.Pieces[i].Lower) <= 0 {
			lane++
		}
		if len(lanes) > 0 {
			s.Pieces[i].Allowance = lanes[lane].Allowance
		}
	}
	for _, g := range groups {
		for i := s.pieceOf(g.keys.Lower); i < len(s.Pieces); i++ {
			if g.keys.Upper != nil && bytes.Compare(s.Pieces[i].Lower, g.keys.Upper) >= 0 {
				break
			}
			s.Pieces[i].Waiting = Union(s.Pieces[i].Waiting, g.set)
		}
	}
	return join(s.Pieces)
}

// compareRanges orders ranges. It is 0 only for equal ones, as no upper bound is empty.
func compareRanges(a, b table.KeyRange) int {
	return cmp.Or(bytes.Compare(a.Lower, b.Lower), bytes.Compare(a.Upper, b.Upper))
}

// piecesFrom returns a piece for each bound, which begins there, and one before all bounds.
func piecesFrom(bounds [][]byte) []Piece {
	slices.SortFunc(bounds, bytes.Compare)
	bounds = slices.CompactFunc(bounds, bytes.Equal)
	pieces := []Piece{{}}
	for _, b := range bounds {
		if len(b) > 0 {
			pieces = append(pieces, Piece{Lower: b})
		}
	}
	return pieces
}

// join merges neighbours with the same Waiting, unless they have an allowance: each may send its own.
func join(pieces []Piece) []Piece {
	return slices.CompactFunc(pieces, func(a, b Piece) bool {
		return a.Allowance == 0 && b.Allowance == 0 && slices.Equal(a.Waiting, b.Waiting)
	})
}

// Continue merges an attempt's pieces into base's, its first state. again holds the records that the attempt has
// read. Records waiting in base wait until they are read again; final ones remain final. Allowances of base remain
// valid, as their rows may still be applied.
func Continue(base *State, again Set, pieces []Piece) []Piece {
	var bounds [][]byte
	for _, all := range [][]Piece{base.Pieces, pieces} {
		for i := range all {
			bounds = append(bounds, all[i].Lower)
		}
	}
	now := State{Pieces: pieces}
	tiles := piecesFrom(bounds)
	for i := range tiles {
		t := &tiles[i]
		old, own := base.Pieces[base.pieceOf(t.Lower)], pieces[now.pieceOf(t.Lower)]
		t.Allowance = max(own.Allowance, old.Allowance)
		t.Waiting = Union(Subtract(own.Waiting, base.Read), Union(Intersect(own.Waiting, old.Waiting),
			Subtract(old.Waiting, again)))
	}
	return join(tiles)
}
