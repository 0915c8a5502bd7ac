package compatibility

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/tsimport/cmd/tsimport/commands"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
)

// left describes files that a process of an earlier version left in a folder of testdata, and how the test uses them.
type left struct {
	name        string
	make, judge func(p *place)
}

const runFolder = "tsimport-runs/*Z-*"

// twice is the older of the two checkpoints that a run keeps. When it exists, a second and 100 rows have passed.
const twice = runFolder + "/checkpoint.prev"

var corpus = []left{
	{"a load that was killed", func(p *place) {
		p.write("orders.csv", header+orders(1, 300)+"oops,none,1\n"+orders(20, 29))
		p.killed(twice, "load", "orders.csv", "--table", "orders", "--pk", "id", "--type", "id=integer")
	}, func(p *place) {
		runs := list(p)
		conformance.True(p, len(runs) == 1 && runs[0].Unfinished && runs[0].Table == "orders",
			"runs lists %+v, want one of orders that is not finished", runs)
		_, said := p.run(3, "resume")
		holds(p, said, "resuming run "+runs[0].Folder, "(attempt 2,", "311 read", "1 rejected")
		p.same("orders", orders(1, 300))
		p.run(0, "verify", "--run", runs[0].Folder)
	}},

	{"a copy that was killed", func(p *place) {
		p.serve()
		p.write("orders.csv", header+orders(1, 300))
		p.made(0, "load", "orders.csv", "--table", "orders", "--pk", "id", "--create")
		p.remove("tsimport-runs")
		p.killed(twice, "copy", "ots://tsimport/orders", "ots://tsimport/again", "--create", "--settle", "1ms")
	}, func(p *place) {
		p.serve()
		resumed("rows read are final", orders(1, 300))(p)
		p.same("again", orders(1, 300))
	}},

	{"a load with rejects", func(p *place) {
		p.write("orders.csv", header+orders(1, 20)+"oops,item 21,63\n")
		p.made(3, "load", "orders.csv", "--table", "orders", "--pk", "id", "--type", "id=integer")
	}, func(p *place) {
		run := p.one(runFolder)
		p.run(0, "verify", "--run", run)
		rejects := filepath.Join(run, "rejects.csv")
		text, err := os.ReadFile(rejects)
		must(p, err)
		must(p, os.WriteFile(rejects, []byte(strings.Replace(string(text), "oops", "21", 1)), 0o600))
		p.run(0, "load", "--retry-rejects", run)
		p.same("orders", orders(1, 21))
	}},

	{"runs that are over", func(p *place) {
		for n := 1; n <= 2; n++ {
			p.write("orders.csv", header+orders(1, n))
			p.made(0, "load", "orders.csv", "--table", "orders", "--pk", "id")
		}
	}, func(p *place) {
		runs := list(p)
		p.run(0, "runs", "prune", "--keep", "1")
		if after := list(p); len(runs) != 2 || !slices.Equal(after, runs[:1]) {
			p.Errorf("pruning left %+v of %+v, want the newest", after, runs)
		}
	}},

	{"a load of before 0.1.0", nil, func(p *place) {
		load := []string{"load", "orders.csv", "--table", "orders", "--pk", "id", "--type", "id=integer"}
		for _, command := range [][]string{{"resume"}, {"resume", p.one(runFolder)}, load,
			{"load", "--retry-rejects", p.one(runFolder)}} {
			_, said := p.run(2, command...)
			holds(p, said, "was written by an earlier version of tsimport; use that version, or ")
		}
		out, _ := p.run(0, "runs")
		holds(p, out, "unread")
		p.run(3, append(load, "--fresh")...)
		p.same("orders", orders(1, 300))
	}},

	{"known files", func(p *place) {
		p.serve()
		p.write("drop/monday.csv", header+orders(1, 20))
		p.made(0, "load", "drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new")
	}, tuesday("drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new")},

	{"known files with one that is set aside", func(p *place) {
		p.serve()
		p.write("drop/monday.csv", header+orders(1, 20))
		p.write("drop/more.csv", header+orders(21, 30))
		p.write("drop/other.csv", "id,goods,price\n99,x,1\n")
		p.made(3, "load", "drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new")
	}, func(p *place) {
		p.serve()
		out, _ := p.run(0, "files", "--table", "orders", "--state", "bad")
		holds(p, out, "1 night", "other.csv: its columns are not those of drop/monday.csv")
		p.run(3, "load", "drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new") // loads only this file
		p.write("drop/other.csv", header+orders(31, 40))
		p.run(0, "load", "drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new")
		p.same("orders", orders(1, 40))
	}},

	{"a state", func(p *place) {
		p.serve()
		p.write("drop/monday.csv", header+orders(1, 20))
		p.made(0, "load", "drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new", "--state", "state")
		p.remove("tsimport-runs")
	}, tuesday("drop/*.csv", "--table", "orders", "--pk", "id", "--create", "--only-new", "--state", "state")},

	{"a state of a load that was stopped", func(p *place) {
		p.write("orders.csv", header+orders(1, 300))
		p.made(1, strings.Fields("load orders.csv -t orders --pk id --state state --timeout 1s --max-rows-per-second 100")...)
		p.remove("tsimport-runs")
	}, func(p *place) {
		_, said := p.run(0, "load", "orders.csv", "--table", "orders", "--pk", "id", "--state", "state")
		holds(p, said, "resuming run", "300 read, 300 written")
		p.same("orders", orders(1, 300))
	}},

	{"a job that was killed", func(p *place) {
		p.write("orders.csv", header+orders(1, 150))
		p.write("stock.csv", header+orders(1, 20))
		p.write("job.yaml", `version: 1
defaults: {pk: [id], type: {id: integer}}
loads:
  stock: {from: [stock.csv]}
  orders: {after: [stock], from: [orders.csv]}
  report: {command: export, after: [orders], table: orders, output: report.csv}
`)
		p.killed("tsimport-runs/*/orders/checkpoint.prev", "run", "job.yaml")
	}, func(p *place) {
		_, said := p.run(0, "resume", p.one("tsimport-runs/*-job"))
		holds(p, said, "orders: done: 150 read, 150 written", "job done: 3 of 3 loads done, 170 read")
		p.same("orders", orders(1, 150))
		p.same("stock", orders(1, 20))
	}},

	{"a job file", func(p *place) {
		p.write("orders.csv", header+orders(1, 20))
		p.write("job.yaml",
			"version: 1\nloads:\n  orders:\n    from: [orders.csv]\n    pk: [id]\n    type: [price=integer]\n")
	}, func(p *place) {
		out, _ := p.run(0, "run", "job.yaml", "--plan", "--json")
		holds(p, out, `"table": "orders"`)
		p.run(0, "run", "job.yaml")
		p.same("orders", orders(1, 20))
	}},

	{"a job directory", func(p *place) {
		p.serve()
		p.write("orders.csv", header+orders(1, 200))
		p.write("more.csv", header+orders(150, 400)+"oops,none,1\n")
		const load = "load orders.csv more.csv --table orders --pk id --type id=integer --create --job-dir jobs --workers 1"
		p.made(0, strings.Fields(load)...)
	}, func(p *place) {
		p.serve()
		p.run(0, "status", "jobs")
		p.run(3, "work", "--job-dir", "jobs")
		p.same("orders", orders(1, 400))
	}},

	{"an archive", func(p *place) {
		p.everyType()
		p.made(0, "export", "--table", "types", "--output", "archive/")
	}, func(p *place) {
		p.run(0, "verify", "archive", "--table", "types")
		p.run(0, "load", "archive", "--table", "again", "--create", "--verify")
		p.sameTypes("again")
	}},

	{"an archive that was killed", func(p *place) {
		p.serve()
		p.write("orders.csv", header+orders(1, 60))
		p.made(0, "load", "orders.csv", "--table", "orders", "--pk", "id", "--create")
		must(p, p.served.Sim().Simulate("", server.Simulation{Config: sim.Config{Partitions: 4},
			SampleLines: []string{"15", "30", "45", "60"}}))
		p.killedAt("GetRange", 3, "export", "--table", "orders", "--output", "archive/", "--concurrency", "1")
		p.one("archive/archive-00001-*")
	}, func(p *place) {
		p.serve()
		_, said := p.run(0, "export", "--table", "orders", "--output", "archive/")
		holds(p, said, "continu")
		p.run(0, "load", "archive", "--table", "again", "--create")
		p.same("again", orders(1, 60))
	}},

	{"an export to a folder of Parquet that was killed", func(p *place) {
		p.serve()
		p.write("orders.csv", header+orders(1, 60))
		p.made(0, "load", "orders.csv", "--table", "orders", "--pk", "id", "--create")
		must(p, p.served.Sim().Simulate("", server.Simulation{Config: sim.Config{Partitions: 4},
			SampleLines: []string{"15", "30", "45", "60"}}))
		p.killedAt("GetRange", 6, "export", "--table", "orders", "--format", "parquet", "--output", "lake/all={id > 0}/",
			"--concurrency", "1")
		p.one("lake/all=true/part-00001-*")
	}, func(p *place) {
		p.serve()
		_, said := p.run(0, "export", "--table", "orders", "--format", "parquet", "--output", "lake/all={id > 0}/")
		holds(p, said, "continu")
		p.run(0, "load", "lake", "--table", "again", "--pk", "id", "--create")
		p.same("again", orders(1, 60))
	}},

	{"a load with returned keys that was killed", func(p *place) {
		p.write("orders.csv", header+orders(1, 300))
		p.killed(twice, strings.Fields("load orders.csv --table orders --pk item --pk n:auto --returned-keys keys.csv")...)
	}, func(p *place) {
		_, said := p.run(0, "resume")
		holds(p, said, "(attempt 2,", "300 read, 300 written")
		p.run(0, strings.Fields("verify orders.csv -t orders --pk item --pk n:auto --returned-keys keys.csv --extra fail")...)
	}},

	{"a sync that was killed", func(p *place) {
		p.serve()
		p.write("orders.csv", header+orders(1, 20)+"999,gone,1\n")
		p.made(0, "load", "orders.csv", "--table", "orders", "--pk", "id", "--create")
		p.remove("tsimport-runs")
		p.write("orders.csv", header+orders(1, 40))
		const sync = "sync orders.csv --table orders --pk id --delete --max-delete 10% --settle 1ms"
		p.killedAt("BatchWriteRow", 0, strings.Fields(sync)...)
		p.one("tsimport-runs/*-sync/sync.json")
	}, func(p *place) {
		p.serve()
		resumed("20 rows written, 1 deleted", orders(1, 40))(p)
	}},

	{"an archive of age", func(p *place) {
		p.write("policy.yaml", "period: month\nclasses:\n  - {up_to: 0}\n  - {archive: old}\n")
		p.write("orders.csv", header+orders(1, 20))
		p.made(0, "load", "orders.csv", "--table", "orders_202001", "--pk", "id")
		p.made(0, "age", "--policy", "policy.yaml", "--table", "orders_{month}", "--apply")
	}, func(p *place) {
		p.run(0, "age", "--policy", "policy.yaml", "--table", "orders_{month}", "--apply", "--drop-expired")
		out, _ := p.run(0, "table", "list")
		conformance.True(p, !strings.Contains(out, "orders_202001"), "the archived table is still there: %s", out)
		p.one("old/*.manifest.json") // the table equals its archive, so it is not archived again
	}},

	{"a store", (*place).everyType, func(p *place) { p.sameTypes("types") }},
}

