package plan

import (
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/source"
)

// checkLive refuses loads in which a row that changes or vanishes before it is read again would leave a trace.
func (p *planner) checkLive() error {
	r := p.request
	for _, s := range p.plan.Sources {
		about := s.About()
		if s.Ordinal == 0 {
			p.plan.Live = about.Live
		}
		if about.Live != p.plan.Live {
			live, frozen := s.Name, p.plan.Sources[0].Name
			if p.plan.Live {
				live, frozen = frozen, live
			}
			return usagef("%s changes while it is read, but %s does not; load them separately", live, frozen)
		}
		if about.Live && len(about.Unique) == 0 {
			return usagef("%s changes while it is read and does not say which columns identify its rows: after an "+
				"interruption it would be unknown which rows were loaded; load a copy that does not change", s.Name)
		}
	}
	if !p.plan.Live {
		return nil
	}
	name := p.plan.Sources[0].Name
	switch {
	case r.Mode == table.Increment:
		return usagef("--mode increment: %s changes while it is read, and a row read again after an interruption could be "+
			"added with another value; load a copy that does not change", name)
	case r.Condition != table.Ignore:
		return usagef("--condition: %s changes while it is read, and a row read again after an interruption would meet the "+
			"load's own earlier write; leave the condition out", name)
	case r.Mode == table.Update && r.Read.Merges && p.plan.Sources[0].About().Wide: // lost cells are kept, as requested
	case r.Mode == table.Update && !r.DeleteNull:
		return usagef("--mode update: %s changes while it is read, and a column that is null when its row is read again "+
			"would keep the earlier value; give --on-null delete, or --mode put", name)
	case r.Mode == table.Update && p.lacking():
		return usagef("--mode update: %s changes while it is read, and a column that is missing when its row is read again "+
			"would keep the earlier value; give --mode put", name)
	case r.Mode == table.Update && r.Read.Convert.VersionColumn != "":
		return usagef("--mode update with --version-column: %s changes while it is read, and a row read again with an "+
			"earlier version would be a mixture of both; give --mode put", name)
	case r.Divided && r.Records > 0:
		return usagef("--limit: %s changes while it is read, so the rows read earlier are unknown; "+source.StartOver, name)
	case p.plan.Tables.Archives():
		return usagef("--age-policy: %s changes while it is read, and a row read again after an interruption would be "+
			"archived twice; load with a policy that archives nothing", name)
	}
	return nil
}

func (p *planner) lacking() bool {
	return slices.ContainsFunc(p.plan.Sources, func(s *Source) bool {
		return s.About().AddColumns != nil
	})
}

// settleKeys decides whether sources are read in parallel, and refuses live sources whose rows could get two keys.
func (p *planner) settleKeys() error {
	if p.plan.Live {
		p.plan.Empty = false // it may have rows when it is read
		if err := p.checkLiveKeys(); err != nil {
			return err
		}
	}
	if p.declaresTable() || p.hasOldKey() && !slices.ContainsFunc(p.key(),
		func(k table.KeyColumn) bool { return k.Type == table.Null }) {
		p.plan.Empty = false // the table can be created even without a record
	}
	p.plan.Distinct = p.distinct()
	p.plan.Parallel = p.parallel()
	return nil
}

// checkLiveKeys refuses a load that makes a row's key or table name from more than the source's unique key: if the rest
// changed before a second reading, the row would be in the table twice. Nor may timestamps leave two versions.
func (p *planner) checkLiveKeys() error {
	if p.numbered > 0 && !p.request.Written && !p.request.Read.Archived {
		return usagef("table %s has the auto-increment key column %s, and %s changes while it is read: after an "+
			"interruption it would be unknown which rows were written; load a copy that does not change",
			p.request.Target.Table, p.plan.Schema.Key[p.numbered].Name, p.plan.Sources[0].Name)
	}
	if p.plan.Restamp && !(p.request.Read.Merges && len(p.request.Columns.Set) == 0) {
		return usagef("--mode update: table %s keeps several versions of a cell, and %s changes while it is read: a row "+
			"read again after an interruption would leave another version; give --mode put",
			p.request.Target.Table, p.plan.Sources[0].Name)
	}
	made, named, err := p.keyColumns()
	if err != nil {
		return err
	}
	for _, s := range p.plan.Sources {
		unique := s.About().Unique
		for _, c := range made {
			if !isUnique(unique, c) {
				return usagef("the primary key of table %s uses column %s, and %s changes while it is read: its rows are "+
					"identified only by %s, so a row read again with another %s would be in the table twice; use only those columns",
					p.request.Target.Table, c, s.Name, strings.Join(namesOf(unique), ", "), c)
			}
		}
		for _, c := range named {
			if !isUnique(unique, c) {
				return usagef("--table %s uses column %s, and %s changes while it is read: its rows are identified only by "+
					"%s, so a row read again with another %s would be in two tables; use only those columns",
					p.request.Target.Table, c, s.Name, strings.Join(namesOf(unique), ", "), c)
			}
		}
	}
	return nil
}

func isUnique(columns []source.KeyColumn, name string) bool {
	return slices.ContainsFunc(columns, func(k source.KeyColumn) bool { return k.Name == name })
}

func namesOf(columns []source.KeyColumn) (names []string) {
	for _, k := range columns {
		names = append(names, k.Name)
	}
	return names
}

// parallel reports whether sources can be read at the same time, because order does not matter or no rows share a key.
func (p *planner) parallel() bool {
	r := p.request
	if len(p.plan.Sources) < 2 || r.Records > 0 || p.numbered > 0 || r.Mode == table.Increment {
		return false
	}
	return p.plan.Distinct || r.Order == OrderNone && p.unique(func([]source.KeyColumn) bool { return true })
}

// distinct reports whether no two records share a key in the table, because that key contains the source's unique key.
func (p *planner) distinct() bool {
	return p.unique(func(columns []source.KeyColumn) bool { return len(p.lost(columns)) == 0 })
}

// unique reports whether all sources have a unique key for which are returns true.
func (p *planner) unique(are func(columns []source.KeyColumn) bool) bool {
	return !slices.ContainsFunc(p.plan.Sources, func(s *Source) bool {
		columns := s.About().Unique
		return len(columns) == 0 || !are(columns)
	})
}

// keyColumns returns the columns that make up the primary key, and those that make up table names.
func (p *planner) keyColumns() (made, named []string, err error) {
	made = slices.Clone(p.salt)
	for _, f := range p.plan.Fields[:p.plainKeys()] {
		made = append(made, f.Source)
	}
	for _, e := range p.expressions() {
		used, err := p.columnsOf(e)
		if err != nil {
			return nil, nil, err
		}
		switch e.flag {
		case "--pk":
			made = append(made, used...)
		case "--table":
			named = append(named, used...)
		}
	}
	return made, named, nil
}
