package mysql

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqltable"
)

// refusal is an error that says why a table cannot be read.
type refusal struct{ says string }

func (e *refusal) Error() string { return e.says }

func refusef(format string, a ...any) error { return &refusal{fmt.Sprintf(format, a...)} }

// column describes a column on the server.
type column struct {
	base       string // name of the type
	of         string // type as in SQL
	charset    string
	expression string // expression to SELECT
	sort       string // for a query's key: expression to compare by; "" for the column itself
	plain      bool   // whether values are read as numbers in the driver's format
}

// unicode lists the character sets in which every text has a unique Unicode text.
var unicode = []string{"", "utf8", "utf8mb3", "utf8mb4", "ascii", "latin1", "ucs2", "utf16", "utf16le", "utf32"}

// keyTypes lists the types that a key can have. Their texts compare like their values.
var keyTypes = []string{"tinyint", "smallint", "mediumint", "int", "bigint", "char", "varchar", "binary", "varbinary",
	"decimal", "date", "datetime", "timestamp", "time", "year", "uuid", "inet4", "inet6"}

// kinds lists the types whose values are not kept as the server's text.
var kinds = map[string]record.Kind{
	"tinyint": record.Integer, "smallint": record.Integer, "mediumint": record.Integer, "int": record.Integer,
	"bigint": record.Integer, "year": record.Integer, "float": record.Double, "double": record.Double,
	"binary": record.Binary, "varbinary": record.Binary, "tinyblob": record.Binary, "blob": record.Binary,
	"mediumblob": record.Binary, "longblob": record.Binary, "geometry": record.Binary, "point": record.Binary,
	"linestring": record.Binary, "polygon": record.Binary, "multipoint": record.Binary, "multilinestring": record.Binary,
	"multipolygon": record.Binary, "geometrycollection": record.Binary, "geomcollection": record.Binary,
	"vector": record.Binary,
}

// describe asks the server for a table's columns and key. It refuses a table that cannot be read exactly.
func (a *Address) describe(ctx context.Context, s *session) (*sqltable.Table, error) {
	if a.query != "" {
		return a.describeQuery(ctx, s)
	}
	db, name := text(a.config.DBName), text(a.table)
	rows, err := s.query(ctx, "SELECT TABLE_TYPE, COALESCE(ENGINE, ''), COALESCE(DATA_LENGTH, 0), COALESCE(CREATE_TIME, "+
		"''), TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+db+" AND TABLE_NAME = "+name)
	if err != nil {
		return nil, err
	}
	t := &sqltable.Table{Name: quote(a.config.DBName) + "." + quote(a.table)}
	if len(rows) == 0 {
		return nil, refusef("there is no table %s, or the user may not read it", t.Name)
	}
	r := rows[0]
	if r[0] != "BASE TABLE" && r[0] != "SYSTEM VERSIONED" { // of the latter, the current rows are read
		return nil, refusef("%s is not a table: a view has no primary key from which a load could resume; %s", t.Name,
			sqltable.ByQuery("*", t.Name))
	}
	if r[1] != "InnoDB" {
		return nil, refusef("%s uses the engine %s, which has no snapshots; convert it with ALTER TABLE … ENGINE = InnoDB, "+
			"or load it from a file", t.Name, r[1])
	}
	t.Bytes, _ = strconv.ParseInt(r[2], 10, 64)
	// The server's list omits columns that the user may not read, so select all columns.
	if _, err := s.query(ctx, "SELECT * FROM "+t.Name+" LIMIT 0"); mayNot(err) {
		return nil, refusef("the user may not SELECT from all columns of %s", t.Name)
	} else if err != nil {
		return nil, err
	}
	server, err := s.server(ctx)
	if err != nil {
		return nil, err
	}
	var schema strings.Builder
	fmt.Fprintf(&schema, "%s of %s%s", t.Name, r[3], server)
	if err := describeColumns(ctx, s, t, &schema, db, name); err != nil {
		return nil, err
	}
	if err := describeKey(ctx, s, t, &schema, db, name); err != nil {
		return nil, err
	}
	choose(t)
	t.Schema = schema.String()
	return t, nil
}

func describeColumns(ctx context.Context, s *session, t *sqltable.Table, schema *strings.Builder, db,
	name string) error {
	rows, err := s.query(ctx, "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, COALESCE(CHARACTER_SET_NAME, ''), "+
		"COALESCE(COLLATION_NAME, '') FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "+db+" AND TABLE_NAME = "+name+
		" ORDER BY ORDINAL_POSITION")
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return refusef("the user may not read the columns of %s", t.Name)
	}
	for _, r := range rows {
		of := &column{base: strings.ToLower(r[1]), of: r[2], charset: r[3], expression: quote(r[0])}
		fmt.Fprintf(schema, ", %q %s %s", r[0], r[2], r[4])
		c := of.column(r[0])
		c.Declared = strings.TrimSpace(r[2] + " " + r[4])
		t.Columns = append(t.Columns, c)
	}
	return nil
}