// later describes files that later versions left: archives of version 2.
func later() (more []left) {
	for _, name := range []string{"an archive", "an archive that was killed", "an archive of age"} {
		l := corpus[slices.IndexFunc(corpus, func(l left) bool { return l.name == name })]
		l.name += " of rows that describe themselves"
		more = append(more, l)
	}
	return more
}

// resumed returns a check that resumes the only run. It must print says and leave the expected table orders.
func resumed(says, want string) func(p *place) {
	return func(p *place) {
		_, said := p.run(0, "resume")
		holds(p, said, "resuming run", says)
		p.same("orders", want)
	}
}

// everyType loads a row with all types, and second versions of some of its cells.
func (p *place) everyType() {
	p.write("types.jsonl", types)
	p.made(0, strings.Fields("load types.jsonl --table types --pk s --pk i --type b=binary --max-versions 3")...)
}

const types = `{"s":"a","i":1,"b":"AAEC/w==","n":-7,"text":"tea, 茶","x":1.5,"yes":true}
{"s":"b","i":-2,"b":"AA==","n":9223372036854775807,"text":"","x":-0.25,"yes":false}
`

func (p *place) sameTypes(table string) {
	p.Helper()
	out, _ := p.run(0, "export", "--table", table, "--format", "jsonl")
	out = strings.NewReplacer(`{"base64":`, "", `"},"n"`, `","n"`).Replace(out)
	conformance.True(p, out == types, "table %s holds\n%s, want\n%s", table, out, types)
}

