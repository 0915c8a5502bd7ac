package ratelimit

import (
	"math"
	"time"
)

// lateness is how late answers come.
type lateness struct {
	way      [2]float64 // seconds of the fastest answer, in this and the last period
	waySince time.Time
	freeAt   time.Time // the last answer that was not late
	perUnit  float64   // seconds that the service takes for a unit before it answers, where that was seen
	lateFrom time.Time
	late     int    // answers in a row that came late
	quick    answer // the quickest to a request that was alone
	guessed  bool   // perUnit was, by that
}

// answer is how many seconds the answer to so many units took.
type answer struct{ units, took float64 }

// alone takes the answer to a request that was the only one on its way: nothing of the lane waited before it, so that what it took longer
// than a smaller one is taken to be for its rows, until answers come late all the same.
func (l *lateness) alone(took, units float64) {
	if l.quick.units == 0 || took < l.quick.took {
		l.quick = answer{units, took}
		return
	}
	if l.perUnit > 0 || units < 2*l.quick.units || took-l.quick.took <= l.quick.took*delayOfWay+mostDelay {
		return
	}
	slope := (took - l.quick.took) / (units - l.quick.units)
	if slope*l.quick.units > l.quick.took {
		return // then the rows of the quickest would have taken longer than all of it did
	}
	l.perUnit, l.guessed = slope, true
	l.way = [2]float64{l.quick.took - slope*l.quick.units, math.Inf(1)}
	l.late, l.freeAt = 0, time.Time{}
}

// queue says that requests wait in a queue, which takes the longer the more rows they have.
func (l *lateness) queue() {
	if l.guessed {
		l.perUnit, l.guessed, l.way = 0, false, [2]float64{l.quick.took, l.quick.took}
	}
}

// queues notes an answer to so many units and reports whether it shows that requests wait in a queue.
func (l *lateness) queues(sent, now time.Time, units float64) bool {
	d := now.Sub(sent).Seconds() - l.perUnit*units
	if l.waySince.IsZero() || now.Sub(l.waySince) > wayFor {
		l.way[1] = l.way[0]
		if l.waySince.IsZero() {
			l.way[1] = d
		}
		l.way[0], l.waySince = d, now
	}
	l.way[0] = min(l.way[0], d)
	most := l.shortest()*delayOfWay + mostDelay
	if d -= l.shortest(); d <= most/2 || l.freeAt.IsZero() {
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

// shortest is the way without a queue, in seconds.
func (l *lateness) shortest() float64 { return max(0, min(l.way[0], l.way[1])) }