func (of *column) column(name string) sqltable.Column {
	c := sqltable.Column{Name: name, Kind: record.String, Of: of}
	if kind, ok := kinds[of.base]; ok {
		c.Kind = kind
	}
	of.settle(&c)
	c.Type = sqltable.Types[c.Kind]
	return c
}

// choose selects the numeric columns to read without text: all but the key's, because bounds consist of its texts.
func choose(t *sqltable.Table) {
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Read != nil || slices.Contains(t.Key, i) {
			continue
		}
		switch c.Kind {
		case record.Integer:
			c.Read = readInteger
		case record.Double:
			c.Read = readDouble
		default:
			continue
		}
		c.Of.(*column).plain = true
	}
}

// sorted returns the expression for comparing by a key column.
func sorted(c *sqltable.Column) string {
	if by := c.Of.(*column).sort; by != "" {
		return by
	}
	return quote(c.Name)
}

// settle sets how the values of a column are selected and read.
func (of *column) settle(c *sqltable.Column) {
	switch of.base {
	case "bigint":
		if strings.Contains(of.of, "unsigned") {
			c.Kind = record.Unsigned
		}
	case "float", "double":
		of.expression += " + 0e0" // makes it a number, whose text may have more digits
	case "bit":
		of.expression += " + 0"
		if c.Kind = record.Unsigned; of.of == "bit(1)" {
			c.Kind, c.Read = record.Boolean, readBit
		}
	case "datetime":
		c.Read = readTime
	case "timestamp":
		c.Read = readUTC
	}
	if c.Kind == record.String && !slices.Contains(unicode, of.charset) {
		// A text that is not the same after conversion to Unicode and back becomes invalid UTF-8, to reject the row.
		name := of.expression
		of.expression = fmt.Sprintf("IF(BINARY CONVERT(CONVERT(%s USING utf8mb4) USING %s) <=> BINARY %[1]s, "+
			"CAST(CONVERT(%[1]s USING utf8mb4) AS BINARY), CAST(x'ff' AS BINARY))", name, of.charset)
	}
}

func describeKey(ctx context.Context, s *session, t *sqltable.Table, schema *strings.Builder, db, name string) error {
	rows, err := s.query(ctx, "SELECT COLUMN_NAME, COALESCE(SUB_PART, '') FROM information_schema.STATISTICS WHERE "+
		"TABLE_SCHEMA = "+db+" AND TABLE_NAME = "+name+" AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX")
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return refusef("%s has no primary key: after an interruption it would be unknown which rows were loaded; add one, "+
			"or %s", t.Name, sqltable.ByQuery("*", t.Name))
	}
	instead := keyedQuery(t, rows)
	for _, r := range rows {
		i := slices.IndexFunc(t.Columns, func(c sqltable.Column) bool { return c.Name == r[0] })
		if i < 0 {
			return refusef("column %s of the primary key of %s cannot be read", r[0], t.Name)
		}
		of := t.Columns[i].Of.(*column)
		switch {
		case r[1] != "":
			return refusef("the key of %s has only the first %s characters of column %s; %s", t.Name, r[1], r[0], instead)
		case !slices.Contains(keyTypes, of.base):
			return refusef("column %s of the primary key of %s has type %s, unfit for a key; %s", r[0], t.Name, of.of, instead)
		case !slices.Contains(unicode, of.charset):
			return refusef("column %s of the primary key of %s uses the character set %s, whose texts may have no equivalent "+
				"in Unicode; load the table from a file", r[0], t.Name, of.charset)
		}
		t.Key = append(t.Key, i)
		fmt.Fprintf(schema, ", key %q", r[0])
	}
	unique, err := s.query(ctx, "SELECT INDEX_NAME, IF(SUB_PART IS NULL, COALESCE(COLUMN_NAME, ''), '') FROM "+
		"information_schema.STATISTICS WHERE TABLE_SCHEMA = "+db+" AND TABLE_NAME = "+name+
		" AND NON_UNIQUE = 0 AND INDEX_NAME <> 'PRIMARY'")
	t.AddUnique(unique)
	return err
}

