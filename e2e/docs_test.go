//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/postgres/pgtest"
)

// notRun maps reasons to commands that are not run. Code blocks with such commands are run line by line, others as a
// whole.
var notRun = map[string][]string{
	"the test has a binary": {"make build &&"},
	"a measurement": {
		"go build -o /tmp/tsimport", "/tmp/tsimport ", "make laws", "make wire", "make links",
		"make outages", "make big", "make small", "make peers", "--rows 1000000", "--table cards --pk", "/usr/bin/time",
		"sleep 600", "head -1 keep", "perl -e",
	},
	"tests and measurements": {"go test "},
	"a long sweep":           {"make nights", "make scaleout", "make typos"},
	"a service": {
		"make real", "run orders.yaml", "export TABLESTORE_", "ots://", "https://", "--endpoint",
		"oss://", "aws dynamodb", "s3://",
	},
	"needs PyPI":  {"make site"},
	"needs Maven": {"mvn "},
	"a cluster":   {"kubectl ", "flink "},
	"builds for minutes, with tools from the network": {"make dist"},
	"needs a daemon":                        {"docker "},
	"needs a registry":                      {"skopeo "},
	"measurements":                          {"tsimport bench ", "./cmd/tsbench "},
	"it does not end by itself":             {"tsimport serve", "tail -c +1 -f"},
	"stands for what only the reader knows": {"…"},
	"a server":                              {"postgres://", "shop.yaml", "mysql://"},
	"a server at a fixed port":              {"http://", "curl ", "--settle 2s"},
	"the name of a run is its time":         {"20260102T030405.000Z"},
	"a table of a service":                  {"--reserved-write 100'"},
	"other programs":                        {"make values"},
	"two minutes, until the service takes another change": {"--reserved-write 5000"},
	"results of measurements":                             {"before.txt", "a.json", "a1.json"},
	"a database": {"mysql ", "mysqldump ", "pg_dump ", "mongoexport ", "psql ",
		"sqlite3 ", "sqlite:"},
	"what a database has written": {"--source-table"},
	"libraries for Python":        {"python3 -c"},
}

var (
	shellBlock   = regexp.MustCompile("(?sm)^```sh\n(.*?)^```")
	continuation = regexp.MustCompile(`(\\|\|)\n +`)
)

func linesOf(t *testing.T, page string) (lines []string) {
	t.Helper()
	text := conformance.Try(os.ReadFile(filepath.Join("..", page))).Must(t)
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(continuation.ReplaceAllString(block[1], " ")) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// commandsOf returns the commands on a page that can be run anywhere.
func commandsOf(t *testing.T, page string) (run []string) {
	t.Helper()
	for _, line := range linesOf(t, page) {
		if !leftOut(line) {
			run = append(run, strings.ReplaceAll(line, "go run ./cmd/tsimport ", "tsimport "))
		}
	}
	return run
}

func leftOut(line string) bool {
	for _, parts := range notRun {
		if slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(line, part) }) {
			return true
		}
	}
	return false
}

// TestPagesNameSourceOfTheirFile checks that a page that reads orders.csv or its table creates it or links to the tour.
func TestPagesNameSourceOfTheirFile(t *testing.T) {
	t.Parallel()
	linked := 0
	for _, page := range docPages(t) {
		commands := strings.Join(commandsOf(t, strings.TrimPrefix(page, "../")), "\n")
		if !readsOrders.MatchString(commands) || strings.Contains(commands, "-o orders.csv") ||
			strings.HasPrefix(page, "../docs/coming-from/") {
			// files of another program
			continue
		}
		text := conformance.Try(os.ReadFile(page)).Must(t)
		if linked++; !strings.Contains(string(text), "README.md#tour)") {
			t.Errorf("%s does not say where its orders are from", page)
		}
	}
	conformance.True(t, linked >= 10, "only %d pages were looked at", linked)
}

var readsOrders = regexp.MustCompile(`orders\.csv|(copy|sync|--table) orders\b`)

// docPages returns the English pages in docs/ and its folders, as paths from this folder.
func docPages(t *testing.T) (pages []string) {
	t.Helper()
	for _, pattern := range []string{"../docs/*.md", "../docs/internals/*.md", "../docs/how-to/*.md",
		"../docs/coming-from/*.md"} {
		found := conformance.Try(filepath.Glob(pattern)).Must(t)
		conformance.MustTrue(t, len(found) != 0, "no page is %s", pattern)
		pages = append(pages, found...)
	}
	return pages
}

