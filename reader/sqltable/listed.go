package sqltable

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Listed describes a table by facts that its server knows without reading it.
type Listed struct {
	Table   string   `json:"table"`   // as in the table parameter of an address
	Address string   `json:"address"` // address with which to load the table
	Kind    string   `json:"kind"`    // table or view
	Rows    int64    `json:"rows"`    // approximate; -1 if unknown
	Bytes   int64    `json:"bytes"`   // approximate, without indexes; -1 if unknown
	Key     []string `json:"key,omitempty"`
	Refused string   `json:"refused,omitempty"` // why it cannot be loaded with this address
}

// OfTable sets the table in a server's address. It leaves the rest unchanged.
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

// Parameters parses the query of an address. Unlike url.URL.Query, it fails for a malformed parameter, which may be one
// that requires TLS. Its errors do not contain values, which may be passwords.
func Parameters(query string) (url.Values, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("cannot parse the address's parameters; separate them with & and write ; as %3B and % as %25")
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if len(q[name]) > 1 {
			return nil, fmt.Errorf("the address has the parameter %s more than once; give it once", name)
		}
	}
	return q, nil
}