// keyedQuery says how to load a table whose key cannot be read: by a query with another key, or from a file.
func keyedQuery(t *sqltable.Table, key [][]string) string {
	columns, names := "*", []string{}
	for _, r := range key {
		name, base := r[0], ""
		if i := slices.IndexFunc(t.Columns, func(c sqltable.Column) bool { return c.Name == name }); i >= 0 {
			base = t.Columns[i].Of.(*column).base
		}
		as := "CAST(" + quote(name) + " AS CHAR)"
		switch {
		case slices.Contains(sortedKinds, base):
			names = append(names, name)
			continue
		case base == "bit":
			as = quote(name) + " + 0"
		case !slices.Contains(castable, base):
			return "load the table from a file"
		}
		columns += ", " + as + " AS " + quote(name+"_key")
		names = append(names, name+"_key")
	}
	return sqltable.ByQuery(columns, t.Name, names...)
}

// castable lists the types whose values have unique texts, so that a query can be sorted by these texts.
var castable = []string{"enum", "set", "decimal", "time", "uuid", "inet4", "inet6"}

func text(s string) string { return "_utf8mb4 x'" + hex.EncodeToString([]byte(s)) + "'" }

// literal writes the value of a key column as SQL, given its text.
func (of *column) literal(sql *bytes.Buffer, value []byte) {
	switch {
	case kinds[of.base] == record.Integer || of.base == "decimal":
		sql.Write(value)
	case kinds[of.base] == record.Binary || of.sort != "":
		fmt.Fprintf(sql, "x'%x'", value)
	default:
		// Without a cast, the server compares by the collation of the column.
		fmt.Fprintf(sql, "_utf8mb4 x'%x'", value)
	}
}

var errPlain = errors.New("the driver returned a number of the wrong type for its column")

func readInteger(d *record.Datum, value []byte, _ *[]byte) error {
	if len(value) != 8 {
		return errPlain
	}
	d.Int = int64(binary.BigEndian.Uint64(value))
	return nil
}

func readDouble(d *record.Datum, value []byte, _ *[]byte) error {
	if len(value) != 8 {
		return errPlain
	}
	d.Double = math.Float64frombits(binary.BigEndian.Uint64(value))
	return nil
}

func readBit(d *record.Datum, text []byte, _ *[]byte) error {
	d.Int = 0
	if len(text) == 1 && text[0] == '1' {
		d.Int = 1
	}
	return nil
}

func readTime(d *record.Datum, text []byte, scratch *[]byte) error {
	from := len(*scratch)
	*scratch = record.AppendDatetime(*scratch, text)
	d.Bytes = (*scratch)[from:len(*scratch):len(*scratch)]
	return nil
}

// readUTC is like readTime, for times in UTC.
func readUTC(d *record.Datum, text []byte, scratch *[]byte) error {
	if err := readTime(d, text, scratch); err != nil || len(d.Bytes) < 19 || d.Bytes[10] != 'T' {
		return err
	}
	from := len(*scratch) - len(d.Bytes)
	*scratch = append(*scratch, 'Z')
	d.Bytes = (*scratch)[from:len(*scratch):len(*scratch)]
	return nil
}

// MayHold reports whether a value of the key column c can have this text. Invalid UTF-8 cannot be written as a literal.
func (a *Address) MayHold(c *sqltable.Column, text []byte) bool {
	return c.Kind != record.String || utf8.Valid(text)
}
