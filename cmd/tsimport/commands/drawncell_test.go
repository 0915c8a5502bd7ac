package commands_test

import (
	"strconv"
	"strings"
	"time"
)

// Kind says what a cell means, regardless of how a file spells it.
type Kind int

// The kinds of cells.
const (
	Null Kind = iota
	Integer
	Decimal // Text has its digits, N the unscaled integer, Unit the scale
	Text
	ID       // an ObjectId of MongoDB, Text has its digits
	Instant  // N counts nanoseconds since 1970 in UTC
	Local    // N likewise, in a zone that nothing names
	Duration // N is nanoseconds
)

// Cell is what a record says of one column.
type Cell struct {
	Kind Kind
	Text string
	N    int64
	Unit int64  // of times, the nanoseconds that the file counts in
	Tag  string // the JSON object of MongoDB that spells the value; "" is none
	// Typed says that the file itself gives the value its kind. Text of CSV has none: it joins what the other files say.
	Typed bool
}

// A form is one way in which a column of a table can hold the cells of its records. All cells of a column must have one form:
// otherwise the same value means two things in it. holds reports whether v, as the SDK returns it, is the cell in this form.
type form struct {
	name  string
	holds func(c Cell, v any) bool
}

// keyForms are the forms of key columns, whose cells are integers, texts and IDs.
var keyForms = []form{
	{"integer", func(c Cell, v any) bool { n, ok := integer(c); return ok && v == n }},
	{"text", func(c Cell, v any) bool { return c.Kind != Instant && v == spelled(c) }},
	{"tagged text", func(c Cell, v any) bool { return v == tagged(c) }},
}

// forms are those of attribute columns.
var forms = []form{
	{"integer", func(c Cell, v any) bool { n, ok := integer(c); return ok && v == n }},
	{"double", func(c Cell, v any) bool { f, ok := double(c); return ok && v == f }},
	{"text, times in UTC", func(c Cell, v any) bool { return c.Kind != Local && text(c, v) }},
	{"text, local times", func(c Cell, v any) bool { return c.Kind != Instant && text(c, v) }},
	{"tagged text", func(c Cell, v any) bool { return c.Tag != "" && v == c.Tag || c.Tag == "" && own(c, v) }},
	{"each value in its own type", own},
	unscaled(2), unscaled(3),
	units("s", time.Second), units("ms", time.Millisecond), units("µs", time.Microsecond), units("ns", 1),
}

// units is the form of times as integers. Text of a file without types joins them, a number that a file calls an integer does not.
func units(name string, unit time.Duration) form {
	return form{"integer (" + name + ")", func(c Cell, v any) bool {
		if c.Kind == Instant || c.Kind == Local || c.Kind == Duration {
			return c.N%int64(unit) == 0 && v == c.N/int64(unit)
		}
		n, ok := integer(c)
		return !c.Typed && ok && v == n
	}}
}

// unscaled is the form of decimals as integers of one scale.
func unscaled(scale int64) form {
	return form{"unscaled integer (" + strconv.FormatInt(scale, 10) + ")", func(c Cell, v any) bool {
		return c.Kind == Decimal && c.Typed && c.Unit == scale && v == c.N
	}}
}

// own is the form of columns of several types, each value in its own. Text of a file without types may be either.
func own(c Cell, v any) bool {
	if c.Kind == Instant || c.Kind == Duration {
		return c.Kind == Instant && text(c, v)
	}
	n, isInteger := integer(c)
	f, isDouble := double(c)
	return isInteger && v == n || c.Kind == Decimal && isDouble && v == f || (!c.Typed || c.Kind != Integer) && text(c, v)
}

func integer(c Cell) (int64, bool) {
	if c.Kind == Text && !c.Typed {
		n, err := strconv.ParseInt(c.Text, 10, 64)
		return n, err == nil && strconv.FormatInt(n, 10) == c.Text
	}
	return c.N, c.Kind == Integer
}

func double(c Cell) (float64, bool) {
	if c.Kind != Integer && c.Kind != Decimal {
		return 0, false
	}
	f, err := strconv.ParseFloat(spelled(c), 64)
	return f, err == nil
}

// spelled is the text of a cell that is not a time.
func spelled(c Cell) string {
	if c.Kind == Integer {
		return strconv.FormatInt(c.N, 10)
	}
	return c.Text
}

func tagged(c Cell) string {
	if c.Tag != "" {
		return c.Tag
	}
	return spelled(c)
}

// text reports whether v is the text of c. Texts of one instant may have different numbers of digits.
func text(c Cell, v any) bool {
	s, ok := v.(string)
	if !ok || c.Kind == Duration {
		return false
	}
	if c.Kind != Instant && c.Kind != Local {
		return s == spelled(c)
	}
	if strings.HasSuffix(s, "Z") != (c.Kind == Instant) {
		return false
	}
	t, err := time.Parse("2006-01-02T15:04:05.999999999", strings.TrimSuffix(s, "Z"))
	return err == nil && t.Equal(time.Unix(0, c.N))
}
