package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
	"golang.org/x/text/width"

	"tsimport/reader/input"
)

// display is stderr: text that stays and, on a terminal, lines below it that are painted over and over. Whoever writes,
// at any time, writes above those lines. It is safe for concurrent use.
type display struct {
	terminal bool
	columns  func() int // of the terminal

	mu      sync.Mutex
	w       io.Writer
	painted int // lines; the cursor is on the first
}

func newDisplay(w io.Writer) *display {
	d := &display{w: w}
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

// Write writes text that stays. Addresses in it lose their secrets, in whatever message they got there.
func (d *display) Write(b []byte) (int, error) {
	if shown := input.RedactText(string(b)); shown != string(b) {
		if err := d.write([]byte(shown)); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	return len(b), d.write(b)
}

func (d *display) write(b []byte) error {
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

// What a terminal understands.
const (
	eraseBelow = "\r\x1b[J" // from the start of the line to the end of the screen
	eraseRest  = "\x1b[K"   // of the line
	upOneLine  = "\x1b[A\r" // and to its start
)

// paint puts lines in the place of those painted last; none erases them. A line that would not fit is cut off: one that
// the terminal wraps would be two.
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
	_, _ = d.w.Write(out.Bytes()) // a display that nobody sees is no reason to stop
}

// printable replaces what would move the cursor: a key may hold anything.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '�'
		}
		return r
	}, line)
}

// cutOff shortens a line to so many columns of a terminal.
func cutOff(line string, columns int) string {
	used, fits := 0, 0 // fits is how much of the line leaves room for the mark
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
