package export

import (
	"fmt"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Column is an attribute column of the exported rows. Types counts its values by type, because types may vary by row.
type Column struct {
	Name  string           `json:"name"`
	Types map[string]int64 `json:"types"`
}

// Type returns the type that a load should give the column. It is string, which accepts any text, if types are mixed.
func (c *Column) Type() string {
	if len(c.Types) == 1 {
		for name := range c.Types {
			return name
		}
	}
	return table.String.String()
}

// Others returns the number of values that are not of type Type.
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
	Timestamps    int64 `json:"timestamps"`     // number of cells whose timestamp is lost
	OlderVersions int64 `json:"older_versions"` // number of versions that are lost
	Types         int64 `json:"types"`          // number of values that a load would restore with another type
}

// columns returns the attribute columns that have values in the output, sorted by name.
func (e *exporter) columns() []Column {
	all := []Column{}
	for _, seen := range e.fields.Columns() {
		c := Column{Name: seen.Name, Types: map[string]int64{}}
		for t, n := range seen.Types {
			if n > 0 {
				c.Types[table.Type(t).String()] = n
			}
		}
		if len(c.Types) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// wantedOf returns columns as a set, or nil, which means all, for nil.
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

// CannotHold means that a format cannot store the table's data. A retry would also fail.
type CannotHold struct{ What string }

func (e *CannotHold) Error() string { return e.What }

// checkText refuses data that a text format cannot hold: a string that is not UTF-8, or whose column's name is not.
func checkText(format, column string, named bool, v plainbuffer.Encoded) error {
	if v.Type() != table.String || format == Typed || named && utf8.Valid(v.Bytes()) {
		return nil
	}
	return &CannotHold{fmt.Sprintf("column %q has a name or string that is not UTF-8, which %s cannot hold: %.60q; leave "+
		"the column out (--columns), or keep everything with --format archive",
		column, formatNames[format], string(v.Bytes()))}
}

var formatNames = map[string]string{CSV: "CSV", CSVGzip: "CSV", CSVZstd: "CSV", JSONL: "JSON lines", Parquet: "Parquet",
	MySQL: "text in UTF-8", Postgres: "text in UTF-8"}
