package plan

import (
	"context"
	"maps"
	"path/filepath"

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