// tuesday adds files to a folder whose Monday file is known, and runs the same command again.
func tuesday(load ...string) func(p *place) {
	return func(p *place) {
		p.serve()
		p.write("drop/again.csv", header+orders(1, 20)) // Monday's content, as its hash shows
		p.write("drop/tuesday.csv", header+orders(21, 40))
		_, said := p.run(0, append([]string{"load"}, load...)...)
		holds(p, said, "20 read, 20 written")
		p.same("orders", orders(1, 40))
	}
}

const header = "id,item,price\n"

func orders(from, to int) string {
	var text strings.Builder
	for n := from; n <= to; n++ {
		fmt.Fprintf(&text, "%d,item %d,%d\n", n, n, 3*n)
	}
	return text.String()
}

func (p *place) same(table, want string) {
	p.Helper()
	got, _ := p.run(0, "export", "--table", table)
	conformance.True(p, got == header+want, "table %s holds\n%s\nwant\n%s", table, got, header+want)
}

func holds(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		conformance.Contains(t, text, part, "what was written")
	}
}

type listed struct {
	Folder, Table, State string
	Unfinished           bool
}

func list(p *place) (runs []listed) {
	out, _ := p.run(0, "runs", "--json")
	must(p, json.Unmarshal([]byte(out), &runs))
	return runs
}

