package ratelimit

import (
	"math"
	"time"
)

// Late answers: if nothing is refused, answers slower than the shortest round trip (without a queue) reveal a queue.
// The units answered since the last answer on time give the rate. Tested by the cells with a queue in
// TestControlReachesTargets, by TestChanceLatenessSlowsNoLane and by TestLaws.
const (
	delayOfWay    = 0.5                    // tolerated delay of an answer, as a share of the shortest round trip
	mostDelay     = 0.1                    // seconds of delay tolerated in addition
	patientRows   = 200.0                  // up to this many rows per second, a lane tolerates all of mostDelay
	lessPatience  = 0.2                    // share of mostDelay that it tolerates less for each e-fold of more rows
	leastPatience = 0.6                    // least tolerated share of mostDelay: the larger of two loads yields sooner
	lateAnswers   = 2                      // number of consecutive late answers that show a queue
	lateFor       = 150 * time.Millisecond // minimum time that they span
	othersDelay   = 0.05                   // seconds by which a lane's round trip may exceed others' in the same queue
	wayFor        = 20 * time.Second       // time until the shortest round trip is measured again
	refusesFor    = time.Minute            // time after a refusal in which late answers do not mean a queue
	ownQueue      = 2                      // this many answers on time to single requests show a queue of the lane's own
	leastBusy     = 300 * time.Millisecond // busy time for an estimate while the lane paces near its rate
	mostSlower    = 0.5                    // late answers lower the rate at most to this share of it
	deliveryFor   = 5 * time.Second        // the rate is at least the highest delivery in this time
	queueHold     = 0.5                    // seconds until cruise raises its gain
)

type lateness struct {
	way         [2]float64 // seconds of the fastest answer, in this period and the last
	waySince    time.Time
	freeAt      time.Time // the last answer that was not late
	perUnit     float64   // seconds that the service takes for a unit; 0 means unknown
	lateFrom    time.Time
	late        int     // answers in a row that came late
	by          float64 // seconds by which the last answer exceeded the shortest round trip
	aloneOnTime int     // consecutive answers on time to requests sent while no other request of the lane was in flight
	quick       answer  // the fastest answer to a request that was alone
	guessed     bool    // perUnit was derived from quick
	doubted     bool    // no smaller request has been answered since the guess
	refuted     bool    // a smaller request took as long, so the guess was wrong
	others      float64 // seconds of the fastest answer to any lane of the table; 0 unless most lanes meet a queue
}

// answer holds a request's units and the seconds until its answer.
type answer struct{ units, took float64 }

// alone takes the answer to the only request in flight. Its excess over a smaller request's time is attributed to its
// rows until answers are late. If the next small request takes as long, a queue of other lanes was the cause.
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
		return // the fastest request's rows would have taken longer
	}
	l.perUnit, l.guessed, l.doubted = slope, true, true
	l.way = [2]float64{l.quick.took - slope*l.quick.units, math.Inf(1)}
	l.late, l.freeAt = 0, time.Time{}
}

// queue notes that requests wait in a queue, and drops a guessed time per unit.
func (l *lateness) queue() {
	if l.guessed {
		l.perUnit, l.guessed, l.way = 0, false, [2]float64{l.quick.took, l.quick.took}
	}
}

// queues notes the answer to a number of units and reports whether it shows a queue. occupied is the seconds for which
// these units occupied the service, at the known rate; without it, a lane with a larger share of a queue would see a
// longer round trip. patience, 1 or less, scales the lane's tolerance.
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

// mostPerUnit returns the most seconds that the service can take for a unit, given the time of an answer. It deducts
// the shortest round trip measured: else an equally fast answer to more units would make this zero and few units late.
func (l *lateness) mostPerUnit(took, units float64) float64 {
	if !l.guessed && units >= 2*l.quick.units {
		took = max(0, took-l.shortest())
	}
	return took / units
}

// shortest returns the round trip without a queue, in seconds.
func (l *lateness) shortest() float64 {
	way := min(l.way[0], l.way[1])
	if l.others > 0 {
		way = min(way, l.others+othersDelay)
	}
	return max(0, way)
}

// occupied returns the seconds for which units occupy a service that queues, if the lane gets its whole rate. It is at
// most finerTime: with a rate much too low, the round trip would seem short and every answer late, so the rate drops.
func (p *Pacer) occupied(units float64) float64 {
	if !p.evidence.queue || p.rate == 0 {
		return 0
	}
	return min(units/p.rate, finerTime)
}

// patience returns 1, or less for a fast lane of a service that queues. Loads that share a queue see the same delay and
// would each keep the share they happen to have; with less patience, the load with the larger share yields sooner.
func (p *Pacer) patience() float64 {
	if !p.evidence.queue || p.rate == 0 {
		return 1
	}
	return min(1, max(leastPatience, 1-lessPatience*math.Log(p.rate/(patientRows*p.perRow))))
}

// ways holds the fastest answer to any lane of a table, in this period and the last. A lane that begins while requests
// already queue never sees the round trip without one; if most lanes meet one, it learns this from the others.
type ways struct {
	fastest     [2]float64 // seconds
	since       time.Time
	all, queued int // answers, and answers to lanes that meet a queue; halved in each period
}

// tell takes a lane's answer before the lane's pacer does, and tells the pacer the round trip of other lanes.
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
