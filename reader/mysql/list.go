package mysql

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"

	mysql "github.com/go-sql-driver/mysql"

	"example.com/tsimport/reader/sqltable"
)

// List returns the tables and views that match the address's table parameter, such as o*, or all if it has none.
func List(ctx context.Context, arg string) (all []sqltable.Listed, err error) {
	a, of, err := parse(arg)
	if err != nil {
		return nil, err
	}
	if err := a.needDatabase(); err != nil {
		return nil, err
	}
	if _, err := path.Match(of.table, ""); err != nil {
		return nil, fmt.Errorf("table=%s: %w", of.table, err)
	}
	s, err := a.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the tables of %s: %w", arg, err)
	}
	defer s.Close()
	rows, err := s.query(ctx, "SELECT TABLE_NAME, TABLE_TYPE, COALESCE(TABLE_ROWS, -1), COALESCE(DATA_LENGTH, -1) FROM "+
		"information_schema.TABLES WHERE TABLE_SCHEMA = "+text(a.config.DBName)+
		" AND TABLE_TYPE <> 'SEQUENCE' ORDER BY TABLE_NAME")
	if err != nil {
		return nil, fmt.Errorf("list the tables of %s: %w", arg, err)
	}
	for _, r := range rows {
		if ok, _ := path.Match(of.table, r[0]); !ok && of.table != "" {
			continue
		}
		one := sqltable.Listed{Table: r[0], Kind: "table", Address: sqltable.OfTable(arg, r[0])}
		if r[1] == "VIEW" || r[1] == "SYSTEM VIEW" {
			one.Kind = "view"
		}
		one.Rows, _ = strconv.ParseInt(r[2], 10, 64)
		one.Bytes, _ = strconv.ParseInt(r[3], 10, 64)
		this := *a
		this.table = r[0]
		t, err := this.describe(ctx, s)
		switch {
		case err == nil:
			for _, k := range t.Key {
				one.Key = append(one.Key, t.Columns[k].Name)
			}
		case errors.As(err, new(*refusal)),
			errors.As(err, new(*mysql.MySQLError)) && !a.Lost(err): // for example, a view of a dropped table
			one.Refused = err.Error()
		default:
			return nil, fmt.Errorf("list the tables of %s: %w", arg, err)
		}
		all = append(all, one)
	}
	return all, nil
}
