package csv

import "bytes"

// LastEnd returns where the last whole record of data ends, 0 when none does. Data begins at a record. It is for
// dialects that are not Parallel.
func (d *Dialect) LastEnd(data []byte) int {
	g := general{d: d, data: data}
	last := 0
	for g.pos < len(data) {
		if !g.skip() {
			return last
		}
		last = g.pos
	}
	return last
}

// general walks a text of any dialect byte by byte.
type general struct {
	d    *Dialect
	data []byte
	pos  int
}

// skip moves behind the next record or comment and reports whether its end was seen.
func (g *general) skip() bool {
	if g.comment() {
		return g.line()
	}
	for {
		_, end := g.field(nil)
		switch end {
		case endRecord:
			return true
		case endData:
			return false
		}
	}
}

func (g *general) comment() bool {
	return g.d.Comment != "" && bytes.HasPrefix(g.data[g.pos:], []byte(g.d.Comment))
}

// line moves behind the next line end.
func (g *general) line() bool {
	n := bytes.IndexByte(g.data[g.pos:], g.d.eol())
	if n < 0 {
		g.pos = len(g.data)
		return false
	}
	g.pos += n + 1
	return true
}

// What ended a field.
type fieldEnd uint8

const (
	endDelimiter fieldEnd = iota
	endRecord
	endData
)

// fieldText is a field while it is read: its text is appended to buf.
type fieldText struct {
	buf     []byte
	quoted  bool
	open    bool // its quote never closes
	trailed bool // text stands behind its closing quote
	escaped bool // an escape stood in it
}

// field reads a field and what ends it. With f nil its text is not kept.
func (g *general) field(f *fieldText) (*fieldText, fieldEnd) {
	if g.d.Quote != 0 && g.pos < len(g.data) && g.data[g.pos] == g.d.Quote {
		g.pos++
		if f != nil {
			f.quoted = true
		}
		if !g.inQuotes(f) {
			if f != nil {
				f.open = true
			}
			return f, endData
		}
	}
	return f, g.plain(f)
}

// inQuotes reads up to and over the closing quote.
func (g *general) inQuotes(f *fieldText) (closed bool) {
	for g.pos < len(g.data) {
		c := g.data[g.pos]
		switch {
		case g.d.Escape != 0 && c == g.d.Escape && g.pos+1 < len(g.data):
			g.pos++
			f.add(g.data[g.pos])
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

// plain reads up to and over a delimiter or record end.
func (g *general) plain(f *fieldText) fieldEnd {
	start := 0
	if f != nil {
		start = len(f.buf)
	}
	for g.pos < len(g.data) {
		c := g.data[g.pos]
		switch {
		case c == g.d.eol():
			g.pos++
			f.trimCR(g.d, start)
			f.note(start)
			return endRecord
		case c == g.d.Delimiter[0] && bytes.HasPrefix(g.data[g.pos:], []byte(g.d.Delimiter)):
			g.pos += len(g.d.Delimiter)
			f.note(start)
			return endDelimiter
		case g.d.Escape != 0 && c == g.d.Escape && g.pos+1 < len(g.data):
			if f != nil {
				f.escaped = true
			}
			g.pos++
			f.add(g.data[g.pos])
		default:
			f.add(c)
		}
		g.pos++
	}
	f.trimCR(g.d, start)
	f.note(start)
	return endData
}

func (f *fieldText) add(c byte) {
	if f != nil {
		f.buf = append(f.buf, c)
	}
}

// trimCR takes the CR of a CR LF off.
func (f *fieldText) trimCR(d *Dialect, start int) {
	if f != nil && d.eol() == '\n' && len(f.buf) > start && f.buf[len(f.buf)-1] == '\r' {
		f.buf = f.buf[:len(f.buf)-1]
	}
}

func (f *fieldText) note(start int) {
	if f != nil && f.quoted && len(f.buf) > start {
		f.trailed = true
	}
}
