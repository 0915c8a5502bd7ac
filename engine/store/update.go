package store

import (
	"bytes"
	"encoding/binary"
	"slices"

	"example.com/tsimport/engine/wire"
)

// update applies the cells of UpdateRow to a row's cells.
type update struct {
	cells   []wire.Cell
	now     int64
	creates bool // a cell was written, so the row exists afterwards

	row     []byte // key of the row
	chosen  *chosen
	choices Choices
}

// apply applies the operations in order. An increment's new value replaces its operand in ops, for the answer.
func (u *update) apply(ops []wire.Cell) *wire.Error {
	for i := range ops {
		op := &ops[i]
		switch op.Op {
		case wire.PutCell:
			if !op.Stamped {
				op.Timestamp = u.now
			}
			u.put(*op)
		case wire.DeleteColumn:
			if u.choices.DeletionsHideEarlier {
				u.chosen.deleted(u.row, op.Name, u.now)
			}
			u.cells = slices.DeleteFunc(u.cells, func(c wire.Cell) bool { return bytes.Equal(c.Name, op.Name) })
		case wire.DeleteVersion:
			u.cells = slices.DeleteFunc(u.cells, func(c wire.Cell) bool {
				return c.Timestamp == op.Timestamp && bytes.Equal(c.Name, op.Name)
			})
		case wire.Increment:
			if err := u.increment(op); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *update) put(c wire.Cell) {
	c.Op, c.Stamped = wire.PutCell, true
	u.creates = true
	if u.choices.DeletionsHideEarlier && u.chosen.hidden(u.row, &c) {
		return
	}
	if u.choices.FirstWriteWins {
		for i := range u.cells {
			if old := &u.cells[i]; old.Timestamp == c.Timestamp && bytes.Equal(old.Name, c.Name) {
				return
			}
		}
	}
	u.cells = append(u.cells, c)
}

func (u *update) increment(op *wire.Cell) *wire.Error {
	var newest *wire.Cell
	for i := range u.cells {
		if c := &u.cells[i]; bytes.Equal(c.Name, op.Name) && (newest == nil || c.Timestamp > newest.Timestamp) {
			newest = c
		}
	}
	sum := op.Int()
	op.Timestamp, op.Stamped = u.now, true
	if newest != nil {
		if newest.Type != wire.Integer {
			return wire.Invalid("Increment is not allowed for column name:%s, whose value is %s.", op.Name, newest.Type)
		}
		base := newest.Int()
		if sum > 0 && base > base+sum || sum < 0 && base < base+sum {
			return wire.Invalid("Increment overflows the value of column name:%s.", op.Name)
		}
		sum += base
		op.Timestamp = max(u.now, newest.Timestamp) // so that a base in the future does not hide the sum
	}
	op.Value = binary.LittleEndian.AppendUint64(nil, uint64(sum))
	u.put(*op)
	return nil
}