func TestFilesOfEarlierVersionsAreUsable(t *testing.T) {
	for _, l := range slices.Concat(corpus, later()) {
		t.Run(l.name, func(t *testing.T) {
			kept := conformance.Try(filepath.Abs(filepath.Join("testdata", strings.ReplaceAll(l.name, " ", "-")))).Must(t)
			if _, err := os.Stat(kept); *update && os.IsNotExist(err) { // existing files stand for the version that made them
				must(t, os.RemoveAll(placeThere))
				p := newPlace(t, placeThere)
				l.make(p)
				p.close()
				p.keep(kept)
				must(t, os.RemoveAll(placeThere))
			}
			p := newPlace(t, filepath.Join(t.TempDir(), "place"))
			copied(t, kept, p.dir, strings.NewReplacer(placeThere, p.dir))
			l.judge(p)
		})
	}
}

var update = flag.Bool("update", false, "write what testdata does not have")

// asProgram is the environment variable that makes a test process run the program.
const asProgram = "TSIMPORT_TEST_PROGRAM"

// service answers requests to endpoint. A proxy gives it that fixed name, because job directories and runs store it.
var service atomic.Pointer[http.Handler]

const endpoint = "http://tablestore.example"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(commands.Run(append([]string{"tsimport"}, os.Args[1:]...), os.Stdout, os.Stderr))
	}
	serve := func(w http.ResponseWriter, r *http.Request) { (*service.Load()).ServeHTTP(w, r) }
	proxy := httptest.NewServer(http.HandlerFunc(serve))
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "TABLESTORE_") || strings.HasPrefix(name, "TSIMPORT_") ||
			strings.HasSuffix(strings.ToLower(name), "_proxy") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("HTTP_PROXY", proxy.URL) // set before the first request, because net/http reads it once
	os.Setenv("TABLESTORE_ACCESS_KEY_ID", server.DefaultAccessKeyID)
	os.Setenv("TABLESTORE_ACCESS_KEY_SECRET", server.DefaultAccessKeySecret)
	code := m.Run()
	proxy.Close()
	os.Exit(code)
}

