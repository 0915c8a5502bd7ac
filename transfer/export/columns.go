package export

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/scan"
	"tsimport/reader/tablescan"
)

// Column is an attribute column of the rows that were written, and how many of its values have each type: every row may have its own.
type Column struct {
	Name  string           `json:"name"`
	Types map[string]int64 `json:"types"`
}

// Type is the type of the column's values, with which a load gives them back. If they have several it is string, which takes the text of any.
func (c *Column) Type() string {
	if len(c.Types) == 1 {
		for name := range c.Types {
			return name
		}
	}
	return table.String.String()
}

// Others is how many values are of another type than Type.
func (c *Column) Others() (n int64) {
	of := c.Type()
	for name, values := range c.Types {
		if name != of {
			n += values
		}
	}
	return n
}

// Lost is what of the rows is not in the output. An archive and typed JSON lines lose nothing.
type Lost struct {
	Timestamps    int64 `json:"timestamps"`     // of cells
	OlderVersions int64 `json:"older_versions"` // of cells
	Types         int64 `json:"types"`          // of values, in columns whose values have several: a load gives them one
}

// columnsSeen counts the attributes of rows.
type columnsSeen struct {
	of    map[string]*typesSeen
	cells int64 // in the output
	older int64 // versions that are not
}

// typesSeen are how many values have each type.
type typesSeen [table.Any + 1]int64

// count counts a row that is in the output.
func (s *columnsSeen) count(r *scan.Row, older int64) {
	s.older += older
	s.cells += int64(len(r.Columns))
	for _, c := range r.Columns {
		types := s.of[c.ColumnName]
		if types == nil {
			types = new(typesSeen)
			s.of[c.ColumnName] = types
		}
		types[client.ValueOf(c.Value).Type]++
	}
}

// columns are those seen, sorted.
func (s *columnsSeen) columns() []Column {
	all := []Column{}
	for _, name := range slices.Sorted(maps.Keys(s.of)) {
		c := Column{Name: name, Types: map[string]int64{}}
		for t, n := range s.of[name] {
			if n > 0 {
				c.Types[table.Type(t).String()] = n
			}
		}
		all = append(all, c)
	}
	return all
}

// seenBefore is what a note says of the rows of an export that is continued.
func seenBefore(s *state) columnsSeen {
	seen := columnsSeen{of: map[string]*typesSeen{}, cells: s.Cells, older: s.Older}
	for _, c := range s.Columns {
		types := new(typesSeen)
		for t := range types {
			types[t] = c.Types[table.Type(t).String()]
		}
		seen.of[c.Name] = types
	}
	return seen
}

// CannotHold says that a format cannot keep what the table has. The same export fails again.
type CannotHold struct{ What string }

func (e *CannotHold) Error() string { return e.What }

// take leaves of a row what goes to the output: the columns that were asked for and, unless all versions are kept, the newest version of
// each. A scan reads more columns than it is asked for: those that conditions name. It returns how many older versions it has left out.
func (e *exporter) take(r *scan.Row) (older int64, err error) {
	for _, k := range r.PrimaryKey.PrimaryKeys {
		if err := e.text(k.ColumnName, k.Value); err != nil {
			return 0, err
		}
	}
	kept, last := r.Columns[:0], "" // versions of a cell follow each other, and cells come by name
	for _, c := range r.Columns {
		switch {
		case e.wanted != nil && !e.wanted[c.ColumnName]:
			continue
		case e.Format == Typed || c.ColumnName != last || len(kept) == 0:
			kept, last = append(kept, c), c.ColumnName
			continue
		}
		older++
		if newest := &kept[len(kept)-1]; c.Timestamp > (*newest).Timestamp {
			*newest = c
		}
	}
	r.Columns = kept
	for _, c := range kept {
		if err := e.text(c.ColumnName, c.Value); err != nil {
			return 0, err
		}
	}
	return older, nil
}

// text refuses what the text of a format cannot hold.
func (e *exporter) text(column string, v any) error {
	if s, is := v.(string); is && e.Format != Typed && (!utf8.ValidString(s) || !utf8.ValidString(column)) {
		return &CannotHold{fmt.Sprintf("column %q has a string that is not UTF-8, which %s cannot hold: %.60q; leave the column out (--columns), or keep everything with --format archive", column, formatNames[e.Format], s)}
	}
	return nil
}

var formatNames = map[string]string{CSV: "CSV", JSONL: "JSON lines", Parquet: "Parquet"}

// passes reports whether a row passes the condition that is applied here.
func (e *exporter) passes(r *tablestore.Row) (bool, error) {
	if e.where == nil {
		return true, nil
	}
	passes, why := e.where.Passes(func(name string) table.Value { return tablescan.Newest(r, name) })
	if why != nil {
		return false, fmt.Errorf("a row cannot be judged: %s", why.Message)
	}
	return passes, nil
}
