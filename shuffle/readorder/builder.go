package readorder

import "sync/atomic"

// Builder collects the sections of an input in its order: a short one, a long one, and so on. When they take too many bytes it joins the
// long ones to their neighbours, and asks for longer ones.
type Builder struct {
	limit    int
	even     bool // all sections are alike
	rows     atomic.Int64
	sections []Section
	since    int64 // records from where the last period should have begun
	alone    bool  // the last one is short, and none is joined to it
	held     int
	coarse   bool // larger ones were asked for
	full     bool
}

// fewSections is for how many sections there must be room, if every other one is to be a short one.
const fewSections = 512

// NewBuilder makes a builder of sections of about so many rows on average that take so many bytes at most.
func NewBuilder(rows, bytes int) *Builder {
	b := &Builder{limit: bytes, even: bytes < fewSections*(sectionBytes+2*intervalBytes)}
	b.rows.Store(int64(rows))
	return b
}

// NewHead makes a builder of sections that stay where they are: they are as long as they may be.
func NewHead(bytes int) *Builder {
	b := &Builder{limit: bytes, coarse: true, even: true}
	b.rows.Store(maxRows)
	return b
}

// Short is how many rows a short section has where sections have so many on average. Rows that are spread over many short sections show
// the service what all of the keys are like before much is written.
func Short(rows int) int { return max(1, rows/5) }

// Even reports whether all sections should be alike: there is room for few.
func (b *Builder) Even() bool { return b.even }

// Rows is how many rows the next sections should have on average. Any goroutine may call it.
func (b *Builder) Rows() int { return int(b.rows.Load()) }

// sectionBytes is what a section takes beside its intervals, that which Order needs for it included.
const (
	sectionBytes  = 200
	intervalBytes = 96
)

// held is the memory of a section.
func (s *Section) held() int {
	n := sectionBytes
	for i := range s.Keys {
		n += intervalBytes + len(s.Keys[i].Lower) + len(s.Keys[i].Upper)
	}
	return n
}

// What a section is that neighbours are joined to at most.
const (
	maxRows  = 1 << 30
	maxBytes = 8 << 20 // a section is read in one go
)

// Add adds the next section.
func (b *Builder) Add(s Section) {
	if s.Records == 0 {
		return
	}
	b.held += s.held()
	if b.sections = b.push(b.sections, s); b.held > b.limit {
		b.coarsen()
	}
}

// Full reports whether the sections take more than they may, though they were joined.
func (b *Builder) Full() bool { return b.full }

// Sections returns the sections in the order of the input.
func (b *Builder) Sections() []Section { return b.sections }

// push puts a section after the others. When larger ones were asked for, a section stays as short as it is where a period begins, and the
// others up to the next period become one. A period has the rows of two sections: wherever in the input they stand, the short ones have the
// same density. Of an even builder's sections each is a period.
func (b *Builder) push(to []Section, s Section) []Section {
	n := len(to)
	if n == 0 {
		b.since = 0
	}
	period := b.rows.Load()
	begins := 4*b.since >= 3*period
	if !b.even {
		period *= 2
		begins = 4*b.since >= 3*period && 4*s.Records <= period || b.since >= 2*period
	}
	if begins {
		b.since -= period // so that they are a period apart on average
	}
	b.since += s.Records
	alone := b.alone
	b.alone = (begins || n == 0) && !b.even
	if !b.coarse || n == 0 || begins || alone || !s.follows(&to[n-1]) || to[n-1].Bytes+s.Bytes > maxBytes {
		return append(to, s)
	}
	last := &to[n-1]
	b.held -= last.held() + s.held()
	last.join(&s)
	b.held += last.held()
	return to
}

// coarsen joins neighbours until half of the bytes are free.
func (b *Builder) coarsen() {
	b.coarse = true
	for b.held > b.limit/2 && b.rows.Load() < maxRows {
		b.rows.Store(2 * b.rows.Load())
		kept := b.sections[:0]
		for _, s := range b.sections {
			kept = b.push(kept, s)
		}
		clear(b.sections[len(kept):])
		b.sections = kept
	}
	b.full = b.held > b.limit
}
