package jsonl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Messages of canal (FlatMessage, as written by LogEventConvert 1.1) and of programs with the same format (DTS, TiCDC):
//
// 	{"data":[{"id":"7","v":"a"}],"database":"shop","es":1589373560000,"id":9,"isDdl":false,"mysqlType":{"id":"bigint","v":"text"},
// 	 "old":[{"v":"b"}],"pkNames":["id"],"sql":"","table":"orders","ts":1589373560798,"type":"UPDATE"}
//
// Maxwell's messages have one row and no types, so the user gives the types:
//
// 	{"database":"shop","table":"orders","type":"update","ts":1589373560,"xid":23,"commit":true,"primary_key_columns":["id"],"data":{"id":7,"v":"a"},"old":{"v":"b"}}
//
// Canal writes every value as a string or null. The parser returns the values that a load of the same table from the
// database would return. It refuses inexact values, unless the user gives the column's type for canal's text.

// canalRows holds the members of a message that depend on the number of its rows.
type canalRows struct {
	Data rowList  `json:"data"`
	Old  rowList  `json:"old"`
	Keys []string `json:"pkNames"`
	Type string   `json:"type"`

	MaxwellKeys []string `json:"primary_key_columns"`
}

// rowList is an array of rows or, in JSON, a single row.
type rowList []json.RawMessage

func (l *rowList) UnmarshalJSON(text []byte) error {
	if text[0] == '{' {
		*l = rowList{slices.Clone(text)}
		return nil
	}
	return json.Unmarshal(text, (*[]json.RawMessage)(l))
}

// UnfoldCanal returns messages with one row each. It splits updates of the primary key into deletion and insertion.
func UnfoldCanal(r io.Reader, longest int) io.Reader {
	return &unfolding{lines: bufio.NewReaderSize(r, 64<<10), longest: longest}
}

type unfolding struct {
	lines    *bufio.Reader
	longest  int
	line     []byte // the part read so far
	passes   bool   // whether the rest of an overlong line is being passed on unchanged
	unfolded bytes.Buffer
	err      error
}

func (u *unfolding) Read(p []byte) (int, error) {
	for u.unfolded.Len() == 0 && u.err == nil {
		var part []byte
		part, u.err = u.lines.ReadSlice('\n')
		ended := u.err != bufio.ErrBufferFull
		if !ended {
			u.err = nil
		}
		if u.line = append(u.line, part...); !ended && len(u.line) <= u.longest && !u.passes {
			continue
		}
		if u.passes || len(u.line) > u.longest || !u.rows() {
			u.unfolded.Write(u.line)
		}
		u.line, u.passes = u.line[:0], !ended
	}
	if u.unfolded.Len() == 0 {
		return 0, u.err
	}
	return u.unfolded.Read(p)
}

