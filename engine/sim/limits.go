package sim

import (
	"fmt"
	"time"

	"example.com/tsimport/engine/limiter"
)

func (c *Config) checkLimits() error {
	o := limiter.Options{Kind: c.Limiter}
	if err := o.Check(); err != nil {
		return err
	}
	if c.Limiter != "" && c.PartitionUnits == 0 && c.TableUnits == 0 {
		return fmt.Errorf("limiter %s needs a partition capacity or a limit of the table", c.Limiter)
	}
	return nil
}

// limiter is one of units a second that begins at a time; 0 means no limit.
func (c *Config) limiter(units float64, at int64) *limiter.Limiter {
	l, err := limiter.New(limiter.Options{Kind: c.Limiter, Rate: units, Burst: c.Burst}, time.Unix(0, at))
	if err != nil {
		panic(err) // cannot be: Check has refused what New refuses
	}
	return l
}

// admit settles the undecided rows of the partition of rows[0], and leaves those of others alone.
func (t *Table) admit(at int64, rows []Row) (delay time.Duration) {
	p := rows[0].owner
	t.asked = t.asked[:0]
	for i := range rows {
		if r := &rows[i]; r.Verdict == Undecided && r.owner == p {
			t.asked = append(t.asked, limiter.Row{Units: float64(r.Units)})
		}
	}
	_, delay = limiter.Admit(time.Unix(0, at), t.asked, p.limit, t.limit)
	n := 0
	for i := range rows {
		r := &rows[i]
		if r.Verdict != Undecided || r.owner != p {
			continue
		}
		if r.Verdict = p.note(at, r, t.asked[n].Taken, &t.config.AutoSplit); r.Verdict == Accepted {
			p.till = max(p.till, after(at, int64(delay)))
		}
		n++
	}
	return delay
}
