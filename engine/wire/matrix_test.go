package wire

import (
	"fmt"
	"testing"
)

// streamOf is rows of a key column, each with columns of its own or with the same.
func streamOf(rows, columns int, own bool) []byte {
	stream := AppendHeader(nil)
	for r := range rows {
		var cells []Cell
		for c := range columns {
			name := fmt.Sprintf("c%d", c)
			if own {
				name = fmt.Sprintf("c%d_%d", c, r)
			}
			cells = append(cells, Cell{Name: []byte(name), Type: Boolean, Value: []byte{1}, Stamped: true})
		}
		stream = AppendRow(stream, []Cell{pk("k", String, []byte(fmt.Sprintf("%05d", r))...)}, cells)
	}
	return stream
}

func TestAMatrixThatWouldBeFarLargerThanItsRowsIsNotMade(t *testing.T) {
	key := []KeyColumn{{Name: "k", Type: KeyString}}
	for _, v := range []struct {
		rows, columns int
		own           bool
		want          BlockType
	}{{1000, 20, false, SimpleRowMatrix}, {1000, 4, true, SimpleRowMatrix}, {1000, 20, true, PlainBuffer}, {0, 0, false, SimpleRowMatrix}} {
		stream := streamOf(v.rows, v.columns, v.own)
		if v.rows == 0 {
			stream = nil
		}
		r := &GetRange{Block: SimpleRowMatrix, bulk: true}
		body, err := r.Matrix(key, stream)
		if err != nil || r.Block != v.want {
			t.Errorf("%+v: a block of type %d (%v), want %d", v, r.Block, err, v.want)
		}
		if len(body) > len(stream)+maxMatrixCells+1000 {
			t.Errorf("%+v: %d bytes of %d", v, len(body), len(stream))
		}
		if _, after := r.Around(Capacity{}, 0, len(body), nil); BlockType(after[len(after)-1]) != v.want {
			t.Errorf("%+v: the answer ends with %x", v, after)
		}
	}
}
