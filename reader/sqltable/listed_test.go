package sqltable

import "testing"

func TestAnAddressOfAPatternBecomesThatOfATable(t *testing.T) {
	for arg, want := range map[string]string{
		"postgres://u@h/d":                             "postgres://u@h/d?table=s.t",
		"postgres://u@h/d?table=s.*&sslmode=disable":   "postgres://u@h/d?table=s.t&sslmode=disable",
		"postgres://u@h/d?sslmode=disable&table=%2A":   "postgres://u@h/d?sslmode=disable&table=s.t",
		"mysql://u@h/d?ssl-ca=/a&&ssl-mode=VERIFY_CA&": "mysql://u@h/d?ssl-ca=/a&ssl-mode=VERIFY_CA&table=s.t",
	} {
		if got := OfTable(arg, "s.t"); got != want {
			t.Errorf("%s: %s, want %s", arg, got, want)
		}
	}
	if got := OfTable("mysql://h/d", `a&b="c"`); got != "mysql://h/d?table=a%26b%3D%22c%22" {
		t.Error(got)
	}
}
