package words

import (
	"fmt"
	"strconv"
)

// Grouped writes a number with a comma between thousands.
func Grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Bytes writes a number of bytes in the unit that suits it.
func Bytes(n int64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if size := int64(1) << (40 - 10*i); n >= size {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(size), unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// Say tells the user a line; nil tells nobody. The caller sets its kind, the maker shows it as text, log event or plan.
type Say func(kind Kind, line string)

// Kind is a line's kind, with which its text begins.
type Kind string

const (
	Plain   Kind = ""
	Note    Kind = "note: "    // also of a plan
	Warning Kind = "warning: " // likewise
)

// Line reports an event.
func (s Say) Line(format string, a ...any) { s.of(Plain, format, a...) }

// Note reports a fact that the user may not know.
func (s Say) Note(format string, a ...any) { s.of(Note, format, a...) }

// Warn reports a possible fault.
func (s Say) Warn(format string, a ...any) { s.of(Warning, format, a...) }

func (s Say) of(kind Kind, format string, a ...any) {
	if s != nil {
		s(kind, fmt.Sprintf(format, a...))
	}
}
