package sqltable

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
)

// Parameters reads the part of an address after the question mark. What cannot be read is not left out, as url.URL.Query does: it may ask for TLS.
// No error shows a value, which may be a password.
func Parameters(query string) (url.Values, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("the parameters of the address cannot be read; separate them by & and write ; as %3B and % as %25")
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if len(q[name]) > 1 {
			return nil, fmt.Errorf("the address has the parameter %s more than once; give it once", name)
		}
	}
	return q, nil
}
