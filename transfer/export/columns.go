package export

import (
	"fmt"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Column is an attribute column of the exported rows, with the number of its values by type: types may differ by row.
type Column struct {
	Name  string           `json:"name"`
	Types map[string]int64 `json:"types"`
}

// Type is the type with which a load restores the column's values: string, which accepts any text, for mixed types.
func (c *Column) Type() string {
	if len(c.Types) == 1 {
		for name := range c.Types {
			return name
		}
	}
	return table.String.String()
}

// Others is the number of values of another type than Type.
func (c *Column) Others() (n int64) {
	of := c.Type()
	for name, values := range c.Types {
		if name != of {
			n += values
		}
	}
	return n
}

// Lost is the data of the rows that the output lacks. An archive and typed JSON lines lose nothing.
type Lost struct {
	Timestamps    int64 `json:"timestamps"`     // of cells
	OlderVersions int64 `json:"older_versions"` // of cells
	Types         int64 `json:"types"`          // values in columns of mixed types: a load gives a column one type
}

// columns returns the sorted columns of the output.
func (e *exporter) columns() []Column {
	all := []Column{}
	for _, seen := range e.fields.Columns() {
		c := Column{Name: seen.Name, Types: map[string]int64{}}
		for t, n := range seen.Types {
			if n > 0 {
				c.Types[table.Type(t).String()] = n
			}
		}
		if len(c.Types) > 0 { // else the output has no row with it
			all = append(all, c)
		}
	}
	return all
}

// wantedOf is the set of columns; nil means all.
func wantedOf(columns []string) map[string]bool {
	if columns == nil {
		return nil
	}
	wanted := map[string]bool{}
	for _, name := range columns {
		wanted[name] = true
	}
	return wanted
}

// CannotHold reports that a format cannot store the table's data. A retry fails too.
type CannotHold struct{ What string }

func (e *CannotHold) Error() string { return e.What }

// checkText refuses data that a text format cannot hold: a string, or the name of its column, that is not UTF-8.
func checkText(format, column string, named bool, v plainbuffer.Encoded) error {
	if v.Type() != table.String || format == Typed || named && utf8.Valid(v.Bytes()) {
		return nil
	}
	return &CannotHold{fmt.Sprintf("column %q has a string that is not UTF-8, which %s cannot hold: %.60q; leave the "+
		"column out (--columns), or keep everything with --format archive",
		column, formatNames[format], string(v.Bytes()))}
}

var formatNames = map[string]string{CSV: "CSV", CSVGzip: "CSV", CSVZstd: "CSV", JSONL: "JSON lines", Parquet: "Parquet",
	MySQL: "text in UTF-8", Postgres: "text in UTF-8"}
