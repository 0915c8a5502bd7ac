package jsonl

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tsimport/internal/table"
	"tsimport/reader/record"
)

// extendedTags read what their tags hold in MongoDB Extended JSON; nil refuses the tag by name. Names that are not here, as those of
// $ref and $id, are members of documents like any other.
var extendedTags map[string]func(*tagged) (*leaf, error)

func init() { // the functions read extendedTags
	extendedTags = map[string]func(*tagged) (*leaf, error){
		"$oid": (*tagged).objectID, "$symbol": (*tagged).symbol, "$code": (*tagged).symbol, "$uuid": (*tagged).uuid,
		"$numberInt": (*tagged).int32, "$numberLong": (*tagged).int64, "$numberDouble": (*tagged).double, "$numberDecimal": (*tagged).decimal,
		"$date": (*tagged).date, "$binary": (*tagged).binary, "$timestamp": (*tagged).timestamp,
		"$regularExpression": (*tagged).pattern, "$undefined": (*tagged).undefined,
		"$regex": nil, "$minKey": nil, "$maxKey": nil, "$dbPointer": nil,
	}
}

// strayTag refuses the tag of a value that is not the first member of its object.
func (t *tagged) strayTag(tags Tags, key []byte) error {
	if tags != MongoDB || len(key) < 2 || key[1] != '$' {
		return nil
	}
	if _, is := extendedTags[string(key[1:len(key)-1])]; is {
		return fmt.Errorf("%s beside other members", key[1:len(key)-1])
	}
	return nil
}

// extended reads a value of MongoDB.
func (t *tagged) extended() (*leaf, error) {
	s := &t.scan
	switch c := s.data[s.pos]; c {
	case '[':
		return nil, t.elements(func() error { return t.inner(MongoDB) })
	case '{':
	case '"':
		return &leaf{raw: t.literal()}, nil // nested: others are not asked about
	default:
		from := s.pos
		for s.pos < len(s.data) && !delimits(s.data[s.pos]) {
			s.pos++
		}
		return &leaf{raw: s.data[from:s.pos]}, nil
	}
	s.pos++
	if s.data[s.pos] != '"' {
		return nil, t.members(MongoDB, nil)
	}
	key := t.literal()
	s.pos++ // colon
	tag := string(key[1 : len(key)-1])
	read, is := extendedTags[tag]
	switch {
	case !is:
		return nil, t.members(MongoDB, key)
	case read == nil:
		return nil, fmt.Errorf("%s has no value that a table could hold", tag)
	}
	l, err := read(t)
	if err != nil {
		return nil, err
	}
	return l, t.end(tag)
}

func (t *tagged) objectID() (*leaf, error) {
	text, raw, err := t.text("$oid")
	if _, wrong := hex.DecodeString(string(text)); err == nil && (wrong != nil || len(text) != 24) {
		err = fmt.Errorf("$oid holds %.40q, which is not 24 hexadecimal digits", text)
	}
	return &leaf{record.Datum{Kind: record.String, Bytes: text}, raw}, err
}

// symbol reads a text: of $symbol, and of $code, whose scope no value has a place for.
func (t *tagged) symbol() (*leaf, error) {
	text, raw, err := t.text("the tag")
	return &leaf{record.Datum{Kind: record.String, Bytes: text}, raw}, err
}

func (t *tagged) int32() (*leaf, error) { return t.integer("$numberInt", 32) }
func (t *tagged) int64() (*leaf, error) { return t.integer("$numberLong", 64) }

func (t *tagged) integer(tag string, bits int) (*leaf, error) {
	text, _, err := t.text(tag)
	if err != nil {
		return nil, err
	}
	n, wrong := strconv.ParseInt(string(text), 10, bits)
	if wrong != nil || string(strconv.AppendInt(nil, n, 10)) != string(text) {
		return nil, fmt.Errorf("%s holds %.40q, which is not an integer of %d bits", tag, text, bits)
	}
	return &leaf{record.Datum{Kind: record.Integer, Int: n}, text}, nil
}

