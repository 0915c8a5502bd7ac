package plainbuffer

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

// encodedRow is a row with a placeholder or a value in its key and cells of all kinds; stamp, if it is not negative, is
// the timestamp of those that put a value and are drawn without one.
type drawnCell struct {
	name  string
	kind  int
	value table.Value
	stamp int64
}

func encoded(cells []drawnCell, auto bool, stamp int64, mark string) []byte {
	var r Row
	r.Begin(nil)
	user, seq := NewName("user"), NewName("seq")
	r.Key(&user, table.Value{Type: table.String, Bytes: []byte("u")})
	if auto {
		r.KeyAutoIncrement(&seq)
	} else {
		r.Key(&seq, table.Value{Type: table.Integer, Int: -7})
	}
	for _, c := range cells {
		n := NewName(c.name)
		switch {
		case c.kind == 0 && stamp >= 0:
			r.CellAt(&n, c.value, stamp)
		case c.kind == 0:
			r.Cell(&n, c.value)
		case c.kind == 1:
			r.CellAt(&n, c.value, c.stamp)
		case c.kind == 2:
			r.DeleteColumn(&n)
		case c.kind == 3:
			r.DeleteVersion(&n, c.stamp)
		default:
			r.Increment(&n, 4)
		}
	}
	if mark != "" {
		n := NewName("_mark")
		r.Cell(&n, table.Value{Type: table.String, Bytes: []byte(mark)})
	}
	return r.End()
}

func drawCells(t *rapid.T, kinds int) (cells []drawnCell) {
	for range rapid.IntRange(0, 6).Draw(t, "cells") {
		c := drawnCell{name: rapid.StringN(1, 5, 20).Draw(t, "name"), kind: rapid.IntRange(0, kinds-1).Draw(t, "kind"), stamp: rapid.Int64Range(0, 1<<50).Draw(t, "stamp")}
		switch rapid.IntRange(0, 3).Draw(t, "type") {
		case 0:
			c.value = table.Value{Type: table.Integer, Int: rapid.Int64().Draw(t, "integer")}
		case 1:
			c.value = table.Value{Type: table.Boolean, Int: 1}
		case 2:
			c.value = table.Value{Type: table.Double, Double: 1.5}
		default:
			c.value = table.Value{Type: table.Binary, Bytes: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "binary")}
		}
		cells = append(cells, c)
	}
	return cells
}

func TestARowWithACellAddedIsTheRowEncodedWithIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, auto := drawCells(t, 2), rapid.Bool().Draw(t, "auto")
		n := NewName("_mark")
		got, err := AppendWithCell([]byte("x"), encoded(cells, auto, -1, ""), &n, table.Value{Type: table.String, Bytes: []byte("m")})
		if want := append([]byte("x"), encoded(cells, auto, -1, "m")...); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %x, %v; want %x", got, err, want)
		}
	})
}

func TestARowWithoutACellThatWasAddedIsTheRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, auto := drawCells(t, 5), rapid.Bool().Draw(t, "auto")
		plain := encoded(cells, auto, -1, "")
		n := NewName("#it")
		with, err := AppendWithCell(nil, plain, &n, table.Value{Type: table.Binary, Bytes: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "added")})
		conformance.Must(t, err)
		for _, row := range [][]byte{with, plain} {
			if got, err := AppendWithout([]byte("x"), row, "#it"); err != nil || !bytes.Equal(got, append([]byte("x"), plain...)) {
				t.Fatalf("got %x, %v; want %x", got, err, plain)
			}
		}
	})
}

func TestARowStampedIsTheRowEncodedWithTheTimestamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, auto := drawCells(t, 5), rapid.Bool().Draw(t, "auto")
		plain := encoded(cells, auto, -1, "")
		got, err := AppendStamped([]byte("x"), plain, 1700000000123)
		conformance.MustEqual(t, len(got)-1-len(plain), StampBytes(plain), "bytes longer")
		if want := append([]byte("x"), encoded(cells, auto, 1700000000123, "")...); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %x, %v; want %x", got, err, want)
		}
	})
}

func TestMalformedRowIsNotAnnotated(t *testing.T) {
	row := encoded([]drawnCell{{name: "a", value: table.Value{Type: table.Integer}}}, true, -1, "")
	n := NewName("m")
	for cut := range row {
		if got, err := AppendStamped([]byte("x"), row[:cut], 1); err == nil || string(got[:1]) != "x" {
			t.Errorf("the first %d bytes are stamped", cut)
		}
		if _, err := AppendWithout(nil, row[:cut], "m"); err == nil {
			t.Errorf("a row cut at %d is taken", cut)
		}
		if _, err := AppendWithCell(nil, row[:cut], &n, table.Value{Type: table.Integer}); err == nil {
			t.Errorf("the first %d bytes get a cell", cut)
		}
	}
	var r Row
	r.Begin(nil)
	r.Key(&n, table.Value{Type: table.Integer})
	if _, err := AppendStamped(nil, r.EndDelete(), 1); err == nil {
		t.Error("a delete is stamped")
	}
}
