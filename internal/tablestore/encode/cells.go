package encode

import (
	"fmt"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Cell is a cell of a self-describing record.
type Cell struct {
	Name  *Name
	Value table.Value // Null means no value: an update that deletes nulls deletes the column
	At    int64       // timestamp in milliseconds; negative for the server's time
}

// Name is a cell's column name, prepared once for many rows. It belongs to one encoder.
type Name struct {
	text string
	name plainbuffer.Name

	row       uint64 // Encoder.row of the last row with such a cell
	low, high int64  // lowest and highest timestamp in that row
	null      bool   // the column has no value in that row
}

// NewName prepares a column name that passes table.CheckColumnName.
func NewName(name string) *Name { return &Name{text: name, name: plainbuffer.NewName(name)} }

func (n *Name) String() string { return n.text }

// own encodes Cells after the schema's columns, whose size and count are given, and returns the added size and count.
func (e *Encoder) own(r *plainbuffer.Row, size, count int) (more, added int, why *table.Reason) {
	e.row++
	limit := table.MaxColumns - e.ReserveCells
	for i := range e.Cells {
		c := &e.Cells[i]
		v, n := &c.Value, c.Name
		if why := e.once(i); why != nil {
			return 0, 0, why
		}
		if v.Type == table.Null {
			if e.deleteNull {
				more += n.name.Len()
				if added++; r != nil && count+added <= limit && size+more <= table.MaxRowBytes {
					r.DeleteColumn(&n.name)
				}
			}
			continue
		}
		added++
		more += n.name.Len() + v.Size()
		stamped := c.At >= 0 && e.mode != table.Increment
		switch {
		case e.mode == table.Increment && v.Type != table.Integer:
			return 0, 0, &table.Reason{Column: n.text, Code: table.CodeType,
				Message: fmt.Sprintf("the value is of type %s, but only integers can be added", v.Type)}
		case len(v.Bytes) > table.MaxValueBytes:
			return 0, 0, tooLong(v, n.text)
		case stamped:
			if why := e.checkStamp(c.At, n.text); why != nil {
				return 0, 0, why
			}
			more += 8
		case e.mode != table.Increment:
			more += e.StampBytes
		}
		switch {
		case r == nil || size+more > table.MaxRowBytes || count+added > limit: // count only, as the row will be refused
		case e.mode == table.Increment:
			r.Increment(&n.name, v.Int)
		case stamped:
			r.CellAt(&n.name, *v, c.At)
		default:
			r.Cell(&n.name, *v)
		}
	}
	return more, added, nil
}

// once refuses Cells[i] if it conflicts with an earlier cell of its column, such as one with the same timestamp.
func (e *Encoder) once(i int) *table.Reason {
	c := &e.Cells[i]
	n, at, null := c.Name, max(c.At, -1), c.Value.Type == table.Null
	if n.row != e.row {
		n.row, n.low, n.high, n.null = e.row, at, at, null
		return nil
	}
	twice := func(what string) *table.Reason {
		return &table.Reason{Column: n.text, Code: table.CodeSameCell, Message: "the record has the column twice " + what}
	}
	switch {
	case null || n.null:
		return twice("and once without a value")
	case e.mode == table.Increment:
		return twice("and a value can be added once")
	case at < n.low: // versions are usually in order, in either direction
		n.low = at
		return nil
	case at > n.high:
		n.high = at
		return nil
	}
	for j := range i {
		if o := &e.Cells[j]; o.Name == n && max(o.At, -1) == at {
			if at < 0 {
				return twice("without a timestamp")
			}
			return twice(fmt.Sprintf("with the timestamp %d", at))
		}
	}
	return nil
}
