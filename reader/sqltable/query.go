package sqltable

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"example.com/tsimport/internal/suggest"
)

// CheckQuery trims a query. It refuses one that is not a SELECT, or cannot be resumed with the address's table and key.
func CheckQuery(query, table string, key []string) (string, error) {
	query = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(query), ";"))
	word := query[:len(query)-len(strings.TrimLeftFunc(query, unicode.IsLetter))]
	switch {
	case query == "":
		return "", errors.New("--query is empty")
	case word != "" && !slices.Contains([]string{"SELECT", "WITH", "VALUES", "TABLE"}, strings.ToUpper(word)):
		return "", fmt.Errorf("--query: want a SELECT, not %s", word)
	case table != "":
		return "", errors.New("the address names a table, and --query is given; leave one out")
	case len(key) == 0 || slices.Contains(key, ""):
		return "", errors.New("--query: the key of its rows is unknown, so the load could not be resumed; add key=COLUMN, " +
			"or key=COLUMN,COLUMN, to the address")
	}
	return query, nil
}

// ByQuery says how to load rows that have no usable key: by a query sorted by the columns that identify its rows. If
// key is empty, the user has to name them.
func ByQuery(columns, from string, key ...string) string {
	names := make([]string, len(key))
	for i, k := range key {
		names[i] = url.QueryEscape(k)
	}
	query := suggest.Arg("SELECT " + columns + " FROM " + from)
	if len(names) == 0 {
		return fmt.Sprintf("load it with --query %s, and in the address key=COLUMN,… (columns that identify a row) in "+
			"place of table=", query)
	}
	return fmt.Sprintf("load it with --query %s, and in the address key=%s, not table=", query, strings.Join(names, ","))
}

// Claim makes the columns named by the user the key of the query's rows.
func (t *Table) Claim(key []string) error {
	t.Claimed = true
	seen := map[string]bool{}
	for _, c := range t.Columns {
		if seen[c.Name] {
			return fmt.Errorf("two columns of the query are called %s; give one another name with AS", c.Name)
		}
		seen[c.Name] = true
	}
	for _, name := range key {
		i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
		if i < 0 {
			return fmt.Errorf("key=%s: the query has no column %s", strings.Join(key, ","), name)
		}
		if slices.Contains(t.Key, i) {
			return fmt.Errorf("key=%s names %s twice", strings.Join(key, ","), name)
		}
		t.Key = append(t.Key, i)
	}
	return nil
}
