package jsonl

import (
	"bytes"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// extendedTags has the readers of MongoDB Extended JSON tags; nil refuses a tag. $ref and similar are plain members.
var extendedTags map[string]extendedTag

type extendedTag struct {
	name string
	read func(*tagged) *leaf
}

func init() { // not a literal, because the readers use extendedTags
	extendedTags = map[string]extendedTag{}
	for name, read := range map[string]func(*tagged) *leaf{
		"$oid": (*tagged).objectID, "$symbol": (*tagged).symbol, "$code": (*tagged).symbol, "$uuid": (*tagged).uuid,
		"$numberInt": (*tagged).int32, "$numberLong": (*tagged).int64, "$numberDouble": (*tagged).double,
		"$numberDecimal": (*tagged).decimal, "$date": (*tagged).date, "$binary": (*tagged).binary,
		"$timestamp": (*tagged).timestamp, "$regularExpression": (*tagged).pattern, "$undefined": (*tagged).undefined,
		"$regex": nil, "$minKey": nil, "$maxKey": nil, "$dbPointer": nil,
	} {
		extendedTags[name] = extendedTag{name, read}
	}
}

// strayTag refuses a tag that is not the first member of its object.
func (t *tagged) strayTag(tags Tags, key []byte) {
	if tags != MongoDB || len(key) < 2 || key[1] != '$' {
		return
	}
	if _, is := extendedTags[string(key[1:len(key)-1])]; is {
		t.failf("%s beside other members", key[1:len(key)-1])
	}
}

func (t *tagged) extended() *leaf {
	s := &t.scan
	switch c := s.data[s.pos]; c {
	case '[':
		t.elements(func() { t.inner(MongoDB) })
		return nil
	case '{':
	case '"':
		return t.leaf(record.Datum{}, t.literal()) // a nested string; no other value reaches this line
	default:
		from := s.pos
		for s.pos < len(s.data) && !delimits(s.data[s.pos]) {
			s.pos++
		}
		return t.leaf(record.Datum{}, s.data[from:s.pos])
	}
	s.pos++
	if s.data[s.pos] != '"' {
		return t.members(MongoDB, nil)
	}
	key := t.literal()
	s.pos++ // the colon
	tag, is := extendedTags[string(key[1:len(key)-1])]
	switch {
	case !is:
		return t.members(MongoDB, key)
	case tag.read == nil:
		t.failf("%s is a value that no table can hold", tag.name)
	}
	l := tag.read(t)
	t.end(tag.name)
	return l
}

func (t *tagged) objectID() *leaf {
	text, raw := t.text("$oid")
	var id [12]byte
	if n, err := hex.Decode(id[:], text[:min(len(text), 2*len(id))]); err != nil || 2*n != len(text) || n < len(id) {
		t.failf("$oid holds %.40q, which is not 24 hexadecimal digits", text)
	}
	return t.leaf(record.Datum{Kind: record.String, Bytes: text}, raw)
}

// symbol reads the text of $symbol or $code. It refuses a scope beside $code.
func (t *tagged) symbol() *leaf {
	text, raw := t.text("the tag")
	return t.leaf(record.Datum{Kind: record.String, Bytes: text}, raw)
}

func (t *tagged) int32() *leaf { return t.integer("$numberInt", 32) }
func (t *tagged) int64() *leaf { return t.integer("$numberLong", 64) }

func (t *tagged) integer(tag string, bits int) *leaf {
	text, _ := t.text(tag)
	n, wrong := strconv.ParseInt(string(text), 10, bits)
	var room [20]byte
	if wrong != nil || string(strconv.AppendInt(room[:0], n, 10)) != string(text) {
		t.failf("%s holds %.40q, which is not an integer of %d bits", tag, text, bits)
	}
	return t.leaf(record.Datum{Kind: record.Integer, Int: n}, text)
}

// notFinite holds the numbers that JSON cannot represent.
var notFinite = map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}

func (t *tagged) double() *leaf {
	text, _ := t.text("$numberDouble")
	if f, is := notFinite[string(text)]; is {
		return t.leaf(record.Datum{Kind: record.Double, Double: f}, nil)
	}
	f, wrong := strconv.ParseFloat(string(text), 64)
	first := bytes.IndexAny(text, "123456789eE") // a digit if the number is not 0
	if wrong != nil || !isNumber(text) || !table.KeepsDouble(text, f) || f == 0 && first >= 0 && text[first] < 'E' {
		t.failf("$numberDouble holds %.40q, which is not a double", text)
	}
	return t.leaf(record.Datum{Kind: record.Double, Double: f}, text)
}

// decimal reads a decimal number with all its digits. In a column, it is a string.
func (t *tagged) decimal() *leaf {
	text, _ := t.text("$numberDecimal")
	raw := text
	if _, is := notFinite[string(text)]; is {
		raw = nil
	} else if !isNumber(text) {
		t.failf("$numberDecimal holds %.40q, which is not a number", text)
	}
	return t.leaf(record.Datum{Kind: record.String, Bytes: text}, raw)
}

