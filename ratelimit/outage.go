package ratelimit

import (
	"slices"
	"time"
)

// An outage looks like a rate of zero: a busy service refuses every row with the code of a full partition. A pacer
// would then need a minute to find its rate again. So Outages saves the pacer's state before the first answer that
// accepted nothing, and restores it once no bucket could be empty that long. Then the partition is probed row by row.

const (
	leastOutage    = 300 * time.Millisecond
	windowOutage   = 1100 * time.Millisecond // minimum while a used-up window may be the cause
	bucketAgreed   = 2                       // agreeing measurements that rule out a used-up window
	outageRows     = 10.0                    // rows that would have been accepted at the known rate
	outageAnswers  = 3                       // consecutive answers that accept nothing
	settledFor     = 0.5                     // seconds of the rate to accept before another outage is believed
	probeEvery     = 100 * time.Millisecond  // mean time between probes of a partition that does not serve, at first
	probeShare     = 8                       // the mean wait for a probe is the outage's duration divided by this
	probeAtMost    = 2 * time.Second
	probeGrowsFrom = time.Second
)

// Outages tells outages of a partition from lack of capacity, and saves the state before them. Its zero value is ready.
type Outages struct {
	kept     *Pacer // copy from before the answers that accepted nothing; nil while rows are accepted
	since    time.Time
	answers  int
	accepted float64 // units since the last outage
	doubtful bool    // too little was accepted since the last outage to believe in another one
}

// Refused takes an answer that accepted nothing, before the pacer does. In an outage it returns the saved pacer.
func (o *Outages) Refused(p *Pacer, sent, now time.Time) (before *Pacer, outage bool) {
	if o.kept == nil {
		o.kept, o.since, o.answers = p.clone(), sent, 0
	}
	o.answers++
	lasts, least := now.Sub(o.since), leastOutage
	if o.kept.others.quota.on || o.kept.evidence.agreed < bucketAgreed {
		least = windowOutage
	}
	if o.doubtful || p.line.out || o.kept.rate == 0 || o.answers < outageAnswers ||
		lasts < max(least, duration(outageRows*o.kept.perRow/o.kept.rate)) {
		return nil, false
	}
	before = o.kept
	o.kept, o.doubtful, o.accepted = nil, true, 0
	before.line.sends = nil // the outage answered all of them
	return before, true
}

// Accepted takes an answer that accepted units. Call it after the pacer has taken the answer.
func (o *Outages) Accepted(p *Pacer, units float64) {
	o.kept = nil
	if o.doubtful {
		o.accepted += units
		o.doubtful = o.accepted < settledFor*p.rate
	}
}

func (p *Pacer) clone() *Pacer {
	c := *p
	c.line.sends = slices.Clone(p.line.sends)
	c.recent.accepted = slices.Clone(p.recent.accepted)
	return &c
}

// probeWait returns the wait before the next probe of a partition that has not served for the time out.
func probeWait(out time.Duration, random float64) time.Duration {
	wait := probeEvery
	if out > probeGrowsFrom {
		wait = min(max(wait, out/probeShare), probeAtMost)
	}
	return min(wait/2+time.Duration(random*float64(wait)), probeAtMost)
}