// written is the modification time of all files. Runs identify inputs by it, and Git does not keep it.
var written = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// place is a working folder with the files of an earlier process.
type place struct {
	*testing.T
	dir    string
	served *server.Server
	halt   atomic.Pointer[halt]
}

// halt kills a process instead of answering its n-th request of an operation.
type halt struct {
	operation string
	left      atomic.Int64
	kill      func()
}

func newPlace(t *testing.T, dir string) *place {
	p := &place{T: t}
	must(t, os.Mkdir(dir, 0o700))
	p.dir = conformance.Try(filepath.EvalSymlinks(dir)).Must(t)
	t.Chdir(p.dir)
	t.Setenv("HOME", t.TempDir()) // the home folder has locks
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return p
}

func (p *place) serve() {
	s, err := server.Open(filepath.Join(p.dir, "store"), server.Options{Hosts: []string{"tablestore.example"},
		ThroughputInterval: -1, Log: log.New(io.Discard, "", 0)})
	must(p, err)
	p.served = s
	p.Setenv("TABLESTORE_ENDPOINT", endpoint)
	p.Setenv("TABLESTORE_INSTANCE", server.DefaultInstance)
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := p.halt.Load(); h != nil && strings.HasSuffix(r.URL.Path, "/"+h.operation) && h.left.Add(-1) < 0 {
			h.kill()
			panic(http.ErrAbortHandler)
		}
		s.ServeHTTP(w, r)
	})
	service.Store(&h)
	p.Cleanup(p.close)
}

func (p *place) close() {
	if p.served != nil {
		must(p, p.served.Close())
		p.served = nil
	}
}

func (p *place) made(code int, args ...string) {
	p.Helper()
	c := p.process(args...)
	if text, _ := c.CombinedOutput(); c.ProcessState.ExitCode() != code {
		p.Fatalf("tsimport %s: %v, want exit code %d: %s", strings.Join(args, " "), c.ProcessState, code, text)
	}
}

// run runs a command in this process, which must end with this exit code.
func (p *place) run(code int, args ...string) (stdout, stderr string) {
	p.Helper()
	p.Chdir(p.dir)
	var out, errOut bytes.Buffer
	if got := commands.Run(append([]string{"tsimport"}, args...), &out, &errOut); got != code {
		p.Fatalf("tsimport %s: exit code %d, want %d; stderr:\n%s", strings.Join(args, " "), got, code, errOut.Bytes())
	}
	return out.String(), errOut.String()
}

// killed runs a command in a new process, with a rate limit that the run does not store, and kills it once file exists.
func (p *place) killed(file string, args ...string) {
	p.Helper()
	c := p.process(args...)
	c.Env = append(c.Env, "TSIMPORT_MAX_ROWS_PER_SECOND=100")
	var said bytes.Buffer
	c.Stderr = &said
	must(p, c.Start())
	ended := make(chan struct{})
	go func() { c.Wait(); close(ended) }()
	for there := false; !there; {
		found, _ := filepath.Glob(filepath.Join(p.dir, file))
		there = len(found) > 0
		select {
		case <-ended:
			p.Fatalf("tsimport %s ended before %s existed: %s", strings.Join(args, " "), file, said.Bytes())
		case <-time.After(time.Millisecond):
		}
	}
	must(p, c.Process.Kill())
	<-ended
}

