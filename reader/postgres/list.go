package postgres

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/tsimport/reader/sqlname"
	"example.com/tsimport/reader/sqltable"
)

// List returns the tables that match the address's table parameter, a pattern such as public.o*, or all tables but the
// server's own. A pattern without a schema uses the search path. Partitions and temporary tables are omitted.
func List(ctx context.Context, arg string) (all []sqltable.Listed, err error) {
	a, pattern, err := parse(arg)
	if err != nil {
		return nil, err
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("table=%s: %w", pattern, err)
	}
	conn, err := connect(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("list the tables of %s: %w", arg, err)
	}
	defer hangUp(conn)
	err = within(ctx, conn, func() (err error) { all, err = list(ctx, conn, a, arg, pattern); return err })
	return all, err
}

func list(ctx context.Context, conn *pgconn.PgConn, a *Address, arg, pattern string) (all []sqltable.Listed,
	err error) {
	bare := pattern != "" && !strings.Contains(pattern, ".")
	rows, err := query(ctx, conn, `SELECT n.nspname::text, c.relname::text,
			coalesce((SELECT CASE WHEN bool_or(l.reltuples < 0) THEN -1 ELSE sum(l.reltuples) END FROM pg_partition_tree(c.oid) p JOIN pg_class l ON l.oid = p.relid WHERE p.isleaf), c.reltuples)::bigint::text,
			coalesce((SELECT sum(pg_table_size(p.relid)) FROM pg_partition_tree(c.oid) p), pg_table_size(c.oid))::bigint::text,
			pg_table_is_visible(c.oid)::text, CASE WHEN c.relkind IN ('r', 'p') THEN 'table' ELSE 'view' END
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND c.relpersistence <> 't' AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
		ORDER BY 1, 2`)
	if err != nil {
		return nil, fmt.Errorf("list the tables of %s: %w", arg, err)
	}
	for _, r := range rows {
		of := *a
		of.schema, of.table = r[0], r[1]
		name := sqlname.Join(of.schema, of.table)
		if bare {
			name = sqlname.Part(of.table)
		}
		if bare && r[4] != "true" {
			continue
		}
		if ok, _ := path.Match(pattern, name); !ok && pattern != "" {
			continue
		}
		one := sqltable.Listed{Table: name, Kind: r[5], Address: sqltable.OfTable(arg, name)}
		one.Rows, _ = strconv.ParseInt(r[2], 10, 64)
		one.Bytes, _ = strconv.ParseInt(r[3], 10, 64)
		t, err := describe(ctx, conn, &of)
		switch {
		case err != nil && (conn.IsClosed() || errors.As(err, new(*pgconn.PgError))):
			return nil, fmt.Errorf("list the tables of %s: %w", arg, err)
		case err != nil:
			one.Refused = err.Error()
		default:
			for _, k := range t.Key {
				one.Key = append(one.Key, t.Columns[k].Name)
			}
		}
		all = append(all, one)
	}
	return all, nil
}
