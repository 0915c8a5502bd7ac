package compatibility

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/tsimport/cmd/tsimport/commands"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
)

var update = flag.Bool("update", false, "write what testdata does not have")

// asProgram is the variable that makes a test process run the program.
const asProgram = "TSIMPORT_TEST_PROGRAM"

// service answers the endpoint, through this process's proxy under a fixed name, which job directories and runs keep.
var service atomic.Pointer[http.Handler]

const endpoint = "http://tablestore.example"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(commands.Run(append([]string{"tsimport"}, os.Args[1:]...), os.Stdout, os.Stderr))
	}
	serve := func(w http.ResponseWriter, r *http.Request) { (*service.Load()).ServeHTTP(w, r) }
	proxy := httptest.NewServer(http.HandlerFunc(serve))
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "TABLESTORE_") ||
			strings.HasPrefix(name, "TSIMPORT_") ||
			strings.HasSuffix(strings.ToLower(name), "_proxy") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("HTTP_PROXY", proxy.URL) // before the first request: it is looked at once
	os.Setenv("TABLESTORE_ACCESS_KEY_ID", server.DefaultAccessKeyID)
	os.Setenv("TABLESTORE_ACCESS_KEY_SECRET", server.DefaultAccessKeySecret)
	code := m.Run()
	proxy.Close()
	os.Exit(code)
}

// written is the time of all files: runs identify their inputs by it, and Git does not keep it.
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
	t.Setenv("HOME", t.TempDir()) // where locks are
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

// run runs a command in this process, which must end with the code.
func (p *place) run(code int, args ...string) (stdout, stderr string) {
	p.Helper()
	p.Chdir(p.dir)
	var out, errOut bytes.Buffer
	if got := commands.Run(append([]string{"tsimport"}, args...), &out, &errOut); got != code {
		p.Fatalf("tsimport %s: exit code %d, want %d; stderr:\n%s", strings.Join(args, " "), got, code, errOut.Bytes())
	}
	return out.String(), errOut.String()
}

// killed runs a command in a new process, with a ceiling that its run does not know, and kills it when a file exists.
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
			p.Fatalf("tsimport %s ended before %s was there: %s", strings.Join(args, " "), file, said.Bytes())
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

// placeThere is the folder in which testdata is made, and machineThere replaces the name of the machine in it.
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

// timesFile keeps the times of what a sync has found, by which its load identifies its inputs.
const timesFile = "times.json"

// copied copies a folder without pages for people and locks, and replaces texts in its files, except in binary ones.
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
		if utf8.Valid(text) && !strings.Contains(rel, "/data/") && e.Name() != "manifest.json" { // whose sums are kept
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
