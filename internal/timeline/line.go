package timeline

import "time"

// Line is a series of points, one for each interval since the start. It is not safe for concurrent use.
type Line[T any] struct {
	every  time.Duration
	most   int
	merge  func(into *T, later T)
	points []T
}

// New makes a line with the initial interval every and up to most points, rounded to an even number of at least 2.
// merge adds a point to the one before it when the interval doubles.
func New[T any](every time.Duration, most int, merge func(into *T, later T)) *Line[T] {
	return &Line[T]{every: max(every, 1), most: max(2, most&^1), merge: merge}
}

// At returns the point at a time since the start. The pointer is valid until the next call.
func (l *Line[T]) At(since time.Duration) *T {
	i := int64(max(since, 0) / l.every)
	for i >= int64(l.most) {
		l.halve()
		i = int64(max(since, 0) / l.every)
	}
	for int64(len(l.points)) <= i {
		var empty T
		l.points = append(l.points, empty)
	}
	return &l.points[i]
}

// Every returns the current interval.
func (l *Line[T]) Every() time.Duration { return l.every }

// Points returns the points so far. The caller must not change them.
func (l *Line[T]) Points() []T { return l.points }

func (l *Line[T]) halve() {
	half := (len(l.points) + 1) / 2
	for i := range half {
		p := l.points[2*i]
		if 2*i+1 < len(l.points) {
			l.merge(&p, l.points[2*i+1])
		}
		l.points[i] = p
	}
	clear(l.points[half:]) // their points have been merged into the first half
	l.points = l.points[:half]
	l.every *= 2
}
