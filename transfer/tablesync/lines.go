package tablesync

import (
	"crypto/rand"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/transfer/verify"
)

// liner makes lines of changes: self-describing records from which a load restores every type and timestamp.
type liner struct {
	columns []string // columns of the key
	kept    []string // columns that are written even if they are equal
	was     *was     // if not nil, adds the table's former values
	record  record.Record
}

func newLiner(c *changes) *liner {
	l := &liner{kept: c.kept}
	if c.unchanged {
		l.was = &was{nothing: make([]byte, 32)}
		_, _ = rand.Read(l.was.nothing) // never fails
	}
	for _, k := range c.key {
		l.columns = append(l.columns, k.Name)
	}
	return l
}

func (l *liner) deleted(dst []byte, key []table.Value) []byte {
	l.record.Fields, l.record.Cells = l.record.Fields[:0], nil
	for _, v := range key {
		l.record.Fields = append(l.record.Fields, record.Of(v))
	}
	return jsonl.AppendWide(dst, l.columns, &l.record)
}

// changed appends the lines for a change and returns their number, cost and timestamps. Only updates may need several.
func (l *liner) changed(dst []byte, c *verify.Change) (lines []byte, made totals, err error) {
	rows := make([]*plainbuffer.Decoded, len(c.Rows))
	for i, body := range c.Rows {
		if rows[i], err = plainbuffer.Decode(body); err != nil {
			return dst, made, err
		}
		if c.Differs != nil {
			rows[i].Cells = slices.DeleteFunc(rows[i].Cells, func(cell plainbuffer.Cell) bool {
				return !c.Differs([]byte(cell.Name)) && !slices.Contains(l.kept, cell.Name)
			})
		}
	}
	rows = slices.DeleteFunc(rows, func(r *plainbuffer.Decoded) bool { return len(r.Cells) == 0 && len(rows) > 1 })
	if len(rows) > 1 && !slices.ContainsFunc(rows, stamped) {
		rows = []*plainbuffer.Decoded{merged(rows)}
	}
	for _, r := range rows {
		size := 0
		l.record.Fields, l.record.Cells = l.record.Fields[:0], l.record.Cells[:0]
		for _, k := range r.Key {
			l.record.Fields = append(l.record.Fields, record.Of(k.Value))
			size += len(k.Name) + k.Value.Size()
		}
		for _, cell := range r.Cells {
			at := int64(-1)
			if cell.Stamped {
				at = cell.Stamp
				size += 8
				made.add(totals{oldest: at, newest: at})
			}
			l.record.Cells = append(l.record.Cells, record.Cell{Name: []byte(cell.Name), Datum: record.Of(cell.Value), At: at})
			size += len(cell.Name) + cell.Value.Size()
		}
		if l.was != nil {
			cell, ok := l.was.cell(c, r)
			if cell != nil {
				l.record.Cells = append(l.record.Cells, *cell)
			}
			if !ok || len(rows) > 1 {
				made.unconditional = 1
			}
		}
		dst = jsonl.AppendWide(dst, l.columns, &l.record)
		made.PutUnits += int64(table.CapacityUnits(size))
	}
	made.Lines = int64(len(rows))
	return dst, made, nil
}

func stamped(r *plainbuffer.Decoded) bool {
	return slices.ContainsFunc(r.Cells, func(c plainbuffer.Cell) bool { return c.Stamped })
}

func merged(rows []*plainbuffer.Decoded) *plainbuffer.Decoded {
	all := &plainbuffer.Decoded{Key: rows[0].Key}
	at := map[string]int{}
	for _, r := range rows {
		for _, c := range r.Cells {
			i, ok := at[c.Name]
			if !ok {
				i = len(all.Cells)
				at[c.Name] = i
				all.Cells = append(all.Cells, c)
			}
			all.Cells[i] = c
		}
	}
	return all
}
