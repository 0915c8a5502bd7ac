package export

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/tablescan"
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
	of    map[string]*columnSeen
	last  []*columnSeen // of the cells of the row before: those of the next one mostly are of the same columns
	cells int64         // in the output
	older int64         // versions that are not
}

// columnSeen is how many values of a column have each type.
type columnSeen struct {
	name  string
	text  bool // the name is UTF-8
	types scan.Types
}

// column finds the column of a row's i-th cell.
func (s *columnsSeen) column(i int, name string) *columnSeen {
	if i < len(s.last) && s.last[i].name == name {
		return s.last[i]
	}
	c := s.named(name)
	if i < len(s.last) {
		s.last[i] = c
	} else if i == len(s.last) {
		s.last = append(s.last, c)
	}
	return c
}

// named finds a column.
func (s *columnsSeen) named(name string) *columnSeen {
	c := s.of[name]
	if c == nil {
		c = &columnSeen{name: name, text: utf8.ValidString(name)}
		s.of[name] = c
	}
	return c
}

// count counts a row that is in the output, of which column has found each cell's.
func (s *columnsSeen) count(r *scan.Row, older int64) {
	s.older += older
	s.cells += int64(len(r.Columns))
	for i, c := range r.Columns {
		s.last[i].types[typeOf(c.Value)]++
	}
}

// typeOf is the type of a value that the SDK delivers.
func typeOf(v any) table.Type {
	switch v.(type) {
	case int64:
		return table.Integer
	case float64:
		return table.Double
	case string:
		return table.String
	}
	return client.ValueOf(v).Type
}

// columns are those seen, sorted.
func (s *columnsSeen) columns() []Column {
	all := []Column{}
	for _, name := range slices.Sorted(maps.Keys(s.of)) {
		c := Column{Name: name, Types: map[string]int64{}}
		for t, n := range s.of[name].types {
			if n > 0 {
				c.Types[table.Type(t).String()] = n
			}
		}
		if len(c.Types) > 0 { // else no row with it is in the output
			all = append(all, c)
		}
	}
	return all
}

// seenBefore is what a note says of the rows of an export that is continued.
func seenBefore(s *state) columnsSeen {
	seen := columnsSeen{of: map[string]*columnSeen{}, cells: s.Cells, older: s.Older}
	for i, c := range s.Columns {
		types := &seen.column(i, c.Name).types
		for t := range types {
			types[t] = c.Types[table.Type(t).String()]
		}
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
		if err := e.text(k.ColumnName, k.Value, true); err != nil {
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
	for i, c := range kept {
		if err := e.text(c.ColumnName, c.Value, e.seen.column(i, c.ColumnName).text); err != nil {
			return 0, err
		}
	}
	return older, nil
}

// text refuses what the text of a format cannot hold.
func (e *exporter) text(column string, v any, named bool) error {
	if s, is := v.(string); is && e.Format != Typed && (!named || !utf8.ValidString(s)) {
		return notText(fmt.Sprintf("column %q", column), formatNames[e.Format], s)
	}
	return nil
}

func notText(what, format, text string) error {
	return &CannotHold{fmt.Sprintf("%s has a string that is not UTF-8, which %s cannot hold: %.60q; leave the column out (--columns), or keep everything with --format archive", what, format, text)}
}

var formatNames = map[string]string{CSV: "CSV", CSVGzip: "CSV", CSVZstd: "CSV", JSONL: "JSON lines", Parquet: "Parquet", MySQL: "text in UTF-8", Postgres: "text in UTF-8"}

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