func (t *tagged) double() (*leaf, error) {
	text, _, err := t.text("$numberDouble")
	if err != nil {
		return nil, err
	}
	switch string(text) {
	case "NaN":
		return &leaf{Datum: record.Datum{Kind: record.Double, Double: math.NaN()}}, nil
	case "Infinity":
		return &leaf{Datum: record.Datum{Kind: record.Double, Double: math.Inf(1)}}, nil
	case "-Infinity":
		return &leaf{Datum: record.Datum{Kind: record.Double, Double: math.Inf(-1)}}, nil
	}
	f, wrong := strconv.ParseFloat(string(text), 64)
	if wrong != nil || !isNumber(text) || !table.KeepsDouble(text, f) || f == 0 && bytes.ContainsAny(mantissa(text), "123456789") {
		return nil, fmt.Errorf("$numberDouble holds %.40q, which is not a double", text)
	}
	return &leaf{record.Datum{Kind: record.Double, Double: f}, text}, nil
}

// mantissa is a number without its exponent.
func mantissa(text []byte) []byte {
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		return text[:i]
	}
	return text
}

// decimal reads a decimal number, whose digits are all kept: in a column it is a text.
func (t *tagged) decimal() (*leaf, error) {
	text, _, err := t.text("$numberDecimal")
	if err != nil {
		return nil, err
	}
	l := &leaf{record.Datum{Kind: record.String, Bytes: text}, text}
	switch string(text) {
	case "NaN", "Infinity", "-Infinity":
		l.raw = nil
		return l, nil
	}
	if !isNumber(text) {
		return nil, fmt.Errorf("$numberDecimal holds %.40q, which is not a number", text)
	}
	return l, nil
}

// date reads a moment: milliseconds since 1970, tagged or not, or a text of RFC 3339.
func (t *tagged) date() (*leaf, error) {
	s := &t.scan
	var ms int64
	switch c := s.data[s.pos]; {
	case c == '"':
		text, _, _ := t.text("$date")
		at, err := parseMoment(string(text))
		if err != nil {
			return nil, err
		}
		ms = at.UnixMilli()
	case c == '{':
		const open = `{"$numberLong":`
		if !bytes.HasPrefix(s.data[s.pos:], []byte(open)) {
			return nil, errors.New("$date holds neither $numberLong nor a text")
		}
		s.pos += len(open)
		l, err := t.int64()
		if err != nil {
			return nil, err
		}
		if err := t.end("$numberLong"); err != nil {
			return nil, err
		}
		ms = l.Int
	default:
		l, err := t.extended()
		if err != nil || l == nil {
			return nil, errors.New("$date holds neither $numberLong nor a text")
		}
		if ms, err = strconv.ParseInt(string(l.raw), 10, 64); err != nil {
			return nil, fmt.Errorf("$date holds %.40q, which is not milliseconds", l.raw)
		}
	}
	raw := time.UnixMilli(ms).UTC().AppendFormat(nil, `"2006-01-02T15:04:05.999Z"`)
	return &leaf{record.Datum{Kind: record.Timestamp, Unit: record.Millis, Int: ms}, raw}, nil
}

func parseMoment(text string) (time.Time, error) {
	at, err := time.Parse("2006-01-02T15:04:05Z07:00", text)
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04:05Z0700", text) // of mongoexport before 3.0
	}
	if err != nil || strings.Contains(text, ",") || at.Nanosecond()%1e6 != 0 {
		return at, fmt.Errorf("$date holds %.40q, which is not a time in milliseconds", text)
	}
	return at, nil
}

