package advise

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"example.com/tsimport/internal/table"
)

// clock is the format of a column's times. The zero clock means that the column holds no times.
type clock struct {
	layout string // layout, as in package time, if the texts do not sort by time; else ""
	told   bool   // the column holds times
	day    bool   // the times are days
	period string // layout or unit with which an expression finds the month; "" if there is none
}

// layouts are the recognized layouts of times. Those that sort chronologically come first.
var layouts = []struct {
	layout string
	sorts  bool
	day    bool
}{
	{time.RFC3339Nano, true, false}, {"2006-01-02T15:04:05", true, false}, {"2006-01-02 15:04:05Z07:00", true, false},
	{"2006-01-02 15:04:05", true, false},
	{"2006-01-02 15:04", true, false}, {"2006-01-02T15:04", true, false}, {"2006-01-02T15:04:05.999999999-0700",
		true, false},
	{"2006/01/02 15:04:05", true, false}, {"20060102150405", true, false},
	{"2006-01-02", true, true}, {"2006/01/02", true, true}, {"20060102", true, true},
	{"1/2/2006 15:04:05", false, false}, {"1/2/2006 15:04", false, false}, {"1/2/06 15:04", false, false},
	{"1/2/2006", false, true}, {"1/2/06", false, true},
	{"2.1.2006 15:04:05", false, false}, {"2.1.2006", false, true}, {"2/Jan/2006:15:04:05 -0700", false, false},
	{"Jan 2 2006", false, true}, {"Jan 2, 2006", false, true},
}

// arrivalName matches names of creation times, as opposed to times of changes or ends.
var arrivalName = regexp.MustCompile(`(?i)(creat|order|insert|arriv|event|start|begin|pickup|invoice|log|下单|创建)`)

var timeName = regexp.MustCompile(`(?i)(time|date|timestamp|_at$|_on$|_ts$|^ts$|时间|日期)`)

// findClock detects times in a sampled column: times that the file declares, texts that all parse as times, or integers
// in the range of Unix times in a column whose name suggests time.
func findClock(c *column) clock {
	if len(c.texts) == 0 || c.floating() {
		return clock{}
	}
	if c.integer {
		if !timeName.MatchString(c.name) {
			return clock{}
		}
		if unit := unixTimes(c.texts); unit != "" {
			return clock{told: true, period: unit}
		}
	}
	for _, l := range layouts {
		if all(c.texts, func(text []byte) bool { _, err := time.Parse(l.layout, string(text)); return err == nil }) {
			k := clock{told: true, day: l.day}
			if !l.sorts {
				k.layout = l.layout
			}
			if slices.Contains(expressible, l.layout) {
				k.period = l.layout
			}
			return k
		}
	}
	return clock{told: c.kinds.times > 0 && c.kinds.others == 0 && c.own != table.Any}
}

func all(texts [][]byte, f func([]byte) bool) bool {
	return !slices.ContainsFunc(texts, func(t []byte) bool { return !f(t) })
}

// expressible lists the layouts that key expressions parse as times.
var expressible = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04",
	"2006-01-02"}

// units maps the units of Unix times, named as in key expressions, to their number per second.
var units = map[string]int64{"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}

// unixTimes returns the unit in which the integers are times between 1990 and 2100, or "".
func unixTimes(texts [][]byte) string {
	for unit, n := range units {
		low, high := 631152000*n, 4102444800*n
		if all(texts, func(text []byte) bool {
			v, err := strconv.ParseInt(string(text), 10, 64)
			return err == nil && v >= low && v < high
		}) {
			return unit
		}
	}
	return ""
}

func (c *column) span() (first, last time.Time, ok bool) {
	if unit := units[c.clock.period]; unit > 0 {
		return time.Unix(c.low/unit, 0), time.Unix(c.high/unit, 0), true
	}
	first, err := time.Parse(c.clock.period, string(c.first))
	if err != nil {
		return first, last, false
	}
	last, err = time.Parse(c.clock.period, string(c.last))
	return first, last, err == nil
}

// parse returns a number that sorts chronologically. Texts that are not times sort first.
func (k clock) parse(text []byte) uint64 {
	at, err := time.Parse(k.layout, string(text))
	if err != nil {
		return 0
	}
	return uint64(at.UnixNano()) ^ 1<<63
}
