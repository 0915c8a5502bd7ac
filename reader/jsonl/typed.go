package jsonl

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"time"

	"example.com/tsimport/reader/record"
)

// Tags is a set of type tags: objects that give values types, such as {"N":"7"}.
type Tags uint8

const (
	NoTags   Tags = iota // plain JSON
	DynamoDB             // DynamoDB JSON: every value of an item is an object with one type tag
	MongoDB              // MongoDB Extended JSON v2, canonical and relaxed, and the format of older mongoexports
)

// CodeTag is the reject code of records with a wrong type tag.
const CodeTag = "BadTypeTag"

// GuessTags returns the type tags that a text clearly has. DynamoDB items are recognised only inside {"Item":…}.
func GuessTags(head []byte, layout Layout) (guess Tags) {
	most := 0
	for mark, o := range map[string]Options{`"Item"`: {Tags: DynamoDB, Wrapped: true}, `"$`: {Tags: MongoDB}} {
		o.Layout = layout
		p := NewParser(o)
		if bytes.Contains(head, []byte(mark)) {
			p.Reset(head)
		}
		n := 0
		for rec, ok := p.Next(); ok; rec, ok = p.Next() {
			if rec.Bad == nil && p.tags.found > 0 {
				n++
			}
		}
		if n > most || n == most && n > 0 && o.Tags < guess {
			most, guess = n, o.Tags
		}
	}
	return guess
}

// unexpected refuses a value with a MongoDB type tag, because the sample had none. value must not have white space.
func (p *Parser) unexpected(name, value []byte, at int) bool {
	if !bytes.Contains(value, []byte(`"$`)) {
		return true
	}
	t := &p.tags
	t.scan.data, t.scan.pos = value, 0
	if _, err := t.value(MongoDB); err != nil || t.found == 0 {
		return true // its tags are not valid
	}
	return p.refuse(string(name), CodeTag, "the value has a type tag of MongoDB, and no record in the sample of all "+
		"inputs has one; --format mongodb reads all records with their tags, --format jsonl keeps them as objects", at)
}

// Wrapped reports whether the items of a DynamoDB text are inside {"Item":…}.
func Wrapped(head []byte, layout Layout) bool {
	in, _, _ := count(head, Options{Tags: DynamoDB, Wrapped: true, Layout: layout})
	out, _, _ := count(head, Options{Tags: DynamoDB, Layout: layout})
	return in >= out && in > 0
}

// item parses a record {"Item":{…}} at the current position.
func (p *Parser) item() bool {
	s := &p.scan
	at := s.pos
	s.pos++
	if s.token() != '"' {
		return p.notItem(at)
	}
	name, ok := p.key()
	if !ok {
		return false
	}
	if string(name) != "Item" || s.token() != '{' {
		return p.notItem(at)
	}
	if !p.object(2) {
		return false
	}
	if s.token() != '}' {
		return p.notItem(at)
	}
	s.pos++
	return true
}

func (p *Parser) notItem(at int) bool {
	return p.refuse("", CodeTag, `want {"Item":{…}} and nothing beside Item, as in the records before`, at)
}

// untag replaces a tagged value by the value it represents.
func (p *Parser) untag(name []byte, d *record.Datum, at int) bool {
	if _, is := extendedTags[string(name)]; is && p.options.Tags == MongoDB {
		return p.refuse(string(name), CodeTag, fmt.Sprintf("%s is a type tag, and the record is not a document", name), at)
	}
	if p.options.Tags == MongoDB && d.Kind != record.JSON {
		return true // relaxed format: numbers, strings and booleans have no tags
	}
	if d.Kind != record.JSON {
		return p.refuse(string(name), CodeTag, fmt.Sprintf(`want a typed value, such as {"S":"text"}, at byte %d`, at+1), at)
	}
	t := &p.tags
	t.scan.data, t.scan.pos = d.Bytes, 0 // scratch still has the record's other values
	value, err := t.value(p.options.Tags)
	if err != nil {
		return p.refuse(string(name), CodeTag, fmt.Sprintf("%v, in the value at byte %d", err, at+1), at)
	}
	*d = value
	return true
}

