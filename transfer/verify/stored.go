package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Stored is compared instead of a table. Its sources are frozen, wide and in key order, and have the key columns first.
type Stored struct {
	Table *client.Table // the current or former table
	Rows  source.Origin
}

// each calls do for the rows, with their ordering keys.
func (s *Stored) each(ctx context.Context, do func(key []byte, row *scan.Row) error) (err error) {
	parts, err := s.Rows.Open(ctx, nil)
	if err != nil {
		return &InputError{err}
	}
	defer func() {
		for _, p := range parts {
			err = errors.Join(err, p.Close())
		}
	}()
	var last []byte
	for _, p := range parts {
		err := s.part(ctx, p, func(row *scan.Row) error {
			var key []byte
			for _, k := range row.PrimaryKey.PrimaryKeys {
				key = table.AppendKey(key, client.ValueOf(k.Value))
			}
			if last != nil && string(key) <= string(last) {
				return fmt.Errorf("read %s: its rows are not in key order", p.About().Name)
			}
			last = key
			return do(key, row)
		})
		if err == nil {
			err = p.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Stored) part(ctx context.Context, p source.Source, do func(*scan.Row) error) error {
	parser := p.NewParser(nil)
	defer parser.Close()
	for split, err := range source.Splits(p) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return &InputError{err}
		}
		var failed error
		_, _, err := parser.Parse(split, func(rec *record.Record) {
			if failed == nil && rec.Bad != nil {
				failed = fmt.Errorf("read %s: %s", p.About().Name, rec.Bad.Message)
			}
			if failed == nil {
				failed = do(s.row(rec))
			}
		})
		if err = errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}

// row converts a record to a row as a scan would return it.
func (s *Stored) row(rec *record.Record) *scan.Row {
	row := &scan.Row{PrimaryKey: new(tablestore.PrimaryKey)}
	for i, k := range s.Table.Key {
		row.PrimaryKey.AddPrimaryKeyColumn(k.Name, delivered(&rec.Fields[i]))
	}
	for i := range rec.Cells {
		c := &rec.Cells[i]
		row.Columns = append(row.Columns, &tablestore.AttributeColumn{ColumnName: string(c.Name), Value: delivered(&c.Datum),
			Timestamp: c.At})
	}
	return row
}

// delivered converts a value to the SDK's type.
func delivered(d *record.Datum) any {
	switch d.Kind {
	case record.Integer:
		return d.Int
	case record.Double:
		return d.Double
	case record.Boolean:
		return d.Int != 0
	case record.Binary:
		return append([]byte{}, d.Bytes...)
	}
	return string(d.Bytes)
}

// tableRow is a row of the table, as bytes or as the SDK would return it.
type tableRow struct {
	packed []byte // nil if made is the row
	sum    uint64 // sum of packed
	made   *scan.Row
}

// scan calls do for the rows of a range of the table, or for the Stored rows, with their ordering keys.
func (v *verifier) scan(ctx context.Context, t *target, o scan.Options, do func(key []byte, row tableRow) error) error {
	if v.cfg.Stored == nil {
		page, _ := v.pages.Get().(*scan.PackedPage)
		if page == nil {
			page = new(scan.PackedPage)
			page.Sums(v.hasher)
		}
		defer v.pages.Put(page)
		return scan.Packed(ctx, v.cfg.Client, t.Name, t.Key, o, page, func(i int) error {
			return do(page.Key(i), tableRow{packed: page.Row(i), sum: page.Sum(i)})
		})
	}
	return v.cfg.Stored.each(ctx, func(key []byte, row *scan.Row) error {
		if v.outside(key) {
			return nil
		}
		return do(key, tableRow{made: row})
	})
}
