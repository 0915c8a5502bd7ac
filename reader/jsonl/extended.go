package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// extendedTags read what their tags hold in MongoDB Extended JSON; nil refuses the tag by name. Names that are not here, as those of
// $ref and $id, are members of documents like any other.
var extendedTags map[string]extendedTag

type extendedTag struct {
	name string
	read func(*tagged) (*leaf, error)
}

func init() { // the functions read extendedTags
	extendedTags = map[string]extendedTag{}
	for name, read := range map[string]func(*tagged) (*leaf, error){
		"$oid": (*tagged).objectID, "$symbol": (*tagged).symbol, "$code": (*tagged).symbol, "$uuid": (*tagged).uuid,
		"$numberInt": (*tagged).int32, "$numberLong": (*tagged).int64, "$numberDouble": (*tagged).double, "$numberDecimal": (*tagged).decimal,
		"$date": (*tagged).date, "$binary": (*tagged).binary, "$timestamp": (*tagged).timestamp,
		"$regularExpression": (*tagged).pattern, "$undefined": (*tagged).undefined,
		"$regex": nil, "$minKey": nil, "$maxKey": nil, "$dbPointer": nil,
	} {
		extendedTags[name] = extendedTag{name, read}
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
		return t.leaf(record.Datum{}, t.literal()) // nested: others are not asked about
	default:
		from := s.pos
		for s.pos < len(s.data) && !delimits(s.data[s.pos]) {
			s.pos++
		}
		return t.leaf(record.Datum{}, s.data[from:s.pos])
	}
	s.pos++
	if s.data[s.pos] != '"' {
		return nil, t.members(MongoDB, nil)
	}
	key := t.literal()
	s.pos++ // colon
	tag, is := extendedTags[string(key[1:len(key)-1])]
	switch {
	case !is:
		return nil, t.members(MongoDB, key)
	case tag.read == nil:
		return nil, fmt.Errorf("%s has no value that a table could hold", tag.name)
	}
	l, err := tag.read(t)
	if err != nil {
		return nil, err
	}
	return l, t.end(tag.name)
}

func (t *tagged) objectID() (*leaf, error) {
	text, raw, err := t.text("$oid")
	if err == nil && (len(text) != 24 || !isHex(text)) {
		err = fmt.Errorf("$oid holds %.40q, which is not 24 hexadecimal digits", text)
	}
	if err != nil {
		return nil, err
	}
	return t.leaf(record.Datum{Kind: record.String, Bytes: text}, raw)
}

// symbol reads a text: of $symbol, and of $code, whose scope no value has a place for.
func (t *tagged) symbol() (*leaf, error) {
	text, raw, err := t.text("the tag")
	if err != nil {
		return nil, err
	}
	return t.leaf(record.Datum{Kind: record.String, Bytes: text}, raw)
}

func (t *tagged) int32() (*leaf, error) { return t.integer("$numberInt", 32) }
func (t *tagged) int64() (*leaf, error) { return t.integer("$numberLong", 64) }

func (t *tagged) integer(tag string, bits int) (*leaf, error) {
	text, _, err := t.text(tag)
	if err != nil {
		return nil, err
	}
	n, wrong := strconv.ParseInt(string(text), 10, bits)
	var room [20]byte
	if wrong != nil || string(strconv.AppendInt(room[:0], n, 10)) != string(text) {
		return nil, fmt.Errorf("%s holds %.40q, which is not an integer of %d bits", tag, text, bits)
	}
	return t.leaf(record.Datum{Kind: record.Integer, Int: n}, text)
}

