package wire

import (
	"bytes"
	"encoding/binary"
	"testing"
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

func FuzzRequests(f *testing.F) {
	for _, v := range []string{vCreate, vPut, vGet, vRange, vBatch} {
		f.Add(unhex(f, v))
	}
	addIndexesAndBulks(f)
	var r WriteRequest
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, op := range []RowOp{PutRow, UpdateRow, DeleteRow} {
			if err := r.DecodeRow(op, b); err == nil && r.Rows() != 1 {
				t.Error("a row operation without a row")
			}
			r.Reset()
		}
		if err := r.DecodeBatch(b); err == nil && (r.Rows() == 0 || r.Rows() > MaxBatchWriteRows) {
			t.Errorf("a batch of %d rows", r.Rows())
		}
		r.Reset()
		if c, err := DecodeCreateTable(b); err == nil {
			c.Check(true)
		}
		if c, err := DecodeUpdateTable(b); err == nil {
			c.Check(true)
		}
		DecodeTableName(b)
		DecodeSplitPoints(b)
		DecodeGetRow(b)
		DecodeGetRange(b)
		DecodeBatchGet(b)
		if err := r.DecodeBulkImport(b); err == nil && (r.Rows() == 0 || r.Rows() > MaxBatchWriteRows) {
			t.Errorf("a BulkImport of %d rows", r.Rows())
		}
		r.Reset()
		DecodeBulkExport(b)
		DecodeDropIndex(b)
		if c, err := DecodeCreateIndex(b); err == nil {
			checkIndex(t, &c.Index)
		}
	})
}

// addIndexesAndBulks begins with requests that the SDK for Go sends for indexes, and with those about rows in bulk, which it cannot send.
func addIndexesAndBulks(f *testing.F) {
	meta := appendText(appendText(appendText(nil, 1, "i"), 2, "d"), 3, "e")
	f.Add(appendInt(appendBytes(appendText(nil, 1, "t"), 2, appendInt(appendInt(meta, 4, 0), 5, 0)), 3, 1))
	f.Add(appendText(appendText(nil, 1, "t"), 2, "i"))
	row := unhex(f, v13)
	f.Add(appendBytes(appendText(nil, 1, "t"), 2, appendBytes(appendInt(nil, 1, int64(PutRow)), 2, row)))
	key := unhex(f, v05)
	f.Add(appendInt(appendBytes(appendBytes(appendText(nil, 1, "t"), 3, key), 4, key), 6, int64(SimpleRowMatrix)))
}

// checkIndex fails the test if an index that is accepted has a key that no table may have.
func checkIndex(t *testing.T, x *IndexMeta) {
	table := []KeyColumn{{Name: "pk1", Type: KeyString}, {Name: "pk2", Type: KeyInteger}}
	whole, err := x.Check(table, []DefinedColumn{{Name: "d", Type: 4}, {Name: "e", Type: 1}})
	if err != nil {
		return
	}
	names := map[string]bool{}
	for _, c := range whole {
		names[c.Name] = true
	}
	if len(names) != len(whole) || len(whole) > MaxIndexKeyColumns || !names["pk1"] || !names["pk2"] {
		t.Errorf("an index with the key %v", whole)
	}
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
		if err != nil {
			t.Fatal(err)
		}
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
