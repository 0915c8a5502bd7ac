package plan

import (
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/condition"
)

// checkWhen refuses options that cannot be combined with --when, and columns that --when cannot compare.
func (p *planner) checkWhen() error {
	r := p.request
	if r.When == nil {
		return nil
	}
	s := p.plan.Schema
	switch {
	case r.Condition != table.Ignore:
		return usagef("--when with --condition: the service does not say which of the two failed; leave one of them out")
	case r.Mode == table.Delete && r.When.Matches():
		return nil // a repeated deletion finds no row, which is no error
	case r.Mode == table.Delete:
		return usagef("--when with --mode delete: a row to be deleted has only its key, without values to compare; %s "+
			"followed by a condition looks at the stored row", condition.Matching)
	case r.When.Matches():
		return usagef("--when %s: a write changes the values it reads; %s is for --mode delete", r.When, condition.Matching)
	case r.Mode == table.Increment:
		return usagef("--when with --mode increment: an increment has a condition of its own; leave --when out")
	case p.numbered > 0:
		return usagef("--when: the service accepts no condition for rows whose auto-increment column %s it assigns; leave "+
			"it out", s.Key[p.numbered].Name)
	}
	const exact = "a condition that joins comparisons of a column with the same column by <, <=, > or >= with and, such " +
		"as stored.at < new.at"
	const nothing = "it does not refer to the new row, so it could refuse the load's own writes: compare with one " +
		"of the new row's columns, as in stored.updated_at < new.updated_at"
	switch {
	case r.When.Rising():
	case len(r.When.New()) == 0 && p.plan.Live:
		return usagef("--when %s: %s", r.When, nothing)
	case len(r.When.New()) == 0 && r.Order != OrderNone:
		return usagef("--when %s: %s, or give --order none if no key is repeated", r.When, nothing)
	case p.plan.Live:
		return usagef("--when %s: %s changes while it is read, and a row read again after an interruption would be "+
			"compared with the load's own earlier write; give %s", r.When, p.plan.Sources[0].Name, exact)
	case r.Order != OrderNone:
		return usagef("--when %s: a row sent again after an interruption would be compared with a later row of its key; "+
			"give --order none if no key is repeated, or %s", r.When, exact)
	}
	for _, name := range r.When.Stored() {
		if slices.ContainsFunc(s.Key, func(k table.KeyColumn) bool { return k.Name == name }) {
			return usagef("--when: stored.%s is a primary-key column, which is the same in the stored and the new row", name)
		}
	}
	p.plan.whenNew = r.When.New()
	for _, name := range p.plan.whenNew {
		if !p.plan.Wide && !slices.ContainsFunc(s.Columns, func(c table.Column) bool { return c.Name == name }) {
			return usagef("--when: new.%s: the load writes no column of that name", name)
		}
	}
	return nil
}

// Lacks returns why Request.When cannot compare a row, or nil. has reports whether the row has a value in a column.
func (p *Plan) Lacks(has func(column string) bool) *table.Reason {
	for _, name := range p.whenNew {
		if !has(name) {
			return &table.Reason{Column: name, Code: table.CodeNoValue, Message: "the row has no value that --when compares"}
		}
	}
	return nil
}
