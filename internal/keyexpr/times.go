package keyexpr

import (
	"fmt"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
)

// clock says how to read a value as a time.
type clock struct {
	zone *time.Location // zone of results and of strings without an offset
	unit int64          // units per second of an integer; 0 if not given
}

var timeUnits = map[string]int64{"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}

var textTimes = []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02", "2006-01-02 15:04", time.RFC3339}

// clockOf reads the optional arguments of a call, beginning with argument i: a zone, a unit, or both.
func clockOf(k *call, i int) clock {
	at := clock{zone: time.UTC}
	zoned := false
	for ; i < len(k.args); i++ {
		word := k.literal(i)
		if unit, ok := timeUnits[word]; ok && at.unit == 0 {
			at.unit = unit
			continue
		}
		zone, err := time.LoadLocation(word)
		if err != nil || zoned || word == "" || word == "Local" {
			panic(k.refusef("%q is neither a zone such as Asia/Shanghai nor a unit (s, ms, us, ns); want %s", word, k.usage))
		}
		at.zone, zoned = zone, true
	}
	return at
}

// moment compiles a call's first argument as a time; the optional arguments begin at i.
func (c *compiler) moment(k *call, i int) (clock, *node) {
	at := clockOf(k, i)
	x := c.operand(k, 0, table.String, table.Integer)
	if x.typ == table.Integer && at.unit == 0 {
		panic(k.refusef("%s is an integer; say what it counts since 1970 with \"s\", \"ms\", \"us\" or \"ns\"", brief(x.src)))
	}
	return at, x
}

func (at clock) read(e *Evaluator, n *node, v table.Value) (time.Time, bool) {
	switch {
	case v.Type == table.Null:
		return time.Time{}, false
	case v.Type == table.Integer && at.unit == 0:
		return time.Time{}, e.fail(n, table.CodeType, e.shown(v),
			"%d is an integer; say what it counts since 1970 with \"s\", \"ms\", \"us\" or \"ns\"", v.Int)
	case v.Type == table.Integer:
		seconds, rest := v.Int/at.unit, v.Int%at.unit
		if rest < 0 {
			seconds, rest = seconds-1, rest+at.unit
		}
		t := time.Unix(seconds, rest*(1e9/at.unit)).In(at.zone)
		if y := t.Year(); seconds > 253402300799 || y < 0 || y > 9999 {
			return time.Time{}, e.fail(n, table.CodeRange, e.shown(v), "%d is not in the years 0 to 9999; check the unit", v.Int)
		}
		return t, true
	case v.Type != table.String:
		return time.Time{}, e.fail(n, table.CodeType, e.shown(v), "%s is not a time; want a text or an integer", a(v.Type))
	}
	for _, layout := range textTimes {
		// Skip layouts of another length: a failed attempt costs more than a successful one.
		if layout != time.RFC3339 && len(v.Bytes) != len(layout) && (len(layout) != 19 || len(v.Bytes) < 19) {
			continue
		}
		t, err := time.Parse(layout, string(v.Bytes))
		if err != nil {
			continue
		}
		if layout != time.RFC3339 {
			local, ok := table.LocalTime(t, at.zone)
			if !ok {
				return time.Time{}, e.fail(n, table.CodeRange, v.Bytes,
					"clocks in %s never showed %q: they were set forward past it", at.zone, table.Show(v.Bytes))
			}
			t = local
		}
		if t = t.In(at.zone); t.Year() < 0 || t.Year() > 9999 { // an offset may move the time out of these years
			return time.Time{}, e.fail(n, table.CodeRange, v.Bytes, "%q is not in years 0 to 9999 of %s",
				table.Show(v.Bytes), at.zone)
		}
		return t, true
	}
	return time.Time{}, e.fail(n, table.CodeType, v.Bytes,
		"%q is not a time; want 2021-04-01, 2021-04-01 10:00:00 or 2021-04-01T10:00:00+08:00", table.Show(v.Bytes))
}

// formatTime compiles a formatted time. It keeps a coarse order if large units come first and the zone is steady.
func (c *compiler) formatTime(k *call) *node {
	written := k.literal(1)
	layout := timeLayout{{text: written}}
	if strings.Contains(written, "%") {
		layout = fromStrftime(k, written)
	}
	if string(layout.format(nil, time.Unix(0, 0).UTC())) == string(layout.format(nil, time.Unix(987654321, 5e8).UTC())) {
		panic(k.refusef("the layout %q has no part of a time; use 2006-01-02 15:04:05 or %%Y-%%m-%%d %%H:%%M:%%S", written))
	}
	at, x := c.moment(k, 2)
	n := &node{typ: table.String, src: k.src, order: unordered(k.src, 0), recipe: fmt.Sprintf("%s as a time like %q in %s",
		x.recipe, written, at.zone),
		python: layout.python(at.python(x))}
	if ordered, width := layout.ordered(); ordered {
		n.width, n.signed = width, true // not ordered as a number: the layout "-2006" gives negative numbers
		if steady(at.zone) {
			n.order = reorder(x, k.src, false, true)
		}
	}
	n.text = func(e *Evaluator, row []table.Value) bool {
		start := len(e.buf)
		t, ok := at.read(e, n, x.value(e, row))
		if ok {
			e.buf = layout.format(e.buf[:start], t)
		}
		return ok
	}
	return n
}

func (at clock) python(x *node) string {
	switch {
	case x.typ == table.Integer && at.unit == 1e9:
		return noPython // Python's times have no nanoseconds
	case x.typ == table.Integer:
		return fmt.Sprintf("time_of(%s, %q, %d)", x.python, at.zone, at.unit)
	case x.typ == table.String:
		return fmt.Sprintf("time_of(%s, %q)", x.python, at.zone)
	}
	return noPython
}

// timePart compiles year, month and day, which give integers. A year keeps a coarse order.
func (c *compiler) timePart(k *call) *node {
	at, x := c.moment(k, 1)
	n := &node{typ: table.Integer, src: k.src, recipe: fmt.Sprintf("the %s of %s in %s", k.name, x.recipe, at.zone),
		python: at.python(x) + "." + k.name}
	part := time.Time.Year
	switch k.name {
	case "year":
		n.order = reorder(x, k.src, false, true)
	case "month":
		part = func(t time.Time) int { return int(t.Month()) }
		n.order = unordered(k.src, 12)
	default:
		part = time.Time.Day
		n.order = unordered(k.src, 31)
	}
	n.value = func(e *Evaluator, row []table.Value) table.Value {
		t, ok := at.read(e, n, x.value(e, row))
		if !ok {
			return null
		}
		return table.Value{Type: table.Integer, Int: int64(part(t))}
	}
	return n
}

// steady reports whether a zone has one offset from 2000 to 2037.
func steady(zone *time.Location) bool {
	_, first := time.Date(2000, 1, 1, 0, 0, 0, 0, zone).Zone()
	for t := time.Date(2000, 1, 1, 0, 0, 0, 0, zone); t.Year() < 2038; t = t.AddDate(0, 0, 14) {
		if _, offset := t.Zone(); offset != first {
			return false
		}
	}
	return true
}