// bash runs a page's commands. They find tsimport in PATH, and no service but that of the place.
func (p *place) bash(script string) *process {
	p.t.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = p.dir
	cmd.Env = slices.Concat(os.Environ(), []string{"PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH")}, p.env)
	return begin(p.t, cmd)
}

func needs(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is needed: %v", tool, err)
		}
	}
}

// clone makes a clone of the repository with everything that the pages' commands need, and returns its folder.
func clone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{".gitignore", "README.md", "docs", "examples"} {
		out, err := exec.Command("cp", "-r", filepath.Join("..", name), dir).CombinedOutput()
		conformance.MustTrue(t, err == nil, "copy %s: %v\n%s", name, err, out)
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
	conformance.MustEqual(t, err, nil, "git %s:\n%s", strings.Join(args, " "), out)
	return string(out)
}

// fewerRows matches the numbers of rows to generate. The tests divide them by ten to save time.
var fewerRows = regexp.MustCompile(`--rows (\d{4,})0\b`)

// TestPageCommandsRunAndLeaveCloneClean runs the README's and the pages' commands unless they need a service.
func TestPageCommandsRunAndLeaveCloneClean(t *testing.T) {
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
		conformance.Equal(t, r.wait(), 0, "%s: %s: exit code\n%s", page, command, &r.said)
		ran++
		t.Logf("%v %s: %s", time.Since(began).Round(time.Millisecond), page, command)
	}
	clean := func(page string) {
		t.Helper()
		conformance.Equal(t, git(t, root, "status", "--porcelain"), "", "the commands of %s leave in the clone", page)
	}
	for _, command := range commandsOf(t, "README.md") {
		run("README.md", command)
	}
	conformance.MustTrue(t, dir != root, "the README's commands do not go to a folder of their own")
	// The commands also run in the folder of the examples, where the policy's archive is a folder next to it.
	dir = root
	run("examples", "tsimport gen student-cards --rows 2000 --days 800 --until now -o try/aged.csv")
	run("examples", "tsimport load try/aged.csv --table 'aged_{month(OrderTime)}' --pk CardID --pk DeviceID --pk "+
		"OrderNumber --age-policy examples/age-policy.yaml")
	clean("README.md")
	readme := root
	for _, page := range pages {
		commands := slices.Concat(before[strings.TrimPrefix(page, "../docs/")],
			commandsOf(t, strings.TrimPrefix(page, "../")))
		if len(commands) == 0 {
			continue
		}
		root = filepath.Join(t.TempDir(), "clone")
		out, err := exec.Command("cp", "-r", readme, root).CombinedOutput()
		conformance.MustTrue(t, err == nil, "copy clone: %v\n%s", err, out)
		dir = filepath.Join(root, "try")
		for _, command := range commands {
			run(page, command)
		}
		clean(page)
	}
	conformance.True(t, ran >= 20, "only %d commands were run", ran)
}

// varies matches the variable part of a load's output.
var varies = regexp.MustCompile(` in [0-9].*`)

func TestReadmeQuickStartShowsRealOutput(t *testing.T) {
	t.Parallel()
	text := conformance.Try(os.ReadFile("../README.md")).Must(t)
	_, rest, found := strings.Cut(string(text), "```sh\n")
	command, rest, more := strings.Cut(rest, "\n```\n\n```\n")
	shown, _, end := strings.Cut(rest, "```\n")
	conformance.MustTrue(t, found && more && end, "README.md has no command with its output")
	r := (&place{t: t, dir: clone(t)}).bash(strings.ReplaceAll(command, "go run ./cmd/tsimport ", "tsimport "))
	conformance.MustEqual(t, r.wait(), 0, "%s: exit code\n%s", command, &r.said)
	out := r.said.String()
	lines := 0
	for line := range strings.Lines(shown) {
		lines++
		line = varies.ReplaceAllString(strings.TrimSpace(line), "")
		conformance.Contains(t, out, line, "README.md shows a line that is not printed")
	}
	conformance.True(t, lines >= 3, "README.md shows %d lines of output", lines)
}

var serveLine = regexp.MustCompile(`^tsimport serve ([^&>#]*)`)

