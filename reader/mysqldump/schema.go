package mysqldump

import (
	"slices"
	"strings"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqldump"
)

// How values are read.
const (
	asText = iota
	asInteger
	asUnsigned
	asFloat
	asDouble
	asBit
	asBits
	asBytes
	asTime // a time without a zone
	asUTC
)

// forms lists the types whose values are not kept as the server's text.
var forms = map[string]struct {
	kind record.Kind
	form int
}{
	"tinyint": {record.Integer, asInteger}, "smallint": {record.Integer, asInteger},
	"mediumint": {record.Integer, asInteger}, "int": {record.Integer, asInteger}, "bigint": {record.Integer, asInteger},
	"year": {record.Integer, asInteger}, "float": {record.Double, asFloat}, "double": {record.Double, asDouble},
	"bit": {record.Unsigned, asBits}, "datetime": {record.String, asTime}, "timestamp": {record.String, asTime},
	"binary": {record.Binary, asBytes}, "varbinary": {record.Binary, asBytes}, "tinyblob": {record.Binary, asBytes},
	"blob": {record.Binary, asBytes}, "mediumblob": {record.Binary, asBytes}, "longblob": {record.Binary, asBytes},
	"vector": {record.Binary, asBytes}, "geometry": {record.Binary, asBytes}, "point": {record.Binary, asBytes},
	"linestring": {record.Binary, asBytes}, "polygon": {record.Binary, asBytes}, "multipoint": {record.Binary, asBytes},
	"multilinestring": {record.Binary, asBytes}, "multipolygon": {record.Binary, asBytes},
	"geometrycollection": {record.Binary, asBytes}, "geomcollection": {record.Binary, asBytes},
}

// others lists words that begin items other than columns. A quoted name is always a column's.
var others = []string{"PRIMARY", "KEY", "UNIQUE", "INDEX", "FULLTEXT", "SPATIAL", "CONSTRAINT", "CHECK",
	"FOREIGN", "PERIOD"}

// create processes a CREATE TABLE statement, given the tokens after CREATE TABLE.
func (x *index) create(tokens []sqldump.Token) {
	tokens, _ = sqldump.Words(tokens, "IF", "NOT", "EXISTS")
	name, after := sqldump.Name(tokens)
	t := x.Dump.Add(x.Named(name))
	if t.From > 0 || len(t.Columns) > 0 {
		t.Refused = "the dump creates it twice, and may be several dumps; split it"
		return
	}
	for i := range max(2, len(after)) - 2 {
		named := after[i].Is("CHARACTER") && after[i+1].Is("SET") || after[i].Is("CHARSET") && after[i+1].Is("=")
		charset := strings.ToLower(after[i+2].Text)
		if x.binary && named && charset != "ascii" && !slices.Contains(unicode, charset) {
			t.Refused = "its texts are in " + charset + "; dump again with --default-character-set=utf8mb4"
		}
	}
	items, _ := sqldump.Items(after)
	for _, item := range items {
		if after, ok := sqldump.Words(item, "PRIMARY", "KEY"); ok {
			t.Key = key(after)
			continue
		}
		if len(item) < 2 || slices.ContainsFunc(others, item[0].Is) {
			continue
		}
		t.Columns = append(t.Columns, x.column(item))
	}
}

// key returns the columns of a primary key, or nil if the key has only a prefix of a column.
func key(tokens []sqldump.Token) (names []string) {
	items, _ := sqldump.Items(tokens)
	for _, i := range items {
		if len(i) > 1 && i[1].Is("(") || len(i) == 0 {
			return nil
		}
		names = append(names, i[0].Text)
	}
	return names
}

func (x *index) column(item []sqldump.Token) sqldump.Column {
	c := sqldump.Column{Name: item[0].Text, Kind: record.String, SQL: strings.ToLower(item[1].Text)}
	base, rest := c.SQL, item[2:]
	if len(rest) > 0 && rest[0].Is("(") {
		for len(rest) > 0 {
			c.SQL += rest[0].Text
			closed := rest[0].Is(")")
			if rest = rest[1:]; closed {
				break
			}
		}
	}
	unsigned := false
	for len(rest) > 0 && (rest[0].Is("unsigned") || rest[0].Is("zerofill") || rest[0].Is("signed")) {
		unsigned = unsigned || !rest[0].Is("signed")
		c.SQL += " " + strings.ToLower(rest[0].Text)
		rest = rest[1:]
	}
	if f, known := forms[base]; known {
		c.Kind, c.Form = f.kind, f.form
	}
	switch {
	case base == "bigint" && unsigned:
		c.Kind, c.Form = record.Unsigned, asUnsigned
	case c.SQL == "bit(1)" || c.SQL == "bit":
		c.Kind, c.Form = record.Boolean, asBit
	case base == "timestamp" && x.utc:
		c.Form = asUTC
	}
	return c
}
