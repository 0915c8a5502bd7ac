package lifecycle

import (
	"fmt"
	"path/filepath"
	"time"
)

// Policy defines the settings of tables by age.
type Policy struct {
	Unit    Unit           // of ages
	Zone    *time.Location // of the calendar for ages
	Classes []Class        // from young to old, at least one; only the last has no bound, and only it may archive or drop
}

// Class is a policy's settings for some ages. A nil pointer leaves a table its own, a new table the service's.
type Class struct {
	Number      int  // from 1
	From, UpTo  int  // first and last age in periods; UpTo is Unbounded in the last class
	Read, Write *int // reserved throughput in capacity units
	TTL         *int // seconds, -1 means forever
	MaxVersions *int // of a cell
	// Archive is the folder, or the object store's address, for tables beyond the last age; it excludes other settings.
	Archive string
	Drop    bool // older tables are dropped; then the class has no other settings
}

// Unbounded is the last age of the last class.
const Unbounded = int(^uint(0) >> 1)

// Archives reports whether the tables of the class become archives.
func (c *Class) Archives() bool { return c.Archive != "" }

// Remote reports whether the archive is in an object store.
func (c *Class) Remote() bool { return stores.MatchString(c.Archive) }

// Expires reports whether the class ends its tables.
func (c *Class) Expires() bool { return c.Archives() || c.Drop }

// Ages are the class's ages as text: 0–1, 2, or 13 and older.
func (c *Class) Ages() string {
	switch {
	case c.UpTo == Unbounded:
		return fmt.Sprintf("%d and older", c.From)
	case c.From == c.UpTo:
		return fmt.Sprint(c.From)
	}
	return fmt.Sprintf("%d–%d", c.From, c.UpTo)
}

// Age is the number of the policy's units from a period to now; negative before it begins.
func (p *Policy) Age(period Period, now time.Time) int {
	if period.Unit != p.Unit { // Fits says so first; by its beginning, a period still has one age
		period = p.Unit.at(period.Start(time.UTC))
	}
	return p.Unit.at(now.In(p.Zone)).index - period.index
}

// ClassOf returns a period's class at a moment: a part of the policy, not a copy.
func (p *Policy) ClassOf(period Period, now time.Time) *Class {
	age := p.Age(period, now)
	for i := range p.Classes {
		if age <= p.Classes[i].UpTo {
			return &p.Classes[i]
		}
	}
	return &p.Classes[len(p.Classes)-1]
}

// Fits returns why the policy cannot be for the template's tables, or nil.
func (p *Policy) Fits(t *Template) error {
	if p.Unit != t.Unit {
		return fmt.Errorf("the policy's period is a %s, that of table %s a %s; use the same", p.Unit, t, t.Unit)
	}
	if t.Zone != "" && t.Zone != p.Zone.String() {
		return fmt.Errorf("the policy uses the time zone %s, but table %s holds a %s in the zone %s: leave the zone of the "+
			"table out, or give the policy \"zone: %s\"",
			p.Zone, t, t.Unit, t.Zone, t.Zone)
	}
	return nil
}

// resolve makes the archive's folder relative to the policy file's.
func (p *Policy) resolve(dir string) {
	last := &p.Classes[len(p.Classes)-1]
	if last.Archives() && !last.Remote() && !filepath.IsAbs(last.Archive) {
		last.Archive = filepath.Join(dir, last.Archive)
	}
}
