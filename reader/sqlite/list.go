package sqlite

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"

	"example.com/tsimport/reader/sqltable"
)

// List returns tables and views that match the address's table parameter, or all. In large files it counts no rows.
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
	found, err := s.query(ctx, "SELECT name, type, (SELECT page_count * page_size FROM pragma_page_count, "+
		"pragma_page_size) FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'view') "+
		"AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")
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
		one := sqltable.Listed{Table: r[0], Kind: r[1], Rows: -1, Bytes: -1, Address: before + "?table=" +
			url.QueryEscape(r[0])}
		t, err := of.describe(ctx, s)
		if err != nil {
			one.Refused, _, _ = strings.Cut(err.Error(), "\n")
		} else {
			for _, k := range t.Key {
				one.Key = append(one.Key, t.Columns[k].Name)
			}
			if bytes, _ := strconv.ParseInt(r[2], 10, 64); bytes <= countedBytes {
				if err = s.count(ctx, t, &one); codeOf(err) == codeDamaged {
					one.Refused = err.Error()
				} else if err != nil {
					return nil, fmt.Errorf("count the rows of %s: %w", t.Name, err)
				}
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// countedBytes is the size of the largest file in which rows are counted.
const countedBytes = 64 << 20

func (s *session) count(ctx context.Context, t *sqltable.Table, one *sqltable.Listed) error {
	r, err := s.query(ctx, "SELECT (SELECT count(*) FROM "+t.Name+
		"), (SELECT sum(pgsize) FROM dbstat WHERE name = ? AND aggregate = 1)", one.Table)
	if err == nil {
		one.Rows, _ = strconv.ParseInt(r[0][0], 10, 64)
		one.Bytes, err = strconv.ParseInt(r[0][1], 10, 64)
	}
	return err
}
