package jsonl

import (
	"bytes"
	"fmt"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// CodeJSON is the code of a record that is not a JSON object.
const CodeJSON = "BadJSON"

// CodeUnknown is the code of a record with a member that is not a column, with Options.Strict.
const CodeUnknown = "UnknownColumn"

// MaxDepth limits the nesting of objects and arrays, including the record itself.
const MaxDepth = 200

// NoTimestamp is the entry in Timestamps for a field without a timestamp.
const NoTimestamp = -1

type Options struct {
	Columns []string // a record's fields, in this order; other members are dropped
	Keys    []string // names for unnamed values under PK in the vendor's lines; default pk1, pk2 …

	Strict  bool // refuse a record with a member that is not a column
	Missing bool // a column missing in a record is absent, not null
	Flatten bool // objects become columns a.b.c; arrays remain JSON
	Wide    bool // records describe themselves: they have Cells; Columns name values under PK, or cells

	Archive int // number of key columns in an archive of whole rows, written like Wide; 0 if it is none

	Changes Changes // records are changes of self-describing rows, as with Wide

	Layout Layout // how records are arranged

	Tags    Tags // values are objects with type tags
	Untyped bool // the sample has no type tags: a record that has one is refused
	Wrapped bool // DynamoDB: items are wrapped in {"Item":…}
}

// Parser parses splits, for one goroutine. Its many fields are reused memory, so it does not allocate.
type Parser struct {
	unknown []byte // with Strict: name of a member that is not a column
	strange bool   // there is such a member; its name may be empty
	options Options
	index   map[string]int // index of each column, by name
	columns *Columns       // set by Discover, collects the names

	data    []byte
	next    int // start of the next line
	records int
	lines   int

	lacking    record.Kind // kind of a column missing in a record
	record     record.Record
	timestamps []int64
	stamped    bool     // a timestamp was set in this record
	seen       []uint32 // by column: turn in which it was last set
	turn       uint32   // number of this record, never 0
	guess      int      // index of the column expected next
	bad        table.Reason

	scan    scanner
	keys    keySet
	tags    tagged
	cutter  Cutter
	changed changed
	path    []byte // with Flatten: the name so far
}

// NewParser makes a parser. The names in Columns must differ.
func NewParser(o Options) *Parser {
	p := &Parser{
		options:    o,
		index:      make(map[string]int, len(o.Columns)),
		seen:       make([]uint32, len(o.Columns)),
		timestamps: make([]int64, len(o.Columns)),
	}
	if o.Missing {
		p.lacking = record.Absent
	}
	for i, name := range o.Columns {
		p.index[name] = i
	}
	for i := range p.timestamps {
		p.timestamps[i] = NoTimestamp
	}
	p.record.Fields = make([]record.Datum, len(o.Columns))
	return p
}

// Reset begins a split: complete lines, or the text between two cuts of a Cutter, below 4 GiB (offsets are uint32).
func (p *Parser) Reset(data []byte) {
	p.data, p.next, p.records, p.lines = data, 0, 0, 0
	p.cutter = Cutter{Array: p.options.Layout == Array, open: p.cutter.open[:0]}
	clear(p.keys.slots) // they point into the previous split
	p.changed.others, p.changed.at = 0, LogPlace{}
}

// Continue is Reset for a split that is not the text's first.
func (p *Parser) Continue(data []byte) {
	p.Reset(data)
	p.cutter.place = anywhere
}

// Records returns the number of records of this split so far.
func (p *Parser) Records() int { return p.records }

// Lines returns the number of lines of this split so far, including blank ones.
func (p *Parser) Lines() int { return p.lines }

// Stamped reports whether the last record has a valid timestamp.
func (p *Parser) Stamped() bool { return p.stamped }

// Timestamps returns the timestamps of the record's fields in milliseconds, or NoTimestamp. Next invalidates them.
func (p *Parser) Timestamps() []int64 { return p.timestamps }

// Next parses the next record (the next non-blank line if records are lines). It is valid until the next call.
func (p *Parser) Next() (*record.Record, bool) {
	for {
		rec, ok := p.nextText()
		passes := p.changed.passes
		p.changed.passes = false
		if !ok || !passes || rec.Bad != nil {
			return rec, ok
		}
		p.records--
	}
}

// nextText parses the next record's text. It returns nil for a change without a record.
func (p *Parser) nextText() (*record.Record, bool) {
	if p.options.Layout != Lines {
		return p.nextValue()
	}
	for p.next < len(p.data) {
		start := p.next
		end, next := len(p.data), len(p.data)
		if n := bytes.IndexByte(p.data[start:], '\n'); n >= 0 {
			end, next = start+n, start+n+1
		}
		p.next = next
		p.lines++
		p.scan.reset(p.data[start:end])
		if p.scan.space(); bytes.HasPrefix(p.scan.data[p.scan.pos:], mark) {
			p.scan.pos += len(mark)
			p.scan.space()
		}
		if p.scan.pos == end-start {
			continue
		}
		return p.parse(table.Span{Start: uint32(start), End: uint32(next), Line: uint32(p.lines - 1)}), true
	}
	return nil, false
}

// nextValue parses the next value of a text cut by brackets. Between values, it relies on the Cutter's checks.
func (p *Parser) nextValue() (*record.Record, bool) {
	c := &p.cutter
	start, n := -1, p.next
	for ; n < len(p.data) && start < 0; n++ {
		b := p.data[n]
		if b == '\n' {
			p.lines++
		}
		if c.between(b, n) != nil {
			start = n // a Cutter lets no such text pass
		} else if c.inside() {
			start = n
		}
	}
	if start < 0 {
		p.next = n
		return nil, false
	}
	end := n
	if c.inside() {
		end, _ = c.record(p.data, n) // the parser refuses a record without an end
	}
	span := table.Span{Start: uint32(start), End: uint32(end), Line: uint32(p.lines)}
	p.lines += bytes.Count(p.data[start:end], newline)
	p.next = end
	p.scan.reset(p.data[start:end])
	return p.parse(span), true
}

var (
	newline = []byte{'\n'}
	mark    = []byte("\xef\xbb\xbf") // U+FEFF, found where files were joined
)

// parse parses a record's text, which is in scan.
func (p *Parser) parse(span table.Span) *record.Record {
	p.record.Span = span
	p.record.Span.Record = uint32(p.records)
	p.record.Bad = nil
	p.records++
	p.begin()
	if !p.line() {
		p.record.Bad = &p.bad
	}
	return &p.record
}

func (p *Parser) begin() {
	p.turn++
	if p.turn == 0 {
		clear(p.seen)
		p.turn = 1
	}
	if p.stamped {
		for i := range p.timestamps {
			p.timestamps[i] = NoTimestamp
		}
		p.stamped = false
	}
	p.guess = 0
	p.unknown, p.strange = p.unknown[:0], false
	p.keys.reset()
	p.tags.reset()
}

// line parses the line in scan. If it returns false, bad is set.
func (p *Parser) line() bool {
	s := &p.scan
	if p.options.Changes.Form != NoChanges {
		return p.change() && p.ended()
	}
	if s.data[s.pos] != '{' {
		if bytes.HasPrefix(s.data[s.pos:], mark) {
			return p.refuse("", table.CodeSeam, "a byte order mark: files were joined here", s.pos)
		}
		return p.broken("want an object")
	}
	start := s.pos
	ok := false
	if p.options.Wide || p.options.Archive > 0 {
		ok = p.wide()
	} else if p.options.Wrapped {
		ok = p.item()
	} else if p.options.Tags == NoTags && p.isExport() {
		ok = p.export()
	} else {
		s.pos = start
		p.path = p.path[:0]
		ok = p.object(1)
	}
	if !ok {
		return false
	}
	if !p.ended() {
		return false
	}
	if p.strange {
		return p.refuse(string(p.unknown), CodeUnknown,
			"no line of the sample has this member: name it with --columns to load it, or with --exclude to skip it", 0)
	}
	for i := range p.record.Fields {
		if p.seen[i] != p.turn {
			p.record.Fields[i] = record.Datum{Kind: p.lacking}
		}
	}
	return true
}

// ended refuses any text after the record.
func (p *Parser) ended() bool {
	p.scan.space()
	return p.scan.pos == len(p.scan.data) || p.broken("want nothing after the object")
}

// column returns the index of a name's field, or -1. Keys mostly come in column order.
func (p *Parser) column(name []byte) int {
	if p.guess < len(p.options.Columns) && string(name) == p.options.Columns[p.guess] {
		p.guess++
		return p.guess - 1
	}
	if i, ok := p.index[string(name)]; ok {
		p.guess = i + 1
		return i
	}
	return -1
}

// broken refuses the record for its syntax at scan's position.
func (p *Parser) broken(want string) bool {
	s := &p.scan
	if s.pos >= len(s.data) {
		what := "line"
		if p.options.Layout != Lines {
			what = "record"
		}
		return p.refuse("", CodeJSON, fmt.Sprintf("%s at byte %d, the %s ends", want, s.pos+1, what), s.pos)
	}
	return p.refuse("", CodeJSON, fmt.Sprintf("%s at byte %d, found %s", want, s.pos+1, printable(s.data[s.pos])), s.pos)
}

// failed refuses the record for the fault that scan found.
func (p *Parser) failed(column []byte) bool {
	s := &p.scan
	if s.fault.utf8 {
		return p.refuse(string(column), table.CodeUTF8, fmt.Sprintf("%s at byte %d of the line", s.fault.why, s.fault.pos+1),
			s.fault.pos)
	}
	s.pos = s.fault.pos
	return p.broken(s.fault.why)
}

// refuse sets bad and returns false; the value shown begins at from.
func (p *Parser) refuse(column, code, message string, from int) bool {
	p.bad = table.Reason{Column: column, Code: code, Message: message,
		Value: table.Show(p.scan.data[min(from, len(p.scan.data)):])}
	return false
}

func printable(b byte) string {
	if b >= 0x21 && b < 0x7F {
		return strconv.QuoteRune(rune(b))
	}
	return fmt.Sprintf("byte %#02x", b)
}
