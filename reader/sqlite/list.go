package sqlite

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"

	"tsimport/reader/sqltable"
)

// List says which tables and views a file has: those that the address's parameter table matches, a pattern such as o*, or all. How many rows
// a table has is not known without reading it.
func List(ctx context.Context, arg string) (all []sqltable.Listed, err error) {
	a, err := parse(arg)
	if err != nil {
		return nil, err
	}
	if _, err := path.Match(a.table, ""); err != nil {
		return nil, fmt.Errorf("table=%s: %w", a.table, err)
	}
	s, err := a.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the tables of %s: %w", arg, err)
	}
	defer s.Close()
	found, err := s.query(ctx, "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")
	if err != nil {
		return nil, fmt.Errorf("list the tables of %s: %w", arg, err)
	}
	before := arg
	if at := strings.LastIndexByte(arg, '?'); at >= 0 {
		before = arg[:at]
	}
	for _, r := range found {
		if ok, _ := path.Match(a.table, r[0]); !ok && a.table != "" {
			continue
		}
		of := *a
		of.table = r[0]
		one := sqltable.Listed{Table: r[0], Kind: r[1], Rows: -1, Bytes: -1, Address: before + "?table=" + url.QueryEscape(r[0])}
		t, err := of.describe(ctx, s)
		if err != nil {
			one.Refused, _, _ = strings.Cut(err.Error(), "\n")
		} else {
			for _, k := range t.Key {
				one.Key = append(one.Key, t.Columns[k].Name)
			}
		}
		all = append(all, one)
	}
	return all, nil
}
