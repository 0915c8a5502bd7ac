package intake

import (
	"fmt"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
)

// cells makes the cells of self-describing records. It remembers how cells of each name are treated.
type cells struct {
	plan    *plan.Plan
	names   map[string]*cellName // treatment by name in the records
	places  []*cellName          // treatment of the previous record's cells, as the next record usually has the same names
	renamed map[string]*renamed  // names given by --rename
	record  int                  // number of the current record, to detect columns renamed to the same name
	made    []encode.Cell
	nulls   bool                    // an update deletes columns without a value
	left    bool                    // cells of the last record were left out of its row
	window  func() (from, to int64) // cells before from are left out; if it is nil, none are
	gone    int64                   // rows with only cells older by this are left to the writer; below 0, none are
	expired int                     // cells of the last record left out as too old
}

// cellName says how cells of one name are treated.
type cellName struct {
	column table.Column
	name   *encode.Name  // nil means that the cells are left out
	why    *table.Reason // if not nil, records with such cells are refused
	from   string        // the name in records
	to     *renamed      // nil if no other name can become the same
}

// renamed is a name that --rename gives to a column; a record may also have a column of that name.
type renamed struct {
	name   *encode.Name
	from   string // column that has the name in that record
	record int    // last record with such a column
}

// become notes that the record has a column written as n, and refuses a second: its cells would become versions.
func (c *cells) become(n *cellName) *table.Reason {
	to := n.to
	if to.record == c.record && to.from != n.from {
		return &table.Reason{Column: n.column.Name, Code: table.CodeSameCell,
			Message: fmt.Sprintf("--rename gives the record's columns %s and %s one name; use another name, or --exclude",
				to.from, n.from)}
	}
	to.record, to.from = c.record, n.from
	return nil
}

func newCells(p *plan.Plan) *cells {
	if !p.Wide || p.Request.Mode == table.Delete {
		return nil
	}
	var window func() (from, to int64)
	if p.Request.Target.Aging.DropExpired {
		window = p.Window()
	}
	c := &cells{window: window, gone: -1, plan: p, names: map[string]*cellName{}, renamed: map[string]*renamed{},
		made: []encode.Cell{}, nulls: p.Request.DeleteNull}
	if reach, live, _ := p.Expiry(); live > 0 {
		c.gone = max(live-reach, 0).Milliseconds()
	}
	for _, to := range p.Request.Columns.Rename {
		if table.CheckColumnName(to) == nil {
			c.renamed[to] = &renamed{name: encode.NewName(to)}
		}
	}
	return c
}

// maxCellNames limits the names that are remembered from record to record.
const maxCellNames = 4096

// make returns the record's cells, or why it is refused. They are valid as long as the record, until the next call.
func (c *cells) make(v *values, rec *record.Record) ([]encode.Cell, *table.Reason) {
	c.made, c.left, c.expired = c.made[:0], false, 0
	c.record++
	if len(c.names) > maxCellNames {
		c.places = c.places[:0]
		clear(c.names) // only between records, as the encoder distinguishes columns by the pointers
	}
	version := int64(-1)
	if v.versioned {
		var why *table.Reason
		if version, why = v.converter.Version(rec); why != nil {
			return nil, why
		}
	}
	oldest := int64(0)
	if c.window != nil {
		if oldest, _ = c.window(); c.gone >= 0 && version < 0 && c.allBefore(rec.Cells, oldest-c.gone) {
			oldest = 0
		}
	}
	for i := range rec.Cells {
		from := &rec.Cells[i]
		if at := from.At; c.window != nil && at >= 0 && version < 0 && at/1000 < oldest/1000 {
			if _, loaded := c.plan.Cell(string(from.Name)); loaded {
				c.expired++
			}
			c.left = true
			continue
		}
		n := c.at(i, from.Name)
		switch {
		case n.why != nil:
			why := *n.why
			return nil, &why
		case n.name == nil || from.Kind == record.Absent:
			c.left = true
			continue
		}
		if n.to != nil {
			if why := c.become(n); why != nil {
				return nil, why
			}
		}
		c.left = c.left || from.Kind == record.Null && !c.nulls
		to := encode.Cell{Name: n.name, At: from.At}
		if version >= 0 {
			to.At = version
		}
		if from.Kind != record.Null {
			if why := v.converter.Cell(&to.Value, &n.column, &from.Datum); why != nil {
				return nil, why
			}
		}
		c.made = append(c.made, to)
	}
	return c.made, nil
}

// allBefore reports whether all of a record's cells are older than ms, in milliseconds.
func (c *cells) allBefore(of []record.Cell, ms int64) bool {
	return !slices.ContainsFunc(of, func(cell record.Cell) bool {
		_, loaded := c.plan.Cell(string(cell.Name))
		return loaded && (cell.At < 0 || cell.At/1000 >= ms/1000)
	})
}

func (c *cells) unchanged(name []byte) bool {
	n, ok := c.names[string(name)]
	if !ok {
		n = c.name(string(name))
	}
	return n.why == nil && n.name != nil && n.to == nil && n.column.Type == table.Any && n.column.Time == nil &&
		n.column.Own == table.Null
}

// at returns how to treat the i-th cell of a record, which has the given name.
func (c *cells) at(i int, name []byte) *cellName {
	if i < len(c.places) && c.places[i].from == string(name) {
		return c.places[i]
	}
	n, ok := c.names[string(name)]
	if !ok {
		n = c.name(string(name))
	}
	if i < len(c.places) {
		c.places[i] = n
	} else if i == len(c.places) && i < maxCellNames {
		c.places = append(c.places, n)
	}
	return n
}

// name determines how to treat cells of a name, and remembers it.
func (c *cells) name(name string) *cellName {
	n := &cellName{from: name}
	column, loaded := c.plan.Cell(name)
	if n.column = column; loaded {
		if n.why = c.plan.Unwritable(column.Name); n.why == nil {
			if n.to = c.renamed[column.Name]; n.to != nil {
				n.name = n.to.name
			} else {
				n.name = encode.NewName(column.Name)
			}
		}
	}
	if len(name) <= table.MaxNameBytes {
		c.names[name] = n
	}
	return n
}
