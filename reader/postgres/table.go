package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqltable"
)

type column struct {
	of   string // type as in SQL
	base string // name of the type, with domains resolved
	oid  uint32 // oid of base
	sort string // for a query's key: suffix for sorting; may be ""
}

type described struct {
	*sqltable.Table
	pages int64   // number of pages in the table
	forms []int16 // by column: 0 for text, 1 for binary
	only  string  // "ONLY " if needed to exclude tables that inherit from it
	query string  // a query in parentheses; "" for a table
}

// kinds lists the types whose values are not kept as the server's text.
var kinds = map[string]record.Kind{
	"int2": record.Integer, "int4": record.Integer, "int8": record.Integer, "oid": record.Integer,
	"float4": record.Double, "float8": record.Double, "bool": record.Boolean, "bytea": record.Binary,
}

// blockBytes is the size of a page on nearly all servers.
const blockBytes = 8 << 10

// keyTypes lists the types that a key can have. Each of their values has only one text.
var keyTypes = map[string]bool{
	"int2": true, "int4": true, "int8": true, "oid": true, "text": true, "varchar": true, "bpchar": true, "name": true,
	"uuid": true, "bytea": true, "numeric": true, "date": true, "timestamp": true, "timestamptz": true, "time": true,
}

func (of column) settle(c *sqltable.Column) {
	if kind, ok := kinds[of.base]; ok {
		c.Kind = kind
	}
	c.Type, c.Read, c.Of = sqltable.Types[c.Kind], readers[of.base], of
}

// choose sets how values are transferred, once the key is known.
func (t *described) choose() {
	t.forms = make([]int16, len(t.Columns))
	for i := range t.Columns {
		c := &t.Columns[i]
		if read := binaries[c.Of.(column).base]; read != nil && !slices.Contains(t.Key, i) {
			c.Read, t.forms[i] = read, 1
		}
	}
}

// named returns the table as SQL. Without a schema, the search path applies.
func (a *Address) named() string {
	if a.schema == "" {
		return quote(a.table)
	}
	return quote(a.schema) + "." + quote(a.table)
}

// describe asks the server for a table's columns and key. It refuses a table that cannot be read exactly.
func describe(ctx context.Context, conn *pgconn.PgConn, a *Address) (*described, error) {
	if a.query != "" {
		return describeQuery(ctx, conn, a)
	}
	name := a.named()
	rows, err := query(ctx, conn,
		`SELECT c.oid::text, c.relkind::text, n.nspname::text, c.relname::text, c.relhassubclass::text,
		(SELECT coalesce(sum(pg_relation_size(p.relid)), pg_relation_size(c.oid)) / current_setting('block_size')::int FROM pg_partition_tree(c.oid) p)::bigint::text,
		has_table_privilege(c.oid, 'SELECT')::text, c.relpersistence::text
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)`, name)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("there is no table %s; names are case-sensitive, and other schemas need SCHEMA.TABLE", name)
	}
	r := rows[0]
	oid, relkind := r[0], r[1]
	t := &described{Table: &sqltable.Table{Name: quote(r[2]) + "." + quote(r[3])}}
	t.pages, _ = strconv.ParseInt(r[5], 10, 64)
	t.Bytes = t.pages * blockBytes
	if relkind == "r" {
		t.only = "ONLY "
	}
	switch {
	case relkind == "v" || relkind == "m" || relkind == "f":
		return nil, fmt.Errorf("%s is not a table: a view or a foreign table has no primary key from which a load could "+
			"resume; %s", t.Name, sqltable.ByQuery("*", t.Name))
	case relkind != "r" && relkind != "p":
		return nil, fmt.Errorf("%s is not a table", t.Name)
	case relkind == "r" && r[4] == "true":
		return nil, fmt.Errorf("other tables inherit from %s: a key may occur several times; load each table by itself, "+
			"after NO INHERIT, or all rows at once: %s", t.Name, sqltable.ByQuery("*", t.Name))
	case r[6] != "true":
		return nil, fmt.Errorf("the user may not SELECT all columns of %s; grant that, or load the permitted ones with "+
			"--query", t.Name)
	case r[7] == "t":
		return nil, fmt.Errorf("%s is a temporary table, which only one session sees; copy its rows to a permanent one", t.Name)
	}
	system, err := system(ctx, conn)
	if err != nil {
		return nil, err
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s, oid %s, %s", t.Name, oid, system)
	if err := t.describeColumns(ctx, conn, oid, &s); err != nil {
		return nil, err
	}
	t.Schema, t.Of = s.String(), t
	t.choose()
	return t, nil
}

