package verify

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/table"
)

// want is the expected result of the records of one key, written in order or, with anyOrder, in any order.
type want struct {
	key      []byte
	rows     int64
	position uint64 // position of the last record

	aside []byte // places of kept rows: for a put the last one, otherwise all in input order
	units int64  // write units of the kept rows

	versions []version         // for puts: any of these is right
	columns  map[uint64]*state // for updates: all of these must be right, by the hash of the column's name
}

// version is an expected row of a put.
type version struct {
	whole bool
	hash  uint64 // set if whole
	cells []cell // set if not whole
}

// state is the expected state of a column after updates.
type state struct {
	values  []uint64 // values without a timestamp, any of which may be the newest
	absent  bool     // the column may be absent
	stamped []stamp  // versions with timestamps, newest first
}

// stamp is a version of a cell that may have any of the values.
type stamp struct {
	at     int64
	values []uint64
}

// wants iterates over the keys of a range.
type wants struct {
	it       *extsort.Iterator
	mode     table.Mode
	anyOrder bool
	names    []uint64 // names to pass to cellsOf
	kept     bool     // items end with the places of their rows
	more     bool     // the iterator is at an item that has not been taken yet
	now      want
}

func (v *verifier) newWants(it *extsort.Iterator) *wants {
	return &wants{it: it, mode: v.plan.Request.Mode, anyOrder: v.anyOrder, names: namesOf(v.hasher, v.plan),
		kept: v.rows != nil, more: it.Next()}
}

// next returns the next key, or nil after the last one. The previous result becomes invalid.
func (w *wants) next() *want {
	if !w.more {
		return nil
	}
	n := &w.now
	n.key = append(n.key[:0], w.it.Key()...)
	n.rows, n.versions, n.units, n.aside = 0, n.versions[:0], 0, n.aside[:0]
	if n.columns != nil {
		clear(n.columns)
	}
	for w.more && bytes.Equal(w.it.Key(), n.key) {
		w.take(n, w.it.Value())
		w.more = w.it.Next()
	}
	return n
}

func (w *wants) take(n *want, value []byte) {
	if value[headBytes-1] == kindReject {
		return
	}
	n.rows++
	if w.kept {
		var at []byte
		value, at = cutPlace(value)
		if w.mode == table.Put {
			n.aside, n.units = n.aside[:0], 0 // only the last row is needed
		}
		p, _ := placeOf(at)
		n.aside, n.units = append(n.aside, at...), n.units+int64(p.units)
	}
	n.position = binary.BigEndian.Uint64(value)
	kind, kept := value[headBytes-1], value[headBytes:]
	switch {
	case kind == kindDelete:
	case w.mode == table.Update:
		if n.columns == nil {
			n.columns = map[uint64]*state{}
		}
		for _, c := range cellsOf(kept, w.names) {
			s := n.columns[c.column]
			if s == nil {
				s = new(state)
				n.columns[c.column] = s
			}
			s.update(c, w.anyOrder)
		}
	default:
		v := version{whole: kind == kindWhole}
		if v.whole {
			v.hash = binary.LittleEndian.Uint64(kept)
		} else {
			v.cells = cellsOf(kept, w.names)
		}
		if !w.anyOrder {
			n.versions = n.versions[:0]
		}
		n.versions = append(n.versions, v)
	}
}

// update applies an update to a column. With anyOrder, any update may have been the last one.
func (s *state) update(c cell, anyOrder bool) {
	switch {
	case c.delete:
		if !anyOrder {
			s.values, s.stamped = nil, nil
		}
		s.absent = true
	case c.stamp < 0:
		if !anyOrder {
			s.values, s.absent = s.values[:0], false
		}
		s.values = append(s.values, c.hash)
	default:
		i, found := slices.BinarySearchFunc(s.stamped, c.stamp, func(s stamp, at int64) int { return cmp.Compare(at, s.at) })
		if !found {
			s.stamped = slices.Insert(s.stamped, i, stamp{at: c.stamp})
		}
		v := &s.stamped[i]
		if !anyOrder {
			v.values = v.values[:0]
		}
		v.values = append(v.values, c.hash)
	}
}
