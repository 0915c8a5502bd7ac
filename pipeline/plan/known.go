package plan

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/rundir"
)

// knownType is the type of an existing table column.
type knownType struct {
	table.Type
	from string // where the type comes from, for messages
}

// sampleRows is the number of rows sampled at each end of a table.
const sampleRows = 200

// knownTypes returns the types of the table's columns by name. They come from the rows at both ends of the table, or
// else from the last run into the table. If a column has several types, the last run's type counts.
func (p *planner) knownTypes(last map[string]string) (map[string]knownType, error) {
	if p.plan.table == nil && p.plan.Tables == nil || !p.infers() {
		return nil, nil
	}
	known := map[string]knownType{}
	for column, was := range last {
		if t, err := table.ParseType(was); err == nil && t != table.Any && t != table.Null {
			known[column] = knownType{t, "the last run has written"}
		}
	}
	if p.plan.table == nil || p.request.KeysAlone {
		return known, nil
	}
	found, rows, err := p.admin.CellTypes(p.request.Target.Table, p.plan.table.Key, sampleRows)
	if err != nil {
		// Without permission to read from the table, a load can still write to it.
		if p.admin.Context != nil && p.admin.Context.Err() != nil {
			return nil, context.Cause(p.admin.Context)
		}
		return known, nil
	}
	if rows == 0 {
		return nil, nil // the values that runs wrote are gone
	}
	for column, types := range found {
		last, ran := known[column]
		if len(types) > 1 && ran && types[last.Type] {
			continue // the last run's type was taken
		}
		if delete(known, column); len(types) > 1 {
			continue
		}
		for t := range types {
			known[column] = knownType{t, "the table has"}
		}
	}
	return known, nil
}

// infers reports whether the type of any attribute is still unknown.
func (p *planner) infers() bool {
	for i := p.plainKeys(); i < len(p.plan.Fields); i++ {
		if _, earlier := p.request.Inferred[p.plan.Fields[i].Source]; p.plan.Fields[i].Type == table.Null && !earlier {
			return true
		}
	}
	return false
}

// lastColumns returns the types and units that the last run into the table gave its columns. It looks for that run in
// the parent folder of the planned run, or else in the default one. A missing table has none.
func (p *planner) lastColumns() (types, units map[string]string) {
	if p.plan.table == nil && p.plan.Tables == nil {
		return nil, nil
	}
	folders := []string{rundir.Root}
	if p.request.RunDir != "" {
		folders = []string{filepath.Dir(p.request.RunDir), rundir.Root}
	}
	types, last := rundir.LastColumns(folders, p.request.Target.Table, p.request.Target.Name)
	units = map[string]string{}
	maps.Copy(units, last)
	if of, ok := p.request.Selection.(Units); ok { // another machine may have the runs
		maps.Copy(units, of.Units())
	}
	return types, units
}

// warnOfRenamed warns if columns are new to a nightly load and others, which earlier nights wrote, are missing.
func (p *planner) warnOfRenamed() {
	of, ok := p.request.Selection.(Units)
	if !ok || len(of.Units()) == 0 {
		return
	}
	earlier := maps.Clone(of.Units())
	var added, missing []string
	for _, c := range p.plan.Schema.Columns {
		if earlier[c.Name] == "" && c.Unit != "" {
			added = append(added, strconv.Quote(c.Name))
		}
		delete(earlier, c.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(earlier)) {
		missing = append(missing, strconv.Quote(name))
	}
	if len(added) > 0 && len(missing) > 0 {
		p.warnf("the inputs have the new column %s and lack %s, which earlier loads wrote; if a column was renamed, "+
			"--rename NEW=OLD keeps its name in the table", strings.Join(firstOf(added), ", "), strings.Join(firstOf(missing), ", "))
		p.plan.Changed = append(p.plan.Changed, p.plan.Warnings[len(p.plan.Warnings)-1])
	}
}
