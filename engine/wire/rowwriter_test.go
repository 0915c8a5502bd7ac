package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestARowWriterWritesTheBytesOfAppendRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var w RowWriter
	var got, want []byte
	draw := func(stamped bool) Cell {
		c := Cell{Name: fmt.Appendf(nil, "%0*d", 1+rng.IntN(12), rng.IntN(3)), Stamped: stamped}
		switch rng.IntN(3) {
		case 0:
			c.Type, c.Value = Integer, binary.LittleEndian.AppendUint64(nil, rng.Uint64())
		case 1:
			c.Type, c.Value = Boolean, []byte{1}
		default:
			c.Type, c.Value = []ValueType{String, Binary}[rng.IntN(2)], bytes.Repeat([]byte{byte(rng.Int())}, rng.IntN(40))
		}
		if stamped {
			c.Timestamp = []int64{0, 1, -1, rng.Int64(), 1_700_000_000_000}[rng.IntN(5)]
		}
		return c
	}
	for range 2000 {
		var key, cells []Cell
		for range rng.IntN(4) {
			key = append(key, draw(false))
		}
		for range rng.IntN(6) {
			cells = append(cells, draw(true))
		}
		want = AppendRow(want, key, cells)
		w.Begin(got)
		for i := range key {
			w.Key(&key[i])
		}
		for i := range cells {
			w.Cell(cells[i].Name, cells[i].Type, cells[i].Value, cells[i].Timestamp)
		}
		if got = w.End(); !bytes.Equal(got, want) {
			t.Fatalf("%x, want %x", got[max(0, len(got)-80):], want[max(0, len(want)-80):])
		}
	}
}
