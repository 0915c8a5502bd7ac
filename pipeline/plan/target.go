package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

func (p *planner) describeTable() error {
	if p.plan.Tables != nil {
		return p.describeTables()
	}
	name := p.request.Target.Table
	if !p.request.Target.Absent {
		t, err := p.admin.Describe(name)
		if err == nil {
			p.plan.table = t
			return nil
		}
		if !errors.Is(err, client.ErrNoTable) {
			return err
		}
	}
	missing := func(format string, a ...any) error {
		return &UsageError{Message: fmt.Sprintf(format, a...), NoTable: true}
	}
	const pk = "its primary key with --pk NAME[:TYPE], once for each column in order"
	p.takeKey()
	switch create, key := p.request.Target.Create, len(p.request.Target.Key) > 0; {
	case !key && create:
		return missing("table %s does not exist in %s: give %s", name, p.request.Target.Name, pk)
	case !key:
		return missing("table %s does not exist in %s; to create it, give --create and %s", name, p.request.Target.Name, pk)
	case !create:
		return missing("table %s does not exist in %s; to create it, give --create", name, p.request.Target.Name)
	}
	p.plan.Create = true
	return nil
}

func (p *planner) matchKey(t *client.Table) error {
	given := p.request.Target.Key
	if len(given) == 0 {
		return nil
	}
	if !KeyFits(given, t.Key) {
		return usagef("table %s exists with the primary key %s, not %s; leave --pk out or use another table", t.Name,
			keyText(t.Key), keyText(given))
	}
	return nil
}

// KeyFits reports whether a key equals the requested one, whose columns may lack types.
func KeyFits(asked, key []table.KeyColumn) bool {
	return slices.EqualFunc(asked, key, func(a, k table.KeyColumn) bool {
		return a.Name == k.Name && (a.Type == table.Null || a.Type == k.Type && a.Auto == k.Auto)
	})
}

// KeyTexts returns the columns of a key as --pk accepts them.
func KeyTexts(key []table.KeyColumn) (texts []string) {
	for _, k := range key {
		switch {
		case k.Auto:
			texts = append(texts, k.Name+":auto")
		case k.Type == table.Null: // not known yet
			texts = append(texts, k.Name)
		default:
			texts = append(texts, k.Name+":"+k.Type.String())
		}
	}
	return texts
}

func keyText(key []table.KeyColumn) string { return strings.Join(KeyTexts(key), ", ") }

// MakeTable creates the table of a plan that says Create, and returns its description. A table that another process has
// created is accepted (made is false) if it has the same key and versions. refused is why the service refused Bounds.
func (p *Plan) MakeTable(admin *client.Admin) (t *client.Table, made bool, refused, err error) {
	target := &p.Request.Target
	if len(p.Bounds) > 0 {
		refused, err = admin.CreateSplit(target.Table, p.Schema.Key, target.Define, target.Defined, p.Bounds)
	} else {
		err = admin.CreateDefined(target.Table, p.Schema.Key, target.Define, target.Defined)
	}
	if made = err == nil; !made && !errors.Is(err, client.ErrTableExists) {
		return nil, false, refused, err
	}
	if t, err = admin.Opened(target.Table); err != nil {
		return nil, made, refused, err
	}
	const again = "run the command again"
	switch {
	case !slices.Equal(t.Key, p.Schema.Key):
		return nil, made, refused, fmt.Errorf("create table %s: another process has created it meanwhile, with the primary "+
			"key %s; %s", t.Name, keyText(t.Key), again)
	case t.MaxVersions != target.Define.MaxVersions:
		return nil, made, refused, fmt.Errorf("create table %s: another process has created it meanwhile, with %d versions "+
			"per cell instead of %d; %s", t.Name, t.MaxVersions, target.Define.MaxVersions, again)
	}
	p.table = t
	return t, made, refused, nil
}

// Table returns the load's table as described before the load, or nil if it was missing or there are several.
func (p *Plan) Table() *client.Table {
	if p.Tables != nil {
		return nil
	}
	return p.table
}

// Window returns a function that returns the range of timestamps, in milliseconds, that the table may accept now, from
// from to to, which is excluded. Only the service knows its clock and decides. Rows already in the table get nil.
func (p *Plan) Window() func() (from, to int64) {
	if p.Request.Written {
		return nil
	}
	after := p.Deviation()
	before, _, _ := p.Expiry()
	service := p.Request.Service
	if service == nil {
		service = func() (earliest, latest time.Time) { now := time.Now(); return now, now }
	}
	return func() (from, to int64) {
		earliest, latest := service()
		return earliest.Add(-before).UnixMilli(), latest.Add(after).UnixMilli()
	}
}

// Expiry returns the age above which the table refuses cells, its time to live, and whether expired cells are left out.
func (p *Plan) Expiry() (reach, live time.Duration, expires bool) {
	to := p.Request.Target
	seconds := to.Define.TimeToLive
	if p.table != nil {
		seconds = p.table.TimeToLive
	}
	reach, live = p.Deviation(), time.Duration(max(seconds, 0))*time.Second
	ages := live > 0 && live <= reach
	if ages {
		reach = live
	}
	return reach, live, p.Tables == nil && (to.Aging.DropExpired || to.Aging.Expires && ages)
}

