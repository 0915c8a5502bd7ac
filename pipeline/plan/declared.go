package plan

import (
	"fmt"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
)

// takeKey gives a new table the primary key that the sources' schemas declare, if the user names none.
func (p *planner) takeKey() {
	if len(p.request.Target.Key) > 0 || len(p.request.Columns.Keys) > 0 {
		return
	}
	var key []table.KeyColumn
	for i, s := range p.plan.Sources {
		about := s.About()
		if about.Declared == nil || len(about.Declared.Key) == 0 || len(about.Declared.Key) > table.MaxKeyColumns {
			return
		}
		var own []table.KeyColumn
		for _, name := range about.Declared.Key {
			at := slices.Index(about.Columns, name)
			if at < 0 {
				return
			}
			k := table.KeyColumn{Name: p.rename(name)}
			if k.Type = about.Declared.Types[at]; !k.Type.KeyType() {
				k.Type = table.String
			}
			own = append(own, k)
		}
		if i > 0 && !slices.Equal(own, key) {
			return
		}
		key = own
	}
	if len(key) == 0 {
		return
	}
	p.request.Target.Key = key
	text := make([]string, len(key))
	for i, k := range key {
		text[i] = fmt.Sprintf("--pk %s:%s", k.Name, k.Type)
	}
	p.plan.Notes = append(p.plan.Notes, "the new table gets the source's primary key: "+strings.Join(text, " "))
}

// declaredType returns the type that the sources' schemas declare for a column, or Null if they differ or one lacks it.
func (p *planner) declaredType(src string) (of table.Type) {
	for _, s := range p.plan.Sources {
		about := s.About()
		at := slices.Index(about.Columns, src)
		if at < 0 || about.Declared == nil || of != table.Null && of != about.Declared.Types[at] {
			return table.Null
		}
		of = about.Declared.Types[at]
	}
	return of
}

// declaresTable reports whether the sources' schemas type every column, so that a table needs no record to be created.
func (p *planner) declaresTable() bool {
	return !slices.ContainsFunc(p.plan.Sources, func(s *Source) bool {
		about := s.About()
		return about.Declared == nil || slices.Contains(about.Declared.Types, table.Null)
	})
}
