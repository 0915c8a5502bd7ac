package commands

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/lanes"
)

// lanesAsked limits the lanes shown in a requested state.
const lanesAsked = 40

// writeState writes a load's state: a header line, then a line per lane that has rows or requests.
func writeState(w io.Writer, s *pipeline.State) error {
	var text strings.Builder
	fmt.Fprintf(&text, "table %s after %v: %s\n", s.Table, round(time.Duration(s.Seconds*float64(time.Second))),
		stateText(s))
	lanes := busiest(s)
	for i := range lanes[:min(len(lanes), lanesAsked)] {
		l := &lanes[i]
		fmt.Fprintf(&text, "  partition %d from %s: %s, %s queued%s, %d %s in flight%s\n",
			l.Partition, printable(cmp.Or(l.From, "the first key")), paceText(l), words.Grouped(int64(l.Queued)), diskText(l),
			l.InFlight, plural(l.InFlight, "request"), laneTrouble(l))
	}
	if more := len(lanes) - lanesAsked; more > 0 {
		fmt.Fprintf(&text, "  … and %d more\n", more)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// stateText formats a state without its lanes.
func stateText(s *pipeline.State) string {
	parts := []string{fmt.Sprintf("%s rows read, %s written, %s queued, %s in flight",
		words.Grouped(s.Read), words.Grouped(s.Written), words.Grouped(s.Queued), words.Grouped(int64(s.RowsOut)))}
	add := func(when bool, format string, a ...any) {
		if when {
			parts = append(parts, fmt.Sprintf(format, a...))
		}
	}
	add(s.LimitedBy != "", "limited by %s", s.LimitedBy)
	if s.Waiting != nil {
		add(true, "%s", waitText(s.Waiting))
	}
	add(s.Rejected > 0, "%s rejected", words.Grouped(s.Rejected))
	add(s.Archived > 0, "%s archived", words.Grouped(s.Archived))
	add(s.Superseded > 0, "%s superseded", words.Grouped(s.Superseded))
	add(s.ConditionFailed > 0, "%s left by --when", words.Grouped(s.ConditionFailed))
	add(s.Retrying > 0, "%s to be sent again", words.Grouped(int64(s.Retrying)))
	add(s.Throttled > 0, "%s throttled", words.Grouped(s.Throttled))
	add(true, "%d of %d requests in flight, %s answered", s.InFlight, s.Workers, words.Grouped(s.Requests))
	full := ""
	if s.Memory.Full {
		full = " (full, reading waits)"
	}
	add(true, "memory of rows %s of %s%s", words.Bytes(s.Memory.Lanes), words.Bytes(s.Memory.Budget), full)
	add(s.Spill.Rows > 0, "on disk %s, %s rows spilled so far", words.Bytes(s.Spill.DiskBytes),
		words.Grouped(s.Spill.Rows))
	guessed := ""
	if !s.Map.Exact && s.Map.Partitions > 1 {
		guessed = " (guessed)"
	}
	add(true, "%d %s%s", s.Map.Partitions, plural(s.Map.Partitions, "partition"), guessed)
	add(s.Map.Error != "", "partition map not readable: %s", s.Map.Error)
	add(!s.Reading, "input read to its end")
	return printable(strings.Join(parts, "; "))
}

// busiest returns the active lanes: first lanes with rows on disk, and then lanes with more rows before others.
func busiest(s *pipeline.State) (busy []lanes.State) {
	for _, l := range s.Lanes {
		if l.Queued+l.Retrying+l.InFlight > 0 || l.Spilled || l.Down || l.Trouble != "" {
			busy = append(busy, l)
		}
	}
	slices.SortFunc(busy, func(a, b lanes.State) int {
		if a.Spilled != b.Spilled {
			if a.Spilled {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Queued+b.Retrying, a.Queued+a.Retrying), cmp.Compare(b.InFlight, a.InFlight),
			cmp.Compare(a.Partition, b.Partition))
	})
	return busy
}

func paceText(l *lanes.State) string {
	if l.Rate == 0 {
		return l.Pace
	}
	return fmt.Sprintf("%s at %s units/s", l.Pace, words.Grouped(int64(l.Rate)))
}

func diskText(l *lanes.State) string {
	if l.Spilled {
		return " + disk"
	}
	return ""
}

func laneTrouble(l *lanes.State) string {
	text := plus(plus("", int64(l.Retrying), "to be sent again"), l.Throttled, "throttled")
	if l.Down {
		text += ", not served"
	}
	if l.Trouble != "" {
		text += ": " + printable(l.Trouble)
	}
	return text
}

// plus appends a count that is not 0 to a text.
func plus(text string, n int64, what string) string {
	if n > 0 {
		text += ", " + words.Grouped(n) + " " + what
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func counted(n int64, noun string) string { return words.Grouped(n) + " " + plural(int(n), noun) }

// are formats a count and a noun, followed by is or are.
func are(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return words.Grouped(n) + " " + noun + "s are"
}
