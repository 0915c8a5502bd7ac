package commands

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"example.com/tsimport/cmd/tsimport/advise"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/words"
)

type advicePrinter struct {
	w      io.Writer
	out    bytes.Buffer
	width  int  // width of the terminal; 0 without one, so that nothing is cut or wrapped
	colour bool // unless disabled as in https://no-color.org
}

func newAdvicePrinter(w io.Writer) *advicePrinter {
	p := &advicePrinter{w: w}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.width = 80
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 20 {
			p.width = columns
		}
		p.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return p
}

func (p *advicePrinter) print(r *advise.Report) error {
	p.head(r)
	p.table(r)
	p.reasons(r)
	if r.Present != nil {
		p.present(r.Present, r.Rows)
	}
	p.design(r)
	_, err := p.w.Write(p.out.Bytes())
	return err
}

// line writes a line. On a terminal it is folded between words, and continuation lines are indented.
func (p *advicePrinter) line(indent int, format string, a ...any) {
	text := printable(fmt.Sprintf(format, a...))
	lead := indent
	for _, l := range fold(text, p.width-max(indent, 2)) {
		fmt.Fprintf(&p.out, "%*s%s\n", lead, "", l)
		lead = max(indent, 2)
	}
}

// fold breaks a text at spaces, unless the width is too small.
func fold(text string, width int) (lines []string) {
	if width < 20 {
		return []string{text}
	}
	for utf8.RuneCountInString(text) > width {
		runes := []rune(text)
		cut := strings.LastIndex(string(runes[:width+1]), " ")
		if cut <= 0 {
			cut = len(string(runes[:width]))
		}
		lines = append(lines, strings.TrimRight(text[:cut], " "))
		text = strings.TrimLeft(text[cut:], " ")
	}
	return append(lines, text)
}

func (p *advicePrinter) head(r *advise.Report) {
	what := fmt.Sprintf("%d files", len(r.Files))
	if len(r.Files) == 1 {
		what = r.Files[0]
	}
	p.line(0, "%s: %s rows of %.0f bytes; a table of %d partitions that take %s rows a second together", what,
		words.Grouped(r.Rows), r.RowBytes, r.Partitions, words.Grouped(int64(r.Rate)))
	arrival := "the input's own order"
	if r.Arrival.Column != "" {
		arrival = "by " + r.Arrival.Column
	}
	p.line(0, "arrival: %s (%s)", arrival, r.Arrival.How)
	if r.Rejected > 0 {
		p.line(0, "%s records would be rejected and are not counted; the first: %s", words.Grouped(r.Rejected), r.FirstReject)
	}
	for _, n := range r.Notes {
		p.line(0, "note: %s", n)
	}
	p.out.WriteByte('\n')
}

const (
	barWidth     = 12
	maxNameWidth = 32
)

func (p *advicePrinter) table(r *advise.Report) {
	name := len("column")
	for _, c := range r.Candidates {
		name = max(name, min(maxNameWidth, utf8.RuneCountInString(c.Column)))
	}
	fmt.Fprintf(&p.out, "%-*s  %-15s %-*s  %6s  %11s  %8s  %13s\n", name, "column", "verdict", barWidth+7, "live traffic",
		"load", "distinct", "hottest", "largest value")
	for _, c := range r.Candidates {
		if c.Distinct == 0 {
			fmt.Fprintf(&p.out, "%s %s%s\n", pad(cutOff(printable(c.Column), name), name), p.verdict(c.Verdict),
				"not a key: see below")
			continue
		}
		bar := strings.Repeat("█", int(math.Round(c.Share*barWidth)))
		bar += strings.Repeat("░", barWidth-utf8.RuneCountInString(bar))
		text := fmt.Sprintf("%s %s%s %5.1f%%  %5.1f%%  %11s  %7.2f%%  %13s", pad(cutOff(printable(c.Column), name), name),
			p.verdict(c.Verdict), bar, 100*c.Share, 100*c.Load,
			words.Grouped(c.Distinct), 100*c.Hottest, words.Bytes(c.GrownBytes))
		fmt.Fprintln(&p.out, text)
	}
	p.out.WriteByte('\n')
	p.line(0, "live traffic: share of the capacity used, rows in order of arrival; load: the same for a plain load in "+
		"file order, 32 workers of 200 rows; largest value: bytes of the hottest key value%s", grown(r.Growth))
	p.out.WriteByte('\n')
}

