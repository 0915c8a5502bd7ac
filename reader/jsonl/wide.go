package jsonl

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// A row that describes itself is a line much like that of the vendor's tool, but that every value says its name and type, and that
// one column may have several versions:
//
//	{"Wide":true,"PK":{"Values":[{"C":"id","V":7,"IsInt":true}]},"Attr":{"Values":[{"C":"n","V":1.5,"TS":1626860469000},{"C":"n","V":"x"}]}}
//
// PK has what the record's Fields are, Attr what its Cells are. A string, true, false and null stand for themselves. A number is a
// double or, with IsInt, an integer. T names any other type, by the names below; V then is
//
//	binary, decimal                bytes in base64; of a decimal beside Scale, its digits after the point
//	double                         a number, or the 64 bits of a NaN or an infinity, in hexadecimal
//	unsigned, integer, boolean     an integer, true or false
//	date, time, timestamp          an integer, of which Unit make a second; Local says that no zone is known
//	text, number, json, string     text; with Base64 in base64, as what is not UTF-8 must be
//
// A name that is not UTF-8 stands in base64 as C64.
var kindNames = [...]string{
	record.Text: "text", record.Number: "number", record.Integer: "integer", record.Boolean: "boolean", record.Unsigned: "unsigned", record.Double: "double", record.String: "string", record.Binary: "binary", record.JSON: "json",
	record.Decimal: "decimal", record.Date: "date", record.TimeOfDay: "time", record.Timestamp: "timestamp", record.Absent: "",
}

// kindNamed returns the kind of a name that T may have.
func kindNamed(name []byte) (record.Kind, bool) {
	for k, n := range kindNames {
		if n != "" && n == string(name) {
			return record.Kind(k), true
		}
	}
	return 0, false
}

const (
	wantWide    = `want {"Wide":true,"PK":{"Values":[…]},"Attr":{"Values":[…]}}`
	wantArchive = `want {"Wide":true,"PK":{"Values":[…]},"Attr":{"Values":[…]}} with a value for each key column`
)

// IsWide reports whether the first object of a text has the shape of a row that describes itself, as far as its first value.
func IsWide(text []byte) bool {
	for _, token := range []string{"{", `"Wide"`, ":", "true", ",", `"PK"`, ":", "{", `"Values"`, ":", "["} {
		var ok bool
		if text, ok = bytes.CutPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte(token)); !ok {
			return false
		}
	}
	return true
}

// wide parses a row that describes itself, from its brace on.
func (p *Parser) wide() bool {
	s := &p.scan
	p.record.Cells = p.record.Cells[:0]
	wide, want := IsWide(s.data[s.pos:]), wantWide
	if p.options.Archive != nil {
		want = wantArchive
	} else if !wide {
		return p.broken(want)
	}
	start := s.pos
	if _, ok := p.skip(nil, 1); !ok {
		return false
	}
	end := s.pos
	p.keys.reset()
	// From here on the text is known to be an object of JSON in which no key occurs twice.
	s.pos = start
	if wide {
		s.pos += bytes.IndexByte(s.data[start:], ',')
	}
	values := 0 // under PK
	for s.pos == start || s.token() == ',' {
		s.pos++
		key, named := p.key()
		pk := string(key) == "PK"
		if !named || !pk && string(key) != "Attr" || !p.openValues() {
			return p.broken(want)
		}
		s.pos++
		for s.token() != ']' {
			switch {
			case s.token() == '{':
				if !p.wideCell(pk) {
					return false
				}
			case wide || !pk:
				return p.broken(want)
			case !p.archivedKey(values):
				return false
			}
			if pk {
				values++
			}
			if s.token() == ',' {
				s.pos++
			}
		}
		s.pos++
		if s.token() != '}' {
			return p.broken(want)
		}
		s.pos++
	}
	if p.options.Archive != nil && values != len(p.options.Archive) {
		return p.broken(want)
	}
	s.pos = end
	p.fillFields()
	return true
}

// wideMembers is what {"C":…,"V":…} says.
type wideMembers struct {
	name                 []byte
	value, kind          record.Datum // as they stand there; Null if they do not
	named, valued, isInt bool
	base64, local        bool
	quoted               bool
	at, unit, scale      int64
}

// wideCell reads a value and puts it into its field or among the cells.
func (p *Parser) wideCell(pk bool) bool {
	s := &p.scan
	from := s.pos
	m := wideMembers{at: -1}
	if !p.scalars(func(key []byte, d record.Datum) bool {
		return m.set(s, key, d) ||
			p.refuse(string(m.name), CodeJSON, fmt.Sprintf("member %q of a value is not known or not of its type", key), s.pos)
	}) {
		return false
	}
	if !m.named || !m.valued {
		return p.refuse(string(m.name), CodeJSON, fmt.Sprintf("want C and V in a value before byte %d", s.pos+1), from)
	}
	d, ok := m.datum(s)
	if !ok {
		return p.refuse(string(m.name), table.CodeType, "V is not what T says", from)
	}
	if !pk {
		p.record.Cells = append(p.record.Cells, record.Cell{Name: m.name, Datum: d, At: m.at})
		return true
	}
	_, ok = p.setField(m.name, d)
	return ok
}

