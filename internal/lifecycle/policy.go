package lifecycle

import (
	"fmt"
	"path/filepath"
	"time"
)

// Policy defines the settings of tables by their age.
type Policy struct {
	Unit    Unit           // unit in which ages are counted
	Zone    *time.Location // time zone in which periods begin and end
	Classes []Class        // from young to old, at least one; only the last is unbounded, and only it may archive or drop
}

// Class holds a policy's settings for a range of ages. Nil keeps a table's setting; new tables get the default.
type Class struct {
	Number      int  // number of the class, from 1
	From, UpTo  int  // first and last age in periods; UpTo is Unbounded in the last class
	Read, Write *int // reserved throughput in capacity units
	TTL         *int // seconds; -1 means that cells never expire
	MaxVersions *int // versions kept per column
	// Archive is the folder or object-store address to which tables of the class are archived; it excludes other settings.
	Archive string
	Drop    bool // the class's tables are dropped; it excludes other settings
}

// Unbounded is the UpTo of the last class.
const Unbounded = int(^uint(0) >> 1)

// Archives reports whether the class archives its tables.
func (c *Class) Archives() bool { return c.Archive != "" }

// Remote reports whether the archive is in an object store.
func (c *Class) Remote() bool { return stores.MatchString(c.Archive) }

// Expires reports whether the class archives or drops its tables.
func (c *Class) Expires() bool { return c.Archives() || c.Drop }

// Ages returns the class's range of ages as text, such as "0–1", "2" or "13 and older".
func (c *Class) Ages() string {
	switch {
	case c.UpTo == Unbounded:
		return fmt.Sprintf("%d and older", c.From)
	case c.From == c.UpTo:
		return fmt.Sprint(c.From)
	}
	return fmt.Sprintf("%d–%d", c.From, c.UpTo)
}

// Age returns the age of a period in the policy's units. It is negative before the period begins.
func (p *Policy) Age(period Period, now time.Time) int {
	if period.Unit != p.Unit { // Fits returns an error; use the age of the period's start
		period = p.Unit.at(period.Start(time.UTC))
	}
	return p.Unit.at(now.In(p.Zone)).index - period.index
}

// ClassOf returns a period's class at the time now. The result points into the policy.
func (p *Policy) ClassOf(period Period, now time.Time) *Class {
	age := p.Age(period, now)
	for i := range p.Classes {
		if age <= p.Classes[i].UpTo {
			return &p.Classes[i]
		}
	}
	return &p.Classes[len(p.Classes)-1]
}

// Fits returns an error if the policy cannot apply to the template's tables.
func (p *Policy) Fits(t *Template) error {
	if p.Unit != t.Unit {
		return fmt.Errorf("the policy's period is a %s, but that of table %s is a %s; use the same", p.Unit, t, t.Unit)
	}
	if t.Zone != "" && t.Zone != p.Zone.String() {
		return fmt.Errorf("the policy uses the time zone %s, but table %s holds a %s in the zone %s: leave the zone of the "+
			"table out, or give the policy \"zone: %s\"", p.Zone, t, t.Unit, t.Zone, t.Zone)
	}
	return nil
}

// resolve makes a relative archive folder relative to dir, the folder of the policy file.
func (p *Policy) resolve(dir string) {
	last := &p.Classes[len(p.Classes)-1]
	if last.Archives() && !last.Remote() && !filepath.IsAbs(last.Archive) {
		last.Archive = filepath.Join(dir, last.Archive)
	}
}
