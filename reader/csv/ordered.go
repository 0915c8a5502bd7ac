package csv

import (
	"bytes"
	"cmp"
)

// LastEnd returns the end of the last complete record in data, or 0 if there is none. data must begin with a record.
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

// general reads text in any dialect byte by byte.
type general struct {
	d    *Dialect
	end  string // record end
	data []byte
	pos  int
}

// skip moves past the next record or comment. It reports whether that ends in data.
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

// fieldText is a field being read. Its text is appended to buf.
type fieldText struct {
	buf     []byte
	quoted  bool
	open    bool   // its closing quote is missing
	trailed bool   // text follows its closing quote
	after   int    // number of bytes after the closing quote
	why     string // why an escape sequence in it is doubtful; empty if none is
	stop    int    // offset of the end of its raw text in data
}

// field reads a field and the delimiter or record end after it. If f is nil, it discards the text.
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

// blanks moves past blanks next to a quote, which belong to the delimiter.
func (g *general) blanks() {
	for g.d.Trim && g.pos < len(g.data) && (g.data[g.pos] == ' ' || g.data[g.pos] == '\t') &&
		g.data[g.pos] != g.d.Delimiter[0] {
		g.pos++
	}
}

// inQuotes reads up to the closing quote, inclusive.
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

// escapes reports whether c, at pos, begins an escape sequence; not at the end of data or, in Hive, of a record.
func (g *general) escapes(c byte) bool {
	if g.d.Escape == 0 || c != g.d.Escape || g.pos+1 >= len(g.data) {
		return false
	}
	return g.d.Escapes.coverEnds() || !g.ends(g.pos+1)
}

// ends reports whether a record end, including its CRs, is at pos.
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
		g.pos += 2 // more digits of the sequence could neither separate fields nor end records
		return
	}
	buf, n, why := g.d.pair(f.buf, g.data[g.pos:])
	f.buf = buf
	g.pos += n
	f.why = cmp.Or(f.why, why)
}

// plain reads unquoted text up to a delimiter or record end, inclusive.
func (g *general) plain(f *fieldText) fieldEnd {
	start := 0
	if f != nil {
		start = len(f.buf)
	}
	crs := 0 // number of unescaped CRs at the end of the text so far
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

// finish sets the end of a field's text to pos, without the CRs that belong to the record end.
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
