package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"

	"example.com/tsimport/internal/table"
)

// DefaultMarkColumn is the attribute that identifies rows numbered by the service.
const DefaultMarkColumn = "_tsimport"

// key returns the primary key of the table, existing or to be created.
func (p *planner) key() []table.KeyColumn {
	if p.plan.table != nil {
		return p.plan.table.Key
	}
	return p.request.Target.Key
}

// settleNumbers decides whether the service makes the values of an auto-increment column. If the input has them,
// existing rows can be changed, but no rows can be created, as the service does not accept chosen numbers.
func (p *planner) settleNumbers() error {
	r := p.request
	if err := table.CheckKey(p.key()); err != nil {
		return usagef("--pk: %v", err)
	}
	at := max(0, slices.IndexFunc(p.key(), func(k table.KeyColumn) bool { return k.Auto })) // 0 means none
	if r.Mode == table.Increment {
		return p.settleCounts(at)
	}
	if at > 0 && p.plan.Tables != nil {
		return usagef("--table %s: a load into several tables does not support the auto-increment column %s; load each "+
			"table separately", r.Target.Table, p.key()[at].Name)
	}
	if at == 0 {
		return p.refuseNumbering(fmt.Sprintf("table %s has none", r.Target.Table))
	}
	name := p.key()[at].Name
	source := slices.IndexFunc(p.all, func(c string) bool { return p.rename(c) == name })
	given := source >= 0 && !slices.Contains(r.Columns.Exclude, p.all[source])
	renumbers := given && !p.isComputed(name) && r.Mode == table.Put && r.Condition == table.Ignore && p.hasOldKey()
	if (given || p.isComputed(name)) && !renumbers {
		if r.Mode != table.Delete && r.Condition != table.ExpectExist {
			column := name
			if given {
				column = p.all[source]
			}
			return usagef("the service assigns the values of auto-increment column %s; leave the column out (--exclude %s) to "+
				"add rows, or give --condition exist to change existing rows", name, column)
		}
		return p.refuseNumbering(fmt.Sprintf("the input gives the values of %s", name))
	}
	switch {
	case r.Mode != table.Put:
		return usagef("--mode %s: rows of table %s are distinguished by the auto-increment column %s, which the input does "+
			"not have; only --mode put creates rows", modeNames[r.Mode], r.Target.Table, name)
	case r.Condition != table.Ignore:
		return usagef("--condition: a row whose %s the service assigns is always new; leave the condition out, or load a "+
			"file with a column %s", name, name)
	case r.Order == OrderNone:
		return usagef("--order none: the service assigns %s as rows are written, in input order; leave it out", name)
	}
	if p.hasOldKey() && !p.plan.Live && !r.Returned {
		return usagef("--table %s: the service assigns new values of the auto-increment column %s; give --returned-keys "+
			"FILE, which keeps the old key of each row beside the new one, or load into a table in which %s is a plain integer",
			r.Target.Table, name, name)
	}
	p.numbered = at
	if !r.Returned {
		p.notef("the values that the service assigns to %s are lost; --returned-keys FILE keeps the key of each record", name)
	}
	return p.settleMark()
}

// hasOldKey reports whether the records have the whole key of another table, which is unique to each.
func (p *planner) hasOldKey() bool {
	return p.plan.Wide && !slices.ContainsFunc(p.plan.Sources, func(s *Source) bool { return len(s.About().Unique) == 0 })
}

// OldKey returns the key columns of the rows' former table if the service makes new keys, or nil.
func (p *Plan) OldKey() (names []string) {
	if p.Schema.Numbered == 0 || !p.Wide {
		return nil
	}
	return namesOf(p.Sources[0].About().Unique)
}

// ReturnedHeader returns the header of the file of returned keys. Columns of an old key have a unique prefix.
func (p *Plan) ReturnedHeader() []string {
	header := []string{"file", "record"}
	for _, k := range p.Schema.Key {
		header = append(header, k.Name)
	}
	prefix := "old_"
	old := p.OldKey()
	for slices.ContainsFunc(old, func(name string) bool { return slices.Contains(header, prefix+name) }) {
		prefix += "_"
	}
	for _, name := range old {
		header = append(header, prefix+name)
	}
	return header
}