// tagged reads values with type tags. Their text must be valid JSON without white space.
type tagged struct {
	scan  scanner
	out   []byte // JSON and bytes of the record's values
	found int    // number of tags in the record
	one   leaf   // the latest leaf
}

func (t *tagged) reset() { t.scan.scratch, t.out, t.found = t.scan.scratch[:0], t.out[:0], 0 }

// leaf is a value other than a document, an array or a set.
type leaf struct {
	record.Datum
	raw []byte // as JSON; nil for a Timestamp, or if JSON cannot represent the value
}

// leaf returns a leaf, which is valid until the next call.
func (t *tagged) leaf(d record.Datum, raw []byte) *leaf {
	t.one = leaf{d, raw}
	return &t.one
}

// tagError says why the tags of a value are wrong. The reading methods panic with it.
type tagError string

func (e tagError) Error() string { return string(e) }

func (t *tagged) failf(format string, a ...any) { panic(tagError(fmt.Sprintf(format, a...))) }

func (t *tagged) value(tags Tags) (d record.Datum, err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case tagError:
			err = x
		default:
			panic(x)
		}
	}()
	from := len(t.out)
	if l := t.read(tags); l != nil {
		return l.Datum, nil
	}
	return record.Datum{Kind: record.JSON, Bytes: t.out[from:len(t.out):len(t.out)]}, nil
}

// read reads the value at the current position. It returns a leaf, or appends JSON to out and returns nil.
func (t *tagged) read(tags Tags) *leaf {
	if tags == DynamoDB {
		return t.attribute()
	}
	return t.extended()
}

func (t *tagged) inner(tags Tags) {
	keep := len(t.out)
	switch l := t.read(tags); {
	case l == nil:
	case l.Kind == record.Timestamp:
		t.out = time.UnixMilli(l.Int).UTC().AppendFormat(t.out[:keep], `"2006-01-02T15:04:05.999Z"`)
	case l.raw == nil:
		t.failf("a nested NaN or infinity, which JSON cannot hold")
	default:
		t.out = append(t.out[:keep], l.raw...) // overwrites decoded bytes of binary values
	}
}

// members appends an object with tagged values to out and returns nil. The bracket and, if not nil, the key were read.
func (t *tagged) members(tags Tags, key []byte) *leaf {
	s := &t.scan
	t.out = append(t.out, '{')
	for n := 0; key != nil || s.data[s.pos] != '}'; n++ {
		if s.data[s.pos] == ',' && key == nil {
			s.pos++
			t.out = append(t.out, ',')
		}
		if key == nil {
			key = t.literal()
			s.pos++ // the colon
			t.strayTag(tags, key)
		}
		t.out = append(append(t.out, key...), ':')
		key = nil
		t.inner(tags)
	}
	s.pos++
	t.out = append(t.out, '}')
	return nil
}

// elements appends the array at the current position to out. each must append one element.
func (t *tagged) elements(each func()) {
	s := &t.scan
	if s.data[s.pos] != '[' {
		t.failf("want an array")
	}
	s.pos++
	t.out = append(t.out, '[')
	for s.data[s.pos] != ']' {
		if s.data[s.pos] == ',' {
			s.pos++
			t.out = append(t.out, ',')
		}
		each()
	}
	s.pos++
	t.out = append(t.out, ']')
}

// literal skips the string at the current position and returns it as JSON.
func (t *tagged) literal() []byte {
	from := t.scan.pos
	t.scan.skipText()
	return t.scan.data[from:t.scan.pos]
}

// text reads the string in a tag. raw is that string as JSON.
func (t *tagged) text(tag string) (text, raw []byte) {
	s := &t.scan
	if s.data[s.pos] != '"' {
		t.failf("%s does not hold a string", tag)
	}
	from := s.pos
	text, _ = s.text()
	return text, s.data[from:s.pos]
}

