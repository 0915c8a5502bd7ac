package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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
	same := len(given) == len(t.Key)
	for i := range given {
		same = same && given[i].Name == t.Key[i].Name &&
			(given[i].Type == table.Null || given[i].Type == t.Key[i].Type && given[i].Auto == t.Key[i].Auto)
	}
	if !same {
		return usagef("table %s exists with the primary key %s, not %s; leave --pk out or use another table", t.Name, keyText(t.Key), keyText(given))
	}
	return nil
}

func keyText(key []table.KeyColumn) string {
	text := ""
	for i, k := range key {
		if i > 0 {
			text += ", "
		}
		text += k.Name
		switch {
		case k.Auto:
			text += ":auto"
		case k.Type != table.Null:
			text += ":" + k.Type.String()
		}
	}
	return text
}

// MakeTable makes the table of a plan that says Create, and returns it as the service describes it. One that somebody else
// has made meanwhile is as good if it has the same key and keeps as many versions; made is false then. Refused is why the service
// refuses to make it with the plan's Bounds; it has one partition then.
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
	const again = "give the command again"
	switch {
	case !slices.Equal(t.Key, p.Schema.Key):
		return nil, made, refused, fmt.Errorf("create table %s: another process has created it meanwhile, with the primary key %s; %s", t.Name, keyText(t.Key), again)
	case t.MaxVersions != target.Define.MaxVersions:
		return nil, made, refused, fmt.Errorf("create table %s: another process has created it meanwhile, with %d versions of a cell and not %d; %s", t.Name, t.MaxVersions, target.Define.MaxVersions, again)
	}
	p.table = t
	return t, made, refused, nil
}

// Table is the load's table as the service described it before the load, nil if it is missing or there are several.
func (p *Plan) Table() *client.Table {
	if p.Tables != nil {
		return nil
	}
	return p.table
}

// Window returns what says which timestamps the table takes at that moment: milliseconds, from inclusive, to exclusive. The
// service has the last word, for it alone knows its time: what one of the times takes that its clock may show is let pass.
// It is nil for rows that were written before.
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

// Expiry returns the maximum age of cells that the table takes, its time to live (0 without one), and whether cells that grow older are left
// out: they are expired in the source, too.
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

// Deviation is how far from the service's time a timestamp may be.
func (p *Plan) Deviation() time.Duration {
	seconds := p.Request.Target.Define.MaxDeviation
	if p.table != nil {
		seconds = p.table.MaxDeviation
	}
	return time.Duration(min(cmp.Or(seconds, client.DefaultDeviation), maxDeviation)) * time.Second
}

// maxDeviation is more than any clock shows, in seconds, and fits a time.Duration.
const maxDeviation = 1 << 33