// refuseNumbering refuses flags that are meaningless unless the service makes a part of the key.
func (p *planner) refuseNumbering(why string) error {
	r := p.request
	markColumn := r.MarkColumn != "" && r.Mode != table.Increment
	for _, f := range []struct {
		given bool
		flag  string
	}{
		{r.AtLeastOnce, "--at-least-once"}, {r.LookFirst, "--look-first"}, {r.Returned, "--returned-keys"},
		{markColumn, "--mark-column"},
	} {
		if f.given {
			return usagef("%s is only for auto-increment columns that the service assigns, and %s; leave it out", f.flag, why)
		}
	}
	return nil
}

var modeNames = [...]string{table.Put: "put", table.Update: "update", table.Delete: "delete",
	table.Increment: "increment", table.Changes: "changes"}

// settleMark chooses the column of marks, and ensures that it is no column of the input.
func (p *planner) settleMark() error {
	r := p.request
	if r.AtLeastOnce && (r.LookFirst || r.MarkColumn != "") {
		return usagef("--at-least-once: rows have no marks, which --look-first and --mark-column need; leave one out")
	}
	if r.AtLeastOnce {
		p.warnf("--at-least-once: a row whose answer is lost is sent again unchanged, so it may be in table %s twice, and "+
			"a late attempt may have a higher number than later rows", r.Target.Table)
		return nil
	}
	mark := cmp.Or(r.MarkColumn, DefaultMarkColumn)
	if err := table.CheckColumnName(mark); err != nil {
		return usagef("--mark-column: %v", err)
	}
	if p.isComputed(mark) || slices.ContainsFunc(p.key(), func(k table.KeyColumn) bool { return k.Name == mark }) ||
		slices.ContainsFunc(p.all, func(c string) bool { return p.rename(c) == mark && p.wanted(c) }) {
		return usagef("--mark-column %s: the input or the key has a column of that name; give another name, leave the "+
			"column out (--exclude %s), or give --at-least-once", mark, mark)
	}
	if t := p.plan.table; t != nil && t.Defined[mark] != table.Null && t.Defined[mark] != table.String {
		return usagef("--mark-column %s: table %s defines it as %s, not string; use another", mark, t.Name, t.Defined[mark])
	}
	p.plan.Mark = mark
	return nil
}

func (p *planner) isNumbered(name string) bool {
	return p.numbered > 0 && p.key()[p.numbered].Name == name
}

// jobBytes is the number of bytes of a job's hash in marks.
const jobBytes = 9

// Job returns the name of the load in the marks of its rows. It is the same for the same table, columns and inputs,
// wherever the load runs. A changed input is detected by the mark of each row, which has a checksum of its own.
func (p *Plan) Job() string {
	r := p.Request
	h := sha256.New()
	fmt.Fprintf(h, "%q %q", r.Target.Client.Instance, p.Schema.Table)
	for i, c := range p.Schema.Columns {
		fmt.Fprintf(h, " %q %q %q %v", c.Source, c.Name, p.Expression(i), c.Type)
	}
	for _, s := range p.Sources {
		fmt.Fprintf(h, " %q", s.Name)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:jobBytes])
}

// checkVersions refuses a load that would keep one version of each cell although the user has asked for several. It
// also decides whether cells without a timestamp need one, so that a repeated update leaves no second version.
func (p *planner) checkVersions() error {
	versions := p.request.Target.Define.MaxVersions
	if p.plan.table != nil {
		versions = p.plan.table.MaxVersions
	}
	if p.plan.Tables != nil {
		versions = p.plan.Tables.maxVersions(max(versions, p.request.Target.Define.MaxVersions))
	}
	if versions <= 1 {
		return nil
	}
	if p.request.Read.Convert.VersionColumn != "" && p.request.Mode == table.Put {
		return usagef("--version-column with --mode put: table %s keeps %d versions, but each put erases the earlier ones "+
			"of its row; give --mode update", p.request.Target.Table, versions)
	}
	p.plan.Restamp = p.request.Mode == table.Update
	return nil
}

func (p *planner) checkChanged() error {
	versions := p.request.Target.Define.MaxVersions
	if t := p.plan.table; t != nil {
		versions = t.MaxVersions
	}
	if p.request.Mode != table.Changes || versions <= 1 {
		return nil
	}
	return usagef("--mode changes: table %s keeps %d versions of each cell, and a repeated change would add one; load "+
		"into a table that keeps one", p.request.Target.Table, versions)
}
