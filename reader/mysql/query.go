package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	mysql "github.com/go-sql-driver/mysql"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqltable"
)

// ParseQuery parses the address of a server for a query: mysql://USER@HOST:PORT/DATABASE?key=COLUMN,COLUMN.
func ParseQuery(arg, query string) (*Address, error) {
	a, p, err := parse(arg)
	if err != nil {
		return nil, err
	}
	a.table, a.key = "query", p.key
	if a.query, err = sqltable.CheckQuery(query, p.table, p.key); err != nil {
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	return a, nil
}

// maxKeyText is the number of bytes of a text that the server compares when it sorts.
const maxKeyText = 1024

// sortedKinds lists the types that a query's key can have. Each of their values has only one text.
var sortedKinds = []string{"tinyint", "smallint", "mediumint", "int", "bigint", "year", "char", "varchar", "tinytext",
	"text", "mediumtext", "longtext", "binary", "varbinary", "date", "datetime", "timestamp"}

// source returns the FROM clause for the query. Its line feed ends a comment at the end of the query.
func (a *Address) source() string { return " FROM (" + a.query + "\n) AS query" }

// describeQuery asks the server for the columns of the query's result. The key comes from the address.
func (a *Address) describeQuery(ctx context.Context, s *session) (*sqltable.Table, error) {
	types, err := s.columnTypes(ctx, "SELECT *"+a.source()+" LIMIT 0")
	if err != nil {
		if errors.As(err, new(*mysql.MySQLError)) && !a.Lost(err) {
			return nil, refusef("read the columns of the query: %v", err)
		}
		return nil, fmt.Errorf("read the columns of the query: %w", err)
	}
	if err := a.checkEngines(ctx, s); err != nil {
		return nil, err
	}
	charsets, err := s.charsets(ctx, types, a.source())
	if err != nil {
		return nil, err
	}
	server, err := s.server(ctx)
	if err != nil {
		return nil, err
	}
	var schema strings.Builder
	fmt.Fprintf(&schema, "the query %q of %s%s", a.query, a.config.DBName, server)
	t := &sqltable.Table{Name: "the query"}
	for i, c := range types {
		of := &column{base: strings.TrimPrefix(c.of, "unsigned "), of: c.of, charset: charsets[i], expression: quote(c.name)}
		if of.charset == "binary" {
			of.charset = ""
		}
		fmt.Fprintf(&schema, ", %q %s %s", c.name, c.of, of.charset)
		t.Columns = append(t.Columns, of.column(c.name))
	}
	if err := t.Claim(a.key); err != nil {
		return nil, refusef("%v", err)
	}
	for _, k := range t.Key {
		c := &t.Columns[k]
		of := c.Of.(*column)
		if !slices.Contains(sortedKinds, of.base) {
			return nil, refusef("column %s of the query's key has the type %s, in which different texts can be equal; cast "+
				"it, as in CAST(%s AS CHAR), or name another column in key=", c.Name, of.of, quote(c.Name))
		}
		if c.Kind == record.String && of.charset != "" {
			// A collation may treat different texts as equal, so texts are sorted by their bytes.
			of.sort = "CAST(CONVERT(" + quote(c.Name) + " USING utf8mb4) AS BINARY)"
		}
		fmt.Fprintf(&schema, ", key %q", c.Name)
	}
	choose(t)
	t.MaxKey = maxKeyText
	t.Schema = schema.String()
	return t, nil
}

// answered is a column of a query's result.
type answered struct{ name, of string }

// columnTypes returns the columns of the result of a statement.
func (s *session) columnTypes(ctx context.Context, sql string) (all []answered, err error) {
	r, err := s.rows(ctx, sql)
	if err != nil {
		return nil, err
	}
	types, ok := r.rows.(driver.RowsColumnTypeDatabaseTypeName)
	if !ok {
		return nil, errors.Join(errors.New("the driver does not report column types"), r.Close())
	}
	for i, name := range r.rows.Columns() {
		all = append(all, answered{name, strings.ToLower(types.ColumnTypeDatabaseTypeName(i))})
	}
	for r.Next() {
	}
	return all, r.Close()
}

// charsets returns the character set of each column before conversion to the session's; "" if it has none.
func (s *session) charsets(ctx context.Context, columns []answered, source string) ([]string, error) {
	ask := []string{"COUNT(*)"} // gives a row even if the query gives none
	for _, c := range columns {
		one := "''"
		if _, typed := kinds[strings.TrimPrefix(c.of, "unsigned ")]; !typed {
			one = "CHARSET(MAX(" + quote(c.name) + "))"
		}
		ask = append(ask, one)
	}
	rows, err := s.query(ctx, "SELECT "+strings.Join(ask, ", ")+source+" WHERE FALSE")
	if err != nil {
		return nil, fmt.Errorf("read the character sets of the query: %w", err)
	}
	if len(rows) != 1 || len(rows[0]) != len(columns)+1 {
		return nil, errors.New("read the character sets of the query: the server does not report them")
	}
	return rows[0][1:], nil
}

// checkEngines refuses a query that uses, itself or through a view, a table whose engine has no snapshots.
func (a *Address) checkEngines(ctx context.Context, s *session) error {
	rows, err := s.query(ctx,
		`SELECT t.TABLE_NAME, COALESCE(t.ENGINE, ''), COALESCE(v.VIEW_DEFINITION, ''), t.TABLE_TYPE FROM information_schema.TABLES t
		LEFT JOIN information_schema.VIEWS v ON v.TABLE_SCHEMA = t.TABLE_SCHEMA AND v.TABLE_NAME = t.TABLE_NAME
		WHERE t.TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') AND (t.TABLE_TYPE = 'VIEW' OR COALESCE(t.ENGINE, '') <> 'InnoDB')`)
	if err != nil {
		return err
	}
	texts, seen := []string{a.query}, make([]bool, len(rows))
	for len(texts) > 0 {
		text := texts[0]
		texts = texts[1:]
		for i, r := range rows {
			if seen[i] || !names(text, r[0]) {
				continue
			}
			seen[i] = true
			switch {
			case r[3] != "VIEW":
				return refusef("the query reads %s, whose engine %s has no snapshots; convert it with ALTER TABLE … ENGINE = "+
					"InnoDB, or load a file of the query", r[0], r[1])
			case r[2] == "":
				return refusef("the user may not see the tables of the view %s; grant SHOW VIEW, or query its tables", r[0])
			}
			texts = append(texts, r[2])
		}
	}
	return nil
}

// names reports whether SQL text contains a name as a whole word, ignoring case.
func names(text, name string) bool {
	const beside = `[^0-9A-Za-z_$\x{80}-\x{10FFFF}]` // a character that cannot be part of a name
	return regexp.MustCompile(`(?i)(^|` + beside + `)` + regexp.QuoteMeta(name) + `($|` + beside + `)`).MatchString(text)
}
