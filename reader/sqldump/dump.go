package sqldump

import (
	"fmt"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqlname"
)

type Dump struct {
	Tables     []*Table
	Statements int64 // number of statements without rows
	Truncated  error // where the text breaks off; nil if the dump is complete

	byName map[string]*Table
}

type Table struct {
	Name     string // SCHEMA.TABLE or TABLE, as written by sqlname
	Columns  []Column
	Key      []string // columns of the primary key, in key order; nil if there is none
	Rows     int64
	From, To int64  // offsets in the dump of the text of the rows
	Lines    int64  // number of lines before From
	Refused  string // why the rows cannot be loaded; "" if they can
	Note     string // for the user
}

// Column is a column of a table.
type Column struct {
	Name string
	SQL  string      // type as written in the dump; "" if unknown
	Kind record.Kind // kind of the values; Text if they have no type
	Form int         // how readers of the dump convert a text
}

var types = map[record.Kind]table.Type{
	record.Integer: table.Integer, record.Unsigned: table.Integer, record.Double: table.Double,
	record.Boolean: table.Boolean, record.Binary: table.Binary, record.String: table.String,
}

// Type returns the type of the column's values, or Null if it depends on the values.
func (c *Column) Type() table.Type { return types[c.Kind] }

// Find returns the table with a full name, or nil if there is none.
func (d *Dump) Find(name string) *Table {
	return d.byName[name]
}

// Add returns the table with a full name. If there is none, it adds one.
func (d *Dump) Add(name string) *Table {
	t := d.Find(name)
	if t == nil {
		if d.byName == nil {
			d.byName = map[string]*Table{}
		}
		t = &Table{Name: name}
		d.byName[name] = t
		d.Tables = append(d.Tables, t)
	}
	return t
}

// MaxColumns is the largest number of columns in a table. No database allows more.
const MaxColumns = 4096

// Choose returns the table with a name, with or without its schema or, if name is "", the only table with rows.
func (d *Dump) Choose(name string) (*Table, error) {
	var fit []*Table
	if t := d.Find(name); t != nil && name != "" {
		fit = []*Table{t}
	} else {
		for _, t := range d.Tables {
			if name == "" && t.Rows > 0 || name != "" && t.isCalled(name) {
				fit = append(fit, t)
			}
		}
	}
	switch {
	case name == "" && len(fit) == 0 && len(d.Tables) == 1:
		fit = d.Tables
	case name == "" && len(fit) == 0:
		return nil, fmt.Errorf("the dump holds no rows (tables: %s)", d.list(d.Tables))
	case name == "" && len(fit) > 1:
		return nil, fmt.Errorf("the dump has %d tables with rows: %s; say which with --source-table", len(fit), d.list(fit))
	case len(fit) == 0:
		return nil, fmt.Errorf("--source-table %s: the dump has no such table; it has %s", name, d.list(d.Tables))
	case len(fit) > 1:
		return nil, fmt.Errorf("--source-table %s matches several tables: %s; name one with its schema", name, d.list(fit))
	}
	t := fit[0]
	switch {
	case t.Refused != "":
		return nil, fmt.Errorf("table %s: %s", t.Name, t.Refused)
	case len(t.Columns) > MaxColumns:
		return nil, fmt.Errorf("table %s has %d columns, but databases take at most %d", t.Name, len(t.Columns), MaxColumns)
	case len(t.Columns) == 0:
		return nil, fmt.Errorf("table %s: the dump does not state its columns", t.Name)
	}
	return t, nil
}

// isCalled reports whether name can mean the table, with or without its schema and the quotes it would need.
func (t *Table) isCalled(name string) bool {
	parts, err := sqlname.Split(t.Name)
	if err != nil {
		return false
	}
	asked, _ := sqlname.Split(name)
	last := parts[len(parts)-1:]
	return slices.Equal(asked, parts) || slices.Equal(asked, last) || name == strings.Join(parts, ".") || name == last[0]
}

const shownTables = 20

func (d *Dump) list(tables []*Table) string {
	if len(tables) == 0 {
		return "none"
	}
	var names []string
	for _, t := range tables[:min(len(tables), shownTables)] {
		names = append(names, t.Name)
	}
	if n := len(tables) - shownTables; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

// Describe says which table of the dump is read and which are skipped.
func (d *Dump) Describe(read *Table) string {
	text := fmt.Sprintf("table %s, %d rows", read.Name, read.Rows)
	var others []string
	rows, tables := int64(0), 0
	for _, t := range d.Tables {
		if t == read {
			continue
		}
		tables++
		rows += t.Rows
		if t.Rows > 0 {
			others = append(others, fmt.Sprintf("%s %d", t.Name, t.Rows))
		}
	}
	if n := len(others) - shownTables; n > 0 {
		others = append(others[:shownTables], fmt.Sprintf("%d more", n))
	}
	text += fmt.Sprintf("; skipped: %d other tables with %d rows", tables, rows)
	if len(others) > 0 {
		text += " (" + strings.Join(others, ", ") + ")"
	}
	text += fmt.Sprintf(" and %d other statements", d.Statements)
	if read.Note != "" {
		text += "; " + read.Note
	}
	return text
}

// Arrange sets the columns of a table to those of its rows, in their order, with the types from CREATE TABLE, or Text.
func (t *Table) Arrange(names []string) {
	if len(names) > MaxColumns || len(t.Columns) > MaxColumns {
		t.Columns = make([]Column, max(len(names), len(t.Columns))) // Choose refuses this table
		return
	}
	created := t.Columns
	t.Columns = nil
	var untyped, missing []string
	for _, name := range names {
		c := Column{Name: name, Kind: record.Text}
		if i := slices.IndexFunc(created, func(c Column) bool { return c.Name == name }); i >= 0 {
			c = created[i]
		} else {
			untyped = append(untyped, name)
		}
		t.Columns = append(t.Columns, c)
	}
	for _, c := range created {
		if !slices.Contains(names, c.Name) {
			missing = append(missing, c.Name)
		}
	}
	switch {
	case len(created) == 0:
		t.Note = "the dump does not create it, so types come from its values"
	case len(untyped) > 0:
		t.Note = "the dump lacks the types of some columns, so they come from the values: " + strings.Join(untyped, ", ")
	case len(missing) > 0:
		t.Note = "the dump has no values of generated columns: " + strings.Join(missing, ", ")
	}
}