// setField puts a value of an exported row into the field i of its name, -1 is none; false says that bad is set.
func (p *Parser) setField(name []byte, d record.Datum) (i int, ok bool) {
	i = p.column(name)
	if i >= 0 && p.seen[i] == p.turn || i < 0 && !p.keys.add(0, name) {
		return i, p.twice(name)
	}
	if p.columns != nil {
		p.columns.note(name, d)
	}
	if i >= 0 {
		p.seen[i], p.record.Fields[i] = p.turn, d
	} else if p.options.Strict {
		p.notColumn(name)
	}
	return i, true
}

// notColumn notes the first member that is not a column.
func (p *Parser) notColumn(name []byte) {
	if !p.strange {
		p.unknown, p.strange = append(p.unknown, name...), true
	}
}

// set takes a member.
func (m *wideMembers) set(s *scanner, key []byte, d record.Datum) bool {
	number := func(to *int64) (err error) {
		*to, err = strconv.ParseInt(string(d.Bytes), 10, 64)
		return err
	}
	switch name := string(key); {
	case name == "C" && d.Kind == record.String && !m.named:
		m.name, m.named = d.Bytes, true
	case name == "C64" && d.Kind == record.String && !m.named:
		m.name, m.named = unbase64(s, d.Bytes)
		return m.named
	case name == "V":
		m.value, m.valued = d, true
	case name == "T" && d.Kind == record.String:
		m.kind = d
	case name == "IsInt" && d.Kind == record.Boolean:
		m.isInt = d.Int != 0
	case name == "Base64" && d.Kind == record.Boolean:
		m.base64 = d.Int != 0
	case name == "Local" && d.Kind == record.Boolean:
		m.local = d.Int != 0
	case name == "Quoted" && d.Kind == record.Boolean:
		m.quoted = d.Int != 0
	case name == "TS" && d.Kind == record.Number:
		return number(&m.at) == nil && m.at >= 0
	case name == "Unit" && d.Kind == record.Number:
		return number(&m.unit) == nil
	case name == "Scale" && d.Kind == record.Number:
		return number(&m.scale) == nil && int64(int32(m.scale)) == m.scale
	default:
		return false
	}
	return true
}

// unbase64 decodes into the scanner's memory.
func unbase64(s *scanner, text []byte) ([]byte, bool) {
	at := len(s.scratch)
	var err error
	if s.scratch, err = base64.StdEncoding.AppendDecode(s.scratch, text); err != nil {
		return nil, false
	}
	return s.scratch[at:len(s.scratch):len(s.scratch)], true
}

// datum is the value that the members say.
func (m *wideMembers) datum(s *scanner) (d record.Datum, ok bool) {
	v := m.value
	kind, typed := kindNamed(m.kind.Bytes)
	if m.kind.Kind == record.Null {
		switch {
		case v.Kind == record.Number && m.isInt:
			n, err := strconv.ParseInt(string(v.Bytes), 10, 64)
			return record.Datum{Kind: record.Integer, Int: n}, err == nil
		case v.Kind == record.Number:
			f, err := strconv.ParseFloat(string(v.Bytes), 64)
			return record.Datum{Kind: record.Double, Double: f}, err == nil && table.KeepsDouble(v.Bytes, f)
		}
		return v, !m.isInt
	}
	if !typed || m.isInt {
		return d, false
	}
	d = record.Datum{Kind: kind, Quoted: m.quoted, Local: m.local, Scale: int32(m.scale), Unit: record.Unit(m.unit)}
	switch kind {
	case record.Unsigned:
		n, err := strconv.ParseUint(string(v.Bytes), 10, 64)
		d.Int = int64(n)
		return d, err == nil && v.Kind == record.Number
	case record.Date, record.TimeOfDay, record.Timestamp, record.Integer:
		n, err := strconv.ParseInt(string(v.Bytes), 10, 64)
		d.Int = n
		return d, err == nil && v.Kind == record.Number
	case record.Boolean:
		d.Int = v.Int
		return d, v.Kind == record.Boolean
	case record.Double:
		if v.Kind == record.Number {
			f, err := strconv.ParseFloat(string(v.Bytes), 64)
			d.Double = f
			return d, err == nil && table.KeepsDouble(v.Bytes, f)
		}
		bits, err := strconv.ParseUint(string(v.Bytes), 16, 64)
		d.Double = math.Float64frombits(bits)
		return d, err == nil && v.Kind == record.String
	}
	d.Bytes = v.Bytes
	if ok = v.Kind == record.String; ok && (m.base64 || kind == record.Binary || kind == record.Decimal) {
		d.Bytes, ok = unbase64(s, v.Bytes)
	}
	return d, ok
}

// fillFields gives the fields that PK did not have the newest cell of their name: one without a timestamp is the newest.
func (p *Parser) fillFields() {
	missing := false
	for i := range p.record.Fields {
		if p.seen[i] != p.turn {
			p.record.Fields[i] = record.Datum{Kind: record.Absent}
			missing = true
		}
	}
	if !missing {
		return
	}
	for i := range p.record.Cells {
		c := &p.record.Cells[i]
		field, ok := p.index[string(c.Name)]
		if !ok || p.seen[field] == p.turn {
			continue
		}
		if f := &p.record.Fields[field]; f.Kind == record.Absent || c.At < 0 || p.timestamps[field] >= 0 && c.At > p.timestamps[field] {
			*f, p.timestamps[field] = c.Datum, c.At
		}
	}
	for i := range p.record.Fields {
		p.seen[i], p.timestamps[i] = p.turn, NoTimestamp
	}
}
