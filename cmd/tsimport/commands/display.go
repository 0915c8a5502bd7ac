package commands

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"

	"example.com/tsimport/internal/words"
	"example.com/tsimport/reader/input"
)

// display is stderr: permanent text and, on a terminal, repainted lines below it. It is safe for concurrent use.
type display struct {
	terminal bool
	columns  func() int   // width of the terminal
	log      *slog.Logger // receives all messages if the format is JSON
	say      words.Say    // shows a line
	load     string       // load of a job to which this display belongs
	board    *board       // shows the progress; may be nil

	used atomic.Bool // whether permanent text was written

	mu      sync.Mutex
	w       io.Writer
	painted int // number of painted lines; the cursor is on the first
}

func newDisplay(w io.Writer) *display {
	d := &display{w: w}
	d.say = d.tell
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		d.terminal = true
		d.columns = func() int {
			columns, _, err := term.GetSize(int(f.Fd()))
			if err != nil || columns <= 0 {
				return 80
			}
			return columns
		}
	}
	return d
}

func (d *display) tell(kind words.Kind, line string) {
	text := printable(line)
	switch {
	case d.log != nil && kind == words.Warning:
		d.event(slog.LevelWarn, eventWarning, text)
	case d.log != nil:
		d.event(slog.LevelInfo, eventMessage, strings.TrimSpace(string(kind)+text))
	default:
		_ = d.write(fmt.Sprintf("tsimport: %s%s\n", kind, text)) // an invisible display does not stop a load
	}
}

// Write shows several lines, such as a state: one by one in a log or among several loads, otherwise at once.
func (d *display) Write(b []byte) (int, error) {
	text := strings.TrimSuffix(string(b), "\n")
	if d.log == nil && d.load == "" {
		return len(b), d.write("tsimport: " + text + "\n")
	}
	for line := range strings.SplitSeq(text, "\n") {
		d.say.Line("%s", line)
	}
	return len(b), nil
}

// write writes permanent text. Secrets in addresses are removed, and terminal control characters are replaced.
func (d *display) write(text string) error {
	return d.put([]byte(printableText(input.RedactText(text))))
}

func (d *display) put(b []byte) error {
	d.used.Store(true)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.painted > 0 {
		d.painted = 0
		if _, err := io.WriteString(d.w, eraseBelow); err != nil {
			return err
		}
	}
	_, err := d.w.Write(b)
	return err
}

const (
	eraseBelow = "\r\x1b[J" // from the start of the line to the end of the screen
	eraseRest  = "\x1b[K"   // to the end of the line
	upOneLine  = "\x1b[A\r" // to the start of the line above
)

// paint replaces the painted lines, or erases them if there are none. Lines are cut, because a wrapped one takes two.
func (d *display) paint(lines ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.terminal || len(lines) == 0 && d.painted == 0 {
		return
	}
	if len(lines) == 0 {
		_, _ = io.WriteString(d.w, eraseBelow)
		d.painted = 0
		return
	}
	var out bytes.Buffer
	out.WriteByte('\r')
	columns := d.columns() - 1
	for i, l := range lines {
		if i > 0 {
			out.WriteString("\r\n")
		}
		out.WriteString(cutOff(printable(input.RedactText(l)), columns))
		out.WriteString(eraseRest)
	}
	if len(lines) < d.painted {
		out.WriteString("\x1b[J")
	}
	out.WriteString(strings.Repeat(upOneLine, len(lines)-1))
	d.painted = len(lines)
	_, _ = d.w.Write(out.Bytes()) // an invisible display does not stop a load
}

// printable replaces characters that a terminal acts on or that could disguise a text, including line ends.
func printable(line string) string { return withoutBreaks.Replace(printableText(line)) }

var withoutBreaks = strings.NewReplacer("\n", "�", "\t", "�")

// printableText is like printable, but keeps line ends and tabs.
func printableText(text string) string {
	return strings.Map(func(r rune) rune {
		if acts(r) {
			return '�'
		}
		return r
	}, text)
}

// acts reports whether a terminal interprets the character: a control, a change of direction or a line separator.
func acts(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029':
		return true
	}
	return unicode.Is(unicode.Bidi_Control, r)
}

// results returns the writer of text results. Machine-readable output (JSON, exported rows) goes to stdout unchanged.
func results(c *call) io.Writer { return printableWriter{c.App.Writer} }

type printableWriter struct{ w io.Writer }

func (p printableWriter) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, printableText(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// cutOff shortens a line to a number of terminal columns.
func cutOff(line string, columns int) string {
	used, fits := 0, 0 // fits is the length that leaves space for the ellipsis
	for i, r := range line {
		if used < columns {
			fits = i
		}
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			used += 2
		default:
			used++
		}
		if used > columns {
			return line[:fits] + "…"
		}
	}
	return line
}
