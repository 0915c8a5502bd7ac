package lifecycle

import (
	"fmt"
	"strconv"
	"time"
)

// Unit is the length of a period.
type Unit uint8

const (
	Year Unit = iota + 1
	Month
	Day
)

// unitNames and layouts are indexed by unit. Layouts have a fixed width, so names sort like the periods they contain.
var (
	unitNames = [...]string{Year: "year", Month: "month", Day: "day"}
	layouts   = [...]string{Year: "2006", Month: "200601", Day: "20060102"}
)

func (u Unit) String() string { return unitNames[u] }

func ParseUnit(name string) (Unit, error) {
	for u := Year; u <= Day; u++ {
		if unitNames[u] == name {
			return u, nil
		}
	}
	return 0, fmt.Errorf("%q is not a period; want month, day or year", name)
}

// at returns the period that contains t, in t's location.
func (u Unit) at(t time.Time) Period {
	switch u {
	case Year:
		return Period{u, t.Year()}
	case Month:
		return Period{u, t.Year()*12 + int(t.Month()) - 1}
	}
	midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	return Period{u, int((midnight.Unix() - dayZero) / secondsPerDay)}
}

const secondsPerDay = 24 * 60 * 60

var dayZero = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// Period is a year, month or day of the calendar, without a time zone. Periods are comparable.
type Period struct {
	Unit  Unit
	index int // years, months or days since the start of year 0
}

// Start returns the period's first instant in a zone.
func (p Period) Start(zone *time.Location) time.Time {
	switch p.Unit {
	case Year:
		return time.Date(p.index, 1, 1, 0, 0, 0, 0, zone)
	case Month:
		return time.Date(p.index/12, time.Month(p.index%12+1), 1, 0, 0, 0, 0, zone)
	}
	return time.Date(0, 1, 1+p.index, 0, 0, 0, 0, zone)
}

// String returns the period as it is written in a table's name: 2024, 202403 or 20240331.
func (p Period) String() string { return p.Start(time.UTC).Format(layouts[p.Unit]) }

// parse is the inverse of String. It accepts only strings that String returns.
func (u Unit) parse(text string) (Period, bool) {
	if len(text) != len(layouts[u]) {
		return Period{}, false
	}
	if _, err := strconv.ParseUint(text, 10, 32); err != nil {
		return Period{}, false
	}
	t, err := time.Parse(layouts[u], text)
	if err != nil {
		return Period{}, false
	}
	return u.at(t), true
}
