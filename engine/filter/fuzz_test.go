package filter

import (
	"bytes"
	"testing"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

func FuzzFilter(f *testing.F) {
	single := leaf{op: greaterEqual, column: "age", value: 18, filterIfMissing: true, latest: true}
	for _, b := range [][]byte{
		single.bytes(),
		leaf{op: less, column: "name", value: "bob"}.bytes(),
		leaf{op: notEqual, column: "name", value: 1.5, latest: true}.bytes(),
		leaf{op: equal, column: "name", value: true}.bytes(),
		leaf{op: lessEqual, column: "id", value: []byte{0, 255}}.bytes(),
		leaf{op: greater, column: "name", value: 7, rule: transfer(`n=(\d+)`, wire.Integer)}.bytes(),
		leaf{op: existsNot, column: "name", value: 7.5, rule: transfer(`(?i)[a-z]{2,9}|x*`, wire.Double)}.bytes(),
		composite(combineNot, single.bytes()),
		composite(combineAnd, single.bytes(), composite(combineOr, single.bytes(), single.bytes())),
		pagination(1, 2), pagination(-1, 0),
		unhex(f, "0802123a0802121a08011216080412036167651a0900120000000000000020012801121a08011216080112046e616d651a080303000000626f6220002800"),
	} {
		f.Add(b, "name", "n=12", int64(18), 1.5)
	}
	f.Fuzz(func(t *testing.T, b []byte, column, text string, n int64, d float64) {
		x, err := Decode(b)
		if err != nil {
			conformance.MustTrue(t, x == nil && err.Status == 400 && err.Message != "", "refused as %v, %+v", x, err)
			_, err := DecodeCondition(b)
			conformance.MustTrue(t, err != nil, "a condition that is no filter")
			return
		}
		if x == nil {
			return // no bytes
		}
		key := cells("id", []byte(text))
		row := cells(column, text, column, int(n), column, d, "age", int(n), "flag", n > 0, "name", text, "name", int(n))
		passed := x.Match(key, row)
		conformance.MustEqual(t, passed, x.Match(key, row), "whether the same row passes")
		x.Match(nil, nil)
		page := x.Page(row)
		conformance.MustTrue(t, len(page) <= len(row) && (x.page != nil || len(page) == len(row)),
			"%d cells of %d", len(page), len(row))
		conformance.MustTrue(t, len(page) == 0 || bytes.Equal(page[len(page)-1].Name, row[len(row)-1].Name) || x.page != nil,
			"a condition pages")
		if not, err := Decode(composite(combineNot, b)); err == nil && not.Match(key, row) == passed {
			t.Fatal("a filter and its contrary agree")
		} else if err != nil && x.page == nil && err.Message != "The count of filter exceeds the max: 32." {
			t.Fatal(err)
		}
	})
}
