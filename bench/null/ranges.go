package null

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Stored holds encoded rows in memory, in key order. A Server returns them as the rows of every table.
type Stored struct {
	key  plainbuffer.Name
	rows []storedRow
}

type storedRow struct {
	key     int64
	encoded []byte // without the header, which an answer has once, before its rows
}

// The service's limits for a page of rows.
const (
	pageRows  = 5000
	pageBytes = 4 << 20
)

// storedAt is the timestamp of all cells. It is recent enough for any table.
var storedAt = time.Now().Add(-time.Hour).UnixMilli()

// pageHeader precedes the rows of an answer.
var pageHeader = []byte{0x75, 0, 0, 0}

// RowsOf generates the rows that shape.WriteCSV writes for the same number and seed. The first column is the key.
func RowsOf(shape bench.Shape, rows, seed uint64) (*Stored, error) {
	s := &Stored{key: plainbuffer.NewName(shape.Columns[0].Name)}
	var names []plainbuffer.Name
	for _, c := range shape.Columns {
		names = append(names, plainbuffer.NewName(c.Name))
	}
	var failed error
	err := shape.EachRow(rows, seed, func(fields []string) {
		var r plainbuffer.Row
		r.Begin(nil)
		key, err := strconv.ParseInt(fields[0], 10, 64)
		r.Key(&s.key, table.Value{Type: table.Integer, Int: key})
		for i, c := range shape.Columns[1:] {
			v, e := ValueOf(c.Kind, fields[1+i])
			err = cmp.Or(err, e)
			if v.Type != table.Null {
				r.CellAt(&names[1+i], v, storedAt)
			}
		}
		failed = cmp.Or(failed, err)
		s.rows = append(s.rows, storedRow{key, r.End()[len(pageHeader):]})
	})
	if err = cmp.Or(err, failed); err != nil {
		return nil, fmt.Errorf("generate rows: %w", err)
	}
	slices.SortFunc(s.rows, func(a, b storedRow) int { return cmp.Compare(a.key, b.key) })
	return s, nil
}

// ValueOf parses text as a value of the given kind.
func ValueOf(kind bench.Kind, text string) (v table.Value, err error) {
	switch kind {
	case bench.IntegerValues:
		v.Type = table.Integer
		v.Int, err = strconv.ParseInt(text, 10, 64)
	case bench.DoubleValues:
		v.Type = table.Double
		v.Double, err = strconv.ParseFloat(text, 64)
	case bench.StringValues:
		v = table.Value{Type: table.String, Bytes: []byte(text)}
	}
	return v, err
}

// page returns the PlainBuffer bytes of the page that begins at row from, and the index of the row after it.
func (s *Stored) page(from, end, limit int) (rows []byte, next int) {
	for next = from; next < end && next-from < limit; next++ {
		row := s.rows[next].encoded
		if next > from && len(rows)+len(row) > pageBytes {
			break
		}
		if next == from {
			rows = slices.Clone(pageHeader)
		}
		rows = append(rows, row...)
	}
	return rows, next
}

// answer answers a GetRange request. It always reads forward and returns whole rows.
func (s *Stored) answer(request []byte) []byte {
	first, end, limit := 0, len(s.rows), pageRows
	eachField(request, func(number protowire.Number, varint uint64, value []byte) {
		switch number {
		case 6:
			if varint > 0 {
				limit = int(min(varint, pageRows))
			}
		case 7:
			first = s.place(value, 0)
		case 8:
			end = s.place(value, len(s.rows))
		}
	})
	rows, next := s.page(first, end, limit)
	// consumed = {capacity_unit = {read = 1, write = 0}}
	out := protowire.AppendBytes([]byte{10, 6, 10, 4, 8, 1, 16, 0, 18}, rows)
	if next < end {
		out = protowire.AppendBytes(append(out, 26), keyOf(&s.key, s.rows[next].key))
	}
	return out
}

// place returns the index of the first row at or after the bound, or open if the bound is not an integer.
func (s *Stored) place(bound []byte, open int) int {
	key := table.Value{}
	if _, err := plainbuffer.Walk(bound, func(v plainbuffer.View) { key = v.Value }, nil); err != nil ||
		key.Type != table.Integer {
		return open
	}
	at, _ := slices.BinarySearchFunc(s.rows, key.Int, func(r storedRow, key int64) int { return cmp.Compare(r.key, key) })
	return at
}
