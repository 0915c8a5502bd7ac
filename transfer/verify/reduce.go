package verify

import (
	"encoding/binary"
	"fmt"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
)

// Kinds of kept row data. For each row, its position, the kind and the data are kept.
const (
	kindWhole  = 'w' // the row is replaced; the data is the sum of its cells, which have no timestamps of their own
	kindCells  = 'c' // the row is an update or its cells have timestamps; the data is a list of cells
	kindDelete = 'd' // the row is deleted
	kindReject = 'r' // a rejected record: any row with the key is accepted
)

// cell is the input's value in one column of one row.
type cell struct {
	column uint64 // hash of the column's name
	delete bool
	stamp  int64 // -1 means the time of writing
	hash   uint64
}

// reducer reduces rows to their positions and kept data. It is not safe for concurrent use.
type reducer struct {
	*plainbuffer.Hasher
	mode    table.Mode
	columns map[string]int // positions of the schema's attributes
	names   []uint64       // hashes of the attributes' names; nil if records are self-describing

	buf     []byte
	stamped bool
}

func newReducer(h *plainbuffer.Hasher, p *plan.Plan) *reducer {
	r := &reducer{Hasher: h, mode: p.Request.Mode, columns: map[string]int{}, names: namesOf(h, p)}
	for i, c := range p.Schema.Attributes() {
		r.columns[c.Name] = i
	}
	return r
}

// namesOf returns the hashes of a plan's attribute names, which kept cells refer to, or nil if records name columns.
func namesOf(h *plainbuffer.Hasher, p *plan.Plan) []uint64 {
	if p.Wide {
		return nil
	}
	names := []uint64{}
	for _, c := range p.Schema.Attributes() {
		names = append(names, h.Column(c.Name))
	}
	return names
}

const headBytes = 9 // bytes of the position and the kind

// reduce reduces the PlainBuffer bytes of a row, or their sum. The result is valid until the next call.
func (r *reducer) reduce(position uint64, body []byte) ([]byte, error) {
	r.buf = binary.BigEndian.AppendUint64(r.buf[:0], position)
	if r.mode == table.Delete {
		r.buf = append(r.buf, kindDelete)
		return r.buf, nil
	}
	if sum, ok := intake.SumOf(body); ok {
		r.stamped = false
		r.buf = append(append(r.buf, kindWhole), sum...)
		return r.buf, nil
	}
	if r.mode == table.Put {
		var sum uint64
		if sum, r.stamped = r.Row(plainbuffer.CellsOf(body)); !r.stamped {
			r.buf = binary.LittleEndian.AppendUint64(append(r.buf, kindWhole), sum)
			return r.buf, nil
		}
	}
	r.stamped = false
	r.buf = append(r.buf, kindCells)
	if _, err := plainbuffer.Walk(body, nil, r.add); err != nil {
		return nil, fmt.Errorf("reread a row: %w", err)
	}
	return r.buf, nil
}

// Flags of a kept cell.
const (
	flagDelete = 1 << iota
	flagStamp
)

func (r *reducer) add(v plainbuffer.View) {
	var name uint64
	if r.names == nil {
		name = r.ColumnBytes(v.Name)
		r.buf = binary.LittleEndian.AppendUint64(r.buf, name)
	} else {
		i := r.columns[string(v.Name)]
		name = r.names[i]
		r.buf = binary.AppendUvarint(r.buf, uint64(i))
	}
	if v.Op == plainbuffer.DeleteAll {
		r.buf = append(r.buf, flagDelete)
		return
	}
	hash := r.Cell(name, &v.Value)
	if v.Timestamp < 0 {
		r.buf = append(r.buf, 0)
	} else {
		r.stamped = true
		r.buf = append(r.buf, flagStamp)
		r.buf = binary.LittleEndian.AppendUint64(r.buf, uint64(v.Timestamp))
	}
	r.buf = binary.LittleEndian.AppendUint64(r.buf, hash)
}

// cellsOf decodes kept cells. names must be the reducer's.
func cellsOf(kept []byte, names []uint64) (cells []cell) {
	for len(kept) > 0 {
		c, n := cell{stamp: -1}, 8
		if names == nil {
			c.column = binary.LittleEndian.Uint64(kept)
		} else {
			var i uint64
			i, n = binary.Uvarint(kept)
			c.column = names[i]
		}
		flags := kept[n]
		kept = kept[n+1:]
		if flags&flagStamp != 0 {
			c.stamp = int64(binary.LittleEndian.Uint64(kept))
			kept = kept[8:]
		}
		if flags&flagDelete != 0 {
			c.delete = true
		} else {
			c.hash = binary.LittleEndian.Uint64(kept)
			kept = kept[8:]
		}
		cells = append(cells, c)
	}
	return cells
}