func (p *place) killedAt(operation string, n int64, args ...string) {
	p.Helper()
	c := p.process(args...)
	h := &halt{operation: operation, kill: func() { c.Process.Kill() }}
	h.left.Store(n)
	p.halt.Store(h)
	text, _ := c.CombinedOutput()
	p.halt.Store(nil)
	conformance.MustTrue(p, !c.ProcessState.Exited(),
		"tsimport %s ended before request %d of %s: %s", strings.Join(args, " "), n, operation, text)
}

func (p *place) process(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Args[0] = "tsimport"
	c.Dir, c.Env = p.dir, append(os.Environ(), asProgram+"=1")
	return c
}

func (p *place) write(name, text string) {
	p.Helper()
	name = filepath.Join(p.dir, name)
	must(p, os.MkdirAll(filepath.Dir(name), 0o700))
	must(p, os.WriteFile(name, []byte(text), 0o600))
	must(p, os.Chtimes(name, written, written))
}

func (p *place) remove(pattern string) {
	p.Helper()
	found := conformance.Try(filepath.Glob(filepath.Join(p.dir, pattern))).Must(p)
	for _, name := range found {
		must(p, os.RemoveAll(name))
	}
}

func (p *place) one(pattern string) string {
	p.Helper()
	found, err := filepath.Glob(pattern)
	conformance.MustTrue(p, err == nil && len(found) == 1, "%s matches %q, want one; %v", pattern, found, err)
	return found[0]
}

// placeThere is the folder in which testdata is created, and machineThere replaces the name of the machine.
const (
	placeThere   = "/tmp/tsimport-corpus"
	machineThere = "machine.example"
)

func (p *place) keep(to string) {
	p.Helper()
	host := conformance.Try(os.Hostname()).Must(p)
	must(p, os.RemoveAll(to))
	quoted := func(host string) string { return `"` + host + `"` }
	copied(p, p.dir, to, strings.NewReplacer(" on "+host, " on "+machineThere, quoted(host), quoted(machineThere)))
}

// timesFile holds the modification times of files that a sync found. Its load identifies inputs by them.
const timesFile = "times.json"

// copied copies a folder without HTML pages and locks, and replaces texts in all files but binary ones.
func copied(t testing.TB, from, to string, texts *strings.Replacer) {
	t.Helper()
	times := map[string]time.Time{}
	if text, err := os.ReadFile(filepath.Join(from, timesFile)); err == nil {
		must(t, json.Unmarshal(text, &times))
	}
	defer func() {
		if text, err := json.MarshalIndent(times, "", " "); len(times) > 0 && err == nil {
			must(t, os.WriteFile(filepath.Join(to, timesFile), text, 0o600))
		}
	}()
	must(t, filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if e.IsDir() {
			if e.Name() == ".locks" {
				return fs.SkipDir
			}
			return os.MkdirAll(target, 0o700)
		}
		if e.Name() == "report.html" || e.Name() == timesFile {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if utf8.Valid(text) && !strings.Contains(rel, "/data/") && e.Name() != "manifest.json" { // that has checksums of data
			text = []byte(texts.Replace(string(text)))
		}
		if err := os.WriteFile(target, text, 0o600); err != nil {
			return err
		}
		when, known := times[rel]
		if info, err := e.Info(); strings.Contains(rel, "/changes/") && !known && err == nil {
			when, times[rel] = info.ModTime(), info.ModTime()
		}
		if when.IsZero() {
			when = written
		}
		return os.Chtimes(target, when, when)
	}))
}

var must = conformance.Must
