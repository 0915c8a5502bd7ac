//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// clone makes a clone with what the pages' commands need, and returns its folder.
func clone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{".gitignore", "README.md", "docs", "examples"} {
		if out, err := exec.Command("cp", "-r", filepath.Join("..", name), dir).CombinedOutput(); err != nil {
			t.Fatalf("copy %s: %v\n%s", name, err, out)
		}
	}
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A")
	git(t, dir, "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "clone")
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// fewerRows takes a tenth of the rows of a file that is made: commands show that they run, not how fast.
var fewerRows = regexp.MustCompile(`--rows (\d{4,})0\b`)

// TestThePagesCommandsRunAndLeaveTheCloneClean runs the README's commands in a clone and those of each page after them, in
// the folder that the README has made, as far as they need no service and no minutes.
func TestThePagesCommandsRunAndLeaveTheCloneClean(t *testing.T) {
	t.Parallel()
	needs(t, "git", "bash", "cp")
	pages := docPages(t)
	ran := 0
	root := clone(t)
	dir := root
	run := func(page, command string) {
		t.Helper()
		if rest, ok := strings.CutPrefix(command, "mkdir -p try && cd try"); ok {
			dir = filepath.Join(root, "try")
			must(t, os.MkdirAll(dir, 0o755))
			command = "true" + rest
		}
		began := time.Now()
		r := (&place{t: t, dir: dir}).bash("set -eo pipefail; " + fewerRows.ReplaceAllString(command, "--rows ${1}"))
		if r.wait() != 0 {
			t.Errorf("%s: %s: %v\n%s", page, command, r.ProcessState, &r.said)
		}
		ran++
		t.Logf("%v %s: %s", time.Since(began).Round(time.Millisecond), page, command)
	}
	clean := func(page string) {
		t.Helper()
		if left := git(t, root, "status", "--porcelain"); left != "" {
			t.Errorf("the commands of %s leave in the clone:\n%s", page, left)
		}
	}
	for _, command := range commandsOf(t, "README.md") {
		run("README.md", command)
	}
	if dir == root {
		t.Fatal("the README's commands do not go to a folder of their own")
	}
	// Straight from the examples too: the policy's archive is a folder beside it.
	dir = root
	run("examples", "tsimport gen student-cards --rows 2000 --days 800 --until now -o try/aged.csv")
	run("examples", "tsimport load try/aged.csv --table 'aged_{month(OrderTime)}' --pk CardID --pk DeviceID --pk OrderNumber --age-policy examples/age-policy.yaml")
	clean("README.md")
	readme := root
	for _, page := range pages {
		commands := slices.Concat(before[strings.TrimPrefix(page, "../docs/")], commandsOf(t, strings.TrimPrefix(page, "../")))
		if len(commands) == 0 {
			continue
		}
		root = filepath.Join(t.TempDir(), "clone")
		if out, err := exec.Command("cp", "-r", readme, root).CombinedOutput(); err != nil {
			t.Fatalf("copy clone: %v\n%s", err, out)
		}
		dir = filepath.Join(root, "try")
		for _, command := range commands {
			run(page, command)
		}
		clean(page)
	}
	if ran < 20 {
		t.Errorf("only %d commands were run", ran)
	}
}

// varies is what differs from run to run in the output of a load.
var varies = regexp.MustCompile(` in [0-9].*`)

func TestTheReadmesQuickStartShowsTheRealOutput(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	must(t, err)
	_, rest, found := strings.Cut(string(text), "```sh\n")
	command, rest, more := strings.Cut(rest, "\n```\n\n```\n")
	shown, _, end := strings.Cut(rest, "```\n")
	if !found || !more || !end {
		t.Fatal("README.md has no command with its output")
	}
	r := (&place{t: t, dir: clone(t)}).bash(strings.ReplaceAll(command, "go run ./cmd/tsimport ", "tsimport "))
	if r.wait() != 0 {
		t.Fatalf("%s: %v\n%s", command, r.ProcessState, &r.said)
	}
	out := r.said.String()
	lines := 0
	for line := range strings.Lines(shown) {
		lines++
		if line = varies.ReplaceAllString(strings.TrimSpace(line), ""); !strings.Contains(out, line) {
			t.Errorf("README.md shows a line that is not printed: %s\nprinted:\n%s", line, out)
		}
	}
	if lines < 3 {
		t.Errorf("README.md shows %d lines of output", lines)
	}
}
