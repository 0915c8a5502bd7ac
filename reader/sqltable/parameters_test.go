package sqltable

import "testing"

func TestParametersOfAnAddressAreReadWholeOrRefused(t *testing.T) {
	for query, want := range map[string]string{"": "", "table=a": "a", "table=a%26b&x=1": "a&b"} {
		if q, err := Parameters(query); err != nil || q.Get("table") != want {
			t.Errorf("%s: %v, %v", query, q, err)
		}
	}
	for _, query := range []string{"table=a&table=b", "table=a&sslmode=verify-full;x=1", "table=a%zz", "table=a&sslmode=disable&sslmode=verify-full"} {
		if q, err := Parameters(query); err == nil {
			t.Errorf("%s: %v", query, q)
		}
	}
}
