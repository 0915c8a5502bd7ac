package sqltable

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxShards is the largest number of tables that are read as one.
const MaxShards = 1024

// shardRange matches the part of an address that names shards. Their numbers have as many digits as the first one.
var shardRange = regexp.MustCompile(`([?&]table=[^&]*)\{(\d+)\.\.(\d+)\}`)

// Shards returns the addresses of the tables in an address such as …?table=t_{00..63}, or nil if it names one table.
func Shards(address string) (all []string, err error) {
	at := shardRange.FindStringSubmatchIndex(address)
	if at == nil {
		return nil, nil
	}
	text := address[at[4]:at[5]]
	first, err1 := strconv.Atoi(text)
	last, err2 := strconv.Atoi(address[at[6]:at[7]])
	if err1 != nil || err2 != nil || last <= first || last-first >= MaxShards {
		return nil, fmt.Errorf("%s: want {FIRST..LAST} with 2 to %d numbers, such as t_{00..63}", address, MaxShards)
	}
	width := 0
	if strings.HasPrefix(text, "0") {
		width = len(text)
	}
	for n := first; n <= last; n++ {
		all = append(all, fmt.Sprintf("%s%0*d%s", address[:at[3]], width, n, address[at[7]+1:]))
	}
	if shardRange.MatchString(all[0]) {
		return nil, fmt.Errorf("%s: want at most one {FIRST..LAST}", address)
	}
	return all, nil
}

// servers returns the shards, or the only table.
func (c *Config) servers() []Server {
	if c.Shards != nil {
		return c.Shards
	}
	return []Server{c.Server}
}

// shards returns all shards but the first.
func (r *reading) shards() []*Table {
	if r.tables == nil {
		return nil
	}
	return r.tables[1:]
}

// checkShards refuses shards with different columns or keys, and shards that have a row with the same key.
func (o *Origin) checkShards(ctx context.Context, by *session, all []*Table) error {
	first := all[0]
	for _, t := range all[1:] {
		for i := range max(len(first.Columns), len(t.Columns)) {
			switch {
			case i >= len(t.Columns):
				return Refused(fmt.Errorf("shard %s has no column %s, which %s has; give all shards the same columns", t.Name,
					first.Columns[i].Name, first.Name))
			case i >= len(first.Columns):
				return Refused(fmt.Errorf("shard %s has a column %s, which %s does not have; give all shards the same columns",
					t.Name, t.Columns[i].Name, first.Name))
			}
			if was, is := first.shape(i), t.shape(i); was != is {
				return Refused(fmt.Errorf("column %d of shard %s is %s, but that of %s is %s; give all shards the same columns "+
					"in the same order", i+1, t.Name, is, first.Name, was))
			}
		}
		if !slices.Equal(t.Key, first.Key) {
			return Refused(fmt.Errorf("the primary keys of shards %s and %s differ in their columns or in the columns' order; "+
				"give all shards the same key", t.Name, first.Name))
		}
	}
	key, err := o.cfg.Server.(Joint).Twice(ctx, by.Session, all)
	if err != nil || key == nil {
		return err
	}
	var values [][]byte
	for _, v := range key[:len(key)-2] {
		values = append(values, []byte(v))
	}
	a, _ := strconv.Atoi(key[len(key)-2])
	b, _ := strconv.Atoi(key[len(key)-1])
	return Refused(fmt.Errorf("shards %s and %s both have a row with the key %s: one would replace the other; load each "+
		"shard by itself, into a table of its own", all[a].Name, all[b].Name, first.show(values)))
}

// shape returns the properties of a column that must be the same in all shards.
func (t *Table) shape(i int) string {
	return fmt.Sprintf("%s %s", t.Columns[i].Name, t.Columns[i].Declared)
}

// TwiceSQL selects a key in several tables, with the numbers of the first and the last. columns and tables are SQL.
func TwiceSQL(columns, tables []string) string {
	key := strings.Join(columns, ", ")
	var all []string
	for n, t := range tables {
		all = append(all, fmt.Sprintf("SELECT %s, %d AS tsimport_shard FROM %s", key, n, t))
	}
	return fmt.Sprintf("SELECT %s, MIN(tsimport_shard), MAX(tsimport_shard) FROM (%s) AS shards GROUP BY %[1]s HAVING "+
		"COUNT(*) > 1 LIMIT 1", key, strings.Join(all, " UNION ALL "))
}
