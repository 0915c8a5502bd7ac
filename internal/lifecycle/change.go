package lifecycle

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Table holds a table's current or wanted settings.
type Table struct {
	Name        string
	Read, Write int // reserved throughput in capacity units
	TTL         int // seconds; -1 means that cells never expire
	MaxVersions int
}

// Change holds a table's current and wanted settings. They are equal if the table's class archives or drops it.
type Change struct {
	Period     Period
	Age        int
	Class      *Class
	Have, Want Table
}

// Expired reports whether the table is so old that the policy archives or drops it.
func (c *Change) Expired() bool { return c.Class.Expires() }

// Reserves reports whether the reserved throughput changes.
func (c *Change) Reserves() bool { return c.Have.Read != c.Want.Read || c.Have.Write != c.Want.Write }

// Options reports whether the time to live or the maximum number of versions changes.
func (c *Change) Options() bool {
	return c.Have.TTL != c.Want.TTL || c.Have.MaxVersions != c.Want.MaxVersions
}

// Setting is a change of one setting of a table.
type Setting struct {
	Name string `json:"name"` // name of the setting, as in the policy
	From int    `json:"from"`
	To   int    `json:"to"`
}

// Settings returns the settings that change.
func (c *Change) Settings() (settings []Setting) {
	for _, s := range []Setting{
		{"reserved.read", c.Have.Read, c.Want.Read},
		{"reserved.write", c.Have.Write, c.Want.Write},
		{"ttl", c.Have.TTL, c.Want.TTL},
		{"max_versions", c.Have.MaxVersions, c.Want.MaxVersions},
	} {
		if s.From != s.To {
			settings = append(settings, s)
		}
	}
	return settings
}

// Shortens reports whether the change may make existing cells expire or drop existing versions.
func (c *Change) Shortens() bool {
	sooner := c.Want.TTL != -1 && (c.Have.TTL == -1 || c.Want.TTL < c.Have.TTL)
	return sooner || c.Want.MaxVersions < c.Have.MaxVersions
}

// Change returns the change that the table of a period needs at the time now.
func (p *Policy) Change(period Period, have Table, now time.Time) Change {
	c := Change{Period: period, Age: p.Age(period, now), Class: p.ClassOf(period, now), Have: have, Want: have}
	for _, s := range []struct {
		want *int
		at   *int
	}{{c.Class.Read, &c.Want.Read}, {c.Class.Write, &c.Want.Write}, {c.Class.TTL, &c.Want.TTL},
		{c.Class.MaxVersions, &c.Want.MaxVersions}} {
		if s.want != nil {
			*s.at = *s.want
		}
	}
	return c
}

// Matching returns the names that match the template, oldest period first, and other names with its prefix and suffix.
func (t *Template) Matching(names []string) (tables, others []string) {
	periods := map[string]Period{}
	for _, name := range names {
		if p, ok := t.Period(name); ok {
			periods[name] = p
			tables = append(tables, name)
		} else if len(name) >= len(t.prefix)+len(t.suffix) && strings.HasPrefix(name, t.prefix) &&
			strings.HasSuffix(name, t.suffix) {
			others = append(others, name)
		}
	}
	slices.SortFunc(tables, func(a, b string) int { return cmp.Compare(periods[a].index, periods[b].index) })
	slices.Sort(others)
	return tables, others
}
