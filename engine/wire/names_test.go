package wire

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// putBatch is a BatchWriteRow of rows with one value in each of the columns.
func putBatch(rows ...[]string) []byte {
	table := appendText(nil, 1, "t")
	for i, names := range rows {
		var cells []Cell
		for _, name := range names {
			cells = append(cells, Cell{Name: []byte(name), Type: String, Value: fmt.Appendf(nil, "of %s", name)})
		}
		row := AppendRow(AppendHeader(nil), []Cell{{Name: []byte("k"), Type: Integer, Value: integer(byte(i))}}, cells)
		change := appendBytes(appendInt(nil, 1, int64(PutRow)), 2, row)
		table = appendBytes(table, 2, appendBytes(change, 3, appendInt(nil, 1, 0)))
	}
	return appendBytes(nil, 1, table)
}

// What is known of the names of a row says nothing of other names in their places.
func TestNamesAreThoseOfTheirOwnRow(t *testing.T) {
	var long []string
	for i := range 2 * maxKnownNames {
		long = append(long, fmt.Sprintf("c%d", i))
	}
	backwards := slices.Clone(long)
	slices.Reverse(backwards)
	var r WriteRequest
	for _, rows := range [][][]string{
		{{"a", "b"}, {"a", "b"}, {"b", "a"}, {"b"}, {"aa", "bb", "cc"}, {}, {"a"}},
		{long, backwards, long[1:], {"c1"}},
	} {
		r.Reset()
		if err := r.DecodeBatch(putBatch(rows...)); err != nil {
			t.Fatal(err)
		}
		for i, names := range rows {
			cells := r.Tables[0].Changes[i].Row.Cells
			if len(cells) != len(names) {
				t.Fatalf("row %d has %d cells, want %d", i, len(cells), len(names))
			}
			for j, name := range names {
				if string(cells[j].Name) != name || string(cells[j].Value) != "of "+name {
					t.Errorf("row %d, cell %d: %s is %s, want %s", i, j, cells[j].Name, cells[j].Value, name)
				}
			}
		}
	}
	for _, rows := range [][][]string{{{"a"}, {"#"}}, {{"#"}, {"a"}}, {{"a"}, {"#"}, {"a"}}, {{"a", "#b"}, {"a", "b"}}, {{"a"}, {"\xff"}}, {{"a"}, {"k"}}, {{"k", "a"}}} {
		r.Reset()
		conformance.Refused(t, r.DecodeBatch(putBatch(rows...)), "", "%q is taken", rows)
	}
}

func TestAChangedByteOfARowIsFoundInEveryRowOfABatch(t *testing.T) {
	body := putBatch([]string{"a", "bc", "column"}, []string{"a", "bc", "column"}, []string{"a", "bd", "column"})
	from := bytes.Index(body, []byte("of a"))
	end := bytes.LastIndex(body, []byte("of column")) + len("of column")
	var r WriteRequest
	for at := from; at < end; at++ {
		changed := bytes.Clone(body)
		changed[at] ^= 0x10
		r.Reset()
		conformance.Refused(t, r.DecodeBatch(changed), "", "byte %d of %d can be changed", at, len(body))
	}
}
