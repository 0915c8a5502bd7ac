package jsonl

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// ChangeForm is a format in which a program writes changes of rows.
type ChangeForm uint8

const (
	NoChanges ChangeForm = iota
	// DebeziumChanges are events of Debezium's connectors, as written by its JSON converter: with schema and payload, or
	// with the payload alone.
	DebeziumChanges
	CanalChanges    // messages of canal, with one row each
	MaxwellChanges  // messages of Maxwell
	DynamoDBChanges // incremental exports of DynamoDB, with the last change of each item
)

// Codes of changes that end a load, because later changes may depend on them.
const (
	CodeChange = "BadChange"   // the line is not a complete change in the expected format
	CodeDDL    = "TableChange" // the table was altered, truncated or dropped
	CodeTable  = "OtherTable"  // there are changes of several tables, and none is selected
)

// Changes controls how changes are read.
type Changes struct {
	Form  ChangeForm
	Table string // the loaded table, such as "orders", "schema.orders" or "shop.schema.orders"; "" if there is only one
	// Whole is the table's full name, shared by all readers of a load. If it is nil, tables are not compared.
	Whole *TableOnce
	// Without reports whether a column is not loaded. Nil means that all columns are loaded.
	Without func(column string) bool
	Typed   func(column string) bool // reports whether the user gave a column's type, for events without a schema
}

// changed is the parser's state for changes.
type changed struct {
	passes bool     // whether the line gives no record
	others int      // number of lines in the split that are about other tables
	at     LogPlace // place of the latest change

	event  debeziumEvent
	schema changedSchema
}

// LogPlace is the place of a change in its source's log. A zero field is unknown.
type LogPlace struct {
	File     string // name of the binary log's file
	Position uint64
	LSN      uint64 // position in PostgreSQL's log
	Millis   int64  // time of the change, in milliseconds since 1970
}

// Followed returns the number of changes of other tables in the split so far, and the place of the latest change.
func (p *Parser) Followed() (others int, last LogPlace) { return p.changed.others, p.changed.at }

// natural returns the natural number at a position, or 0 if there is no number.
func (p *Parser) natural(at int) uint64 {
	end := at
	for data := p.scan.data; end < len(data) && data[end] >= '0' && data[end] <= '9'; {
		end++
	}
	n, _ := strconv.ParseUint(string(p.scan.data[at:end]), 10, 64)
	return n
}

// change parses a change that starts at the first byte of its value.
func (p *Parser) change() bool {
	s := &p.scan
	p.record.Cells, p.record.Mode = p.record.Cells[:0], table.Put
	if s.token() == 'n' && s.word("null") { // a tombstone, which a broker needs for log compaction
		return p.pass(false)
	}
	start := s.pos
	if s.token() != '{' {
		return p.broken("want an object")
	}
	if _, ok := p.skip(nil, 1); !ok {
		return false
	}
	end := s.pos
	p.keys.reset()
	// From here on, the text is known to be a JSON object without repeated keys.
	ok := false
	switch p.options.Changes.Form {
	case DynamoDBChanges:
		ok = p.dynamoChange(start)
	case CanalChanges, MaxwellChanges:
		ok = p.canalChange(start)
	default:
		ok = p.debeziumChange(start)
	}
	s.pos = end
	if ok && !p.changed.passes {
		p.fillFields()
	}
	return ok
}

// pass marks the line as giving no record. other means that the change is of another table.
func (p *Parser) pass(other bool) bool {
	p.changed.passes = true
	if other {
		p.changed.others++
	}
	return true
}

// ofTable skips or refuses changes of other tables. name has the table's name, after those of its database and schema.
func (p *Parser) ofTable(name []string, at int) (mine, ok bool) {
	c := &p.options.Changes
	if c.Table != "" && !IsTable(c.Table, name) {
		return false, p.pass(true)
	}
	if c.Whole == nil {
		return true, true
	}
	whole := strings.Join(name, ".")
	if first := c.Whole.Is(whole); first != whole {
		return false,
			p.refuse("", CodeTable, fmt.Sprintf("the change is of table %s, but others are of %s; name one of them in full "+
				"with --source-table, to skip and count the changes of others", whole, first), at)
	}
	return true, true
}

// TableOnce is a table's full name, which its first user sets. It is safe for concurrent use.
type TableOnce struct {
	mu   sync.Mutex
	name string
}

// Is sets the name unless it is set already, and returns it.
func (t *TableOnce) Is(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.name = cmp.Or(t.name, name)
	return t.name
}

// IsTable reports whether named, which may be qualified, refers to the table whose full name has these parts.
func IsTable(named string, name []string) bool {
	last := len(name) - 1
	for i := range name {
		if strings.Join(name[i:], ".") == named && (i == last || !strings.Contains(name[last], ".")) {
			return true
		}
	}
	return false
}

