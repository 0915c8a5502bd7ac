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

// Say tells the user a line; a nil one tells nobody. Who calls it says once of which kind the line is, and who made it decides how that is
// shown: as text, as an event of a log, or in a plan.
type Say func(kind Kind, line string)

// Kind is what a line is, as text begins with it.
type Kind string

// The kinds of lines.
const (
	Plain   Kind = ""
	Note    Kind = "note: "    // of what a plan names, too
	Warning Kind = "warning: " // likewise
)

// Line tells what happens.
func (s Say) Line(format string, a ...any) { s.of(Plain, format, a...) }

// Note tells what the user may not know.
func (s Say) Note(format string, a ...any) { s.of(Note, format, a...) }

// Warn tells what may be wrong.
func (s Say) Warn(format string, a ...any) { s.of(Warning, format, a...) }

func (s Say) of(kind Kind, format string, a ...any) {
	if s != nil {
		s(kind, fmt.Sprintf(format, a...))
	}
}
