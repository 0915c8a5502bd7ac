package progress

import (
	"fmt"
	"slices"
	"time"
)

// Fact is a property of an attempt that must not change before the attempt is continued.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Input bool   `json:"input,omitempty"` // a property of an input; the user may accept its change
}

// Made returns a table's creation time, in microseconds since 1970, as a fact. The fact has no value if created, or the
// time that the other attempt noted, is 0 (unknown).
func Made(created, other int64) Fact {
	f := Fact{Name: "the time at which the table was made"}
	if created != 0 && other != 0 {
		f.Value = time.UnixMicro(created).UTC().Format(time.RFC3339Nano)
	}
	return f
}

// Changes describes the differences between two lists of facts, and reports whether only facts about inputs differ.
func Changes(before, now []Fact) (changes []string, inputsOnly bool) {
	inputsOnly = true
	is := map[string]Fact{}
	for _, d := range now {
		is[d.Name] = d
	}
	note := func(d Fact, format string, a ...any) {
		inputsOnly = inputsOnly && d.Input
		changes = append(changes, fmt.Sprintf(format, a...))
	}
	was := map[string]bool{}
	for _, d := range before {
		was[d.Name] = true
		switch n, ok := is[d.Name]; {
		case !ok:
			note(d, "%s was %s and is missing now", d.Name, show(d.Value))
		case n.Value != d.Value:
			was, is := showBoth(d.Value, n.Value)
			note(d, "%s was %s and is %s now", d.Name, was, is)
		}
	}
	for _, d := range now {
		if !was[d.Name] {
			note(d, "%s was missing and is %s now", d.Name, show(d.Value))
		}
	}
	return changes, inputsOnly
}

// shown limits the length of a value in a message, in characters.
const shown = 60

func show(value string) string {
	switch value {
	case "", "[]", "map[]":
		return "not given"
	}
	if r := []rune(value); len(r) > shown {
		return string(r[:shown]) + "…"
	}
	return value
}

// sharedShown limits how much of the common beginning of two long values a message shows.
const sharedShown = 20

// showBoth shortens two different values so that the difference is visible.
func showBoth(a, b string) (string, string) {
	was, is := []rune(a), []rune(b)
	if max(len(was), len(is)) <= shown {
		return show(a), show(b)
	}
	same := 0
	for same < min(len(was), len(is)) && was[same] == is[same] {
		same++
	}
	if same <= sharedShown {
		return show(a), show(b)
	}
	from := same - sharedShown
	from += slices.Index(was[from:same], ' ') + 1 // begin with a whole word, if possible
	return "…" + show(string(was[from:])), "…" + show(string(is[from:]))
}