// binary reads bytes: {"base64":…,"subType":…}, or base64 and $type beside it. Those of the subtype 04 are a UUID.
func (t *tagged) binary() (*leaf, error) {
	s := &t.scan
	var packed, kind []byte
	var err error
	if s.data[s.pos] == '"' {
		packed, _, _ = t.text("$binary")
		if !bytes.HasPrefix(s.data[s.pos:], []byte(`,"$type":"`)) {
			return nil, errors.New("$binary has no $type beside it")
		}
		s.pos += len(`,"$type":`)
		kind, _, _ = t.text("$type")
	} else if packed, kind, err = t.pair("$binary", "base64", "subType"); err != nil {
		return nil, err
	}
	subtype, wrong := strconv.ParseUint(string(kind), 16, 8)
	if wrong != nil || len(kind) > 2 {
		return nil, fmt.Errorf("$binary is of the subtype %.40q, which is not one", kind)
	}
	if subtype != 4 {
		return t.bytes("$binary", packed)
	}
	id, wrong := base64.StdEncoding.Strict().DecodeString(string(packed))
	if wrong != nil || len(id) != 16 {
		return nil, fmt.Errorf("$binary of the subtype 04 holds %.40q, which is not a UUID", packed)
	}
	text := hex.EncodeToString(id)
	text = strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
	return &leaf{record.Datum{Kind: record.String, Bytes: []byte(text)}, quoted([]byte(text))}, nil
}

// pair reads an object with two members that are strings.
func (t *tagged) pair(tag, a, b string) (first, second []byte, err error) {
	s := &t.scan
	want := fmt.Errorf("%s does not hold %s and %s", tag, a, b)
	if s.data[s.pos] != '{' {
		return nil, nil, want
	}
	found := map[string][]byte{}
	for n := 0; s.data[s.pos] != '}'; n++ {
		s.pos++ // bracket or comma
		if n == 2 || s.data[s.pos] != '"' {
			return nil, nil, want
		}
		key, _ := s.text()
		s.pos++ // colon
		if found[string(key)], _, err = t.text(string(key)); err != nil {
			return nil, nil, err
		}
	}
	s.pos++
	first, has := found[a]
	if second, ok := found[b]; ok && has {
		return first, second, nil
	}
	return nil, nil, want
}

func (t *tagged) uuid() (*leaf, error) {
	text, _, err := t.text("$uuid")
	if err != nil {
		return nil, err
	}
	digits := strings.ReplaceAll(string(text), "-", "")
	_, wrong := hex.DecodeString(digits)
	if len(text) != 36 || len(digits) != 32 || wrong != nil || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return nil, fmt.Errorf("$uuid holds %.40q, which is not a UUID", text)
	}
	lower := bytes.ToLower(text)
	return &leaf{record.Datum{Kind: record.String, Bytes: lower}, quoted(lower)}, nil
}

// timestamp reads the internal clock of MongoDB, seconds and a count, which stay an object of both.
func (t *tagged) timestamp() (*leaf, error) {
	s := &t.scan
	wrong := errors.New(`$timestamp does not hold {"t":…,"i":…}, of 32 bits each`)
	from := s.pos
	for _, name := range []string{`{"t":`, `,"i":`} {
		if !bytes.HasPrefix(s.data[s.pos:], []byte(name)) {
			return nil, wrong
		}
		s.pos += len(name)
		start := s.pos
		s.digits()
		if _, err := strconv.ParseUint(string(s.data[start:s.pos]), 10, 32); err != nil {
			return nil, wrong
		}
	}
	if s.data[s.pos] != '}' {
		return nil, wrong
	}
	s.pos++
	raw := s.data[from:s.pos]
	return &leaf{record.Datum{Kind: record.JSON, Bytes: raw}, raw}, nil
}

// pattern reads a regular expression, which stays an object of its parts.
func (t *tagged) pattern() (*leaf, error) {
	from := t.scan.pos
	_, _, err := t.pair("$regularExpression", "pattern", "options")
	raw := t.scan.data[from:t.scan.pos]
	return &leaf{record.Datum{Kind: record.JSON, Bytes: raw}, raw}, err
}

func (t *tagged) undefined() (*leaf, error) {
	if !t.scan.word("true") {
		return nil, errors.New("$undefined does not hold true")
	}
	return &leaf{raw: []byte("null")}, nil
}
