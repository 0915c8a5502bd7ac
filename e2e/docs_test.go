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

// notRun are commands of the pages that the test leaves out, each with the reason. A block with one of them loses the line;
// a block of another kind is run whole.
var notRun = map[string]string{
	"make build &&":             "the test has a binary",
	"go build -o /tmp/tsimport": "a measurement",
	"/tmp/tsimport ":            "a measurement",
	"go test ":                  "tests and measurements",
	"make controllers":          "a measurement",
	"make laws":                 "a measurement",
	"make wire":                 "a measurement",
	"make links":                "a measurement",
	"make outages":              "a measurement",
	"make nights":               "a long sweep",
	"make scaleout":             "a long sweep",
	"make typos":                "a long sweep",
	"make real":                 "a service",
	"make site":                 "needs PyPI",
	"make big":                  "a measurement",
	"make peers":                "a measurement",
	"kubectl ":                  "a cluster",
	"run orders.yaml":           "a service",
	"make dist":                 "builds for minutes, with tools from the network",
	"docker ":                   "needs a daemon",
	"tsimport bench ":           "measurements",
	"--rows 1000000":            "a measurement",
	"--table cards --pk":        "a measurement",
	"tsimport serve":            "it does not end by itself, and its port may be taken",
	"/usr/bin/time":             "a measurement",
	"…":                         "stands for what only the reader knows",
	"export TABLESTORE_":        "a service",
	"ots://":                    "a service",
	"postgres://":               "a server",
	"https://":                  "a service",
	"http://":                   "a server at a fixed port",
	"curl ":                     "a server at a fixed port",
	"--settle 2s":               "a server at a fixed port",
	"--endpoint":                "a service",
	"20260102T030405.000Z":      "the name of a run is its time",
	"oss://":                    "a service",
	"shop.yaml":                 "a server",
	"sleep 600":                 "a measurement",
	"make values":               "other programs",
	"--raise-write":             "two minutes, until the service takes another change",
	"head -1 keep":              "a measurement",
	"perl -e":                   "a measurement",
	"before.txt":                "results of measurements",
	"a.json":                    "results of measurements",
	"mysql ":                    "a database",
	"mysql://":                  "a server",
	"mysqldump ":                "a database",
	"pg_dump ":                  "a database",
	"--source-table":            "what a database has written",
	"mongoexport ":              "a database",
	"aws dynamodb":              "a service",
	"s3://":                     "a service",
	"psql ":                     "a database",
	"sqlite3 ":                  "a database",
	"sqlite:":                   "a database",
	"python3 -c":                "libraries for Python",
	"a1.json":                   "results of measurements",
}

var (
	shellBlock   = regexp.MustCompile("(?sm)^```sh\n(.*?)^```")
	continuation = regexp.MustCompile(`(\\|\|)\n +`)
)

// commandsOf returns the commands of a page's shell blocks that can be run anywhere.
func commandsOf(t *testing.T, page string) (run []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", page))
	must(t, err)
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(continuation.ReplaceAllString(block[1], " ")) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && !leftOut(line) {
				run = append(run, strings.ReplaceAll(line, "go run ./cmd/tsimport ", "tsimport "))
			}
		}
	}
	return run
}

func leftOut(line string) bool {
	for part := range notRun {
		if strings.Contains(line, part) {
			return true
		}
	}
	return false
}

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
	for _, tool := range []string{"git", "bash", "cp"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is needed: %v", tool, err)
		}
	}
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
		cmd := exec.Command("bash", "-c", "set -eo pipefail; "+fewerRows.ReplaceAllString(command, "--rows ${1}"))
		cmd.Dir = dir
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TABLESTORE_") }),
			"PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %s: %v\n%s", page, command, err, out)
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

// TestPagesSayWhereTheirFileIsFrom looks at pages whose commands read orders.csv, or the table that it was loaded into: they make it, or link to the
// README's tour, which does.
func TestPagesSayWhereTheirFileIsFrom(t *testing.T) {
	t.Parallel()
	linked := 0
	for _, page := range docPages(t) {
		commands := strings.Join(commandsOf(t, strings.TrimPrefix(page, "../")), "\n")
		if !readsOrders.MatchString(commands) || strings.Contains(commands, "-o orders.csv") || strings.HasPrefix(page, "../docs/coming-from/") { // files of that program
			continue
		}
		text, err := os.ReadFile(page)
		must(t, err)
		if linked++; !strings.Contains(string(text), "README.md#tour)") {
			t.Errorf("%s does not say where its orders are from", page)
		}
	}
	if linked < 10 {
		t.Errorf("only %d pages were looked at", linked)
	}
}

// readmeWords bounds the README, counted as wc -w does.
const readmeWords = 700

func TestTheReadmeIsShort(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	must(t, err)
	if n := len(strings.Fields(string(text))); n > readmeWords {
		t.Errorf("README.md has %d words, %d are allowed: move what is not for every reader to a page of docs/", n, readmeWords)
	}
}

var readsOrders = regexp.MustCompile(`orders\.csv|(copy|sync|--table) orders\b`)

var figure = regexp.MustCompile(`[0-9][0-9,.]*[0-9]`)

// TestTheReadmesFiguresAreThoseOfThePerformancePage looks for each figure of the README's first bullets, and of its section on
// performance, in docs/performance.md, which says how it was measured.
func TestTheReadmesFiguresAreThoseOfThePerformancePage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	must(t, err)
	page, err := os.ReadFile("../docs/performance.md")
	must(t, err)
	intro, _, _ := strings.Cut(string(text), "\n## ")
	_, performance, found := strings.Cut(string(text), "\n## Performance\n")
	if !found {
		t.Fatal("README.md has no section Performance")
	}
	performance, _, _ = strings.Cut(performance, "\n## ")
	figures := figure.FindAllString(intro+performance, -1)
	if len(figures) < 8 {
		t.Errorf("README.md gives only the figures %q", figures)
	}
	for _, f := range figures {
		if !strings.Contains(string(page), f) {
			t.Errorf("README.md says %s, which docs/performance.md does not", f)
		}
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
	cmd := exec.Command("bash", "-c", strings.ReplaceAll(command, "go run ./cmd/tsimport ", "tsimport "))
	cmd.Dir = clone(t)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TABLESTORE_") }),
		"PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	lines := 0
	for line := range strings.Lines(shown) {
		lines++
		if line = varies.ReplaceAllString(strings.TrimSpace(line), ""); !strings.Contains(string(out), line) {
			t.Errorf("README.md shows a line that is not printed: %s\nprinted:\n%s", line, out)
		}
	}
	if lines < 3 {
		t.Errorf("README.md shows %d lines of output", lines)
	}
}

var link = regexp.MustCompile(`\]\(([^)#: ]+)(?:#([^)]*))?\)`)

func TestThePagesLinksLeadToFiles(t *testing.T) {
	t.Parallel()
	pages := docPages(t)
	links := 0
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md") {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}