// members calls each for every member of the object at a position, with the value's bounds. The text must be valid.
func (p *Parser) members(at int, each func(key []byte, from, to int) bool) bool {
	s := &p.scan
	s.pos = at + 1
	for s.token() != '}' {
		if s.token() == ',' {
			s.pos++
			s.space()
		}
		key, _ := s.text()
		s.token()
		s.pos++ // the colon
		s.space()
		from := s.pos
		s.past()
		to := s.pos
		if !each(key, from, to) {
			return false
		}
		s.pos = to
	}
	s.pos++
	return true
}

// past skips the value at the current position. The text must be valid.
func (s *scanner) past() {
	depth := 0
	for ; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case '"':
			for s.pos++; s.data[s.pos] != '"'; s.pos++ {
				if s.data[s.pos] == '\\' {
					s.pos++
				}
			}
			if depth == 0 {
				s.pos++
				return
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				if depth == 0 {
					s.pos++
				}
				return
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return
			}
		}
	}
}

// textAt returns the string at a position, or "" if there is no string.
func (p *Parser) textAt(at int) string {
	s := &p.scan
	if s.data[at] != '"' {
		return ""
	}
	s.pos = at
	text, _ := s.text()
	return string(text)
}

func (p *Parser) addCell(name []byte, d record.Datum) {
	p.record.Cells = append(p.record.Cells, record.Cell{Name: name, Datum: d, At: -1})
}

// dynamoChange parses a line of an incremental export:
//
//	{"Metadata":{"WriteTimestampMicros":{"N":"1680109764000000"}},"Keys":{"id":{"S":"x"}},"OldImage":{…},"NewImage":{…}}
//
// A deleted item has no NewImage.
func (p *Parser) dynamoChange(start int) bool {
	keys, image := -1, -1
	if !p.members(start, func(name []byte, from, _ int) bool {
		switch object := p.scan.data[from] == '{'; string(name) {
		case "Keys":
			keys = from
			return object || p.refuse("", CodeChange, "Keys is not an object", from)
		case "NewImage":
			if image = from; !object {
				image = -1
			}
		case "Metadata", "OldImage":
		default:
			return p.refuse("", CodeChange, fmt.Sprintf("member %q is not part of an incremental export: want Metadata, Keys, "+
				"OldImage and NewImage", name), from)
		}
		return true
	}) {
		return false
	}
	if keys < 0 {
		return p.refuse("", CodeChange, "want Keys, which identify the changed item", start)
	}
	if image < 0 {
		p.record.Mode, image = table.Delete, keys
	}
	return p.members(image, func(name []byte, from, to int) bool {
		t := &p.tags
		t.scan.data, t.scan.pos = p.scan.compact(from, to), 0
		d, err := t.value(DynamoDB)
		if err != nil {
			return p.refuse(string(name), CodeTag, fmt.Sprintf("%v, in the value at byte %d", err, from+1), from)
		}
		p.addCell(name, d)
		return true
	})
}

// changeMarks holds the members by which each format's first records are recognised.
var changeMarks = []struct {
	form  ChangeForm
	marks [2]string
}{{DebeziumChanges, [2]string{`"op"`, `"source"`}}, {CanalChanges, [2]string{`"isDdl"`, `"database"`}},
	{MaxwellChanges, [2]string{`"xid"`, `"database"`}}, {DynamoDBChanges, [2]string{`"Keys"`, `Image"`}}}

// GuessChanges returns a text's format of changes and the first change's table, or why none can be read.
func GuessChanges(head []byte, layout Layout, given ChangeForm) (form ChangeForm, name, why string) {
	for _, of := range changeMarks {
		form := of.form
		if given != NoChanges && given != form || given == NoChanges && !(bytes.Contains(head, []byte(of.marks[0])) &&
			bytes.Contains(head, []byte(of.marks[1]))) {
			continue
		}
		head := head
		if form == CanalChanges || form == MaxwellChanges {
			head, _ = io.ReadAll(UnfoldCanal(bytes.NewReader(head), len(head))) // reading from memory cannot fail
		}
		p := NewParser(Options{Layout: layout, Changes: Changes{Form: form, Typed: func(string) bool { return true }}})
		p.Reset(head)
		for rec, ok := p.Next(); ok; rec, ok = p.Next() {
			if rec.Bad == nil {
				return form, strings.Join(p.changed.event.table, "."), ""
			}
			why = cmp.Or(why, strings.TrimPrefix(rec.Bad.Column+": "+rec.Bad.Message, ": "))
		}
	}
	return NoChanges, "", why
}
