package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqltable"
)

// sortedTypes maps the types that a query's key can have to suffixes for sorting; equal keys then have equal texts.
var sortedTypes = map[string]string{
	"int2": "", "int4": "", "int8": "", "oid": "", "uuid": "", "bytea": "", "date": "", "timestamp": "", "timestamptz": "",
	"text": ` COLLATE "C"`, "varchar": ` COLLATE "C"`,
}

// describeQuery asks the server for the columns of the query's result. The key comes from the address.
func describeQuery(ctx context.Context, conn *pgconn.PgConn, a *Address) (*described, error) {
	// The line feed ends a comment at the end of the query.
	t := &described{Table: &sqltable.Table{Name: "the query"}, query: "(" + a.query + "\n) AS query"}
	prepared, err := conn.Prepare(ctx, "", "SELECT * FROM "+t.from(), nil)
	if err != nil {
		return nil, fmt.Errorf("read the columns of the query: %w", err)
	}
	var oids, mods []string
	for _, f := range prepared.Fields {
		oids, mods = append(oids, fmt.Sprint(f.DataTypeOID)), append(mods, fmt.Sprint(f.TypeModifier))
	}
	rows, err := query(ctx, conn,
		`SELECT t.typname::text, format_type(t.oid, m.mod) FROM unnest($1::oid[], $2::int[]) WITH ORDINALITY m(oid, mod, n) JOIN pg_type t ON t.oid = m.oid ORDER BY n`,
		"{"+strings.Join(oids, ",")+"}", "{"+strings.Join(mods, ",")+"}")
	if err != nil {
		return nil, err
	}
	if len(rows) != len(prepared.Fields) || len(rows) == 0 {
		return nil, fmt.Errorf("the query has %d columns; the server knows the types of %d", len(prepared.Fields), len(rows))
	}
	var s strings.Builder
	system, err := system(ctx, conn)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&s, "the query %q of %s", a.query, system)
	for i, f := range prepared.Fields {
		c, of := sqltable.Column{Name: f.Name, Kind: record.String}, column{of: rows[i][1], base: rows[i][0],
			oid: f.DataTypeOID}
		of.sort = sortedTypes[of.base]
		of.settle(&c)
		fmt.Fprintf(&s, ", %q %s", c.Name, of.of)
		t.Columns = append(t.Columns, c)
	}
	if err := t.Claim(a.key); err != nil {
		return nil, err
	}
	for _, k := range t.Key {
		c := &t.Columns[k]
		of := c.Of.(column)
		if _, ok := sortedTypes[of.base]; !ok {
			return nil, fmt.Errorf("column %s of the query's key has the type %s, in which different texts can be equal; cast "+
				"it, as in %s::text, or name another column in key=", c.Name, of.of, quote(c.Name))
		}
		fmt.Fprintf(&s, ", key %q", c.Name)
	}
	t.Schema, t.Of = s.String(), t
	t.choose()
	return t, nil
}

// hold begins a transaction in which the tables of the query are locked against changes of their schemas. They can be
// locked only after the snapshot is taken. A table that was truncated or recreated in between would be empty.
func (t *described) hold(ctx context.Context, conn *pgconn.PgConn) error {
	if err := begin(ctx, conn, beginSnapshot, "SELECT 1"); err != nil {
		return err
	}
	return t.unmoved(ctx, conn)
}

func (t *described) unmoved(ctx context.Context, conn *pgconn.PgConn) error {
	if _, err := query(ctx, conn, "EXPLAIN SELECT * FROM "+t.from()); err != nil {
		return err
	}
	// The catalogue shows the state of the snapshot, the function shows the current state.
	moved, err := query(ctx, conn,
		`SELECT coalesce(c.relname::text, 'a new table') FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation
		WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND (c.oid IS NULL OR c.relkind IN ('r', 'm') AND c.relfilenode <> 0 AND c.relfilenode <> pg_relation_filenode(c.oid))`)
	if err != nil {
		return err
	}
	if len(moved) > 0 {
		return fmt.Errorf("%s, which the query reads, was emptied, altered or created as the snapshot was taken; try again", moved[0][0])
	}
	return nil
}
