package table

import "time"

// LocalTime returns the instant at which clocks in a zone show the time that wall shows in UTC. If they show it twice,
// it returns the first instant. It returns false if clocks skip the time; time.Date would return another time.
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
	// If there are two instants, time.Date may return either of them.
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
