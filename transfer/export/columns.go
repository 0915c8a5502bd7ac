package export

import (
	"fmt"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Column is an attribute column of the exported rows. Types counts its values by type, which may differ between rows.
type Column struct {
	Name  string           `json:"name"`
	Types map[string]int64 `json:"types"`
}

// Type returns the type with which a load restores the column: string, which accepts any text, if types are mixed.
func (c *Column) Type() string {
	if len(c.Types) == 1 {
		for name := range c.Types {
			return name
		}
	}
	return table.String.String()
}

// Others returns the number of values with a type other than Type.
func (c *Column) Others() (n int64) {
	of := c.Type()
	for name, values := range c.Types {
		if name != of {
			n += values
		}
	}
	return n
}

// Lost counts data that the output format cannot store. An archive and typed JSON lines lose nothing.
type Lost struct {
	Timestamps    int64 `json:"timestamps"`     // of cells
	OlderVersions int64 `json:"older_versions"` // of cells
	Types         int64 `json:"types"`          // values that a load would restore with another type
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
		if len(c.Types) > 0 { // some row of the output has it
			all = append(all, c)
		}
	}
	return all
}

// wantedOf returns the set of columns; nil means all.
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
