package jsonl

import (
	"bytes"
	"errors"
	"fmt"
)

// Layout is the arrangement of records in a JSON text.
type Layout uint8

const (
	Lines   Layout = iota // one object per line; a broken object ends with its line
	Objects               // a sequence of objects, each of which may span lines
	Array                 // the elements of an array or of consecutive arrays
)

func (l Layout) String() string { return [...]string{"one object a line", "objects", "an array"}[l] }

// Guess returns the layout of a text by its head; whole means that head is all of it. In doubt, Guess prefers Lines,
// because a broken line does not hide the lines after it.
func Guess(head []byte, whole bool) Layout {
	text := bytes.TrimLeft(head, " \t\r\n")
	if len(text) > 0 && text[0] == '[' {
		return Array
	}
	lines := head
	if !whole {
		lines = head[:bytes.LastIndexByte(head, '\n')+1] // without the incomplete last line
	}
	good, bad, _ := count(lines, Options{})
	if bad == 0 && good > 0 {
		return Lines
	}
	cut := Cutter{}
	n, err := cut.Cut(head)
	if n = max(n, 0); whole && err == nil {
		n = len(head)
	}
	region := head[:n]
	if err == nil {
		region = lines
	}
	if spansLines(region) {
		return Objects
	}
	objects, broken, first := count(head[:n], Options{Layout: Objects})
	if err != nil || !first {
		return Lines
	}
	if objects > good || objects == good && objects > 0 && broken == 0 {
		return Objects
	}
	return Lines
}

// spansLines reports whether a text, cut at its brackets, contains an object, or the start of one, that spans lines.
// Nested objects and broken lines do not count. A broken object counts if its first line is only a bracket.
func spansLines(text []byte) bool {
	p := NewParser(Options{Layout: Objects})
	p.Reset(text)
	for r, ok := p.Next(); ok; r, ok = p.Next() {
		line, _, more := bytes.Cut(bytes.TrimSpace(text[r.Span.Start:r.Span.End]), newline)
		switch _, cut := p.cutter.End(); {
		case !more:
		case r.Bad == nil, cut != nil && p.scan.pos >= len(p.scan.data), cut == nil && string(bytes.TrimSpace(line)) == "{":
			return true
		}
	}
	return false
}

// First returns the first readable object, or nil. only means that it is the only record.
func First(data []byte, l Layout) (object []byte, only bool) {
	p := NewParser(Options{Layout: l})
	p.Reset(data)
	for r, ok := p.Next(); ok && object == nil; r, ok = p.Next() {
		if r.Bad == nil {
			object = data[r.Span.Start:r.Span.End]
		}
	}
	return object, p.Records() == 1
}

// count returns the numbers of good and bad records, and whether the first one is good.
func count(data []byte, o Options) (good, bad int, first bool) {
	p := NewParser(o)
	p.Reset(data)
	for r, ok := p.Next(); ok; r, ok = p.Next() {
		if r.Bad != nil {
			bad++
			continue
		}
		first = first || bad == 0
		good++
	}
	return good, bad, first
}

// Cutter finds record ends by brackets and strings, for layouts other than Lines. Validation is left to the parser.
type Cutter struct {
	Array bool // whether the text consists of arrays, not objects
	Begun bool // whether reading starts between two records

	open    []byte // closing brackets that complete the record, innermost last
	text    bool
	escaped bool
	word    bool // whether it is inside a number, true, false, null or an invalid word
	marked  int  // number of bytes read of a byte order mark, which may begin each array of joined files
	place   place
}

// place is a state between two records.
type place uint8

const (
	atStart    place = iota // at the start of the text: an array must open or, without arrays, a record begin
	wantRecord              // after a comma
	mayRecord               // after an opening bracket: a record must begin or the array close
	wantComma               // after a record in an array: a comma must follow or the array close
	anywhere                // unknown, because reading began later in the text: any state except atStart
)

// SyntaxError is a fault between records.
type SyntaxError struct {
	Pos  int // offset in the data passed to Cut
	Want string
	Got  byte
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("want %s, found %s", e.Want, printable(e.Got))
}

