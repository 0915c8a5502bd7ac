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

// CodeUnknown is the code of a record with a member that is not a column, if Strict.
const CodeUnknown = "UnknownColumn"

// MaxDepth limits the nesting of objects and arrays, including the record itself.
const MaxDepth = 200

// NoTimestamp is in Timestamps for a field without a timestamp.
const NoTimestamp = -1

type Options struct {
	Columns []string // the fields of a record, in this order; other keys are read and dropped
	Keys    []string // names of values under PK in lines of the vendor's tool without any; pk1, pk2 … else

	Strict  bool // a member that is not a column refuses its record instead of being dropped
	Missing bool // a column that a record lacks is absent, not null
	Flatten bool // objects become columns a.b.c; arrays stay JSON
	Wide    bool // records are rows that describe themselves: they have Cells, and Columns are names under PK or of cells

	Archive int // key columns of a table whose whole rows are records, as in Wide; 0 for others

	Changes Changes // records are changes of rows that describe themselves, as Wide

	Layout Layout // of the text

	Tags    Tags // values are objects that say their types
	Untyped bool // as the sample shows: a record with a type tag is refused
	Wrapped bool // of DynamoDB: items stand in {"Item":…}
}

// Parser parses splits. It is for one goroutine. Its many fields are reused memory: it does not allocate.
type Parser struct {
	unknown []byte // name of a member that is not a column, Strict
	strange bool   // its name may be empty
	options Options
	index   map[string]int // column by name
	columns *Columns       // Discover: takes the names

	data    []byte
	next    int // start of the next line
	records int
	lines   int

	lacking    record.Kind // of a column that a record lacks
	record     record.Record
	timestamps []int64
	stamped    bool     // a time stamp was set in this record
	seen       []uint32 // by column: turn of the last setting
	turn       uint32   // of this record, never 0
	guess      int      // the column expected next
	bad        table.Reason

	scan    scanner
	keys    keySet
	tags    tagged
	cutter  Cutter
	changed changed
	path    []byte // Flatten: the name so far
}

// NewParser makes a parser. Columns must differ.
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
	clear(p.keys.slots) // views into the split before
	p.changed.others, p.changed.at = 0, LogPlace{}
}

// Continue begins a split that is not the text's first.
func (p *Parser) Continue(data []byte) {
	p.Reset(data)
	p.cutter.place = anywhere
}

// Records is the number of records of this split so far.
func (p *Parser) Records() int { return p.records }

// Lines is the number of lines of this split so far, including blank ones.
func (p *Parser) Lines() int { return p.lines }

// Stamped reports whether the record has a valid timestamp.
func (p *Parser) Stamped() bool { return p.stamped }

// Timestamps returns the timestamps of the record's fields in milliseconds, or NoTimestamp, until the next record.
func (p *Parser) Timestamps() []int64 { return p.timestamps }

// Next parses the next record (in lines, the next non-blank one). It is valid until the next call.
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

// nextText parses the next text of a record. Some changes make none.
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

// nextValue parses the next value of a text whose records are cut by brackets. A Cutter judges the rest.
func (p *Parser) nextValue() (*record.Record, bool) {
	c := &p.cutter
	start, n := -1, p.next
	for ; n < len(p.data) && start < 0; n++ {
		b := p.data[n]
		if b == '\n' {
			p.lines++
		}
		if c.between(b, n) != nil {
			start = n // nothing that a Cutter lets pass
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
		end, _ = c.record(p.data, n) // without an end it is broken
	}
	span := table.Span{Start: uint32(start), End: uint32(end), Line: uint32(p.lines)}
	p.lines += bytes.Count(p.data[start:end], newline)
	p.next = end
	p.scan.reset(p.data[start:end])
	return p.parse(span), true
}

var (
	newline = []byte{'\n'}
	mark    = []byte("\xef\xbb\xbf") // U+FEFF, at joints of files
)

// parse parses a record's text, in scan.
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

// line parses the line in scan. It returns false if bad is set.
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
			"no line of the sample has this member: name it with --columns to load it, or with --exclude not to", 0)
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

// column returns the field for a name, -1 for none. Keys mostly come in column order.
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

// broken refuses the record for its syntax at scan's place.
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

// failed refuses the record for scan's fault.
func (p *Parser) failed(column []byte) bool {
	s := &p.scan
	if s.fault.utf8 {
		return p.refuse(string(column), table.CodeUTF8, fmt.Sprintf("%s at byte %d of the line", s.fault.why, s.fault.pos+1),
			s.fault.pos)
	}
	s.pos = s.fault.pos
	return p.broken(s.fault.why)
}

// refuse sets bad; the value shown begins at from.
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