// TestLocalServerPagesRun runs the commands of pages that start a server, each in an empty folder and on a free port.
func TestLocalServerPagesRun(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl", "awk")
	for page, least := range map[string]int{"internals/admin-api.md": 20, "engine.md": 4, "how-to/local-engine.md": 3} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			var before, after, flags []string
			for _, line := range linesOf(t, "docs/"+page) {
				line, _, _ = strings.Cut(line, "  #")
				serve := serveLine.FindStringSubmatch(line)
				switch {
				case strings.HasPrefix(line, "docker ") || strings.Contains(line, "…"):
				case serve != nil && strings.Contains(line, "--admin"):
					flags = strings.Fields(serve[1])
					before, after = after, nil
				case serve == nil:
					after = append(after, line)
				}
			}
			conformance.MustTrue(t, flags != nil && len(before)+len(after) >= least,
				"the page has the commands %q and %q, and serve with %q", before, after, flags)
			run := func(lines []string) {
				t.Helper()
				r := p.bash("set -exo pipefail; curl() { command curl -sSf \"$@\"; }\n" + strings.Join(lines, "\n"))
				conformance.MustEqual(t, r.wait(), 0, "%v\n%s", r.ProcessState, &r.said)
			}
			run(before)
			for i := range flags {
				switch {
				case i == 0:
				case flags[i-1] == "--store" || flags[i-1] == "--sample-file":
					flags[i] = p.path(flags[i])
				case flags[i-1] == "--listen":
					flags[i] = "127.0.0.1:0"
				}
			}
			s := startServe(t, flags...)
			for i := range after {
				after[i] = strings.ReplaceAll(after[i], "http://127.0.0.1:8087", s.URL)
			}
			p.env = append(s.credentials(), "url="+s.URL)
			run(after)
		})
	}
}

// before maps pages to commands that create things that the reader already has, such as files or an interrupted load.
var before = map[string][]string{
	"how-to/after-an-incident.md": {
		`tsimport load orders.csv -t interrupted --pk CardID --pk DeviceID --pk OrderNumber --max-rows-per-second 1000 & ` +
			`until ls tsimport-runs/*-interrupted/checkpoint.bin; do kill -0 $!; sleep 0.05; done; kill -9 $!; ! wait $!`,
	},
	"copy.md": {
		`printf 'room,text\nhall,hello\nyard,hi\nhall,bye\n' > chat.csv`,
		`tsimport load chat.csv --table chat --create --pk room --pk id:auto`,
	},
	"how-to/document-exports.md": {
		`printf '%s\n' '{"_id":{"$oid":"64f1c0ffee0000000000abcd"},"name":"Ann","visits":{"$numberLong":"12"},"since":{"$date":{"$numberLong":"1718000000000"}}}' > customers.json`,
		`printf '%s\n' '{"Item":{"id":{"S":"a-7"},"price":{"N":"12.5"},"paid":{"BOOL":true}}}' | gzip > purchases.json.gz`,
	},
	"how-to/excel.md": {
		`printf '\xef\xbb\xbfsep=;\r\nid;item;code\r\n1;"tea; green";007\r\n2;coffee;008\r\n' > stock.csv`,
	},
	"how-to/archive-and-restore.md": {
		`printf 'group,text\ntea,hello\ntea,hi\n' > messages.csv`,
		`tsimport load messages.csv --table messages --create --pk group --pk seq:auto`,
	},
	"coming-from/datax.md": {
		`printf 'id|city\n1|Hangzhou\n' > cities.txt`,
		`printf '%s' '{"job":{"setting":{},"content":[{"reader":{"name":"txtfilereader","parameter":{"path":["'$PWD'/cities.txt"],"encoding":"UTF-8","fieldDelimiter":"|",` +
			`"skipHeader":"true","column":[{"index":0,"type":"long"},{"index":1,"type":"string"}]}},"writer":{"name":"otswriter","parameter":{"endpoint":"https://shop.cn-hangzhou.ots.aliyuncs.com",` +
			`"accessId":"","accessKey":"","instanceName":"shop","table":"orders","primaryKey":[{"name":"id","type":"int"}],"column":[{"name":"city","type":"string"}],"writeMode":"PutRow"}}}]}}' > orders.json`,
	},
	"coming-from/tablestorewriter.md": {`printf 'id,item\n1,tea\n' > rows.csv && rm -rf tsimport-store`},
	"coming-from/tablestore-cli.md":   {`printf '%s\n' '{"PK":{"Values":[7]},"Attr":{"Values":[{"C":"item","V":"tea"}]}}' > rows.json && rm -rf tsimport-store`},
}

