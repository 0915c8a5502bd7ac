package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func FuzzRow(f *testing.F) {
	for _, v := range []string{v05, v06, v13, v14, v15, v16} {
		f.Add(unhex(f, v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var d Decoder
		row, err := d.Row(b)
		if err != nil || row.Delete {
			return
		}
		for i := range row.Cells {
			if row.Cells[i].Op != PutCell {
				return // answers have no operations
			}
		}
		again := AppendRow(AppendHeader(nil), row.Key, row.Cells)
		if !bytes.Equal(again, b) && !bytes.Contains(b, []byte{tagExtension}) {
			t.Errorf("decoded %x, encoded %x", b, again)
		}
	})
}

// FuzzMatrix turns any stream of rows into a matrix, which must have each row that the stream has.
func FuzzMatrix(f *testing.F) {
	for _, v := range []string{v05, v13, v14, v16} {
		f.Add(unhex(f, v))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		var d Decoder
		row, err := d.Row(stream)
		if err != nil || row.Delete {
			return
		}
		for i := range row.Cells {
			if c := &row.Cells[i]; c.Op != PutCell || c.Type == InfMin || c.Type == InfMax {
				return
			}
		}
		key := make([]KeyColumn, len(row.Key))
		for i := range row.Key {
			key[i].Name = string(row.Key[i].Name)
		}
		matrix, err := (&GetRange{}).Matrix(key, AppendRow(AppendHeader(nil), row.Key, row.Cells))
		conformance.MustEqual(t, err, nil, "error")
		if n := len(matrix); matrix[n-1] != crc8(0, matrix[:n-1]) {
			t.Errorf("the checksum of %x is wrong", matrix)
		}
		rest := matrix[binary.LittleEndian.Uint32(matrix[4:])+1:] // past the tag of the row
		for i := range row.Key {
			typ, value, after, ok := ReadVariant(rest)
			if !ok || typ != row.Key[i].Type || !bytes.Equal(value, row.Key[i].Value) {
				t.Fatalf("key column %d of %x is %d %x", i, matrix, typ, value)
			}
			rest = after
		}
	})
}
