package csv

import (
	"cmp"
	"math"
	"math/bits"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// windowBlocks is the number of 64-byte blocks that are marked together.
const windowBlocks = 64

// window is a part of a split's text. Bytes that end a field or a record, or need another parser, are marked.
type window struct {
	used     bool                 // whether lines without quotes and escapes are read with marks
	wanted   [4]byte              // byte values to mark
	from, to int                  // offsets in the text; from is a multiple of 64
	marks    [windowBlocks]uint64 // one bit per byte, set for wanted bytes
	highs    [windowBlocks]uint64 // one bit per byte, set for bytes above 127
	high     bool                 // whether some byte is above 127
}

// mark moves the window to the block at offset at.
func (w *window) mark(text []byte, at int) {
	w.from = at &^ 63
	text = text[w.from:min(len(text), w.from+64*windowBlocks)]
	w.to = w.from + len(text)
	n := len(text) / 64
	any := uint64(0)
	if n > 0 {
		any = markBlocks(&w.marks[0], &w.highs[0], &text[0], n, &w.wanted)
	}
	if rest := text[n*64:]; len(rest) > 0 {
		var last [64]byte
		copy(last[:], rest)
		any |= markBlocks(&w.marks[n], &w.highs[n], &last[0], 1, &w.wanted)
		w.marks[n] &= 1<<len(rest) - 1 // clear marks of the padding
	}
	w.high = any != 0
}

func (w *window) ascii(from, to int) bool {
	if !w.high || from >= to {
		return true
	}
	from, to = from-w.from, to-w.from
	for block := from / 64; 64*block < to; block++ {
		found := w.highs[block]
		if 64*block < from {
			found &= math.MaxUint64 << (from % 64)
		}
		if to < 64*block+64 {
			found &= 1<<(to%64) - 1
		}
		if found != 0 {
			return false
		}
	}
	return true
}

// findMarks decides whether to use marks, and for which bytes.
func (p *Parser) findMarks() {
	end := p.end[0]
	p.window.wanted = [4]byte{p.d.Delimiter[0], end, cmp.Or(p.d.Quote, end), cmp.Or(p.d.Escape, end)}
	p.window.used = p.plain && p.lineEnd && p.d.EndMark == "" && marked
}

type lineKind uint8

const (
	otherLine lineKind = iota // a line with quotes or escapes, for another parser
	emptyLine
	recordLine // a record that has been read
)

// markedLine reads the line at pos by its marks. It moves pos past the line, unless it is an otherLine.
func (p *Parser) markedLine() lineKind {
	data, w, start := p.data, &p.window, p.pos
	if start < w.from || start >= w.to {
		w.mark(data, start)
	}
	block, ascii := (start-w.from)/64, true
	found := w.marks[block] & (math.MaxUint64 << (start % 64))
	fields, from := p.rec.Fields[:0], start
	for {
		for found == 0 {
			if block++; w.from+64*block < w.to {
				found = w.marks[block]
				continue
			}
			ascii = ascii && w.ascii(max(start, w.from), w.to)
			if w.to == len(data) {
				return p.lastField(fields, from, len(data), len(data), ascii)
			}
			w.mark(data, w.to)
			block, found = 0, w.marks[0]
		}
		mark := w.from + 64*block + bits.TrailingZeros64(found)
		found &= found - 1
		switch data[mark] {
		case p.d.Delimiter[0]:
			fields = p.appendField(fields, data[from:mark], false)
			from = mark + 1
		case p.end[0]:
			return p.lastField(fields, from, mark, mark+1, ascii && w.ascii(max(start, w.from), mark))
		default:
			return otherLine
		}
	}
}

// lastField ends the record at pos with its last field, unless the line is empty.
func (p *Parser) lastField(fields []record.Datum, from, to, next int, ascii bool) lineKind {
	start, line := p.pos, p.passed.lines
	text := p.withoutCR(p.data[from:to])
	p.pos, p.passed.lines = next, line+1
	if from == start && len(text) == 0 && !p.d.Blank {
		return emptyLine
	}
	p.rec.Fields, p.rec.Bad, p.rec.ASCII = p.appendField(fields, text, false), nil, ascii && !p.raw
	p.rec.Span = table.Span{Start: uint32(start), Record: p.passed.records, Line: line, End: uint32(next)}
	if p.raw {
		p.scratch = p.scratch[:0]
		p.settleAll()
	}
	p.passed.records++
	return recordLine
}
