package table

import "time"

// LocalTime returns the instant at which clocks in a zone show a wall-clock time, given in UTC; the first if clocks are
// turned back over it. It returns false if they are turned forward over it: package time would return another time.
func LocalTime(wall time.Time, zone *time.Location) (at time.Time, ok bool) {
	if zone == time.UTC {
		return wall, true
	}
	at = time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(),
		wall.Nanosecond(), zone)
	_, offset := at.Zone()
	if at.Unix()+int64(offset) != wall.Unix() {
		return at, false
	}
	// Package time returns either of the two.
	start, _ := at.ZoneBounds()
	if start.IsZero() {
		return at, true
	}
	_, before := start.Add(-1).Zone()
	if first := at.Add(time.Duration(offset-before) * time.Second); first.Before(start) && before > offset {
		return first, true
	}
	return at, true
}
