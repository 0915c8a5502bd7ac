package client

import (
	"errors"
	"fmt"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Packed holds the rows of a response as checked bytes, for plainbuffer.Cells.
type Packed struct {
	bytes []byte
	rows  plainbuffer.Rows
}

func (p *Packed) Len() int { return len(p.rows.Ends) }

func (p *Packed) Key(i int) []byte {
	if i == 0 {
		return p.rows.Keys[:p.rows.KeyEnds[0]]
	}
	return p.rows.Keys[p.rows.KeyEnds[i-1]:p.rows.KeyEnds[i]]
}

// KeyColumns returns the smallest and largest number of key columns of a row. They differ only in a broken response.
func (p *Packed) KeyColumns() (least, most int) { return p.rows.Least, p.rows.Most }

// Sum returns plainbuffer.Hasher.Row of a row. PageMemory.Sums must have been called.
func (p *Packed) Sum(i int) uint64 { return p.rows.Sums[i] }

func (p *Packed) Row(i int) []byte {
	from := 0
	if i > 0 {
		from = p.rows.Ends[i-1]
	}
	end := p.rows.Ends[i]
	row := p.bytes[from:end:end]
	if i == 0 {
		return plainbuffer.WithoutHeader(row)
	}
	return row
}

// Bytes returns the size of the rows and their ordering keys.
func (p *Packed) Bytes() int { return len(p.bytes) + len(p.rows.Keys) }

// Unpack decodes a row into the memory. The row is valid until the memory is used again.
func (m *PageMemory) Unpack(row []byte) (*tablestore.Row, error) {
	p := page{PageMemory: m}
	m.begin()
	p.expect(len(row))
	if err := m.reader.ReadRow(row, &p); err != nil {
		return nil, err
	}
	return p.row, nil
}

// Unpacked decodes all rows of the page into the memory. Strings and binary values refer to the page's bytes.
func (m *PageMemory) Unpacked() ([]*tablestore.Row, error) {
	p := page{PageMemory: m}
	m.begin()
	p.expect(len(m.Packed.bytes))
	_, err := m.reader.Read(m.Packed.bytes, &p)
	return m.rows, err
}

// PackRow encodes a row of the SDK.
func PackRow(names plainbuffer.Names, r *tablestore.Row) ([]byte, error) {
	var row plainbuffer.Row
	row.Begin(nil)
	for _, k := range r.PrimaryKey.PrimaryKeys {
		v, err := packable(k.ColumnName, k.Value)
		if err == nil && !v.Type.KeyType() {
			err = fmt.Errorf("malformed response: key column %s is of type %s", k.ColumnName, v.Type)
		}
		if err != nil {
			return nil, err
		}
		row.Key(names.Of(k.ColumnName), v)
	}
	for _, c := range r.Columns {
		v, err := packable(c.ColumnName, c.Value)
		if err != nil {
			return nil, err
		}
		row.CellAt(names.Of(c.ColumnName), v, c.Timestamp)
	}
	return row.End(), nil
}

func (p *page) pack(rows []*tablestore.Row) error {
	names := plainbuffer.Names{}
	var out []byte
	for _, r := range rows {
		made, err := PackRow(names, r)
		if err != nil {
			return err
		}
		if len(out) > 0 {
			made = plainbuffer.WithoutHeader(made)
		}
		out = append(out, made...)
	}
	if err := p.split(out); err != nil {
		return err
	}
	if p.odd {
		return errors.New("malformed response: rows that cannot be in a table")
	}
	return nil
}

func packable(column string, v any) (table.Value, error) {
	switch v.(type) {
	case int64, float64, bool, string, []byte:
		return ValueOf(v), nil
	}
	return table.Value{}, fmt.Errorf("malformed response: column %s has a value of type %T", column, v)
}
