package wire

import (
	"bytes"
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
			c.Check()
		}
		if c, err := DecodeUpdateTable(b); err == nil {
			c.Check()
		}
		DecodeTableName(b)
		DecodeSplitPoints(b)
		DecodeGetRow(b)
		DecodeGetRange(b)
		DecodeBatchGet(b)
	})
}
