package sqltable

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Listed is a server's information on a table, without reading it.
type Listed struct {
	Table   string   `json:"table"`   // as the parameter of an address names it
	Address string   `json:"address"` // of a load
	Kind    string   `json:"kind"`    // table or view
	Rows    int64    `json:"rows"`    // about; -1 is unknown
	Bytes   int64    `json:"bytes"`   // about, without indexes; -1 is unknown
	Key     []string `json:"key,omitempty"`
	Refused string   `json:"refused,omitempty"` // reason not to load it from here
}

// OfTable adds a table to a server's address. The rest is unchanged.
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

// Parameters parses an address's query. Unlike url.URL.Query it fails for a malformed parameter, which may ask for TLS.
// No error shows a value, which may be a password.
func Parameters(query string) (url.Values, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("unreadable parameters of the address; separate them by & and write ; as %3B and % as %25")
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if len(q[name]) > 1 {
			return nil, fmt.Errorf("the address has the parameter %s more than once; give it once", name)
		}
	}
	return q, nil
}
