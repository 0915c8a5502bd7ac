package plan

import (
	"maps"
	"slices"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
)

// checkWide ensures that either all sources have self-describing records or none do.
func (p *planner) checkWide() error {
	for i, s := range p.plan.Sources {
		wide := s.About().Wide
		if i == 0 {
			p.plan.Wide = wide
		}
		if wide != p.plan.Wide {
			return usagef("only one of %s and %s is self-describing; load them separately", p.plan.Sources[0].Name, s.Name)
		}
	}
	return nil
}

// askForColumns adds the columns that the load names to self-describing sources, whose columns are otherwise unknown.
func (p *planner) askForColumns() error {
	ask := func(names ...string) {
		for _, name := range names {
			if _, known := p.owner[name]; !known {
				p.owner[name] = p.plan.Sources[0].Name
				p.all = append(p.all, name)
			}
		}
	}
	for _, e := range p.expressions() {
		names, err := keyexpr.Names(e.text)
		if err != nil {
			return usagef("%s %s: %v", e.flag, e.name, err)
		}
		ask(names...)
	}
	if version := p.request.Read.Convert.VersionColumn; version != "" {
		ask(version)
	}
	for _, k := range p.key() {
		if k.Auto || p.isComputed(k.Name) || slices.ContainsFunc(p.all,
			func(c string) bool { return p.rename(c) == k.Name }) {
			continue
		}
		name := k.Name
		for _, from := range slices.Sorted(maps.Keys(p.request.Columns.Rename)) {
			if p.request.Columns.Rename[from] == k.Name {
				name = from
				break
			}
		}
		ask(name)
	}
	return nil
}

// joinWide makes the sources deliver the columns that the request names.
func (p *planner) joinWide() error {
	for _, s := range p.plan.Sources {
		about := s.About()
		has := places(about.Columns)
		var lacks []string
		for _, c := range p.all {
			if _, there := has[c]; !there && (slices.Contains(p.columns, c) || c == p.request.Read.Convert.VersionColumn) {
				lacks = append(lacks, c)
			}
		}
		switch {
		case len(lacks) == 0:
		case about.AddColumns == nil:
			return usagef("%s has no column %q", s.Name, lacks[0])
		default:
			about.AddColumns(lacks)
		}
	}
	return nil
}

// warnOfDescribed warns of columns that sources list, mostly keys, and that are not loaded because they are not cells.
func (p *planner) warnOfDescribed() {
	for _, c := range p.all {
		if p.plan.described[c] && !slices.Contains(p.columns, c) && !p.isNumbered(p.rename(c)) && p.wanted(c) &&
			!p.isComputed(p.rename(c)) && c != p.request.Read.Convert.VersionColumn && p.request.Mode != table.Delete {
			p.warnf("column %s of %s is not part of the primary key and not loaded; --set %s=… makes an attribute of it, "+
				"--exclude %s leaves it out without this warning",
				c, p.owner[c], p.rename(c), c)
		}
	}
}

// warnOfUnseen warns of columns in keys or expressions that no sampled record has, as their names may be wrong.
func (p *planner) warnOfUnseen(in *convert.Inference, place map[string]int) {
	for _, c := range p.columns {
		if p.sampled.bad == nil && p.plan.Wide && !p.plan.described[c] && !in.Seen(place[c]) && !p.plan.Empty {
			p.warnf("column %s is part of a key or named by an expression, but no sampled record has a value in it", c)
		}
	}
}

// Described reports whether sources with self-describing records list a column.
func (p *Plan) Described(column string) bool { return p.described[column] }

// AsItIs reports whether rows have the keys and cells of their records unchanged, except for cells that are left out.
func (p *Plan) AsItIs() bool {
	c := &p.Request.Columns
	return p.Makers == nil && p.Tables == nil && p.Schema.Numbered == 0 && len(c.Rename) == 0 && len(c.Types) == 0 &&
		p.Request.Read.Convert.VersionColumn == ""
}

// Cell returns the table's column for cells with the given name, in a load of self-describing records. loaded is false
// for cells that are left out: on request, because the column is computed, or because they make a key column.
func (p *Plan) Cell(name string) (col table.Column, loaded bool) {
	c := &p.Request.Columns
	col = table.Column{Source: name, Name: c.To(name), Type: table.Any}
	if !c.Takes(name) || c.computes(col.Name) {
		return col, false
	}
	for i := range p.Schema.Key {
		if source := p.Schema.Columns[i].Source; source == name && !p.described[name] {
			return col, false
		}
	}
	t, ok := c.Types[name]
	if !ok {
		t = c.Types[col.Name]
	}
	if t.Type != table.Null {
		col.Type, col.Hex, col.Time = t.Type, t.Hex, t.Time
	}
	return col, true
}

// Unwritable returns why cells of records cannot go to the table's column, or nil.
func (p *Plan) Unwritable(column string) *table.Reason {
	why := &table.Reason{Column: table.Show([]byte(column)), Code: table.CodeColumnName}
	if column == table.UnchangedColumn && p.Request.Unchanged {
		return nil
	}
	if err := table.CheckColumnName(column); err != nil {
		why.Message = err.Error()
		return why
	}
	switch {
	case slices.ContainsFunc(p.Schema.Key, func(k table.KeyColumn) bool { return k.Name == column }):
		why.Message = "the record has a cell with the name of a primary-key column; use --rename or --exclude"
		return why
	case column == p.Mark:
		why.Message = "a cell of the record has the name of the mark column; give the mark another name with --mark-column, or " +
			"leave out the record's column with --exclude"
		return why
	}
	return nil
}

// Column is a computed column.
type Column = keyexpr.Column

// To returns the table's name for a column that is loaded unchanged.
func (c *Columns) To(column string) string {
	if to, ok := c.Rename[column]; ok {
		return to
	}
	return column
}

// Takes reports whether an attribute is to be loaded.
func (c *Columns) Takes(column string) bool {
	return (c.Only == nil || slices.Contains(c.Only, column)) && !slices.Contains(c.Exclude, column)
}

func (c *Columns) computes(name string) bool {
	is := func(col keyexpr.Column) bool { return col.Name == name }
	return slices.ContainsFunc(c.Keys, is) || slices.ContainsFunc(c.Set, is)
}
