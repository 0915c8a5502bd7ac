package keyexpr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

type timeLayout []layoutPiece

// layoutPiece is a Go layout or literal text. They are kept apart because Go could mistake literal text for a layout.
type layoutPiece struct {
	text    string
	literal bool
	micros  bool // microseconds, six digits, which Go formats only after a point or comma
}

func (l timeLayout) format(dst []byte, t time.Time) []byte {
	for _, piece := range l {
		switch {
		case piece.literal:
			dst = append(dst, piece.text...)
		case piece.micros:
			dst = fmt.Appendf(dst, "%06d", t.Nanosecond()/1000)
		default:
			dst = t.AppendFormat(dst, piece.text)
		}
	}
	return dst
}

// between lists characters that may separate the parts of a time.
const between = "-/:. _"

// clockParts lists the parts of a time, largest first, in the notation of Go and of strftime.
var clockParts = []struct{ layout, directive string }{{"2006", "%Y"}, {"01", "%m"}, {"02", "%d"}, {"15", "%H"},
	{"04", "%M"}, {"05", "%S"}}

// ordered reports whether formatted times sort like the times, and returns their length.
func (l timeLayout) ordered() (ordered bool, width int) {
	layout := ""
	for _, piece := range l {
		if piece.micros || piece.literal && strings.Trim(piece.text, between+"T") != "" {
			return false, 0
		}
		layout += piece.text
	}
	rest := layout
	for _, part := range clockParts {
		rest = strings.TrimLeft(rest, between)
		if rest == "" {
			break
		}
		after, ok := strings.CutPrefix(strings.TrimPrefix(rest, "T"), part.layout)
		if !ok {
			return false, 0
		}
		rest = after
	}
	return strings.TrimLeft(rest, between) == "" && layout != "" && !strings.Contains(layout, "_2"), len(layout)
}

// python returns a formula that formats a time with strftime, if strftime supports the whole layout.
func (l timeLayout) python(moment string) string {
	pattern := ""
	for _, piece := range l {
		switch {
		case piece.literal:
			pattern += strings.ReplaceAll(piece.text, "%", "%%")
		case piece.micros:
			pattern += "%f"
		default:
			text, ok := toStrftime(piece.text)
			if !ok {
				return noPython
			}
			pattern += text
		}
	}
	return moment + ".strftime(" + strconv.Quote(pattern) + ")"
}

func toStrftime(layout string) (pattern string, ok bool) {
next:
	for layout != "" {
		for _, part := range clockParts {
			if after, found := strings.CutPrefix(layout, part.layout); found {
				pattern, layout = pattern+part.directive, after
				continue next
			}
		}
		for b, text := range strftime {
			if text == layout && b != 'Z' && b != 'z' { // a piece of a strftime layout
				return pattern + "%" + string(b), true
			}
		}
		if !strings.ContainsRune(between+"T", rune(layout[0])) || strings.HasPrefix(layout, "_2") &&
			!strings.HasPrefix(layout, "_2006") ||
			strings.HasPrefix(layout, ".0") && !strings.HasPrefix(layout, ".01") && !strings.HasPrefix(layout, ".02") &&
				!strings.HasPrefix(layout, ".04") && !strings.HasPrefix(layout, ".05") {
			return "", false
		}
		pattern, layout = pattern+layout[:1], layout[1:]
	}
	return pattern, true
}

// strftime maps the letters of directives to Go's layouts.
var strftime = map[byte]string{'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04",
	'S': "05", 'p': "PM", 'f': "", 'j': "002", 'b': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday", 'z': "-0700",
	'Z': "MST", 'F': "2006-01-02", 'T': "15:04:05", '%': "%"}

func fromStrftime(k *call, pattern string) (l timeLayout) {
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			l = append(l, layoutPiece{text: pattern[i : i+1], literal: true})
			continue
		}
		i++
		if i == len(pattern) {
			panic(k.refusef("the layout %q ends with %%", pattern))
		}
		layout, ok := strftime[pattern[i]]
		if !ok {
			panic(k.refusef("the layout %q has the unknown directive %%%c; use one of %s", pattern, pattern[i], directiveList()))
		}
		l = append(l, layoutPiece{text: layout, literal: pattern[i] == '%', micros: pattern[i] == 'f'})
	}
	return l
}

func directiveList() string {
	return "%" + strings.Join(strings.Split(string(slices.Sorted(maps.Keys(strftime))), ""), " %")
}
