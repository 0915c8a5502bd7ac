package commands

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

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