// TestDatabasesHowToRuns runs the commands on the page against a real MariaDB and PostgreSQL.
func TestDatabasesHowToRuns(t *testing.T) {
	my, pg := mysqltest.Start(t), pgtest.Start(t)
	my.Exec("CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(20))",
		"INSERT INTO orders VALUES (1, 'tea'), (2, 'coffee')",
		"CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(20))", "INSERT INTO customers VALUES (1, 'Ann')")
	pg.Exec("CREATE TABLE orders (id int PRIMARY KEY, item text); INSERT INTO orders VALUES (1, 'tea'), (2, 'coffee')")
	text := conformance.Try(os.ReadFile("../docs/how-to/databases.md")).Must(t)
	here := strings.NewReplacer(
		"mysql://reader@db.example/shop?table=", my.Address(""), "mysql://reader@db.example/shop",
		strings.TrimSuffix(my.Address(""), "?table="), "postgres://reader@db.example/shop?table=", pg.Address(""))
	p := newPlace(t)
	_, job, found := strings.Cut(string(text), "```yaml\n")
	conformance.MustEqual(t, found, true, "the page has no job")
	job, _, _ = strings.Cut(job, "```")
	p.write("shop.yaml", here.Replace(job))
	lines := linesOf(t, "docs/how-to/databases.md")
	for _, line := range lines {
		r := p.bash(here.Replace(line))
		conformance.Equal(t, r.wait(), 0, "%s\n%v\n%s", line, r.ProcessState, &r.said)
	}
	conformance.True(t, len(lines) >= 7, "only %d commands were run", len(lines))
}

// sshDouble replaces ssh: it runs the command of `ssh HOST COMMAND` in HOST's folder, and records its exit code there.
const sshDouble = `#!/bin/bash
mkdir "$MACHINES/$1" && cd "$MACHINES/$1"
bash -c "$2"$'\nwait $!; echo $? > code.part; mv code.part code' > started.log 2>&1 &
`

// TestManyMachinesHowToRuns runs the page's commands with a test double of OSS and folders as machines.
func TestManyMachinesHowToRuns(t *testing.T) {
	t.Parallel()
	needs(t, "bash")
	p := newPlace(t, startServe(t, "--partitions", "4").env()...)
	lake := p.bucket(t, "lake")
	const files, records = 3, 2000
	for f := range files {
		lake.Set(fmt.Sprintf("orders/%d.csv", f), fileOf("id,item", records,
			func(i int) string { return fmt.Sprintf("%d-%d,item %d", i, f, i) }), time.Now())
	}
	var lines strings.Builder
	for _, variable := range p.env {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&lines, "export %s='%s'\n", name, value)
	}
	environment := p.write("environment", lines.String())
	must(t, os.Chmod(p.write("ssh", sshDouble), 0o700))
	p.env = append(p.env, "MACHINES="+p.dir, "PATH="+p.dir+":"+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	ran := 0
	for _, line := range linesOf(t, "docs/how-to/many-machines.md") {
		if strings.HasPrefix(line, "ossutil ") { // another program
			continue
		}
		ran++
		r := p.bash(strings.ReplaceAll(line, "/etc/tsimport/environment", environment))
		conformance.MustEqual(t, r.wait(), 0, "%s\nexit code\n%s", line, &r.said)
		conformance.True(t, !strings.HasPrefix(line, "tsimport resume ") ||
			strings.Contains(r.said.String(), "finished: 6,000 read, 6,000 written, 0 rejected, 0 superseded"),
			"%s prints\n%s", line, &r.said)
		if strings.Contains(line, "ssh") {
			workersEnd(p, 4)
		}
	}
	conformance.True(t, ran >= 4, "only %d commands were run", ran)
	for _, name := range []string{"summary.json", "report.html"} {
		content, found := lake.Content("jobs/orders-1/" + name)
		conformance.True(t, found && content != "", "the job directory holds no %s: %q", name, lake.Keys())
	}
}

func workersEnd(p *place, count int) {
	deadline := time.Now().Add(processTimeout)
	for n := range count {
		machine := fmt.Sprintf("loader-%d/", n+1)
		for !there(p.path(machine + "code"))() {
			if time.Now().After(deadline) {
				p.t.Fatalf("the worker of %s has not ended", machine)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if code := p.read(machine + "code"); code != "0\n" {
			p.t.Errorf("the worker of %s ended with %s%s", machine, code, p.read(machine+"work.log"))
		}
	}
}