func (t *tagged) double() (*leaf, error) {
	text, _, err := t.text("$numberDouble")
	if err != nil {
		return nil, err
	}
	switch string(text) {
	case "NaN":
		return t.leaf(record.Datum{Kind: record.Double, Double: math.NaN()}, nil)
	case "Infinity":
		return t.leaf(record.Datum{Kind: record.Double, Double: math.Inf(1)}, nil)
	case "-Infinity":
		return t.leaf(record.Datum{Kind: record.Double, Double: math.Inf(-1)}, nil)
	}
	f, wrong := strconv.ParseFloat(string(text), 64)
	if wrong != nil || !isNumber(text) || !table.KeepsDouble(text, f) || f == 0 && bytes.ContainsAny(mantissa(text), "123456789") {
		return nil, fmt.Errorf("$numberDouble holds %.40q, which is not a double", text)
	}
	return t.leaf(record.Datum{Kind: record.Double, Double: f}, text)
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
	d := record.Datum{Kind: record.String, Bytes: text}
	switch string(text) {
	case "NaN", "Infinity", "-Infinity":
		return t.leaf(d, nil)
	}
	if !isNumber(text) {
		return nil, fmt.Errorf("$numberDecimal holds %.40q, which is not a number", text)
	}
	return t.leaf(d, text)
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
	return t.leaf(record.Datum{Kind: record.Timestamp, Unit: record.Millis, Int: ms}, nil)
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
	var packed, raw, kind []byte
	var err error
	if s.data[s.pos] == '"' {
		packed, raw, _ = t.text("$binary")
		if !bytes.HasPrefix(s.data[s.pos:], []byte(`,"$type":"`)) {
			return nil, errors.New("$binary has no $type beside it")
		}
		s.pos += len(`,"$type":`)
		kind, _, _ = t.text("$type")
	} else if packed, raw, kind, err = t.pair("$binary", "base64", "subType"); err != nil {
		return nil, err
	}
	subtype, wrong := strconv.ParseUint(string(kind), 16, 8)
	if wrong != nil || len(kind) > 2 {
		return nil, fmt.Errorf("$binary is of the subtype %.40q, which is not one", kind)
	}
	if subtype != 4 {
		return t.bytes("$binary", packed, raw)
	}
	id, wrong := strictBase64.DecodeString(string(packed))
	if wrong != nil || len(id) != 16 {
		return nil, fmt.Errorf("$binary of the subtype 04 holds %.40q, which is not a UUID", packed)
	}
	text := record.AppendUUID(nil, id)
	return t.leaf(record.Datum{Kind: record.String, Bytes: text}, quoted(text))
}

// isHex reports whether a text is hexadecimal digits.
func isHex(text []byte) bool {
	return !bytes.ContainsFunc(text, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F')
	})
}

// pair reads an object with two members that are strings, in any order. Raw is the first one as JSON.
func (t *tagged) pair(tag, a, b string) (first, raw, second []byte, err error) {
	s := &t.scan
	has := [2]bool{}
	for n := 0; n < 2 && s.data[s.pos] == "{,"[n]; n++ {
		s.pos++
		if s.data[s.pos] != '"' {
			break
		}
		key, _ := s.text()
		s.pos++ // colon
		switch {
		case string(key) == a && !has[0]:
			has[0] = true
			first, raw, err = t.text(a)
		case string(key) == b && !has[1]:
			has[1] = true
			second, _, err = t.text(b)
		default:
			has = [2]bool{}
			n = 2
		}
		if err != nil {
			return nil, nil, nil, err
		}
	}
	if !has[0] || !has[1] || s.data[s.pos] != '}' {
		return nil, nil, nil, fmt.Errorf("%s does not hold %s and %s", tag, a, b)
	}
	s.pos++
	return first, raw, second, nil
}

func (t *tagged) uuid() (*leaf, error) {
	text, _, err := t.text("$uuid")
	if err != nil {
		return nil, err
	}
	digits := bytes.ReplaceAll(text, []byte("-"), nil)
	if len(text) != 36 || len(digits) != 32 || !isHex(digits) || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return nil, fmt.Errorf("$uuid holds %.40q, which is not a UUID", text)
	}
	lower := bytes.ToLower(text)
	return t.leaf(record.Datum{Kind: record.String, Bytes: lower}, quoted(lower))
}

var errTimestamp = errors.New(`$timestamp does not hold {"t":…,"i":…}, of 32 bits each`)

// timestamp reads the internal clock of MongoDB, seconds and a count, which stay an object of both.
func (t *tagged) timestamp() (*leaf, error) {
	s := &t.scan
	from := s.pos
	for _, name := range []string{`{"t":`, `,"i":`} {
		if !bytes.HasPrefix(s.data[s.pos:], []byte(name)) {
			return nil, errTimestamp
		}
		s.pos += len(name)
		start := s.pos
		s.digits()
		if _, err := strconv.ParseUint(string(s.data[start:s.pos]), 10, 32); err != nil {
			return nil, errTimestamp
		}
	}
	if s.data[s.pos] != '}' {
		return nil, errTimestamp
	}
	s.pos++
	raw := s.data[from:s.pos]
	return t.leaf(record.Datum{Kind: record.JSON, Bytes: raw}, raw)
}

// pattern reads a regular expression, which stays an object of its parts.
func (t *tagged) pattern() (*leaf, error) {
	from := t.scan.pos
	if _, _, _, err := t.pair("$regularExpression", "pattern", "options"); err != nil {
		return nil, err
	}
	raw := t.scan.data[from:t.scan.pos]
	return t.leaf(record.Datum{Kind: record.JSON, Bytes: raw}, raw)
}

func (t *tagged) undefined() (*leaf, error) {
	if !t.scan.word("true") {
		return nil, errors.New("$undefined does not hold true")
	}
	return t.leaf(record.Datum{}, jsonNull)
}
