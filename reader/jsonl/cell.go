package jsonl

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// cell is a value {"C":…,"V":…} in a self-describing row or in an export of Tablestore's command-line tool.
type cell struct {
	vendors              bool // written by Tablestore's tool: few members, names in any case; TS may be null or 0
	name                 []byte
	value, kind          record.Datum // Null if absent
	named, valued, isInt bool
	base64, local        bool
	quoted               bool
	at, unit, scale      int64
}

// vendorsMembers are the members that Tablestore's tool writes; vendorsKinds are the kinds that it writes in T.
var (
	vendorsMembers = []string{"C", "V", "T", "IsInt", "TS"}
	vendorsKinds   = map[record.Kind]bool{record.Integer: true, record.Double: true, record.Binary: true,
		record.String: true, record.Boolean: true}
)

// cell reads an object with a value, under PK or Attr. It refuses unknown members. If ok is false, p.bad is set.
func (p *Parser) cell(c *cell, pk bool) (d record.Datum, ok bool) {
	s := &p.scan
	from := s.pos
	c.at = NoTimestamp
	if !p.scalars(func(key []byte, d record.Datum) bool { return p.cellMember(c, key, d) }) {
		return d, false
	}
	if !c.named || !c.valued {
		return d, p.refuse(string(c.name), CodeJSON, fmt.Sprintf("want C and V in a value before byte %d", s.pos+1), from)
	}
	d, why := c.datum(pk, s)
	if why == "" {
		return d, true
	}
	code := table.CodeType
	if why == outOfRange || why == tooPrecise {
		code = table.CodeRange
	}
	return d, p.refuse(string(c.name), code, fmt.Sprintf("%s: %s", table.Show(c.value.Bytes), why), from)
}

func (p *Parser) cellMember(c *cell, key []byte, d record.Datum) bool {
	s, name := &p.scan, string(key)
	if c.vendors {
		name = ""
		for _, m := range vendorsMembers {
			if bytes.EqualFold(key, []byte(m)) {
				name = m
			}
		}
	}
	var err error
	switch {
	case name == "C" && d.Kind == record.String && !c.named:
		c.name, c.named = d.Bytes, true
	case name == "C64" && d.Kind == record.String && !c.named:
		c.name, c.named = unbase64(s, d.Bytes)
	case name == "V" && !c.valued:
		c.value, c.valued = d, true
	case name == "T" && d.Kind == record.String:
		c.kind = d
	case name == "IsInt" && d.Kind == record.Boolean:
		c.isInt = d.Int != 0
	case name == "Base64" && d.Kind == record.Boolean:
		c.base64 = d.Int != 0
	case name == "Local" && d.Kind == record.Boolean:
		c.local = d.Int != 0
	case name == "Quoted" && d.Kind == record.Boolean:
		c.quoted = d.Int != 0
	case name == "TS" && d.Kind == record.Null && c.vendors:
	case name == "TS" && d.Kind == record.Number:
		if c.at, err = strconv.ParseInt(string(d.Bytes), 10, 64); err != nil || c.at < 0 {
			return p.refuse(string(c.name), table.CodeType, fmt.Sprintf("TS %s is not a timestamp in milliseconds",
				table.Show(d.Bytes)), s.pos-len(d.Bytes))
		}
		if c.at == 0 && c.vendors {
			c.at = NoTimestamp
		}
	case name == "Unit" && d.Kind == record.Number:
		c.unit, err = strconv.ParseInt(string(d.Bytes), 10, 64)
	case name == "Scale" && d.Kind == record.Number:
		c.scale, err = strconv.ParseInt(string(d.Bytes), 10, 32)
	default:
		err = errUnknown
	}
	if err != nil || name == "C64" && !c.named {
		return p.refuse(string(c.name), CodeJSON, fmt.Sprintf("member %q is unknown or has the wrong type", key), s.pos)
	}
	return true
}

var errUnknown = errors.New("not a member")

// Reasons for refusing a value as out of range.
const (
	outOfRange = "out of range"
	tooPrecise = "more digits than a double keeps"
)

// datum returns the value, or why it is wrong. Untyped numbers are doubles; in the tool's keys, they may be integers.
func (c *cell) datum(pk bool, s *scanner) (d record.Datum, why string) {
	v := &c.value
	kind, known := kindNamed(c.kind.Bytes)
	number, typed := v.Kind == record.Number, c.kind.Kind != record.Null
	switch {
	case c.vendors && v.Kind == record.Null:
		return *v, ""
	case c.isInt && (c.vendors || !typed):
		kind = record.Integer
	case !typed && number && !(c.vendors && pk):
		kind = record.Double
	case !typed:
		return *v, ""
	case !known || c.isInt || c.vendors && !vendorsKinds[kind]:
		return d, "of an unknown type"
	}
	d = record.Datum{Kind: kind, Quoted: c.quoted, Local: c.local, Scale: int32(c.scale), Unit: record.Unit(c.unit)}
	var err error
	switch kind {
	case record.Integer, record.Date, record.TimeOfDay, record.Timestamp:
		d.Int, err = strconv.ParseInt(string(v.Bytes), 10, 64)
		return d, kindFault(err, number, "not an integer")
	case record.Unsigned:
		var n uint64
		n, err = strconv.ParseUint(string(v.Bytes), 10, 64)
		d.Int = int64(n)
		return d, kindFault(err, number, "not an integer")
	case record.Boolean:
		d.Int = v.Int
		return d, kindFault(nil, v.Kind == record.Boolean, "not a boolean")
	case record.Double:
		if v.Kind == record.String && !c.vendors {
			bits, err := strconv.ParseUint(string(v.Bytes), 16, 64)
			d.Double = math.Float64frombits(bits)
			return d, kindFault(err, true, "not a double")
		}
		d.Double, err = strconv.ParseFloat(string(v.Bytes), 64)
		if why = kindFault(err, number, "not a double"); why == "" && !table.KeepsDouble(v.Bytes, d.Double) {
			why = tooPrecise
		}
		return d, why
	}
	d.Bytes = v.Bytes
	if why = kindFault(nil, v.Kind == record.String, "not a string"); why == "" &&
		(c.base64 || kind == record.Binary || kind == record.Decimal) {
		var ok bool
		d.Bytes, ok = unbase64(s, v.Bytes)
		why = kindFault(nil, ok, "not base64")
	}
	return d, why
}

// kindFault returns what is wrong with a value that was parsed as a certain kind, or "".
func kindFault(err error, is bool, otherwise string) string {
	switch {
	case is && err == nil:
		return ""
	case is && errors.Is(err, strconv.ErrRange):
		return outOfRange
	}
	return otherwise
}

// unbase64 decodes text into memory of the scanner.
func unbase64(s *scanner, text []byte) ([]byte, bool) {
	at := len(s.scratch)
	var err error
	if s.scratch, err = base64.StdEncoding.AppendDecode(s.scratch, text); err != nil {
		return nil, false
	}
	return s.scratch[at:len(s.scratch):len(s.scratch)], true
}
