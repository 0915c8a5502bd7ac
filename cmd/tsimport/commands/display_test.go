package commands

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
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

// Others may have put a link where an output is written before it gets its name.
func TestAnOutputIsNotWrittenThroughAPlantedLink(t *testing.T) {
	dir := t.TempDir()
	victim, out := filepath.Join(dir, "victim"), filepath.Join(dir, "out.csv")
	put(t, victim, "precious")
	if err := os.Symlink(victim, out+".part"); err != nil {
		t.Skip(err)
	}
	err := writeOutput(t.Context(), out, io.Discard, func(w io.Writer) error {
		_, err := io.WriteString(w, "rows")
		return err
	})
	must(t, err)
	for name, want := range map[string]string{victim: "precious", out: "rows"} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s holds %q, %v", name, text, err)
		}
	}
	if info, err := os.Lstat(out); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the output is %v, %v", info.Mode(), err)
	}
}

// hostile is what a name or a value must not do to a terminal: clear it, set its title, go back in the line, turn the
// direction of writing, or begin a line of its own.
const hostile = "a\x1b[2J\x1b]0;title\x07\r\u009b31m\u202eb"

func TestControlCharactersAreNotPrinted(t *testing.T) {
	t.Chdir(t.TempDir())
	file := hostile + ".csv"
	text := "id,\"" + hostile + "\ntsimport: finished\",n\n1,\"" + hostile + "\",1\n\"" + hostile + "\",x,2\nk,y,3\nk,z,\"" + hostile + "\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Skipf("the file system takes no such name: %v", err)
	}
	ran := 0
	for _, args := range [][]string{
		{"inspect", file},
		{"inspect", "--count", file},
		{"check", file, "--pk", "id", "--unique", "--type", "n=integer"},
		{"advise", file},
		{"explain", file, "--pk", "id"},
		{"explain", file, "--pk", "id", "--pk", "n:string"},
		{"load", file, "--table", "t", "--pk", "id:string"},
		{"load", file, "--table", "u", "--pk", "id", "--type", "n=integer"},
		{"load", file, "--table", "t", "--dry-run"},
		{"load", file, "--table", hostile},
		{"load", hostile, "--table", "t", "--pk", "id"},
		{"load", file, "--table", "t", "--pk", hostile},
		{"load", file, "--table", "t", "--type", hostile + "=integer"},
		{"load", file, "--table", "t", "--no-such-flag-" + hostile},
		{"verify", file, "--table", "t"},
		{"verify", file, "--table", "t", "--type", "n=string", "--exclude", "n"},
		{"runs"},
		{"runs", hostile},
		{"table", "list"},
		{"table", "describe", "t"},
		{"table", "describe", hostile},
		{"export", "--table", hostile},
		{"age", "--table", hostile, "--policy", hostile},
		{hostile},
	} {
		var stdout, stderr bytes.Buffer
		code := Run(append([]string{"tsimport"}, args...), &stdout, &stderr)
		for name, out := range map[string]string{"stdout": stdout.String(), "stderr": stderr.String()} {
			if i := strings.IndexFunc(out, acts); i >= 0 {
				t.Errorf("%q: %s has %q", args, name, out[max(0, i-60):min(len(out), i+20)])
			}
			for line := range strings.Lines(out) {
				if strings.TrimSpace(line) == "tsimport: finished" {
					t.Errorf("%q: %s has a line that a name has made: %q", args, name, line)
				}
			}
		}
		if code == 0 || code == 3 {
			ran++
		}
	}
	if ran < 10 {
		t.Errorf("only %d commands ran to their end", ran)
	}
}
