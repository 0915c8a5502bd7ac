package intake

import (
	"slices"
	"sync"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/shuffle/readorder"
)

// Handed is a parsed split, the end of a source, a source that is set aside, or the reason why nothing follows.
type Handed struct {
	*Parsed
	Ended *Ended
	Aside *Aside
	Err   error
}

// Ended means that a source was read to its end. It follows the splits of sources that are live or read in any order.
type Ended struct {
	Source int // ordinal of the source
	Moment
}

// Moment is the time during which records of a live source were read, by this machine's clock.
type Moment struct{ From, To time.Time }

// Parsed is the result of parsing a split.
type Parsed struct {
	Split      *table.Split
	Records    int // number of records, including rejected ones
	Blocks     []LaneBlock
	Partitions *partitioner.Map // map by which the rows were divided
	Apart
	Key    []byte // key of the first record, if places are keys
	Inside bool   // not the first part of a split that has a key, so that reading cannot begin here
	Moment Moment // when a live source was read, up to this split
	New    bool   // if read in order, this split and later ones are unknown to earlier attempts

	lines int
	lent  *sync.Pool // takes the blocks back; nil if they are not lent

	sections []readorder.Section // made by a first pass; their places are within the split
}

// Apart holds the records of a split that do not go to the table, or not completely. Each kind is in order.
type Apart struct {
	Rejects  []Reject
	Archived []Archived
	Expired  []Expired

	Skipped Skipped // counts of the whole split, set in its last part
}

// Skipped counts input that makes no records.
type Skipped struct {
	EmptyLines int
	source.Followed
}

// LaneBlock holds the rows of a split that belong to one lane.
type LaneBlock struct {
	Lane  int
	Block *table.Block
}

// Reject is a record of a split that the reader or the encoder refused.
type Reject struct {
	Span   table.Span
	Table  string // table of the record, if there are several; "" if unknown
	Reason table.Reason
	Raw    []byte // the record, in the form of the source's rejects
	Key    []byte // ordering key; nil if it was not requested or cannot be read
}

// Archived is a record that goes only to the archive.
type Archived struct {
	Span  table.Span
	Table string // table whose rows are archived
	Raw   []byte // the record, in the form of the source's rejects
}

// Expired is a record with cells that are too old for the table and left out of its row.
type Expired struct {
	Record uint32 // number of the record in the split
	Cells  int    // number of these cells
}

// Truncate drops everything after the first n records.
func (p *Parsed) Truncate(n int) {
	for i := range p.Blocks {
		p.Blocks[i].Block.Truncate(n)
	}
	p.Rejects = slices.DeleteFunc(p.Rejects, func(r Reject) bool { return int(r.Span.Record) >= n })
	p.Archived = slices.DeleteFunc(p.Archived, func(a Archived) bool { return int(a.Span.Record) >= n })
	p.Expired = slices.DeleteFunc(p.Expired, func(e Expired) bool { return int(e.Record) >= n })
	p.Records = min(p.Records, n)
}

// Arrived notes that the rows have reached their lanes. The receiver of a split calls it once.
func (p *Parsed) Arrived() {
	if p.lent != nil {
		for _, b := range p.Blocks {
			p.lent.Put(b.Block)
		}
		p.Blocks = nil
	}
}

func (p *Parsed) bytes() (n int64) {
	for _, b := range p.Blocks {
		n += int64(b.Block.Bytes())
	}
	return n
}
