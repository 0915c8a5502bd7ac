package export

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
)

// rowGroupBytes is the approximate size of the values in a row group, which the writer holds in memory.
const rowGroupBytes = 64 << 20

// maxParquetColumns limits the number of columns, for each of which the writer needs memory.
const maxParquetColumns = 10_000

// parquetFile writes rows as Parquet. Key columns are required and other columns optional; each has one type.
type parquetFile struct {
	w      *parquet.GenericWriter[any]
	places scan.Places
	keys   int
	row    parquet.Row
	bytes  int // size of the values since the last row group
}

// newParquet begins a file with the requested attributes, in order, or all in seen. Mixed types are an error.
func newParquet(w io.Writer, key []table.KeyColumn, asked []string, seen []Column) (*parquetFile, error) {
	f := &parquetFile{keys: len(key)}
	var fields []parquet.Field
	add := func(name string, node parquet.Node) {
		fields = append(fields, parquet.Group{name: node}.Fields()...)
	}
	for _, k := range key {
		add(k.Name, nodeOf(k.Type.String()))
	}
	var names []string
	types := map[string]string{}
	for i := range seen {
		c := &seen[i]
		if len(c.Types) > 1 {
			var has []string
			for name, n := range c.Types {
				has = append(has, fmt.Sprintf("%s (%d)", name, n))
			}
			slices.Sort(has)
			return nil, severalTypes(c.Name, strings.Join(has, ", "))
		}
		names, types[c.Name] = append(names, c.Name), c.Type()
	}
	if asked != nil {
		names = asked
	}
	for _, name := range names {
		if types[name] == "" {
			continue // no row has the column, so its type is unknown
		}
		if len(fields) == maxParquetColumns {
			return nil, &CannotHold{fmt.Sprintf("the rows have more than %d columns, too many for Parquet: name some with "+
				"--columns, or keep everything with --format archive", maxParquetColumns)}
		}
		f.places.Set(name, len(fields))
		add(name, parquet.Optional(nodeOf(types[name])))
	}
	schema := parquet.NewSchema("table", columns{Group: parquet.Group{}, fields: fields})
	f.w = parquet.NewGenericWriter[any](w, schema, parquet.Compression(&zstd.Codec{}),
		parquet.CreatedBy("tsimport", "", ""))
	f.row = make(parquet.Row, len(fields))
	return f, nil
}

func severalTypes(column, types string) error {
	return &CannotHold{fmt.Sprintf("column %q has values of several types: %s; a Parquet column has one: name other "+
		"columns with --columns, or keep everything with --format archive", column, types)}
}

func nodeOf(t string) parquet.Node {
	switch t {
	case table.Integer.String():
		return parquet.Int(64)
	case table.Double.String():
		return parquet.Leaf(parquet.DoubleType)
	case table.Boolean.String():
		return parquet.Leaf(parquet.BooleanType)
	case table.String.String():
		return parquet.String()
	}
	return parquet.Leaf(parquet.ByteArrayType)
}

// columns is a group that keeps the order of its fields; the library would sort them by name.
type columns struct {
	parquet.Group
	fields []parquet.Field
}

func (c columns) Fields() []parquet.Field { return c.fields }

func (f *parquetFile) clear() {
	for i := f.keys; i < len(f.row); i++ {
		f.row[i] = parquet.NullValue().Level(0, 0, i)
	}
}

func (f *parquetFile) Write(r *scan.Fields) error {
	f.clear()
	for i, v := range r.Key {
		f.row[i] = f.value(v.Value()).Level(0, 0, i)
	}
	for _, c := range r.Cells {
		i := f.places.Of(c.Column)
		if i < 0 {
			return fmt.Errorf("write Parquet: column %q appeared after the columns were counted", c.Name)
		}
		f.row[i] = f.value(c.Value.Value()).Level(0, 1, i)
	}
	return f.writeRow()
}

func (f *parquetFile) writeRow() error {
	if _, err := f.w.WriteRows([]parquet.Row{f.row}); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	if f.bytes < rowGroupBytes {
		return nil
	}
	f.bytes = 0
	if err := f.w.Flush(); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	return nil
}

func (f *parquetFile) value(v table.Value) parquet.Value {
	f.bytes += 8 + len(v.Bytes)
	switch v.Type {
	case table.Integer:
		return parquet.Int64Value(v.Int)
	case table.Double:
		return parquet.DoubleValue(v.Double)
	case table.Boolean:
		return parquet.BooleanValue(v.Int != 0)
	}
	return parquet.ByteArrayValue(v.Bytes)
}

// Flush writes the footer of the file; no rows can follow.
func (f *parquetFile) Flush() error {
	if err := f.w.Close(); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	return nil
}