// Cut processes the next data. It returns the end of the last record that ends there, or -1 if none does.
func (c *Cutter) Cut(data []byte) (end int, err error) {
	end = -1
	if c.Begun && c.Array {
		c.place = anywhere
	}
	c.Begun = false
	for i := 0; i < len(data); {
		if !c.inside() {
			if err := c.between(data[i], i); err != nil {
				return end, err
			}
			i++
			continue
		}
		n, err := c.record(data, i)
		if err == nil {
			end = n
		} else if err != errCut {
			return end, err
		}
		i = n
	}
	return end, nil
}

func (c *Cutter) inside() bool { return len(c.open) > 0 || c.text || c.word }

// record returns the end of the record that begins before from.
func (c *Cutter) record(data []byte, from int) (end int, err error) {
	for i := from; i < len(data); {
		b := data[i]
		switch {
		case c.escaped:
			c.escaped = false
		case c.text:
			if i += c.inText(data[i:]); !c.text && len(c.open) == 0 {
				return i, nil
			}
			continue
		case c.word:
			if delimits(b) {
				c.word = false
				return i, nil
			}
		default:
			if !c.inRecord(b) || len(c.open) > maxOpen {
				return i, &SyntaxError{i, fmt.Sprintf("%q", c.open[len(c.open)-1]), b}
			}
			if len(c.open) == 0 && !c.text {
				return i + 1, nil
			}
		}
		i++
	}
	return len(data), errCut
}

var errCut = errors.New("the last record has no end; look for a bracket or a quote that never closes")

// maxOpen is the number of open brackets that a cutter stores. Real records do not nest so deeply.
const maxOpen = 1 << 20

// inText returns the position after the closing quote or before the next backslash of a string, or the end of data.
func (c *Cutter) inText(data []byte) int {
	for i, b := range data {
		switch b {
		case '"':
			c.text = false
			return i + 1
		case '\\':
			c.escaped = true
			return i + 1
		}
	}
	return len(data)
}

// inRecord processes a byte of a record, outside strings. It returns false for a wrong closing bracket.
func (c *Cutter) inRecord(b byte) bool {
	switch b {
	case '"':
		c.text = true
	case '{', '[':
		c.open = append(c.open, b+2)
	case '}', ']':
		last := len(c.open) - 1
		if c.open[last] != b {
			return false
		}
		c.open = c.open[:last]
	}
	return true
}

// between processes a byte between records.
func (c *Cutter) between(b byte, pos int) error {
	switch {
	case c.marked == 0 && (b == ' ' || b == '\t' || b == '\r' || b == '\n'):
		return nil
	case !c.Array && b != ',' && b != ']' && b != '}':
		c.begin(b)
		return nil
	case !c.Array:
		return &SyntaxError{pos, "an object", b}
	case c.place == atStart && b == mark[c.marked]:
		c.marked = (c.marked + 1) % len(mark)
		return nil
	case c.marked > 0:
		return &SyntaxError{pos, "the rest of a byte order mark", b}
	}
	switch {
	case c.place == atStart && b == '[':
		c.place = mayRecord
	case c.place == atStart:
		return &SyntaxError{pos, "the '[' of an array", b}
	case b == ']' && c.place != wantRecord:
		c.place = atStart
	case (c.place == wantComma || c.place == anywhere) && b == ',':
		c.place = wantRecord
	case c.place == wantComma:
		return &SyntaxError{pos, "',' or ']'", b}
	case b == ',' || b == ']' || b == '}':
		return &SyntaxError{pos, "an object", b}
	default:
		c.begin(b)
		c.place = wantComma
	}
	return nil
}

// begin starts a record, which need not be an object.
func (c *Cutter) begin(b byte) {
	c.word = b != '{' && b != '[' && b != '"'
	c.inRecord(b)
}

// End returns an error if the text so far is incomplete. record reports whether the end of the text also ends a record.
func (c *Cutter) End() (record bool, err error) {
	if len(c.open) > 0 || c.text {
		return false, errCut
	}
	if c.Array && (c.place != atStart || c.marked > 0) {
		return false, errors.New("the array has no end; the text may be truncated")
	}
	return c.word, nil
}

func delimits(b byte) bool {
	switch b {
	case ' ', '\t', '\r', '\n', ',', '[', ']', '{', '}', '"':
		return true
	}
	return false
}
