package jsonl

import (
	"bytes"
	"fmt"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// CodeJSON is the reject code of records that are not JSON objects.
const CodeJSON = "BadJSON"

// CodeUnknown is the reject code, under Options.Strict, of records with a member that is not a column.
const CodeUnknown = "UnknownColumn"

// MaxDepth is the deepest nesting of objects and arrays, including the record itself.
const MaxDepth = 200

// NoTimestamp in Timestamps means that a field has no timestamp.
const NoTimestamp = -1

type Options struct {
	Columns []string // fields of a record, in this order; other members are dropped
	Keys    []string // names for the unnamed values under PK in lines of Tablestore's tool; default pk1, pk2 …

	Strict  bool // refuse records with a member that is not a column
	Missing bool // a column that a record lacks is absent, not null
	Flatten bool // objects become columns a.b.c; arrays remain JSON
	Wide    bool // records describe themselves: they have Cells; fields are values under PK or, without one, cells

	Archive int // number of key columns if the text is an archive of whole rows, written like Wide; otherwise 0

	Changes Changes // for records that are changes of self-describing rows, as with Wide

	Layout Layout // arrangement of the records

	Tags    Tags // type tags of the values
	Untyped bool // the sample has no type tags: refuse records that have one
	Wrapped bool // DynamoDB: items are inside {"Item":…}
}

// Parser parses splits. It is not safe for concurrent use. Its many fields are reused memory, to avoid allocations.
type Parser struct {
	unknown []byte // with Strict: name of the first member that is not a column
	strange bool   // whether there is such a member: its name may be empty
	options Options
	index   map[string]int // by name: index of each column
	columns *Columns       // where Discover collects names; otherwise nil

	data    []byte
	next    int // offset of the next line
	records int
	lines   int

	lacking    record.Kind // kind of columns that a record lacks
	record     record.Record
	timestamps []int64
	stamped    bool     // whether a timestamp was set in this record
	seen       []uint32 // by column: turn in which it was last set
	turn       uint32   // number of this record; never 0
	guess      int      // index of the column expected next
	bad        table.Reason

	scan    scanner
	keys    keySet
	tags    tagged
	cutter  Cutter
	changed changed
	path    []byte // with Flatten: name of the current object
}

// NewParser returns a parser. The names in o.Columns must be unique.
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

// Reset begins a split of less than 4 GiB, which holds complete lines or the text between two cuts of a Cutter.
func (p *Parser) Reset(data []byte) {
	p.data, p.next, p.records, p.lines = data, 0, 0, 0
	p.cutter = Cutter{Array: p.options.Layout == Array, open: p.cutter.open[:0]}
	clear(p.keys.slots) // its keys point into the previous split
	p.changed.others, p.changed.at = 0, LogPlace{}
}

// Continue is like Reset, for a split that is not the first of its text.
func (p *Parser) Continue(data []byte) {
	p.Reset(data)
	p.cutter.place = anywhere
}

// Records returns the number of records in the split so far.
func (p *Parser) Records() int { return p.records }

// Lines returns the number of lines in the split so far, including blank ones.
func (p *Parser) Lines() int { return p.lines }

// Stamped reports whether a field of the last record has a timestamp.
func (p *Parser) Stamped() bool { return p.stamped }

// Timestamps returns the timestamp of each field in milliseconds, or NoTimestamp. It is valid until the next record.
func (p *Parser) Timestamps() []int64 { return p.timestamps }

// Next returns the next record, which is a non-blank line if the layout is Lines. It is valid until the next call.
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

// nextText parses the next record. A change that gives no record sets changed.passes.
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

// nextValue parses the next value in a text cut by brackets. Between values, it relies on the Cutter's checks.
func (p *Parser) nextValue() (*record.Record, bool) {
	c := &p.cutter
	start, n := -1, p.next
	for ; n < len(p.data) && start < 0; n++ {
		b := p.data[n]
		if b == '\n' {
			p.lines++
		}
		if c.between(b, n) != nil {
			start = n // no text from a Cutter reaches this line
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
		end, _ = c.record(p.data, n) // the parser refuses a record that does not end
	}
	span := table.Span{Start: uint32(start), End: uint32(end), Line: uint32(p.lines)}
	p.lines += bytes.Count(p.data[start:end], newline)
	p.next = end
	p.scan.reset(p.data[start:end])
	return p.parse(span), true
}

var (
	newline = []byte{'\n'}
	mark    = []byte("\xef\xbb\xbf") // U+FEFF, present where files were joined
)

// parse parses a record, whose text is in scan.
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

// line parses a line, whose text is in scan. If it returns false, it has set bad.
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
	switch {
	case p.options.Wide || p.options.Archive > 0:
		ok = p.wide()
	case p.options.Wrapped:
		ok = p.item()
	case p.options.Tags == NoTags && p.isExport():
		ok = p.export()
	default:
		s.pos = start
		p.path = p.path[:0]
		ok = p.object(1)
	}
	if !ok || !p.ended() {
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

// ended refuses text after the record.
func (p *Parser) ended() bool {
	p.scan.space()
	return p.scan.pos == len(p.scan.data) || p.broken("want nothing after the object")
}

// column returns the index of the field with a name, or -1. Keys are mostly in the order of columns.
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

// broken refuses the record for a syntax error at the current position.
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

// failed refuses the record for the fault that scan has found.
func (p *Parser) failed(column []byte) bool {
	s := &p.scan
	if s.fault.utf8 {
		return p.refuse(string(column), table.CodeUTF8, fmt.Sprintf("%s at byte %d", s.fault.why, s.fault.pos+1), s.fault.pos)
	}
	s.pos = s.fault.pos
	return p.broken(s.fault.why)
}

// refuse sets bad and returns false. The value to show starts at from.
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