// rows splits a message into messages of one row each. It returns false if there is no need.
func (u *unfolding) rows() bool {
	var m canalRows
	if err := json.Unmarshal(u.line, &m); err != nil || len(m.Data) == 0 || len(m.Old) > 0 && len(m.Old) != len(m.Data) {
		return false
	}
	beforeImages := make([]map[string]json.RawMessage, len(m.Data))
	moves := false
	for i := range m.Old {
		beforeImages[i] = movedRow(&m, i)
		moves = moves || beforeImages[i] != nil
	}
	if len(m.Data) == 1 && !moves {
		return false
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(u.line, &all); err != nil {
		return false
	}
	one := func(kind string, data, old any) {
		all["type"], _ = json.Marshal(kind)
		all["data"], _ = json.Marshal([]any{data})
		all["old"], _ = json.Marshal(old)
		line, _ := json.Marshal(all) // marshalling JSON cannot fail
		u.unfolded.Write(append(line, '\n'))
	}
	for i, row := range m.Data {
		switch {
		case beforeImages[i] != nil:
			one("DELETE", beforeImages[i], nil)
			one("INSERT", row, nil)
		case len(m.Old) > 0:
			one(m.Type, row, []any{m.Old[i]})
		default:
			one(m.Type, row, nil)
		}
	}
	return true
}

// movedRow returns the row before an update of its key, or nil if the key did not change or values are missing.
func movedRow(m *canalRows, i int) map[string]json.RawMessage {
	var before, old map[string]json.RawMessage
	if json.Unmarshal(m.Data[i], &before) != nil || json.Unmarshal(m.Old[i], &old) != nil ||
		!slices.ContainsFunc(slices.Concat(m.Keys, m.MaxwellKeys), func(key string) bool { return old[key] != nil }) {
		return nil
	}
	if len(old) == len(before) {
		return nil
	}
	maps.Copy(before, old)
	return before
}

// canalMessage holds a message's kind, and the positions of its members.
type canalMessage struct {
	kind, sql string
	ddl       bool
	canal     bool // false for Maxwell, which has no isDdl
	data, old int  // positions of the first rows; -1 if there is none
	more      bool // whether there are more rows, because the message was not unfolded
	types     int
	typesEnd  int
}

// canalChange parses a message, which must have one row.
func (p *Parser) canalChange(start int) bool {
	s := &p.scan
	m := canalMessage{data: -1, old: -1, types: -1}
	var name [2]string
	p.members(start, func(key []byte, from, to int) bool {
		switch string(key) {
		case "type":
			m.kind = p.textAt(from)
			m.ddl = m.ddl || strings.HasPrefix(m.kind, "table-") || strings.HasPrefix(m.kind, "database-")
		case "es":
			p.changed.at.Millis = int64(p.natural(from))
		case "position": // written by Maxwell on request
			file, position, _ := strings.Cut(p.textAt(from), ":")
			p.changed.at.File = file
			p.changed.at.Position, _ = strconv.ParseUint(position, 10, 64)
		case "ts":
			if p.options.Changes.Form == MaxwellChanges {
				p.changed.at.Millis = int64(p.natural(from))
				if p.changed.at.Millis < 1e11 { // seconds, except in messages about statements
					p.changed.at.Millis *= 1000
				}
			}
		case "sql":
			m.sql = p.textAt(from)
		case "isDdl":
			m.canal = true
			m.ddl = m.ddl || s.data[from] == 't'
		case "database":
			name[0] = p.textAt(from)
		case "table":
			name[1] = p.textAt(from)
		case "data":
			m.data, m.more = p.firstRow(from)
		case "old":
			m.old, _ = p.firstRow(from)
		case "mysqlType":
			m.types, m.typesEnd = from, to
		}
		return true
	})
	p.changed.event.table = append(p.changed.event.table[:0], name[:]...)
	switch {
	case m.kind == "" || name[0] == "" && !m.ddl || m.canal != (p.options.Changes.Form == CanalChanges):
		return p.refuse("", CodeChange, "want type, database and table, with isDdl as in canal messages, or without it as "+
			"in Maxwell messages", start)
	case m.ddl:
		return p.canalDefinition(&m, name[:], start)
	}
	if mine, ok := p.ofTable(name[:], start); !mine {
		return ok
	}
	switch m.kind {
	case "INSERT", "INIT", "insert", "bootstrap-insert": // INIT is written by DTS for a row that already existed
	case "UPDATE", "update": // has only the columns that the server logged
		p.record.Mode = table.Update
	case "DELETE", "delete":
		p.record.Mode = table.Delete
	case "bootstrap-start", "bootstrap-complete":
		return p.pass(false)
	default:
		return p.refuse("", CodeChange, fmt.Sprintf("unknown type %q: want INSERT, UPDATE or DELETE", m.kind), start)
	}
	if m.data < 0 {
		return p.refuse("", CodeChange, fmt.Sprintf("a change of type %s has no row", m.kind), start)
	}
	if m.more {
		return p.refuse("", CodeChange, "want one message per line, at most 64 MiB, with the old rows of updates", start)
	}
	if m.old >= 0 && !p.members(m.old, func(key []byte, from, _ int) bool {
		_, ofKey := p.index[string(key)]
		return !ofKey || p.refuse(string(key), CodeChange, "the update changes a column of the table's key, and would leave "+
			"the old row behind; make the key of the columns of the source's own key, and set binlog_row_image=FULL "+
			"(Maxwell: output_primary_key_columns=true); an update of every column looks like one logged without it", from)
	}) {
		return false
	}
	columns, ok := p.canalColumns(m.types, m.typesEnd)
	return ok && p.members(m.data, func(key []byte, from, to int) bool {
		if p.changedValue(columns, key, from, to) {
			return true
		}
		if !m.canal && !p.options.Changes.Typed(string(key)) {
			p.bad.Message = "Maxwell writes no types; give --type for each column: " + strings.Join(p.untyped(m.data), ", ")
		}
		return false
	}) && p.changesAny()
}

// untyped returns the names of the loaded columns of a row whose types the user has not given.
func (p *Parser) untyped(row int) (names []string) {
	of := &p.options.Changes
	p.members(row, func(name []byte, _, _ int) bool {
		if out := of.Without != nil && p.column(name) < 0 && of.Without(string(name)); !out && !of.Typed(string(name)) {
			names = append(names, string(name))
		}
		return true
	})
	return names
}

// firstRow returns the position of the object at from, or of the first one in the array there, or -1. more reports
// whether others follow.
func (p *Parser) firstRow(from int) (at int, more bool) {
	s := &p.scan
	switch s.data[from] {
	case '{':
		return from, false
	case '[':
	default:
		return -1, false
	}
	if s.pos = from + 1; s.token() != '{' {
		return -1, false
	}
	at = s.pos
	s.past()
	return at, s.token() == ','
}

// harmless lists kinds of statements that change no rows: they create tables or databases, or create or drop indexes.
var harmless = []string{"CREATE", "CINDEX", "DINDEX", "table-create", "database-create"}

// changesRows matches statements that canal copies with the type QUERY and that may change rows.
var changesRows = regexp.MustCompile(
	`(?i)^\s*(/\*.*?\*/\s*)*(insert|update|delete|replace|load|truncate|drop|alter|rename|call)\b`)

// beside matches a character that cannot be part of a name.
const beside = `[^\p{L}\p{N}_$]`

// canalDefinition skips a statement that does not change the loaded table, and refuses any other.
func (p *Parser) canalDefinition(m *canalMessage, name []string, at int) bool {
	named := p.options.Changes.Table
	if whole := p.options.Changes.Whole; named == "" && whole != nil {
		named = whole.Is("")
	}
	bare := named[strings.LastIndexByte(named, '.')+1:]
	mine := IsTable(named, name) || regexp.MustCompile(`(?i)(^|`+beside+`)`+regexp.QuoteMeta(bare)+`($|`+beside+
		`)`).MatchString(m.sql)
	switch {
	case slices.Contains(harmless, m.kind):
	case mine, name[1] == "" && m.kind != "QUERY", m.kind == "QUERY" && changesRows.MatchString(m.sql):
		return p.refuse("", CodeDDL, fmt.Sprintf("a %s statement that may change the table %s: %.100s; do the same here, "+
			"and continue with the messages after this one", m.kind, named, m.sql), at)
	}
	return p.pass(true)
}

// canalColumns returns the columns in the member mysqlType, which is between two positions; nil if it has none.
func (p *Parser) canalColumns(from, to int) (map[string]*changedColumn, bool) {
	if from < 0 || p.scan.data[from] != '{' {
		return nil, true
	}
	text, c := p.scan.data[from:to], &p.changed.schema
	if c.columns != nil && bytes.Equal(c.text, text) {
		return c.columns, true
	}
	var types map[string]string
	if err := json.Unmarshal(text, &types); err != nil {
		return nil, p.refuse("", CodeChange, "mysqlType of the message cannot be read", from)
	}
	c.text, c.columns = append(c.text[:0], text...), map[string]*changedColumn{}
	for name, of := range types {
		c.columns[name] = canalColumn(of)
	}
	return c.columns, true
}

var mysqlTypes = regexp.MustCompile(`^([a-z]+)\s*(?:\((\d+)(?:,\d+)?\))?`)

// canalColumn returns how to read the values of a column of a MySQL type.
func canalColumn(of string) *changedColumn {
	c := &changedColumn{digits: -1}
	base, length := "", ""
	if m := mysqlTypes.FindStringSubmatch(strings.ToLower(of)); m != nil {
		base, length = m[1], m[2]
	}
	c.length, _ = strconv.Atoi(length)
	switch base {
	case "tinyint", "smallint", "mediumint", "int", "integer", "year":
		c.read = readWholeText
	case "bigint":
		if c.read = readWholeText; strings.Contains(strings.ToLower(of), "unsigned") {
			c.read = readUnsignedText
		}
	case "float":
		c.read = readFloat(32)
	case "double":
		c.read = readFloat(64)
	case "decimal", "numeric", "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "date", "time":
		c.read = readText
	case "datetime":
		c.read = readDatetime
	case "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		c.length, c.read = 0, readLatin1
	case "binary":
		if c.read = readLatin1; c.length == 0 {
			c.refuse = "the message does not state the column's length, and trailing zeros are not logged"
		}
	case "timestamp":
		c.refuse = "canal writes it in a time zone that the message does not state; give the column's type with that zone"
	default: // bit, enum, set, json, geometry
		c.refuse = fmt.Sprintf("messages do not have the server's exact text of %s", of)
	}
	if c.refuse != "" {
		c.refuse += ", or leave the column out"
	}
	return c
}

func readWholeText(p *Parser, _ *changedColumn, d *record.Datum, from, _ int) string {
	n, err := strconv.ParseInt(p.textAt(from), 10, 64)
	if err != nil {
		return noWhole
	}
	*d = record.Datum{Kind: record.Integer, Int: n}
	return ""
}

func readUnsignedText(p *Parser, _ *changedColumn, d *record.Datum, from, _ int) string {
	n, err := strconv.ParseUint(p.textAt(from), 10, 64)
	if err != nil {
		return noWhole
	}
	*d = record.Datum{Kind: record.Unsigned, Int: int64(n)}
	return ""
}

// readDatetime reads a time as a load from the server would.
func readDatetime(p *Parser, _ *changedColumn, d *record.Datum, from, _ int) string {
	text := p.textAt(from)
	if len(text) < len("2006-01-02 15:04:05") {
		return "the value is not a time, as mysqlType requires"
	}
	p.text(d, func(dst []byte) []byte { return record.AppendDatetime(dst, []byte(text)) })
	return ""
}

// readLatin1 reads bytes that are written as the characters with their numbers.
func readLatin1(p *Parser, c *changedColumn, d *record.Datum, from, _ int) string {
	if p.scan.data[from] != '"' {
		return noText
	}
	text := p.textAt(from)
	if strings.ContainsFunc(text, func(r rune) bool { return r > 0xFF }) {
		return "the value has characters that are not bytes"
	}
	p.text(d, func(dst []byte) []byte {
		n := 0
		for _, r := range text {
			dst, n = append(dst, byte(r)), n+1
		}
		for ; n < c.length; n++ {
			dst = append(dst, 0)
		}
		return dst
	})
	d.Kind = record.Binary
	return ""
}
