package null

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Stored are rows in memory, encoded as the service answers them, that a Server gives as those of each of its tables. Add them, then hand them to Options.
type Stored struct {
	names []plainbuffer.Name
	rows  []storedRow
	data  []byte
}

type storedRow struct {
	key      int64
	from, to int // in data
}

// What a page of rows holds at most, as the service limits it.
const (
	pageRows  = 5000
	pageBytes = 4 << 20
)

// storedAt is the timestamp of all cells: not so long ago that a table would refuse it.
var storedAt = time.Now().Add(-time.Hour).UnixMilli()

// NewStored makes a store of rows with these columns, the key first.
func NewStored(columns []string) *Stored {
	s := new(Stored)
	for _, c := range columns {
		s.names = append(s.names, plainbuffer.NewName(c))
	}
	return s
}

// Add adds a row, its integer key first.
func (s *Stored) Add(values []table.Value) {
	var r plainbuffer.Row
	from := len(s.data)
	// The header stands once before all rows of an answer; here each row has one, of which the answer takes the first.
	r.Begin(s.data)
	r.Key(&s.names[0], values[0])
	for i, v := range values[1:] {
		if v.Type != table.Null {
			r.CellAt(&s.names[1+i], v, storedAt)
		}
	}
	s.data = r.End()
	copy(s.data[from:], s.data[from+headerBytes:])
	s.data = s.data[:len(s.data)-headerBytes]
	s.rows = append(s.rows, storedRow{values[0].Int, from, len(s.data)})
}

// headerBytes is the length of what rows begin with.
const headerBytes = 4

// Sort puts the rows in the order of their keys, when all are added.
func (s *Stored) Sort() {
	slices.SortFunc(s.rows, func(a, b storedRow) int { return cmp.Compare(a.key, b.key) })
	sorted := make([]byte, 0, len(s.data))
	for i, r := range s.rows {
		s.rows[i].from = len(sorted)
		sorted = append(sorted, s.data[r.from:r.to]...)
		s.rows[i].to = len(sorted)
	}
	s.data = sorted
}

// Pages calls each with the PlainBuffer bytes of all rows, as large as pages are.
func (s *Stored) Pages(each func(rows []byte, n int)) {
	for from := 0; from < len(s.rows); {
		to := s.page(from, len(s.rows), pageRows)
		each(s.encoded(from, to), to-from)
		from = to
	}
}

// page returns where the page ends that begins at from.
func (s *Stored) page(from, end, limit int) int {
	to := from
	for to < end && to-from < limit && (to == from || s.rows[to].to-s.rows[from].from <= pageBytes) {
		to++
	}
	return to
}

func (s *Stored) encoded(from, to int) []byte {
	if from == to {
		return nil
	}
	return append([]byte{0x75, 0, 0, 0}, s.data[s.rows[from].from:s.rows[to-1].to]...)
}

// answer answers a GetRange: forward, of whole rows.
func (s *Stored) answer(body []byte) []byte {
	first, end, limit := 0, len(s.rows), pageRows
	for len(body) > 0 {
		tag, n := binary.Uvarint(body)
		number, value, rest := consume(body)
		switch number {
		case 6:
			if v, m := binary.Uvarint(body[max(n, 0):]); tag&7 == 0 && m > 0 && v > 0 {
				limit = min(limit, int(v))
			}
		case 7:
			first = s.place(value, 0)
		case 8:
			end = s.place(value, len(s.rows))
		}
		body = rest
	}
	first = min(first, end)
	to := s.page(first, end, limit)
	// consumed = {capacity_unit = {read = 1, write = 0}}
	out := []byte{10, 6, 10, 4, 8, 1, 16, 0}
	out = protowire.AppendBytes(append(out, 18), s.encoded(first, to))
	if to < end {
		var r plainbuffer.Row
		r.Begin(nil)
		r.Key(&s.names[0], table.Value{Type: table.Integer, Int: s.rows[to].key})
		out = protowire.AppendBytes(append(out, 26), r.End())
	}
	return out
}

// place returns the first row that is not before the bound; open if it has no integer.
func (s *Stored) place(bound []byte, open int) int {
	key := table.Value{}
	if _, err := plainbuffer.Walk(bound, func(v plainbuffer.View) { key = v.Value }, nil); err != nil || key.Type != table.Integer {
		return open
	}
	at, _ := slices.BinarySearchFunc(s.rows, key.Int, func(r storedRow, key int64) int { return cmp.Compare(r.key, key) })
	return at
}
