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
)

// notRun are commands of the pages that the test leaves out, each with the reason. A block with one of them loses the line;
// a block of another kind is run whole.
var notRun = map[string]string{
	"make build &&":             "the test has a binary",
	"go build -o /tmp/tsimport": "a measurement",
	"/tmp/tsimport ":            "a measurement",
	"go test ":                  "tests and measurements",
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
	"./cmd/tsbench ":            "measurements",
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
	"--reserved-write 100'":     "a table of a service",
	"load big.csv":              "a file of the reader's",
	"make values":               "other programs",
	"--reserved-write 5000":     "two minutes, until the service takes another change",
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

var readsOrders = regexp.MustCompile(`orders\.csv|(copy|sync|--table) orders\b`)

// docPages returns the pages of docs/ and of its folders in English, as paths from this folder.
func docPages(t *testing.T) (pages []string) {
	t.Helper()
	for _, pattern := range []string{"../docs/*.md", "../docs/how-to/*.md", "../docs/coming-from/*.md"} {
		found, err := filepath.Glob(pattern)
		must(t, err)
		if len(found) == 0 {
			t.Fatalf("no page is %s", pattern)
		}
		pages = append(pages, found...)
	}
	return pages
}

// bash runs commands of a page, which find tsimport on their path and no service but that of the place.
func (p *place) bash(script string) *process {
	p.t.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = p.dir
	cmd.Env = slices.Concat(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TABLESTORE_") }), []string{"PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH")}, p.env)
	return begin(p.t, cmd)
}

// needs skips a test on a machine that lacks a tool.
func needs(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is needed: %v", tool, err)
		}
	}
}
