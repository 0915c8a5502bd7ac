package copytable

import (
	"reflect"
	"strings"
	"testing"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
)

func TestATargetThatWouldDropVersionsIsRefused(t *testing.T) {
	for _, c := range []struct {
		source, target, versions int
		refused                  string // a part of the message; "" is none
	}{
		{1, 1, 0, ""}, {0, 0, 0, ""}, {3, 3, 0, ""}, {3, 5, 0, ""}, {1, 0, 0, ""},
		{3, 1, 0, "--versions 1"}, {3, 0, 0, "keeps 1 versions of a cell, and ots://a/s up to 3"}, {5, 3, 0, "--max-versions 5"},
		{5, 3, 4, "up to 4"}, {5, 3, 3, ""}, {5, 1, 1, ""}, {3, 3, 9, ""},
	} {
		from := &client.Table{}
		from.MaxVersions = c.source
		err := KeepsVersions("t", &table.Definition{MaxVersions: c.target}, "ots://a/s", from, c.versions)
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestOnlyCutsInsideARangeDivideIt(t *testing.T) {
	key := func(n ...int64) (k []table.Value) {
		for _, n := range n {
			k = append(k, table.Value{Type: table.Integer, Int: n})
		}
		return k
	}
	for _, c := range []struct{ from, to, want []table.Value }{
		{nil, nil, key(1, 5, 9)}, {key(1), nil, key(5, 9)}, {nil, key(9), key(1, 5)}, {key(2), key(3), nil}, {key(0), key(6), key(1, 5)}, {key(10), nil, nil},
	} {
		var got []table.Value
		for _, cut := range between([][]table.Value{key(1), key(5), key(9)}, c.from, c.to) {
			got = append(got, cut...)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("from %v to %v: %v", c.from, c.to, got)
		}
	}
}
