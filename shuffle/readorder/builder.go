package readorder

import "sync/atomic"

// Builder collects an input's sections, alternately short and long. Beyond its limit it joins neighbouring ones.
type Builder struct {
	limit    int
	even     bool // all sections have the same length
	rows     atomic.Int64
	sections []Section
	since    int64 // records since the last period was due to begin
	alone    bool  // the last section is short, and none is joined to it
	held     int
	coarse   bool // larger sections were requested
	full     bool
}

// fewSections is the number of sections that must fit in memory for every other one to be short.
const fewSections = 512

// NewBuilder returns a builder of sections that average about rows rows and take at most bytes bytes of memory.
func NewBuilder(rows, bytes int) *Builder {
	b := &Builder{limit: bytes, even: bytes < fewSections*(sectionBytes+2*intervalBytes)}
	b.rows.Store(int64(rows))
	return b
}

// NewHead returns a builder of sections that are as long as possible, because they are not reordered.
func NewHead(bytes int) *Builder {
	b := &Builder{limit: bytes, coarse: true, even: true}
	b.rows.Store(maxRows)
	return b
}

// Short returns the number of rows of a short section. Many such sections show the service all keys early.
func Short(rows int) int { return max(1, rows/5) }

// Even reports whether all sections should have the same length, because there is memory for only a few.
func (b *Builder) Even() bool { return b.even }

// Rows returns the average number of rows of the next sections. It is safe for concurrent use.
func (b *Builder) Rows() int { return int(b.rows.Load()) }

// sectionBytes is a section's memory in bytes without its intervals, including what Order needs for it.
const (
	sectionBytes  = 200
	intervalBytes = 96
)

func (s *Section) held() int {
	n := sectionBytes
	for i := range s.Keys {
		n += intervalBytes + len(s.Keys[i].Lower) + len(s.Keys[i].Upper)
	}
	return n
}

// The largest sections to which neighbours are joined.
const (
	maxRows  = 1 << 30
	maxBytes = 8 << 20 // a section is read at once
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

// Full reports whether the sections exceed the limit even after joining.
func (b *Builder) Full() bool { return b.full }

// Sections returns the sections in input order.
func (b *Builder) Sections() []Section { return b.sections }

// push appends a section. Once larger ones were requested, the section at the beginning of a period remains short, and
// the others of the period become one. A period has the rows of two average sections, so short sections are equally
// dense everywhere in the input. In an even builder each section is a period.
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
		b.since -= period // so that periods have the right length on average
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