// end skips the bracket that closes a tag's object.
func (t *tagged) end(tag string) {
	if t.scan.data[t.scan.pos] != '}' {
		t.failf("a member beside %s", tag)
	}
	t.scan.pos++
	t.found++
}

func (t *tagged) number(tag string, text []byte) *leaf {
	if !isNumber(text) {
		t.failf("%s holds %.40q, which is not a number", tag, text)
	}
	return t.leaf(record.Datum{Kind: record.Number, Bytes: text}, text)
}

// isNumber reports whether text is a JSON number.
func isNumber(text []byte) bool {
	s := scanner{data: text}
	return len(text) > 0 && (text[0] == '-' || text[0]-'0' <= 9) && s.number() && s.pos == len(text)
}

// bytes returns a leaf for base64 text; raw is that text as JSON.
func (t *tagged) bytes(tag string, text, raw []byte) *leaf {
	from := len(t.out)
	out, err := strictBase64.AppendDecode(t.out, text)
	if err != nil || bytes.ContainsAny(text, "\r\n") { // the decoder would ignore line ends
		t.failf("%s holds %.40q, which is not base64", tag, text)
	}
	t.out = out
	return t.leaf(record.Datum{Kind: record.Binary, Bytes: out[from:len(out):len(out)]}, raw)
}

// quoted returns text, which must not need escapes, as a JSON string.
func quoted(text []byte) []byte { return append(append([]byte{'"'}, text...), '"') }

var strictBase64 = base64.StdEncoding.Strict()

// Constants of JSON.
var jsonTrue, jsonFalse, jsonNull = []byte("true"), []byte("false"), []byte("null")

// attributeTypes holds the type tags of DynamoDB.
var attributeTypes = map[string]string{"S": "S", "N": "N", "B": "B", "BOOL": "BOOL", "NULL": "NULL", "M": "M", "L": "L",
	"SS": "SS", "NS": "NS", "BS": "BS"}

// attribute reads a DynamoDB value.
func (t *tagged) attribute() (l *leaf) {
	s := &t.scan
	if s.data[s.pos] != '{' || s.data[s.pos+1] != '"' {
		t.failf(`want a typed value, such as {"S":"text"}`)
	}
	s.pos++
	key, _ := s.text()
	tag := attributeTypes[string(key)]
	s.pos++ // the colon
	switch tag {
	case "S":
		text, raw := t.text(tag)
		l = t.leaf(record.Datum{Kind: record.String, Bytes: text}, raw)
	case "N":
		text, _ := t.text(tag)
		l = t.number(tag, text)
	case "B":
		text, raw := t.text(tag)
		l = t.bytes(tag, text, raw)
	case "BOOL":
		switch {
		case s.word("true"):
			l = t.leaf(record.Datum{Kind: record.Boolean, Int: 1}, jsonTrue)
		case s.word("false"):
			l = t.leaf(record.Datum{Kind: record.Boolean}, jsonFalse)
		default:
			t.failf("%s does not hold true or false", tag)
		}
	case "NULL":
		if l = t.leaf(record.Datum{}, jsonNull); !s.word("true") {
			t.failf("%s does not hold true", tag)
		}
	case "M":
		if s.data[s.pos] != '{' {
			t.failf("%s does not hold an object", tag)
		}
		s.pos++
		t.members(DynamoDB, nil)
	case "L":
		t.elements(func() { t.inner(DynamoDB) })
	case "SS", "NS", "BS":
		t.elements(func() { t.member(tag) })
	default:
		t.failf("%.40q is not a type of DynamoDB: S, N, B, BOOL, NULL, M, L, SS, NS or BS", key)
	}
	t.end(tag)
	return l
}

func (t *tagged) member(tag string) {
	if t.scan.data[t.scan.pos] != '"' {
		t.failf("%s holds an element that is not a string", tag)
	}
	text, raw := t.text(tag)
	keep := len(t.out)
	switch tag {
	case "NS":
		t.number(tag, text)
		raw = text
	case "BS":
		t.bytes(tag, text, raw)
	}
	t.out = append(t.out[:keep], raw...)
}
