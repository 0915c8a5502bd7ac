package sim

import (
	"cmp"
	"fmt"
	"time"

	"example.com/tsimport/engine/limiter"
)

// modelled is whether limiters decide, and not the partitions' buckets alone.
func (c *Config) modelled() bool {
	return c.TableUnits > 0 || c.kind() != limiter.TokenBucket && c.PartitionUnits > 0
}

func (c *Config) kind() string { return cmp.Or(c.Limiter, limiter.TokenBucket) }

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

// limiter is one of units a second that begins at a time; nil where buckets alone decide.
func (c *Config) limiter(units float64, at int64) *limiter.Limiter {
	if !c.modelled() {
		return nil
	}
	l, err := limiter.New(limiter.Options{Kind: c.kind(), Rate: units, Burst: c.Burst}, time.Unix(0, at))
	if err != nil {
		return nil // cannot be: Check has refused what New refuses
	}
	return l
}

// decideByLimits settles the undecided rows where limiters decide: partition by partition, as a service would that hands each its
// part of the request. It returns after how long the answer leaves, and whether a row is in a partition that is ripe for a split.
func (t *Table) decideByLimits(at int64, rows []Row) (delay time.Duration, ripe bool) {
	p := t.parts[0]
	for i := range rows {
		r := &rows[i]
		if r.Verdict != Undecided {
			continue
		}
		if !p.holds(r.Key) {
			p = t.route(r.Key)
		}
		if r.owner = p; at < p.until {
			r.Verdict = p.away(at, &t.config.AutoSplit)
		}
		ripe = ripe || p.ripe
	}
	for i := range rows {
		if rows[i].Verdict == Undecided {
			delay = max(delay, t.admit(at, rows[i:]))
			ripe = ripe || rows[i].owner.ripe
		}
	}
	return delay, ripe
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
			p.sample.add(r.Key, t.rng)
			p.till = max(p.till, after(at, int64(delay)))
		}
		n++
	}
	return delay
}
