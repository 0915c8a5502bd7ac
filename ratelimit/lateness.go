package ratelimit

import (
	"math"
	"time"
)

// Late answers: if nothing is refused, a queue shows in answers later than the shortest way. The rate is the units that
// came back since one was on time. Tested by the cells with a queue in TestControlReachesTargets, by
// TestChanceLatenessSlowsNoLane and by TestLaws.
const (
	delayOfWay    = 0.5                    // of the shortest way: an answer may be that much later, and
	mostDelay     = 0.1                    // seconds more
	patientRows   = 200.0                  // rows a second up to which a lane waits for all of that;
	lessPatience  = 0.2                    // less of it for each e-fold of rows more,
	leastPatience = 0.6                    // but at least that: the larger of two loads yields sooner
	lateAnswers   = 2                      // late answers in a row that show a queue, over
	lateFor       = 150 * time.Millisecond // at least
	othersDelay   = 0.05                   // seconds by which a lane's way may exceed that of others in the same queue
	wayFor        = 20 * time.Second       // after which the shortest way is measured again
	refusesFor    = time.Minute            // after a refusal there is no queue
	ownQueue      = 2                      // answers on time to single requests show that a queue is the lane's own
	leastBusy     = 300 * time.Millisecond // for an estimate while the lane paces near its rate
	mostSlower    = 0.5                    // times the rate: late answers lower it at once to that
	deliveryFor   = 5 * time.Second        // the most returned in a second of that time bounds it from below
	queueHold     = 0.5                    // seconds until cruise reaches further
)

type lateness struct {
	way         [2]float64 // seconds of the fastest answer, in this and the last period
	waySince    time.Time
	freeAt      time.Time // the last answer that was not late
	perUnit     float64   // seconds for a unit before the service answers, if known
	lateFrom    time.Time
	late        int     // answers in a row that came late
	by          float64 // seconds by which the last answer exceeded the shortest way
	aloneOnTime int     // answers in a row that came on time to requests that left when none of the lane's was on its way
	quick       answer  // the quickest to a request that was alone
	guessed     bool    // perUnit was, by that
	doubted     bool    // no smaller request has been answered since
	refuted     bool    // one took as long
	others      float64 // seconds of the fastest answer to any lane of the table if most meet a queue; 0 is none
}

// answer is the seconds until the answer to that many units.
type answer struct{ units, took float64 }

// alone takes the answer to the only request in flight: the time beyond a smaller one's counts as its rows', until
// answers come late. If a small next one takes as long, other lanes' queue was the cause.
func (l *lateness) alone(took, units float64) {
	if l.doubted {
		l.doubted = false
		if took-l.perUnit*(units-l.quick.units) > l.quick.took*(1+delayOfWay)+mostDelay/2 {
			l.queue()
			l.refuted = true
			return
		}
	}
	if l.quick.units == 0 || took < l.quick.took {
		l.quick = answer{units, took}
		return
	}
	if l.perUnit > 0 || l.refuted || units < 2*l.quick.units || took-l.quick.took <= l.quick.took*delayOfWay+mostDelay {
		return
	}
	slope := (took - l.quick.took) / (units - l.quick.units)
	if slope*l.quick.units > l.quick.took {
		return // the quickest's rows would have taken longer
	}
	l.perUnit, l.guessed, l.doubted = slope, true, true
	l.way = [2]float64{l.quick.took - slope*l.quick.units, math.Inf(1)}
	l.late, l.freeAt = 0, time.Time{}
}

// queue says that requests wait in a queue, the longer the more rows they have.
func (l *lateness) queue() {
	if l.guessed {
		l.perUnit, l.guessed, l.way = 0, false, [2]float64{l.quick.took, l.quick.took}
	}
}

// queues notes an answer to that many units and reports whether it shows a queue. By the known rate, the units
// themselves occupied the service for occupied seconds: a lane with a larger share of a queue must not think its way
// longer for that. patience, 1 or less, scales the lane's tolerance.
func (l *lateness) queues(sent, now time.Time, units, occupied, patience float64) bool {
	took := now.Sub(sent).Seconds()
	if l.perUnit > 0 {
		l.perUnit = min(l.perUnit, l.mostPerUnit(took, units))
	}
	d := took - max(l.perUnit*units, occupied)
	if l.waySince.IsZero() || now.Sub(l.waySince) > wayFor {
		l.way[1] = l.way[0]
		if l.waySince.IsZero() {
			l.way[1] = d
		}
		l.way[0], l.waySince = d, now
	}
	l.way[0] = min(l.way[0], d)
	most := l.shortest()*delayOfWay + mostDelay*patience
	d -= l.shortest()
	if l.by = d; d <= most/2 || l.freeAt.IsZero() {
		l.freeAt = now
	}
	if d <= most {
		l.late = 0
		return false
	}
	if l.late++; l.late == 1 {
		l.lateFrom = now
	}
	return l.late >= lateAnswers && now.Sub(l.lateFrom) >= lateFor
}

// mostPerUnit is the most that the service takes for a unit if the answer to that many took so long. If requests in
// flight one by one have shown both, the fastest of them gives the way: an equally fast answer to more units must not
// reduce the way to nothing and make every answer to few units late.
func (l *lateness) mostPerUnit(took, units float64) float64 {
	if !l.guessed && units >= 2*l.quick.units {
		took = max(0, took-l.shortest())
	}
	return took / units
}

// shortest is the way without a queue, in seconds.
func (l *lateness) shortest() float64 {
	way := min(l.way[0], l.way[1])
	if l.others > 0 {
		way = min(way, l.others+othersDelay)
	}
	return max(0, way)
}

// occupied is how many seconds units occupy a service that queues, if the lane's rate is its whole rate: at most those
// of a batch of such a lane. A rate much too low would make every answer seem late, and the rate lower yet.
func (p *Pacer) occupied(units float64) float64 {
	if !p.evidence.queue || p.rate == 0 {
		return 0
	}
	return min(units/p.rate, finerTime)
}

// patience is 1, and less for a fast lane of a service that queues. Loads that share a queue see the same delay, and
// each would keep its chance share: so the one with the larger share gives way sooner.
func (p *Pacer) patience() float64 {
	if !p.evidence.queue || p.rate == 0 {
		return 1
	}
	return min(1, max(leastPatience, 1-lessPatience*math.Log(p.rate/(patientRows*p.perRow))))
}

// ways is the fastest answer to any lane of a table, in this and the last period. A lane that begins when requests
// already wait never sees the way without a queue; if most lanes meet one, the other lanes tell it.
type ways struct {
	fastest     [2]float64 // seconds
	since       time.Time
	all, queued int // answers in this period and half of earlier ones, and those to lanes in a queue
}

// tell takes an answer to a lane, before the lane does.
func (w *ways) tell(p *Pacer, sent, now time.Time) {
	took := now.Sub(sent).Seconds()
	if w.since.IsZero() || now.Sub(w.since) > wayFor {
		w.fastest[1] = w.fastest[0]
		if w.since.IsZero() {
			w.fastest[1] = took
		}
		w.fastest[0], w.since, w.all, w.queued = took, now, w.all/2, w.queued/2
	}
	w.fastest[0] = min(w.fastest[0], took)
	if w.all++; p.evidence.queue {
		w.queued++
	}
	p.line.lateness.others = 0
	if 2*w.queued > w.all {
		p.line.lateness.others = min(w.fastest[0], w.fastest[1])
	}
}