func (t *described) describeColumns(ctx context.Context, conn *pgconn.PgConn, oid string, s *strings.Builder) error {
	version := "pg_database_collation_actual_version(d.oid)"
	if major, _ := strconv.Atoi(strings.SplitN(conn.ParameterStatus("server_version"), ".", 2)[0]); major < 15 {
		version = "NULL" // the version cannot be read
	}
	rows, err := query(ctx, conn, `WITH RECURSIVE base AS (
			SELECT a.attnum, a.attname, a.atttypid, a.atttypmod, a.attcollation, a.atttypid AS b, y.typtype, y.typbasetype, y.typname
				FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
			UNION ALL
			SELECT base.attnum, base.attname, base.atttypid, base.atttypmod, base.attcollation, y.oid, y.typtype, y.typbasetype, y.typname
				FROM base JOIN pg_type y ON y.oid = base.typbasetype WHERE base.typtype = 'd')
		SELECT attname::text, format_type(atttypid, atttypmod), typname::text, b::text, coalesce(array_position((i.indkey::int2[])[0:i.indnkeyatts-1], attnum)::text, ''),
			coalesce((SELECT c.collname || ' ' || c.collprovider::text || ' ' || coalesce(CASE WHEN c.oid = 100 THEN
				(SELECT d.datcollate || ' ' || coalesce(`+version+`, '') FROM pg_database d WHERE d.datname = current_database())
				ELSE pg_collation_actual_version(c.oid) END, '') FROM pg_collation c WHERE c.oid = attcollation AND (i.indkey::int2[])[0:i.indnkeyatts-1] @> ARRAY[attnum]), '')
		FROM base LEFT JOIN pg_index i ON i.indrelid = $1::oid AND i.indisprimary AND i.indisvalid WHERE typtype <> 'd' ORDER BY attnum`, oid)
	if err != nil {
		return err
	}
	at := map[int]int{}
	for i, r := range rows {
		c, of := sqltable.Column{Name: r[0], Kind: record.String}, column{of: r[1], base: r[2]}
		id, _ := strconv.ParseUint(r[3], 10, 32)
		of.oid = uint32(id)
		of.settle(&c)
		c.Declared = strings.TrimSpace(of.of + " " + r[5])
		fmt.Fprintf(s, ", %q %s %s", c.Name, of.of, r[5])
		if r[4] != "" {
			place, _ := strconv.Atoi(r[4])
			at[place] = i
		}
		t.Columns = append(t.Columns, c)
	}
	if len(t.Columns) == 0 {
		return fmt.Errorf("%s has no columns", t.Name)
	}
	if len(at) == 0 {
		return fmt.Errorf("%s has no primary key: after an interruption it would be unknown which rows were loaded; add "+
			"one, or %s", t.Name, sqltable.ByQuery("*", t.Name))
	}
	for i := range len(at) {
		place := at[i+1]
		t.Key = append(t.Key, place)
		fmt.Fprintf(s, ", key %q", t.Columns[place].Name)
	}
	if err := t.checkKey(); err != nil {
		return err
	}
	unique, err := query(ctx, conn,
		`SELECT i.indexrelid::text, a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts-1])
		WHERE i.indrelid = $1::oid AND i.indisunique AND NOT i.indisprimary AND NOT i.indisexclusion AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL`, oid)
	t.AddUnique(unique)
	return err
}

// checkKey refuses types that are not in keyTypes. Its error has a query that casts them to text.
func (t *described) checkKey() (err error) {
	columns, key := "*", []string{}
	for _, place := range t.Key {
		name, of := t.Columns[place].Name, t.Columns[place].Of.(column)
		if !keyTypes[of.base] && err == nil {
			err = fmt.Errorf("column %s of the primary key of %s has type %s, which a key cannot have", name, t.Name, of.of)
		}
		if _, sorted := sortedTypes[of.base]; !sorted {
			columns += ", " + quote(name) + "::text AS " + quote(name+"_text")
			name += "_text"
		}
		key = append(key, name)
	}
	if err != nil {
		return fmt.Errorf("%w; %s", err, sqltable.ByQuery(columns, t.Name, key...))
	}
	return nil
}

// system returns text that identifies the server. After a promotion, the control file has the old timeline until the
// first checkpoint, which may be minutes later, but the name of the current log file has the new one.
func system(ctx context.Context, conn *pgconn.PgConn) (string, error) {
	rows, err := query(ctx, conn, `SELECT (SELECT system_identifier::text FROM pg_control_system()),
		CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint()) ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END::text`)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("system %s, timeline %s", rows[0][0], rows[0][1]), nil
}

// query returns the rows of a small result as text. Nulls are "".
func query(ctx context.Context, conn *pgconn.PgConn, sql string, args ...string) (all [][]string, err error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	res := conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	if res.Err != nil {
		return nil, res.Err
	}
	for _, r := range res.Rows {
		row := make([]string, len(r))
		for i, v := range r {
			row[i] = string(v)
		}
		all = append(all, row)
	}
	return all, nil
}

// lost reports whether an error is about the session and not the query, so that another session may succeed.
func lost(err error) bool {
	pg := new(pgconn.PgError)
	if !errors.As(err, &pg) {
		return true
	}
	switch pg.Code[:min(2, len(pg.Code))] {
	case "08", "53", "57", "40": // connection, resources, operator intervention, standby conflicts
		return true
	}
	// Timeouts of idle or long transactions, an aborted transaction, a lock not granted.
	return pg.Code == "25P03" || pg.Code == "25P04" || pg.Code == "25P02" || pg.Code == "55P03"
}
