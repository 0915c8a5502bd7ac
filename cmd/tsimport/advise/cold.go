package advise

import (
	"fmt"
	"strings"
	"time"
)

// Values are cold if they recur for a while and then stop, like the values of a cohort.
const (
	coldRepeats = 20   // minimum rows per value: on average, and in the first half for a value that may be cold
	coldLeast   = 1000 // minimum rows of the input
)

// perPeriod returns a table per period as the fix for values that become cold, or nil. A hash would mix cold with hot.
func (s *survey) perPeriod(c *Candidate) *Fix {
	if c.Verdict == Recommended || len(c.parts) != 1 || c.parts[0].clock.told || c.cause != sequential &&
		c.cause != inRuns && c.cause != skewed && c.cause != fewValues {
		return nil
	}
	template := s.periodTemplate()
	if template == "" || !s.mayKey(s.arrival) || s.idleValues(c.parts[0]) < coldPart {
		return nil
	}
	f := &Fix{Name: "table per period", Table: template, columns: []string{c.parts[0].name}}
	f.Why = fmt.Sprintf("many of its values occur for a while only, so their rows become cold. A table per "+
		"period keeps them apart, so that its throughput can be lowered and it can be dropped as a whole (tsimport age). "+
		"Begin the key with a column other than %s", c.Column)
	return f
}

// idleValues considers values with many rows in the first half, and returns the share without any in the last quarter.
func (s *survey) idleValues(p *column) float64 {
	n := s.kept.rows
	if n < coldLeast || p.code < 0 || p.nulls > 0 || s.unordered ||
		float64(s.rows) < coldRepeats*float64(s.distinctOf(p)) {
		return 0
	}
	at := func(i int) uint64 {
		if s.order != nil {
			i = int(s.order[i])
		}
		return s.kept.columns[p.identity()][i]
	}
	early, late := map[uint64]int{}, map[uint64]bool{}
	for i := range n / 2 {
		early[at(i)]++
	}
	for i := n - n/recentPart; i < n; i++ {
		late[at(i)] = true
	}
	many, idle := 0, 0.0
	for value, rows := range early {
		if rows < coldRepeats {
			continue
		}
		if many++; !late[value] {
			idle++
		}
	}
	return idle / float64(max(many, 1))
}

// periodTemplate returns the name template of a table per period of arrival, or "" if the times do not suit one.
func (s *survey) periodTemplate() string {
	if s.arrival == nil || s.arrival.clock.period == "" || s.arrival.nulls > 0 {
		return ""
	}
	first, last, ok := s.arrival.span()
	if !ok {
		return ""
	}
	const day = 24 * time.Hour
	period := "month"
	switch span := last.Sub(first); {
	case span < day:
		return ""
	case span < 45*day:
		period = "day"
	case span > 5*365*day:
		period = "year"
	}
	unit := ""
	if units[s.arrival.clock.period] > 0 {
		unit = fmt.Sprintf(", %q", s.arrival.clock.period)
	}
	return strings.TrimRight(s.tableName(), "_") + "_{" + period + "(" + identifier(s.arrival.name) + unit + ")}"
}
