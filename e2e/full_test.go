//go:build e2e && !windows

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnExportWithoutRoomLeavesNothingThatLooksWhole gives exports less room than they need, as a limit of files' sizes, and then enough.
func TestAnExportWithoutRoomLeavesNothingThatLooksWhole(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 300)
	p.fillLarge("t", 300, 2)
	for _, c := range []struct{ format, output string }{{"archive", "kept"}, {"csv", "t.csv"}, {"jsonl", "t.jsonl"}} {
		args := []string{"export", "--table", "t", "--format", c.format, "-o", c.output}
		cmd := p.command(args...)
		limited := exec.Command("sh", append([]string{"-c", `ulimit -f 1000 && exec "$0" "$@"`, cmd.Path}, args...)...)
		limited.Dir, limited.Env = cmd.Dir, cmd.Env
		out, _ := limited.CombinedOutput() // its error is the exit code
		if limited.ProcessState.ExitCode() != 1 || strings.Count(string(out), "does not fit on its disk") != 1 || strings.Count(string(out), "file too large") != 1 {
			t.Errorf("%s: exit code %d: %s", c.format, limited.ProcessState.ExitCode(), out)
		}
		whole := filepath.Join(p.dir, c.output)
		if c.format == "archive" {
			whole = filepath.Join(whole, "manifest.json")
		}
		if _, err := os.Stat(whole); err == nil {
			t.Errorf("%s: there is %s", c.format, whole)
		}
		if c.format == "archive" {
			p.run(2, "load", c.output, "--table", "t")
		}
		p.run(0, args...)
		if c.format == "archive" {
			p.run(0, "verify", c.output, "--table", "t", "--extra", "fail")
		}
	}
}