// date reads a time: milliseconds since 1970, with or without a tag, or RFC 3339.
func (t *tagged) date() *leaf {
	const long = `{"$numberLong":`
	s := &t.scan
	var ms int64
	switch rest := s.data[s.pos:]; {
	case rest[0] == '"':
		text, _ := t.text("$date")
		ms = t.moment(string(text)).UnixMilli()
	case bytes.HasPrefix(rest, []byte(long)):
		s.pos += len(long)
		ms = t.int64().Int
		t.end("$numberLong")
	default:
		var raw []byte
		if rest[0] != '{' && rest[0] != '[' {
			raw = t.extended().raw
		}
		if raw == nil {
			t.failf("$date holds neither $numberLong nor a string")
		}
		var err error
		if ms, err = strconv.ParseInt(string(raw), 10, 64); err != nil {
			t.failf("$date holds %.40q, which is not milliseconds", raw)
		}
	}
	return t.leaf(record.Datum{Kind: record.Timestamp, Unit: record.Millis, Int: ms}, nil)
}

func (t *tagged) moment(text string) time.Time {
	at, err := time.Parse("2006-01-02T15:04:05Z07:00", text)
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04:05Z0700", text) // as written by mongoexport before 3.0
	}
	if err != nil || strings.Contains(text, ",") || at.Nanosecond()%1e6 != 0 {
		t.failf("$date holds %.40q, which is not a time in milliseconds", text)
	}
	return at
}

// binary reads bytes: {"base64":…,"subType":…}, or base64 followed by $type. Subtype 04 is a UUID.
func (t *tagged) binary() *leaf {
	s := &t.scan
	var packed, raw, kind []byte
	if s.data[s.pos] == '"' {
		packed, raw = t.text("$binary")
		if !bytes.HasPrefix(s.data[s.pos:], []byte(`,"$type":"`)) {
			t.failf("$binary has no $type beside it")
		}
		s.pos += len(`,"$type":`)
		kind, _ = t.text("$type")
	} else {
		packed, raw, kind = t.pair("$binary", "base64", "subType")
	}
	subtype, wrong := strconv.ParseUint(string(kind), 16, 8)
	if wrong != nil || len(kind) > 2 {
		t.failf("$binary has the invalid subtype %.40q", kind)
	}
	if subtype != 4 {
		return t.bytes("$binary", packed, raw)
	}
	id, wrong := strictBase64.DecodeString(string(packed))
	if wrong != nil || len(id) != 16 {
		t.failf("$binary of the subtype 04 holds %.40q, which is not a UUID", packed)
	}
	text := record.AppendUUID(nil, id)
	return t.leaf(record.Datum{Kind: record.String, Bytes: text}, quoted(text))
}

// pair reads an object with the strings a and b in any order. raw is a's value as JSON.
func (t *tagged) pair(tag, a, b string) (first, raw, second []byte) {
	s := &t.scan
	has := [2]bool{}
	for n := 0; n < 2 && s.data[s.pos] == "{,"[n]; n++ {
		s.pos++
		if s.data[s.pos] != '"' {
			break
		}
		key, _ := s.text()
		s.pos++ // the colon
		switch {
		case string(key) == a && !has[0]:
			has[0] = true
			first, raw = t.text(a)
		case string(key) == b && !has[1]:
			has[1] = true
			second, _ = t.text(b)
		default:
			has = [2]bool{}
			n = 2
		}
	}
	if !has[0] || !has[1] || s.data[s.pos] != '}' {
		t.failf("%s does not hold %s and %s", tag, a, b)
	}
	s.pos++
	return first, raw, second
}

func (t *tagged) uuid() *leaf {
	text, _ := t.text("$uuid")
	id, wrong := hex.DecodeString(strings.ReplaceAll(string(text), "-", ""))
	lower := bytes.ToLower(text)
	if wrong != nil || len(id) != 16 || !bytes.Equal(record.AppendUUID(nil, id), lower) {
		t.failf("$uuid holds %.40q, which is not a UUID", text)
	}
	return t.leaf(record.Datum{Kind: record.String, Bytes: lower}, quoted(lower))
}

// timestamp reads MongoDB's internal timestamp, seconds and a counter. It remains an object with both.
func (t *tagged) timestamp() *leaf {
	const wrong = `$timestamp does not hold {"t":…,"i":…}, of 32 bits each`
	s := &t.scan
	from := s.pos
	for _, name := range []string{`{"t":`, `,"i":`} {
		if !bytes.HasPrefix(s.data[s.pos:], []byte(name)) {
			t.failf(wrong)
		}
		s.pos += len(name)
		start := s.pos
		s.digits()
		if _, err := strconv.ParseUint(string(s.data[start:s.pos]), 10, 32); err != nil {
			t.failf(wrong)
		}
	}
	if s.data[s.pos] != '}' {
		t.failf(wrong)
	}
	s.pos++
	return t.object(from)
}

// pattern reads a regular expression. It remains an object with its parts.
func (t *tagged) pattern() *leaf {
	from := t.scan.pos
	t.pair("$regularExpression", "pattern", "options")
	return t.object(from)
}

// object returns a leaf for the object that begins at from.
func (t *tagged) object(from int) *leaf {
	raw := t.scan.data[from:t.scan.pos]
	return t.leaf(record.Datum{Kind: record.JSON, Bytes: raw}, raw)
}

func (t *tagged) undefined() *leaf {
	if !t.scan.word("true") {
		t.failf("$undefined does not hold true")
	}
	return t.leaf(record.Datum{}, jsonNull)
}
