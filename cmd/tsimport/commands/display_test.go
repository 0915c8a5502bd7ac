package commands

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
)

// screenOf is what a terminal of so many columns shows after it was sent a text: a small one that knows only what display
// sends.
func screenOf(t *testing.T, text string, columns int) []string {
	t.Helper()
	lines := [][]rune{nil}
	row, column := 0, 0
	for len(text) > 0 {
		switch {
		case strings.HasPrefix(text, "\x1b[J"):
			lines = lines[:row+1]
			lines[row] = lines[row][:min(column, len(lines[row]))]
			text = text[3:]
			continue
		case strings.HasPrefix(text, "\x1b[K"):
			lines[row] = lines[row][:min(column, len(lines[row]))]
			text = text[3:]
			continue
		case strings.HasPrefix(text, "\x1b[A"):
			row--
			text = text[3:]
			continue
		case text[0] == '\x1b':
			t.Fatalf("the terminal does not know %.10q", text)
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			column = 0
		case '\n':
			column = 0
			if row++; row == len(lines) {
				lines = append(lines, nil)
			}
		default:
			if column == columns {
				t.Errorf("line %d is wider than the terminal", row)
			}
			for len(lines[row]) <= column {
				lines[row] = append(lines[row], ' ')
			}
			lines[row][column] = r
			column++
		}
	}
	var shown []string
	for _, l := range lines {
		shown = append(shown, string(l))
	}
	return shown
}

func terminal(columns int) (*display, *bytes.Buffer) {
	var out bytes.Buffer
	return &display{w: &out, terminal: true, columns: func() int { return columns }}, &out
}

func TestPaintedLinesAreReplacedAndStayBelowWhatIsWritten(t *testing.T) {
	d, out := terminal(20)
	d.Write([]byte("first\n"))
	d.paint("bar 1", "lane a", "lane b")
	d.paint("bar 22", "lane c", "lane dd")
	check := func(want ...string) {
		t.Helper()
		conformance.Equal(t, cmp.Diff(want, screenOf(t, out.String(), 20)), "", "(-want +got)")
	}
	check("tsimport: first", "bar 22", "lane c", "lane dd")
	d.Write([]byte("second\n"))
	check("tsimport: first", "tsimport: second", "")
	d.paint("bar 3", "lane e", "lane f")
	d.paint("bar", "lane")
	check("tsimport: first", "tsimport: second", "bar", "lane")
	d.paint("bar")
	check("tsimport: first", "tsimport: second", "bar")
	d.paint()
	d.paint()
	check("tsimport: first", "tsimport: second", "")
	d.Write([]byte("end\n"))
	check("tsimport: first", "tsimport: second", "tsimport: end", "")
}

func TestALineWiderThanTheTerminalIsTruncated(t *testing.T) {
	d, out := terminal(10)
	d.paint("123456789", "1234567890", "日本語日本語", "a\x1b[2Jb")
	want := []string{"123456789", "12345678…", "日本語日…", "a�[2Jb"}
	conformance.Equal(t, cmp.Diff(want, screenOf(t, out.String(), 10)), "", "(-want +got)")
}

func TestNothingIsPaintedWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	d := newDisplay(&out)
	d.paint("bar", "lane")
	d.Write([]byte("text\n"))
	d.paint()
	conformance.Equal(t, out.String(), "tsimport: text\n", "string")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

func TestAClosedPipeIsReportedToItsWriter(t *testing.T) {
	d := &display{w: broken{}, terminal: true, columns: func() int { return 80 }}
	d.paint("bar")
	if _, err := d.Write([]byte("text\n")); err == nil {
		t.Error("no error after painted lines")
	}
	if _, err := d.Write([]byte("text\n")); err == nil {
		t.Error("no error")
	}
}

func TestADifferenceOfVersionsSaysWhatOneSideLacks(t *testing.T) {
	for _, c := range []struct {
		input, table []string
		want         string
	}{
		{[]string{"1"}, []string{"2"}, "1, in the table 2"},
		{[]string{"1"}, nil, "1, in the table none"},
		{nil, []string{"1"}, "none, in the table 1"},
		{[]string{"1 at 5", "0 at 3"}, []string{"1 at 5"}, "the table lacks 0 at 3"},
		{[]string{"1 at 5"}, []string{"1 at 5", "0 at 3"}, "only the table has 0 at 3"},
		{[]string{"1 at 5", "0 at 3"}, []string{"1 at 5", "0 at 4"}, "0 at 3, in the table 0 at 4"},
		{[]string{`"x"… (900 bytes)`}, []string{`"x"… (900 bytes)`}, `"x"… (900 bytes), in the table equal as far as it is shown`},
	} {
		conformance.Equal(t, differenceText(c.input, c.table), c.want, "%q and %q", c.input, c.table)
	}
}
