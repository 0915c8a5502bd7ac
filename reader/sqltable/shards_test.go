package sqltable

import (
	"example.com/tsimport/internal/conformance"
	"slices"
	"strings"
	"testing"
)

func TestAddressNamesShards(t *testing.T) {
	for address, want := range map[string]string{
		"mysql://h/d?table=t":                        "",
		"mysql://h/d?table=t_{0..2}":                 "mysql://h/d?table=t_0 mysql://h/d?table=t_1 mysql://h/d?table=t_2",
		"mysql://h/d?table=t_{08..11}x&sessions=2":   "mysql://h/d?table=t_08x&sessions=2 mysql://h/d?table=t_09x&sessions=2 mysql://h/d?table=t_10x&sessions=2 mysql://h/d?table=t_11x&sessions=2",
		"postgres://h/d?a=b&table=s.t{9..10}":        "postgres://h/d?a=b&table=s.t9 postgres://h/d?a=b&table=s.t10",
		"mysql://h/d?table=t_{3..3}":                 "want {FIRST..LAST}",
		"mysql://h/d?table=t_{5..3}":                 "want {FIRST..LAST}",
		"mysql://h/d?table=t_{0..1024}":              "want {FIRST..LAST} with 2 to 1024 numbers",
		"mysql://h/d?table=t_{0..99999999999999999}": "want {FIRST..LAST}",
		"mysql://h/d?table=t_{0..1}_{0..1}":          "want one {FIRST..LAST}",
		"mysql://h/d?other={0..1}&table={table}":     "",
	} {
		all, err := Shards(address)
		if strings.HasPrefix(want, "want") && (err == nil || !strings.Contains(err.Error(), want)) || !strings.HasPrefix(want, "want") && (err != nil || !slices.Equal(all, strings.Fields(want))) {
			t.Errorf("%s: %q, %v; want %q", address, all, err, want)
		}
	}
}

// shown is a server of which only the address is used.
type shown struct{ Server }

func (shown) Shown() string { return "shards" }

// TestRowsOfShardsAreNotReadAgain: the first shard alone would report rows of other shards as gone.
func TestRowsOfShardsAreNotReadAgain(t *testing.T) {
	o := &Origin{cfg: Config{Server: shown{}, Shards: []Server{shown{}, shown{}}}}
	_, err := o.Reread(t.Context(), nil)
	conformance.True(t, err != nil && strings.Contains(err.Error(), "shards is several tables"), "%v", err)
}
