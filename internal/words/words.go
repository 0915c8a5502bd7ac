package words

import (
	"fmt"
	"strconv"
)

// Grouped formats a number with commas between thousands.
func Grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Bytes formats a number of bytes in a suitable unit.
func Bytes(n int64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if size := int64(1) << (40 - 10*i); n >= size {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(size), unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// Say shows the user a line, as text, as a log event or in a plan. A nil Say drops it.
type Say func(kind Kind, line string)

// Kind is the kind of a line. The text of the line begins with it.
type Kind string

const (
	Plain   Kind = ""
	Note    Kind = "note: "    // also in a plan
	Warning Kind = "warning: " // also in a plan
)

// Line reports an event.
func (s Say) Line(format string, a ...any) { s.of(Plain, format, a...) }

// Note reports a fact that the user may not know.
func (s Say) Note(format string, a ...any) { s.of(Note, format, a...) }

// Warn reports a possible problem.
func (s Say) Warn(format string, a ...any) { s.of(Warning, format, a...) }

func (s Say) of(kind Kind, format string, a ...any) {
	if s != nil {
		s(kind, fmt.Sprintf(format, a...))
	}
}
