package sqltable

import (
	"net/url"
	"strings"
)

// Listed is what a server says of a table, without reading it.
type Listed struct {
	Table   string   `json:"table"`   // as the parameter of an address names it
	Address string   `json:"address"` // of a load
	Kind    string   `json:"kind"`    // table or view
	Rows    int64    `json:"rows"`    // about; -1 is unknown
	Bytes   int64    `json:"bytes"`   // about, without indexes; -1 is unknown
	Key     []string `json:"key,omitempty"`
	Refused string   `json:"refused,omitempty"` // why it is not loaded from here
}

// OfTable is an address of a server as that of a table. What else it says stays as it is written.
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
