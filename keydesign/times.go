package keydesign

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tsimport/table"
)

// clock says how a value is read as a time.
type clock struct {
	zone *time.Location // in which times are shown, and those without an offset are understood
	unit int64          // units of a second of an integer, 0 if none was given
}

var timeUnits = map[string]int64{"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}

// textTimes are the forms of a time as text, by what stands behind the date.
var textTimes = []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02", "2006-01-02 15:04", time.RFC3339}

// clockOf reads the optional arguments from i on: a zone, a unit, or both.
func (c *compiler) clockOf(k *call, i int) (clock, error) {
	at := clock{zone: time.UTC}
	zoned := false
	for ; i < len(k.args); i++ {
		word, err := k.literal(i)
		if err != nil {
			return at, err
		}
		if unit, ok := timeUnits[word]; ok && at.unit == 0 {
			at.unit = unit
			continue
		}
		zone, err := time.LoadLocation(word)
		if err != nil || zoned || word == "" || word == "Local" {
			return at, k.errorf("%q is neither a zone such as Asia/Shanghai nor a unit (s, ms, us, ns); want %s", word, k.usage)
		}
		at.zone, zoned = zone, true
	}
	return at, nil
}

// moment compiles the time that a call is about.
func (c *compiler) moment(k *call, at clock) (*node, error) {
	x, err := c.operand(k, 0, table.String, table.Integer)
	if err != nil {
		return nil, err
	}
	if x.typ == table.Integer && at.unit == 0 {
		return nil, k.errorf("%s is an integer; say what it counts since 1970 with \"s\", \"ms\", \"us\" or \"ns\"", brief(x.src))
	}
	return x, nil
}

// read makes a time of a value.
func (at clock) read(e *Evaluator, n *node, v table.Value) (time.Time, bool) {
	switch {
	case v.Type == table.Null:
		return time.Time{}, false
	case v.Type == table.Integer && at.unit == 0:
		e.fail(n, table.CodeType, e.shown(v), "%d is an integer; say what it counts since 1970 with \"s\", \"ms\", \"us\" or \"ns\"", v.Int)
		return time.Time{}, false
	case v.Type == table.Integer:
		seconds, rest := v.Int/at.unit, v.Int%at.unit
		if rest < 0 {
			seconds, rest = seconds-1, rest+at.unit
		}
		t := time.Unix(seconds, rest*(1e9/at.unit)).In(at.zone)
		if y := t.Year(); seconds > 253402300799 || y < 0 || y > 9999 {
			e.fail(n, table.CodeRange, e.shown(v), "%d is not in the years 0 to 9999; check the unit", v.Int)
			return time.Time{}, false
		}
		return t, true
	case v.Type != table.String:
		e.fail(n, table.CodeType, e.shown(v), "%s is no time; want a text or an integer", a(v.Type))
		return time.Time{}, false
	}
	for _, layout := range textTimes {
		// Layouts of another length cannot fit, and a failed attempt costs more than the right one.
		if layout != time.RFC3339 && len(v.Bytes) != len(layout) && (len(layout) != 19 || len(v.Bytes) < 19) {
			continue
		}
		if t, err := time.ParseInLocation(layout, string(v.Bytes), at.zone); err == nil {
			return t.In(at.zone), true
		}
	}
	e.fail(n, table.CodeType, v.Bytes, "%q is no time; want 2021-04-01, 2021-04-01 10:00:00 or 2021-04-01T10:00:00+08:00", table.Show(v.Bytes))
	return time.Time{}, false
}

// formatTime keeps the order coarsely if the layout goes from years to smaller units with fixed widths, and if the zone
// never turns its clocks back.
func (c *compiler) formatTime(k *call) (*node, error) {
	layout, err := k.literal(1)
	if err != nil {
		return nil, err
	}
	if strings.Contains(layout, "%") {
		if layout, err = fromStrftime(layout); err != nil {
			return nil, k.errorf("%v", err)
		}
	}
	if time.Unix(0, 0).UTC().Format(layout) == time.Unix(987654321, 5e8).UTC().Format(layout) {
		return nil, k.errorf("the layout %q names no part of a time; write 2006-01-02 15:04:05 or %%Y-%%m-%%d %%H:%%M:%%S, or parts of it", layout)
	}
	at, err := c.clockOf(k, 2)
	if err != nil {
		return nil, err
	}
	x, err := c.moment(k, at)
	if err != nil {
		return nil, err
	}
	n := &node{typ: table.String, src: k.src, order: unordered(k.src, 0), recipe: fmt.Sprintf("%s as a time like %q in %s", x.recipe, layout, at.zone),
		python: fmt.Sprintf("time_of(%s).strftime(%s)", x.python, k.args[1].String())}
	if ordered, width := orderedLayout(layout); ordered {
		n.width = width
		if steady(at.zone) {
			n.order = reorder(x, k.src, false, true)
		}
	}
	n.text = func(e *Evaluator, row []table.Value) bool {
		start := len(e.buf)
		t, ok := at.read(e, n, x.value(e, row))
		if ok {
			e.buf = t.AppendFormat(e.buf[:start], layout)
		}
		return ok
	}
	return n, nil
}

// timePart is year, month or day as an integer. A year keeps the order coarsely.
func (c *compiler) timePart(k *call) (*node, error) {
	at, err := c.clockOf(k, 1)
	if err != nil {
		return nil, err
	}
	x, err := c.moment(k, at)
	if err != nil {
		return nil, err
	}
	n := &node{typ: table.Integer, src: k.src, recipe: fmt.Sprintf("the %s of %s in %s", k.name, x.recipe, at.zone), python: fmt.Sprintf("time_of(%s).%s", x.python, k.name)}
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
	return n, nil
}

// orderedLayout reports whether times sort as the layout's text does, and how long that is.
func orderedLayout(layout string) (ordered bool, width int) {
	parts := []string{"2006", "01", "02", "15", "04", "05"}
	digits := func(r rune) bool { return r >= '0' && r <= '9' }
	rest := layout
	for _, part := range parts {
		rest = strings.TrimLeft(rest, "-/:. _")
		if rest == "" {
			break
		}
		after, ok := strings.CutPrefix(strings.TrimPrefix(rest, "T"), part)
		if !ok {
			return false, 0
		}
		rest = after
	}
	return rest == "" && strings.ContainsFunc(layout, digits) && !strings.Contains(layout, "_2"), len(layout)
}

// steady reports whether a zone has turned its clocks in the years that data comes from.
func steady(zone *time.Location) bool {
	_, first := time.Date(2000, 1, 1, 0, 0, 0, 0, zone).Zone()
	for t := time.Date(2000, 1, 1, 0, 0, 0, 0, zone); t.Year() < 2038; t = t.AddDate(0, 0, 14) {
		if _, offset := t.Zone(); offset != first {
			return false
		}
	}
	return true
}

// strftime are the directives that have a counterpart in a layout.
var strftime = map[byte]string{'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM",
	'f': "000000", 'j': "002", 'b': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday", 'z': "-0700", 'Z': "MST",
	'F': "2006-01-02", 'T': "15:04:05", '%': "%"}

func fromStrftime(pattern string) (string, error) {
	var layout []byte
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			layout = append(layout, pattern[i])
			continue
		}
		i++
		if i == len(pattern) {
			return "", fmt.Errorf("the layout %q ends with %%", pattern)
		}
		directive, ok := strftime[pattern[i]]
		if !ok {
			return "", fmt.Errorf("the layout %q has the unknown directive %%%c; there are %s", pattern, pattern[i], directiveList())
		}
		layout = append(layout, directive...)
	}
	return string(layout), nil
}

func directiveList() string {
	var list []string
	for b := range strftime {
		list = append(list, "%"+string(b))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}
