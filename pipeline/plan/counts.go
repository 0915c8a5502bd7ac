package plan

import (
	"fmt"

	"example.com/tsimport/internal/table"
)

// settleCounts refuses what --mode increment cannot do exactly once for each record. At is the auto-increment column of the
// key, 0 for none.
func (p *planner) settleCounts(at int) error {
	r := p.request
	const mode = "--mode increment: "
	switch {
	case at > 0:
		return usagef(mode+"table %s has the auto-increment key column %s, and a row with such a key can be changed only if it exists; load into a table without one", r.Target.Table, p.key()[at].Name)
	case p.plan.Tables != nil:
		return usagef(mode + "a load into several tables cannot add; load each table separately")
	case r.Condition != table.Ignore:
		return usagef(mode + "it uses a condition of its own, so that each record counts once; leave --condition out")
	case r.Order == OrderNone:
		return usagef(mode + "the records of a row must be added in order, so that its mark tells which were; leave --order none out")
	case r.Read.Convert.VersionColumn != "":
		return usagef(mode + "the service sets the timestamp of a sum; leave --version-column out")
	}
	if err := p.refuseNumbering(fmt.Sprintf("table %s has none", r.Target.Table)); err != nil {
		return err
	}
	return p.settleMark()
}

// checkWholeRows refuses updates of a table in which they are something else.
func (p *planner) checkWholeRows() error {
	mode := p.request.Mode
	if p.plan.table == nil || mode != table.Update && mode != table.Increment {
		return nil
	}
	whole, err := p.admin.UpdatesWholeRows(p.plan.table.Name)
	if err != nil || !whole {
		return err
	}
	return usagef("--mode %s: in table %s an update removes the columns that it does not name (its option update_full_row); give --mode put and whole rows, or load into a table without the option", modeNames[mode], p.plan.table.Name)
}

// checkCounts refuses columns that cannot be added exactly.
func (p *planner) checkCounts() error {
	if p.request.Mode != table.Increment {
		return nil
	}
	columns := p.plan.Schema.Attributes()
	if len(columns) == 0 && !p.plan.Wide {
		return usagef("--mode increment needs at least one attribute column to add to")
	}
	for _, c := range columns {
		if c.Type != table.Integer {
			return usagef("--mode increment: column %s is %s, and only integers can be added; leave it out (--exclude %s), or give --type %s=integer, which rejects records with other values",
				c.Name, c.Type, c.Name, c.Name)
		}
		if t := p.plan.table; t != nil && t.Defined[c.Name] != table.Null && t.Defined[c.Name] != table.Integer {
			return usagef("--mode increment: table %s defines column %s as %s, and only integers can be added; leave it out (--exclude %s)", t.Name, c.Name, t.Defined[c.Name], c.Name)
		}
	}
	return nil
}
