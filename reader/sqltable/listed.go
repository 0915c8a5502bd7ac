package sqltable

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Listed is what a server says about a table, without reading it.
type Listed struct {
	Table   string   `json:"table"`   // as written in an address's table parameter
	Address string   `json:"address"` // address for a load
	Kind    string   `json:"kind"`    // table or view
	Rows    int64    `json:"rows"`    // approximate; -1 if unknown
	Bytes   int64    `json:"bytes"`   // approximate, without indexes; -1 if unknown
	Key     []string `json:"key,omitempty"`
	Refused string   `json:"refused,omitempty"` // why it cannot be loaded by this address
}

// OfTable sets the table in a server's address. The rest is unchanged.
func OfTable(arg, table string) string {
	table = "table=" + url.QueryEscape(table)
	before, query, _ := strings.Cut(arg, "?")
	var kept []string
	for one := range strings.SplitSeq(query, "&") {
		if strings.HasPrefix(one, "table=") {
			one, table = table, ""
		}
		if one != "" {
			kept = append(kept, one)
		}
	}
	if table != "" {
		kept = append(kept, table)
	}
	return before + "?" + strings.Join(kept, "&")
}

// Parameters parses an address's query. Unlike url.URL.Query it fails for a malformed parameter, which might be one
// that asks for TLS. Errors never show a value, which may be a password.
func Parameters(query string) (url.Values, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("cannot parse the address's parameters; separate them by & and write ; as %3B and % as %25")
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if len(q[name]) > 1 {
			return nil, fmt.Errorf("the address has the parameter %s more than once; give it once", name)
		}
	}
	return q, nil
}
