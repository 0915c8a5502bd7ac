package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Merging tells why several rows of a source may become one row of a table.
type Merging struct {
	Source string
	Own    []string // columns of the source's own key
	Lost   []string // columns that the table's key lacks, or has in a form in which different values may be equal
}

func (m *Merging) Text() string {
	return fmt.Sprintf("rows of %s that differ only in %s may become one row: their own key is %s", m.Source,
		strings.Join(m.Lost, ", "), strings.Join(m.Own, ", "))
}

// SameKeys returns the error that some rows, of all those read, would be lost as they share keys; keys has examples.
func SameKeys(r *Request, rows, of int64, keys ...string) error {
	such := ""
	if len(keys) > 0 {
		such = ", as with " + strings.Join(keys, ", ")
	}
	return usagef("%d of the %d rows of %s would be lost: several rows would get the same key%s; add columns of the "+
		"source's key to the table's key",
		rows, of, strings.Join(r.ShownInputs(), ", "), such)
}

// merging returns why two rows of a source can become one row of a table, or nil if they cannot. They cannot if the
// table's key or its name has all columns of a key of the source, in forms that keep different values different.
func (p *planner) merging() (found *Merging) {
	r := p.request
	if p.numbered > 0 || r.Mode == table.Delete || r.Mode == table.Increment {
		return nil // rows are distinct, or may have equal keys
	}
	for _, s := range p.plan.Sources {
		about := s.About()
		keys := [][]source.KeyColumn{about.Unique}
		if about.Unique == nil {
			keys[0] = declaredKey(&about)
		}
		for _, names := range about.AlsoUnique {
			keys = append(keys, slices.DeleteFunc(slices.Clone(about.Unique),
				func(k source.KeyColumn) bool { return !slices.Contains(names, k.Name) }))
		}
		if !slices.ContainsFunc(keys, func(k []source.KeyColumn) bool { return len(p.lost(k)) == 0 }) {
			name := s.Name
			if r.Read.Sources != nil { // the source is only a part of the origin
				name = strings.Join(r.ShownInputs(), ", ")
			}
			return &Merging{Source: name, Own: namesOf(keys[0]), Lost: namesOf(p.lost(keys[0]))}
		}
	}
	return nil
}

func declaredKey(about *source.About) (key []source.KeyColumn) {
	if about.Declared == nil {
		return nil
	}
	kinds := map[table.Type]record.Kind{table.Integer: record.Integer, table.Binary: record.Binary}
	for _, name := range about.Declared.Key {
		k := source.KeyColumn{Name: name, Kind: record.String}
		if at := slices.Index(about.Columns, name); at >= 0 {
			if kind, ok := kinds[about.Declared.Types[at]]; ok {
				k.Kind = kind
			}
		}
		key = append(key, k)
	}
	return key
}

// lost returns the columns of a source's key in which rows with the same table key may differ.
func (p *planner) lost(key []source.KeyColumn) []source.KeyColumn {
	var told []string
	for i := range p.plan.Schema.Key {
		maker := Maker{Field: i}
		if p.plan.Makers != nil {
			maker = p.plan.Makers[i]
		}
		if maker.Program != nil {
			told = append(told, maker.Program.Tells()...)
		} else if maker.Field >= 0 {
			told = append(told, p.plan.Fields[maker.Field].Source)
		}
	}
	if t := p.plan.Tables; t != nil {
		made := slices.DeleteFunc(slices.Clone(t.parts), func(part namePart) bool { return part.program == nil })
		if len(made) == 1 {
			told = append(told, made[0].program.Tells()...)
		}
	}
	return slices.DeleteFunc(slices.Clone(key), func(k source.KeyColumn) bool {
		return slices.Contains(told, k.Name) &&
			slices.ContainsFunc(p.plan.Fields,
				func(c table.Column) bool { return c.Source == k.Name && p.takesAsItIs(&c, k.Kind) })
	})
}

// takesAsItIs reports whether a column turns different data of a kind into different values.
func (p *planner) takesAsItIs(c *table.Column, kind record.Kind) bool {
	switch kind {
	case record.Integer, record.Unsigned:
		return c.Time == nil && (c.Type == table.Integer || c.Type == table.String)
	case record.String:
		return c.Type == table.String && !p.request.Read.Convert.Trim
	case record.Binary:
		return c.Type == table.Binary
	}
	return false
}

// keepRows refuses a load that may merge rows of a source, unless Read.Look or the caller reads all rows first.
func (p *planner) keepRows(ctx context.Context) error {
	r, m := p.request, p.merging()
	p.plan.Merging = m
	switch {
	case m == nil || r.Written || r.Keep == KeepKeyFields || r.Divided && r.Read.Look != nil:
		return nil
	case r.Read.Look != nil:
		return r.Read.Look(ctx)
	case r.Read.Sources == nil: // several dumps may have a row at different times
		p.plan.Warnings = append(p.plan.Warnings, m.Text()+"; the last one stays (tsimport check --unique counts them)")
		return nil
	}
	var flags []string
	for _, k := range p.plan.Schema.Key {
		flag := "--pk " + suggest.Arg(k.Name)
		if at := slices.IndexFunc(r.Columns.Keys, func(c Column) bool { return c.Name == k.Name }); at >= 0 {
			flag = fmt.Sprintf("--pk '%s=%s'", k.Name, r.Columns.Keys[at].Expr)
		}
		flags = append(flags, flag)
	}
	for _, name := range m.Lost {
		if flag := "--pk " + suggest.Arg(p.rename(name)); !slices.Contains(flags, flag) { // without its type
			flags = append(flags, flag)
		}
	}
	into := "give the table"
	if p.plan.table != nil {
		into = "load into another table with"
	}
	how := fmt.Sprintf("%s a key that has them too: %s", into, strings.Join(flags, " "))
	if len(flags) > table.MaxKeyColumns {
		how = fmt.Sprintf("%s a key that has them all, some of them joined by splice(auto, …)", into)
	}
	if len(r.Columns.Keys) > 0 {
		how += "; computed columns count if made by text, pad, desc, reverse, splice or sha256(…, 32) (docs/keys.md)"
	}
	return usagef("%s, and the key of table %s would not distinguish them; %s", m.Text(), r.Target.Table, how)
}
