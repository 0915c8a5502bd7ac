package copytable

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
)

// DefineIndexes adds the source's indexes, with the target's column names, to a new target after Define. The notes are
// for the user.
func DefineIndexes(target *plan.Target, columns *plan.Columns, from *client.Table,
	rename map[string]string) (notes []string, err error) {
	for name := range rename {
		if !slices.Contains(from.Indexes, name) {
			return nil, plan.Usagef("--rename-index %s=%s: %s has no index of that name", name, rename[name], from.Name)
		}
	}
	leave := func(what, why string) {
		notes = append(notes, fmt.Sprintf("the new table does not get the %s%s; create it in the console or by "+
			"CreateIndex, including existing data (IncludeBaseData), when all rows are loaded", what, why))
	}
	for i, name := range from.Indexes {
		if i >= len(from.IndexesAre) {
			leave("index "+name, ", because the archive has only its name")
			continue
		}
		if err := plan.CheckIndexable(&target.Define, name); err != nil {
			return nil, err
		}
		to, why := indexOfTarget(target, columns, from, from.IndexesAre[i])
		if to == nil {
			leave(from.IndexesAre[i].String(), why)
			continue
		}
		to.Name = cmp.Or(rename[name], to.Name)
		target.Indexes = append(target.Indexes, *to)
		notes = append(notes, fmt.Sprintf("the new table gets the %s when all rows are written: the service then reads "+
			"them, and each row in the index costs at least one write unit", to))
	}
	return notes, nil
}

// indexOfTarget translates an index to the target's columns. If the target cannot have it, the result is nil and the
// reason. Key columns that only completed the index's key and are not in the target are dropped.
func indexOfTarget(target *plan.Target, columns *plan.Columns, from *client.Table, i table.Index) (_ *table.Index,
	why string) {
	to := &table.Index{Name: i.Name, Local: i.Local}
	kept := func(name string) (string, bool) {
		_, defined := target.Defined[columns.To(name)]
		return columns.To(name), defined || indexOf(target.Key, columns.To(name)) >= 0
	}
	for _, name := range i.Key {
		as, ok := kept(name)
		switch {
		case ok:
			to.Key = append(to.Key, as)
		case indexOf(from.Key, name) < 0 || len(to.Key) == 0:
			return nil, fmt.Sprintf(", because the table lacks the predefined column %s", name)
		}
	}
	var lost []string
	for _, name := range i.Columns {
		if as, ok := kept(name); ok && !slices.Contains(to.Key, as) {
			to.Columns = append(to.Columns, as)
		} else if !ok {
			lost = append(lost, name)
		}
	}
	if lost != nil {
		return nil, fmt.Sprintf(", because the table lacks columns of the index: %s", strings.Join(lost, ", "))
	}
	return to, ""
}
