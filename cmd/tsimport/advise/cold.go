package advise

import (
	"fmt"
	"strings"
	"time"
)

// Values are cold if they come again and again for a while and then no more, as those of a cohort do.
const (
	coldRepeats = 20   // rows of a value, on average
	coldShare   = 0.01 // of the last quarter of the rows have a value that the first quarter had
	coldLeast   = 1000 // rows
)

// perPeriod is the remedy for values that go cold: a hash would spread a few hot values over nothing and leave cold rows
// among hot ones forever; a table per period leaves them behind.
func (s *survey) perPeriod(c *Candidate) *Fix {
	if c.Verdict != NotRecommended || len(c.parts) != 1 || c.parts[0].clock.told || c.cause != sequential && c.cause != inRuns && c.cause != skewed && c.cause != fewValues {
		return nil
	}
	template := s.periodTemplate()
	if template == "" || !s.mayKey(s.arrival) || !s.goesCold(c.parts[0]) {
		return nil
	}
	f := &Fix{Name: "table per period", Table: template, columns: []string{c.parts[0].name}}
	f.Why = fmt.Sprintf("its values come for a while and then no more: rows of old ones stay cold. A table per period keeps them apart, so that its throughput can be lowered and it can be dropped as a whole (tsimport age). Begin the key with another column than %s", c.Column)
	return f
}

// goesCold reports whether values of the early rows do not come again in the late ones.
func (s *survey) goesCold(p *column) bool {
	n := s.kept.rows
	if n < coldLeast || p.code < 0 || p.nulls > 0 || float64(s.rows) < coldRepeats*float64(s.distinctOf(p)) {
		return false
	}
	at := func(i int) uint64 {
		if s.order != nil {
			i = int(s.order[i])
		}
		return s.kept.columns[p.identity()][i]
	}
	early := map[uint64]bool{}
	for i := range n / 4 {
		early[at(i)] = true
	}
	again := 0
	for i := n - n/4; i < n; i++ {
		if early[at(i)] {
			again++
		}
	}
	return float64(again) <= coldShare*float64(n/4)
}

// periodTemplate is the name of a table per period of the arrival's times, or "" if they do not tell one.
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
