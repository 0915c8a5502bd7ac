package sqltable

import (
	"testing"

	"tsimport/reader/record"
)

func TestTheRangeOfAKeyIsSaidOnlyWhereItIsCertain(t *testing.T) {
	bound := func(texts ...string) (key [][]byte) {
		for _, text := range texts {
			key = append(key, []byte(text))
		}
		return key
	}
	of := func(kind record.Kind) *Table { return &Table{Columns: []Column{{Kind: kind}}, Key: []int{0}} }
	for _, tt := range []*struct {
		what   string
		origin Origin
		first  int64
		want   int // -1 is unknown
	}{
		{"before the first bound", Origin{of: of(record.Integer), from: [][][]byte{bound("-5"), bound("10")}}, -6, 0},
		{"at a bound", Origin{of: of(record.Integer), from: [][][]byte{bound("-5"), bound("10")}}, -5, 1},
		{"after the last one, which is no greater as a text", Origin{of: of(record.Integer), from: [][][]byte{bound("-5"), bound("10")}}, 9000, 2},
		{"of a table that is one range", Origin{of: of(record.Integer)}, 7, 0},
		{"where the rest of the key decides", Origin{of: of(record.Integer), from: [][][]byte{bound("10", "x")}}, 10, -1},
		{"where it does not", Origin{of: of(record.Integer), from: [][][]byte{bound("10", "x")}}, 11, 1},
		{"of texts, which the server sorts", Origin{of: of(record.String), from: [][][]byte{bound("10")}}, 11, -1},
		{"of a table that nobody has looked at", Origin{}, 7, -1},
	} {
		got, ok := tt.origin.RangeOf(tt.first)
		if !ok {
			got = -1
		}
		if got != tt.want {
			t.Errorf("%s: %d, want %d", tt.what, got, tt.want)
		}
	}
}