// Deviation returns how far a timestamp may be from the service's time.
func (p *Plan) Deviation() time.Duration {
	seconds := p.Request.Target.Define.MaxDeviation
	if p.table != nil {
		seconds = p.table.MaxDeviation
	}
	return time.Duration(min(cmp.Or(seconds, client.DefaultDeviation), maxDeviation)) * time.Second
}

// maxDeviation is a number of seconds that is more than any clock shows and fits in a time.Duration.
const maxDeviation = 1 << 33

// settleDefined completes the definition of a new table, apart from its key. Predefined columns without a type take
// that of the load's column. It refuses, before the first row, what the service would refuse after the last.
func (p *planner) settleDefined() error {
	t := &p.request.Target
	switch asked := t.Asked.Columns != ""; {
	case asked && p.plan.Tables != nil:
		return usagef("--define cannot be used with an expression in --table; leave it out, and create the tables first " +
			"with tsimport table create --define")
	case !asked || !p.plan.Create:
		return nil
	}
	columns := map[string]*table.Column{}
	for i := range p.plan.Schema.Columns {
		columns[p.plan.Schema.Columns[i].Name] = &p.plan.Schema.Columns[i]
	}
	for i := range p.plan.Fields { // their types have been inferred
		columns[p.plan.Fields[i].Name] = &p.plan.Fields[i]
	}
	for _, name := range slices.Sorted(maps.Keys(t.Defined)) {
		given, has := t.Defined[name], columns[name]
		switch {
		case slices.ContainsFunc(p.plan.Schema.Key, func(k table.KeyColumn) bool { return k.Name == name }):
			delete(t.Defined, name) // an index may name a key column
		case given == table.Null && (has == nil || has.Type == table.Null):
			return usagef("--define: the type of column %s is unknown; give it, such as %s:string", name, name)
		case given == table.Null:
			t.Defined[name] = has.Type
		case has != nil && has.Type != table.Null && has.Type != given:
			return usagef("--define: column %s is defined as %s but loaded as %s; give both one type", name, given, has.Type)
		case has != nil:
			has.Type, has.Exact = given, true
		}
	}
	if err := CheckIndexes(t, p.plan.Schema.Key); err != nil {
		return err
	}
	return p.namesAreFree(t.Indexes)
}

// namesAreFree refuses indexes whose names are already used in the instance.
func (p *planner) namesAreFree(indexes []table.Index) error {
	for _, i := range indexes {
		if _, err := p.admin.Describe(i.Name); err == nil || i.Name == p.request.Target.Table {
			return usagef("index %s: the instance already has a table or an index with that name; give it another name", i.Name)
		} else if !errors.Is(err, client.ErrNoTable) {
			return err
		}
		p.notef("the new table gets the %s when all rows are written: the service then reads them, and each row in the "+
			"index costs at least one write unit", i)
	}
	return nil
}

// Limits set by the service.
const (
	maxIndexes = 5
	maxDefined = 32 // maximum number of predefined columns
)

// CheckIndexes refuses indexes that a table with the given key cannot have. Types must be known.
func CheckIndexes(t *Target, key []table.KeyColumn) error {
	if len(t.Indexes) > maxIndexes {
		return usagef("--define: %d indexes; a table has at most %d", len(t.Indexes), maxIndexes)
	}
	for _, i := range t.Indexes {
		if err := CheckIndexable(&t.Define, i.Name); err != nil {
			return err
		}
		if len(i.Key) > table.MaxKeyColumns || len(i.Columns) > maxDefined {
			return usagef("index %s: an index has at most %d key and %d other columns", i.Name, table.MaxKeyColumns, maxDefined)
		}
		if i.Local && i.Key[0] != key[0].Name {
			return usagef("local index %s: the key begins with %s, not the partition key, %s", i.Name, i.Key[0], key[0].Name)
		}
		for _, name := range i.Key {
			if of, defined := t.Defined[name]; defined && !of.KeyType() {
				return usagef("index %s: column %s of its key is %s; want string, integer or binary", i.Name, name, of)
			}
		}
		if slices.ContainsFunc(i.Columns, func(name string) bool { return slices.Contains(i.Key, name) }) {
			return usagef("index %s: a key column is repeated among its other columns; leave it out there", i.Name)
		}
	}
	return nil
}

// CheckIndexable refuses an index of a table with several versions, or with data that expires but may be updated.
func CheckIndexable(d *table.Definition, index string) error {
	switch {
	case d.MaxVersions != 1:
		return usagef("--max-versions %d: a table with the index %s keeps one version of a cell; leave it out, or create "+
			"the table first with tsimport table create, without indexes", d.MaxVersions, index)
	case d.TimeToLive != -1 && !d.NoUpdates:
		return usagef("--ttl %d: the data of a table with the index %s expire only if it refuses updates; leave it out, or "+
			"create the table first with tsimport table create, without indexes", d.TimeToLive, index)
	}
	return nil
}