func grown(growth float64) string {
	if growth == 1 {
		return ""
	}
	return fmt.Sprintf(" at %s times the rows", strconv.FormatFloat(growth, 'f', -1, 64))
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

var verdictColours = map[advise.Verdict]string{advise.Recommended: "32", advise.Usable: "33",
	advise.NotRecommended: "31"}

func (p *advicePrinter) verdict(v advise.Verdict) string {
	text := fmt.Sprintf(" %-15s ", v)
	if p.colour {
		return "\x1b[" + verdictColours[v] + "m" + text + "\x1b[0m"
	}
	return text
}

func (p *advicePrinter) reasons(r *advise.Report) {
	for _, c := range r.Candidates {
		p.line(0, "%s: %s: %s", c.Column, c.Verdict, c.Reason)
		if f := c.Fix; f != nil {
			if f.Table != "" {
				p.line(2, "fix: %s: --table %s", f.Name, suggest.Arg(f.Table))
				p.line(2, "%s", f.Why)
			} else {
				p.line(2, "fix: %s: --pk %s", f.Name, suggest.Arg(f.Expression))
				p.line(2, "live %.1f%% → %.1f%%, load %.1f%% → %.1f%%: %s", 100*c.Share, 100*f.Share, 100*c.Load, 100*f.Load, f.Why)
			}
			p.command(&f.Key)
		}
		if c.Key != nil {
			p.line(2, "as a key: --pk %s", suggest.Arg(c.Key.Keys[0]))
			p.command(c.Key)
		}
		for _, n := range c.Notes {
			p.line(2, "%s", n)
		}
	}
	p.out.WriteByte('\n')
}

// shownRanges is the number of a table's ranges shown: those with the most recent rows. JSON has all of them.
const shownRanges = 5

func (p *advicePrinter) present(r *advise.Present, rows int64) {
	what := "ranges of about as many rows"
	if r.Partitions {
		what = "partitions"
	}
	p.line(0, "Now, by %s in %d %s:", r.PartitionKey, len(r.Ranges), what)
	if len(r.Uneven) == 0 {
		p.line(2, "even: no value or range is hot")
	}
	for _, u := range r.Uneven {
		p.line(2, "%s: %s", u.Kind, u.Why)
	}
	shown := slices.SortedStableFunc(slices.Values(r.Ranges),
		func(a, b advise.Range) int { return cmp.Compare(b.Recent, a.Recent) })
	for _, one := range shown[:min(len(shown), shownRanges)] {
		p.line(2, "from %s: %s rows (%.1f%%), %s; %.1f%% of the recent rows", one.From, words.Grouped(one.Rows),
			100*float64(one.Rows)/float64(rows), words.Bytes(one.Bytes), 100*one.Recent)
	}
	v := r.Largest[0]
	p.line(2, "largest value: %s, %s in %s", v.Value, words.Bytes(v.Bytes), counted(v.Rows, "row"))
	p.out.WriteByte('\n')
}

// command writes a command without folding it, so that it can be copied.
func (p *advicePrinter) command(k *advise.Key) {
	if k.CommandText != "" {
		fmt.Fprintf(&p.out, "  %s\n", printable(k.CommandText))
	}
}

func (p *advicePrinter) design(r *advise.Report) {
	d := r.Design
	if d == nil {
		p.line(0, "No key is recommended.")
		return
	}
	if r.Present != nil && slices.Equal(d.Keys, r.Present.Key) {
		p.line(0, "The table has the recommended primary key: %s.", strings.Join(d.Keys, ", "))
		return
	}
	p.line(0, "Recommended primary key: %s; %s.", strings.Join(d.Keys, ", "), d.Unique)
	if n := len(d.Keys); n > 1 {
		p.line(0, "To read one row, all %d columns must be known.", n)
	}
	fmt.Fprintln(&p.out, printable(d.CommandText)) // not folded, so that it can be copied
}
