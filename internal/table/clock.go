package table

import "time"

// LocalTime returns the instant at which clocks in a zone show a wall-clock time, given in UTC: the first if they show
// it twice. It returns false if clocks skip it, where time.Date would return another time.
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
	// time.Date may return either of two instants.
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
