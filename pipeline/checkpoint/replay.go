package checkpoint

// Replay tells whether records are already final. In source order, it counts the records that the previous attempt may
// have sent after its checkpoint, and is not safe for concurrent use. Without an order, it does not count, and is safe.
type Replay struct {
	state   *State
	ordered bool
	left    []int64 // remaining allowance by piece
	total   int64   // sum of left
}

// NewReplay returns the Replay of the previous attempt's last state.
func NewReplay(s *State, ordered bool) *Replay {
	r := &Replay{state: s, ordered: ordered}
	for _, p := range s.Pieces {
		r.left = append(r.left, p.Allowance)
		r.total += p.Allowance
	}
	return r
}

// Row reports whether a record with a key is final or may have been sent. If rows are ordered, call it in source order.
func (r *Replay) Row(source int, record int64, key []byte) (final, suspect bool) {
	p := At(source, record)
	switch {
	case r.state.Final(p, key):
		return true, false
	case !r.ordered, r.state.Out.Has(p):
		return false, true
	}
	i := r.state.pieceOf(key)
	if i < 0 || r.left[i] == 0 {
		return false, false
	}
	r.left[i]--
	r.total--
	return false, true
}

// Counted reports whether the record was counted as read. If it is invalid, it was then rejected.
func (r *Replay) Counted(source int, record int64) bool { return r.state.Read.Has(At(source, record)) }

// Known reports whether any of n records of a source from from on was read. A negative n means all later records.
func (r *Replay) Known(source int, from, n int64) bool {
	to := At(source+1, 0)
	if n >= 0 {
		to = At(source, from+n)
	}
	return r.state.Read.Count(At(source, from), to) > 0
}

// Unknown reports whether no record of a source from from on is known or suspect.
func (r *Replay) Unknown(source int, from int64) bool {
	return r.ordered && r.total == 0 && At(source, from) >= r.state.Read.End()
}
