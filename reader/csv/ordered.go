package csv

import (
	"bytes"
	"cmp"
)

// LastEnd returns the end of data's last complete record, or 0 if there is none. Data begins with a record.
func (d *Dialect) LastEnd(data []byte) int {
	g := general{d: d, end: d.End(), data: data}
	if d.plain() && d.Quote == 0 && d.Escape == 0 {
		return bytes.LastIndexByte(data, d.eol()) + 1
	}
	last := 0
	for g.pos < len(data) {
		if !g.skip() {
			return last
		}
		last = g.pos
	}
	return last
}

// general walks through a text of any dialect byte by byte.
type general struct {
	d    *Dialect
	end  string // record end
	data []byte
	pos  int
}

// skip moves past the next record or comment and reports whether it found its end.
func (g *general) skip() bool {
	if g.d.Comment != "" && bytes.HasPrefix(g.data[g.pos:], []byte(g.d.Comment)) {
		return g.line()
	}
	for {
		switch g.field(nil) {
		case endRecord:
			return true
		case endData:
			return false
		}
	}
}

func (g *general) line() bool {
	n := bytes.Index(g.data[g.pos:], []byte(g.end))
	if n < 0 {
		g.pos = len(g.data)
		return false
	}
	g.pos += n + len(g.end)
	return true
}

type fieldEnd uint8

const (
	endDelimiter fieldEnd = iota
	endRecord
	endData
)

// fieldText is a field that is being read; its text is appended to buf.
type fieldText struct {
	buf     []byte
	quoted  bool
	open    bool   // its quote never closes
	trailed bool   // there is text after its closing quote
	after   int    // bytes after the closing quote
	why     string // why an escape sequence in it is doubtful
	stop    int    // end of its raw text, as an offset in the data
}

// field reads a field and its end. If f is nil, the text is not kept.
func (g *general) field(f *fieldText) fieldEnd {
	begin := g.pos
	if g.blanks(); g.pos < len(g.data) && g.data[g.pos] != g.d.Quote {
		g.pos = begin
	}
	if g.d.Quote != 0 && g.pos < len(g.data) && g.data[g.pos] == g.d.Quote {
		g.pos++
		if f != nil {
			f.quoted = true
		}
		if !g.inQuotes(f) {
			if f != nil {
				f.open = true
			}
			return endData
		}
		g.blanks()
	}
	return g.plain(f)
}

// blanks moves past the blanks around a quote, which are part of the delimiter.
func (g *general) blanks() {
	for g.d.Trim && g.pos < len(g.data) && (g.data[g.pos] == ' ' || g.data[g.pos] == '\t') &&
		g.data[g.pos] != g.d.Delimiter[0] {
		g.pos++
	}
}

// inQuotes reads up to and including the closing quote.
func (g *general) inQuotes(f *fieldText) (closed bool) {
	for g.pos < len(g.data) {
		c := g.data[g.pos]
		switch {
		case g.escapes(c):
			g.pair(f)
			continue
		case c == g.d.Quote && g.pos+1 < len(g.data) && g.data[g.pos+1] == g.d.Quote:
			g.pos++
			f.add(c)
		case c == g.d.Quote:
			g.pos++
			return true
		default:
			f.add(c)
		}
		g.pos++
	}
	return false
}

// escapes reports whether the byte at pos begins an escape sequence. At the end it does not, nor before a record end.
func (g *general) escapes(c byte) bool {
	if g.d.Escape == 0 || c != g.d.Escape || g.pos+1 >= len(g.data) {
		return false
	}
	return g.d.Escapes.coverEnds() || !g.ends(g.pos+1)
}

// ends reports whether there is a record end at pos, including its CRs.
func (g *general) ends(pos int) bool {
	if g.d.dropsCR() {
		for pos < len(g.data) && g.data[pos] == '\r' {
			pos++
		}
	}
	return bytes.HasPrefix(g.data[pos:], []byte(g.end))
}

func (g *general) pair(f *fieldText) {
	if f == nil {
		g.pos += 2 // further digits of the sequence neither separate fields nor end records
		return
	}
	buf, n, why := g.d.pair(f.buf, g.data[g.pos:])
	f.buf = buf
	g.pos += n
	f.why = cmp.Or(f.why, why)
}

// plain reads up to and including a delimiter or record end.
func (g *general) plain(f *fieldText) fieldEnd {
	start := 0
	if f != nil {
		start = len(f.buf)
	}
	crs := 0 // unescaped CRs at the end of the text so far
	for g.pos < len(g.data) {
		c := g.data[g.pos]
		switch {
		case c == g.end[0] && bytes.HasPrefix(g.data[g.pos:], []byte(g.end)):
			f.finish(g, start, crs)
			g.pos += len(g.end)
			return endRecord
		case c == g.d.Delimiter[0] && bytes.HasPrefix(g.data[g.pos:], []byte(g.d.Delimiter)):
			f.finish(g, start, 0)
			g.pos += len(g.d.Delimiter)
			return endDelimiter
		case g.escapes(c):
			g.pair(f)
			crs = 0
			continue
		default:
			f.add(c)
			if f != nil && g.d.Escape != 0 && c == g.d.Escape && g.d.Escapes.coverEnds() {
				f.why = "the text ends in the middle of an escape sequence: it is cut short"
			}
		}
		crs++
		if c != '\r' {
			crs = 0
		}
		g.pos++
	}
	f.finish(g, start, crs)
	return endData
}

func (f *fieldText) add(c byte) {
	if f != nil {
		f.buf = append(f.buf, c)
	}
}

// finish ends a field's text at pos, without the CRs that are part of the record end.
func (f *fieldText) finish(g *general, start, crs int) {
	if f == nil {
		return
	}
	if !g.d.dropsCR() {
		crs = 0
	}
	f.buf = f.buf[:len(f.buf)-crs]
	f.stop = g.pos - crs
	f.after = len(f.buf) - start
	f.trailed = f.quoted && f.after > 0
}
