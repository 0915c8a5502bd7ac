package pgdump

import (
	"slices"
	"strings"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqldump"
)

// How texts of values are read.
const (
	asText = iota
	asInteger
	asReal
	asDouble
	asBoolean
	asBytes
	asTime  // a time without a zone
	asZoned // a time in the zone of the session that made the dump
	asInterval
)

// forms lists the types whose values are not kept as the server's text.
var forms = map[string]struct {
	kind record.Kind
	form int
}{
	"smallint": {record.Integer, asInteger}, "integer": {record.Integer, asInteger}, "bigint": {record.Integer, asInteger},
	"oid": {record.Integer, asInteger}, "real": {record.Double, asReal}, "double precision": {record.Double, asDouble},
	"boolean": {record.Boolean, asBoolean}, "bytea": {record.Binary, asBytes},
	"timestamp without time zone": {record.String, asTime}, "timestamp with time zone": {record.String, asZoned},
	"interval": {record.String, asInterval},
}

// create processes a CREATE statement, given the tokens after CREATE.
func (x *index) create(tokens []sqldump.Token) {
	if after, ok := sqldump.Words(tokens, "DOMAIN"); ok {
		name, after := typeName(after)
		if after, ok := sqldump.Words(after, "AS"); ok {
			x.domains[x.qualified(name)], _ = typeName(after)
		}
		return
	}
	if after, ok := sqldump.Words(tokens, "TYPE"); ok {
		name, after := x.name(after)
		if after, ok := sqldump.Words(after, "AS"); ok && len(after) > 0 && after[0].Is("(") {
			x.composites[name], _ = x.columns(after)
		}
		return
	}
	for len(tokens) > 0 && (tokens[0].Is("UNLOGGED") || tokens[0].Is("FOREIGN")) {
		tokens = tokens[1:]
	}
	after, ok := sqldump.Words(tokens, "TABLE")
	if !ok {
		return
	}
	name, after := x.name(after)
	t := x.Dump.Add(name)
	columns, rest := x.columns(after)
	if of, ok := sqldump.Words(after, "OF"); ok {
		of, _ := x.name(of)
		columns = x.composites[of]
	}
	t.Columns = append(t.Columns, columns...)
	if _, ok := sqldump.Words(rest, "PARTITION", "BY"); ok {
		t.Refused = "it is partitioned, and its partitions hold the rows; name a partition, or load the live table"
	}
	if rest, ok = sqldump.Words(rest, "INHERITS"); !ok {
		return
	}
	parents, _ := sqldump.Items(rest)
	for _, tokens := range parents {
		name, _ := x.name(tokens)
		if of := x.Dump.Find(name); of != nil {
			t.Columns = append(t.Columns, of.Columns...) // of two columns of a name, the first counts
			of.Note = "rows of tables that inherit from it are not loaded with it"
		}
	}
}

// columns parses the columns in parentheses, and returns the tokens after them.
func (x *index) columns(tokens []sqldump.Token) (columns []sqldump.Column, rest []sqldump.Token) {
	items, rest := sqldump.Items(tokens)
	for _, item := range items {
		if c, ok := x.column(item); ok {
			columns = append(columns, c)
		}
	}
	return columns, rest
}

func (x *index) qualified(name string) string {
	if x.Schema == "" || strings.Contains(name, ".") {
		return name
	}
	return x.Schema + "." + name
}

// constraints lists words that begin items other than columns. They are reserved: a column of such a name is quoted.
var constraints = []string{"CONSTRAINT", "CHECK", "PRIMARY", "UNIQUE", "FOREIGN", "LIKE"}

// column parses an item in CREATE TABLE. It returns false if that is not a column.
func (x *index) column(item []sqldump.Token) (c sqldump.Column, ok bool) {
	if len(item) < 2 || slices.ContainsFunc(constraints, item[0].Is) {
		return c, false
	}
	c = sqldump.Column{Name: item[0].Text, Kind: record.String}
	c.SQL, _ = typeName(item[1:])
	base := c.SQL
	for range len(x.domains) + 1 {
		of, is := x.domains[x.qualified(base)]
		if !is {
			break
		}
		base = of
	}
	if strings.HasSuffix(base, "]") {
		return c, true
	}
	if strings.HasPrefix(base, "interval") {
		base = "interval" // an interval restricted to some fields
	}
	if f, known := forms[withoutSize(base)]; known {
		c.Kind, c.Form = f.kind, f.form
	}
	return c, true
}

func withoutSize(name string) string {
	if open := strings.IndexByte(name, '('); open >= 0 {
		end := strings.IndexByte(name, ')')
		return name[:open] + name[max(end+1, open):]
	}
	return name
}

// afterType lists words that can follow a column's type.
var afterType = []string{"AS", "NOT", "NULL", "DEFAULT", "COLLATE", "GENERATED", "CONSTRAINT", "PRIMARY", "UNIQUE",
	"CHECK", "REFERENCES", "STORAGE", "COMPRESSION", "OPTIONS", ";"}

// typeName returns the name of the type at the start of tokens, with one space between words.
func typeName(tokens []sqldump.Token) (name string, rest []sqldump.Token) {
	tight := true
	for len(tokens) > 0 && (strings.HasSuffix(name, ".") || !slices.ContainsFunc(afterType, tokens[0].Is)) {
		t := tokens[0]
		mark := !t.Quoted && strings.Contains("().,[]", t.Text)
		if !mark && !tight {
			name += " "
		}
		name += t.Text
		tight = mark && t.Text != ")" && t.Text != "]"
		tokens = tokens[1:]
	}
	return name, tokens
}

// alter processes an ALTER TABLE statement, given the tokens after ALTER TABLE. It looks for the primary key.
func (x *index) alter(tokens []sqldump.Token) {
	tokens, _ = sqldump.Words(tokens, "ONLY")
	name, after := x.name(tokens)
	after, ok := sqldump.Words(after, "ADD", "CONSTRAINT")
	if !ok || len(after) == 0 {
		return
	}
	if after, ok = sqldump.Words(after[1:], "PRIMARY", "KEY"); !ok {
		return
	}
	t := x.Dump.Find(name)
	if t == nil {
		return
	}
	items, _ := sqldump.Items(after)
	t.Key = nil
	for _, i := range items {
		if len(i) == 1 {
			t.Key = append(t.Key, i[0].Text)
		}
	}
}
