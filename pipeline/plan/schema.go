package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/table"
)

// settleSchema finds the table's key and attributes among the input's columns. Null types are inferred later.
func (p *planner) settleSchema() error {
	columns := p.columns
	if err := p.checkNamed(p.all); err != nil {
		return err
	}
	s := &table.Schema{Table: p.request.Target.Table, Key: slices.Clone(p.request.Target.Key), Numbered: p.numbered}
	if t := p.plan.table; t != nil {
		if err := p.matchKey(t); err != nil {
			return err
		}
		s.Key = slices.Clone(t.Key)
	}
	bySource := map[string]string{} // input names by table name
	for _, c := range columns {
		if !p.isComputed(p.rename(c)) {
			bySource[p.rename(c)] = c
		}
	}
	isKey := map[string]bool{}
	for _, k := range s.Key {
		if p.isComputed(k.Name) || p.isNumbered(k.Name) {
			s.Columns = append(s.Columns, table.Column{Name: k.Name, Type: k.Type})
			continue
		}
		src, ok := bySource[k.Name]
		if !ok {
			hint := "check --pk, or use --rename old=new if the column has another name"
			if len(p.all) == 1 {
				hint = "it may have another delimiter or encoding, or no header: see tsimport inspect"
			} else if strings.Contains(k.Name, ",") {
				hint = "repeat --pk for each column of the key"
			}
			if hint = "; " + hint + suggest.Hint(k.Name, p.all); len(p.hints) > 0 {
				hint = "" // the input's own hint is added to the error
			}
			return usagef("no column %q in %s (it has %q), but the primary key of table %s needs it%s", k.Name,
				p.plan.Sources[0].Name, firstOf(p.all), s.Table, hint)
		}
		if slices.Contains(p.request.Columns.Exclude, src) {
			return usagef("--exclude %s: the column is part of the primary key; do not exclude it", src)
		}
		isKey[src] = true
		col, err := p.column(src, k.Name)
		if err != nil {
			return err
		}
		if k.Type != table.Null && col.Type != table.Null && col.Type != k.Type {
			return usagef("--type %s=%s: the primary-key column is %s", k.Name, col.Type, k.Type)
		}
		if k.Type != table.Null {
			col.Exact = col.Type == table.Null && p.plan.table != nil && !slices.Contains(p.request.Target.Key, k)
			col.Type = k.Type
		}
		s.Columns = append(s.Columns, col)
	}
	for _, c := range columns {
		if p.plan.Wide || isKey[c] || !p.wanted(c) || p.isComputed(p.rename(c)) || p.request.Mode == table.Delete {
			continue
		}
		col, err := p.column(c, p.rename(c))
		if err != nil {
			return err
		}
		if t := p.plan.table; t != nil && col.Type == table.Null {
			col.Type = t.Defined[col.Name]
			col.Exact = true
		}
		s.Columns = append(s.Columns, col)
	}
	for _, col := range p.request.Columns.Set {
		made := table.Column{Name: col.Name, Type: col.Type}
		if t := p.plan.table; t != nil && made.Type == table.Null {
			made.Type = t.Defined[col.Name]
		}
		s.Columns = append(s.Columns, made)
	}
	p.plan.Schema = s
	p.settleFields()
	return nil
}

// checkNamed refuses flags that name columns that the input does not have.
func (p *planner) checkNamed(columns []string) error {
	c := &p.request.Columns
	named := []struct {
		flag  string
		names []string
	}{{"--columns", c.Only}, {"--exclude", c.Exclude}, {"--rename", slices.Sorted(maps.Keys(c.Rename))}}
	for _, n := range named {
		if p.plan.Wide {
			break // any record may have the column
		}
		for _, name := range n.names {
			if !slices.Contains(columns, name) {
				return p.unknownColumn(n.flag, name, columns)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Types)) {
		known := p.plan.Wide || slices.ContainsFunc(columns,
			func(col string) bool { return col == name || p.rename(col) == name })
		if !known {
			return p.unknownColumn("--type", name, columns)
		}
	}
	used := map[string]string{}
	for _, col := range columns {
		if p.isComputed(p.rename(col)) || (!p.wanted(col) || p.plan.Wide) && !p.isKeyName(p.rename(col)) {
			continue
		}
		if other, ok := used[p.rename(col)]; ok {
			return usagef("columns %q and %q would both be called %q; rename or exclude one", other, col, p.rename(col))
		}
		used[p.rename(col)] = col
	}
	return nil
}

func (p *planner) unknownColumn(flag, name string, columns []string) error {
	return usagef("%s names column %q, which %s does not have (it has %q)%s", flag, name, p.plan.Sources[0].Name,
		firstOf(columns), suggest.Hint(name, columns))
}

func firstOf(columns []string) []string { return columns[:min(len(columns), 20)] }

func (p *planner) isKeyName(name string) bool {
	return slices.ContainsFunc(p.key(), func(k table.KeyColumn) bool { return k.Name == name })
}

func (p *planner) rename(column string) string { return p.request.Columns.To(column) }

func (p *planner) wanted(column string) bool { return p.request.Columns.Takes(column) }

func (p *planner) column(src, name string) (table.Column, error) {
	col := table.Column{Source: src, Name: name}
	if err := table.CheckColumnName(name); err != nil {
		return col, usagef("%s: %v", p.plan.Sources[0].Name, err)
	}
	t, ok := p.request.Columns.Types[src]
	if _, input := p.owner[name]; !ok && !input {
		t = p.request.Columns.Types[name] // by its new name, unless an input column has that name
	}
	col.Type, col.Hex, col.Time = t.Type, t.Hex, t.Time
	return col, nil
}

func (p *planner) checkSchema() error {
	s := p.plan.Schema
	for _, col := range s.Columns[:len(s.Key)] {
		if col.Type != table.Null && !col.Type.KeyType() {
			return usagef("primary-key column %s cannot be %s: want string, integer or binary", col.Name, col.Type)
		}
	}
	if p.request.Mode == table.Update && len(s.Attributes()) == 0 && !p.plan.Wide {
		return usagef("--mode update needs at least one attribute column")
	}
	return nil
}

// Indexes returns the table's secondary indexes. Each row costs at least a write and a read unit for each of them.
func (p *Plan) Indexes() []string {
	if p.table != nil {
		return p.table.Indexes
	}
	return nil
}

func indexText(name string, names []string) string {
	n := len(names)
	indexes, them := fmt.Sprintf("%d secondary indexes", n), "them"
	if n == 1 {
		indexes, them = "a secondary index", "it"
	}
	return fmt.Sprintf("table %s has %s (%s): a row of one write unit costs %d write units and %d read units with %s, "+
		"and slows the load; a load is faster if the indexes are dropped before it and created after it",
		name, indexes, strings.Join(names, ", "), 1+n, n, them)
}
