package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
)

var binary string

func TestMain(m *testing.M) {
	conformance.NoService()
	dir, err := os.MkdirTemp("", "tsimport-e2e-")
	if err == nil {
		err = prepare(dir)
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintf(os.Stderr, "build tsimport: %v\n", err)
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// noteSources stats all source files, because go test caches results by the files that a test opens or stats.
func noteSources() error {
	return filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		_, err = os.Stat(path)
		return err
	})
}

func prepare(dir string) (err error) {
	flag.Parse()
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") || os.Getenv("TSIMPORT_SOURCES") != "" { // a flag asks for many rows or rounds
			longest = time.Hour
		}
	})
	binary, err = build(dir)
	// Most of the 2,000 processes end before garbage collection pays. It would take a quarter of their time.
	debug.SetGCPercent(400)
	// Most tests wait for processes and clocks, not for a processor.
	return errors.Join(err, os.Setenv("GOGC", "400"), flag.Set("test.parallel", "8"), noteSources())
}

// build builds tsimport in the user's cache, where go build does nothing if nothing has changed: linking takes a third
// of the tests' CPU time. It returns a hard link in dir, which does not change when another process builds.
func build(dir string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = dir // no home folder
	}
	tree, err := filepath.Abs("..")
	if err != nil {
		return "", err
	}
	kept := filepath.Join(cache, "tsimport-e2e", fmt.Sprintf("%x", sha256.Sum256([]byte(tree)))[:16])
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return "", err
	}
	// Without debug information, linking takes half the time.
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(kept, "tsimport"),
		"example.com/tsimport/cmd/tsimport")
	cmd.Env = append(os.Environ(), "GOTMPDIR="+kept) // on the same file system, so that the file is replaced atomically
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	path := filepath.Join(dir, "tsimport")
	if err := os.Link(filepath.Join(kept, "tsimport"), path); err == nil {
		return path, nil
	}
	text, err := os.ReadFile(filepath.Join(kept, "tsimport")) // dir is on another file system
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, text, 0o700)
}

// processTimeout is the time after which a process counts as hanging. On a slow machine a second can become a minute.
const processTimeout = 5 * time.Minute

// longest is the time-out for commands of tests whose flags ask for more than the default.
var longest = processTimeout

// surroundings is the environment for the processes of a test, instead of that of the test's own process.
type surroundings struct {
	*testing.T
	env []string
}

func (s *surroundings) Setenv(name, value string) { s.env = append(s.env, name+"="+value) }

type served struct {
	*process
	URL, Instance, AccessKeyID, AccessKeySecret string
	stopped                                     bool
}

// startServe runs `tsimport serve` on a free port and, by default, a new store. SIGTERM must end it with code 0 or 143.
func startServe(t testing.TB, args ...string) *served {
	t.Helper()
	if !slices.Contains(args, "--store") && !slices.Contains(args, "--memory") {
		args = append(args, "--store", filepath.Join(t.TempDir(), "store"))
	}
	if !slices.Contains(args, "--listen") {
		args = append([]string{"--listen", "127.0.0.1:0"}, args...)
	}
	cmd, ready := exec.Command(binary, append([]string{"serve", "--admin"}, args...)...), new(transcript)
	cmd.Stdout = ready
	s := &served{process: begin(t, cmd)}
	s.must(func() bool { return strings.Contains(ready.String(), "\n") })
	s.killer.Stop() // the server may run as long as the test
	must(t, s.parse(ready.String()))
	t.Cleanup(func() {
		if !s.stopped {
			s.stop(t)
		}
	})
	return s
}

func (s *served) parse(line string) error {
	fields := map[string]*string{
		"url": &s.URL, "instance": &s.Instance, "access_key_id": &s.AccessKeyID, "access_key_secret": &s.AccessKeySecret,
	}
	for _, f := range strings.Fields(line) {
		name, value, _ := strings.Cut(f, "=")
		if fields[name] == nil || value == "" {
			return fmt.Errorf("ready line %q: unexpected %q", line, f)
		}
		*fields[name] = value
		delete(fields, name)
	}
	if len(fields) > 0 {
		return fmt.Errorf("ready line %q: %d fields are missing", line, len(fields))
	}
	return nil
}

func (s *served) stop(t testing.TB) {
	t.Helper()
	s.stopped = true
	killer := time.AfterFunc(processTimeout, s.process.kill)
	defer killer.Stop()
	conformance.Equal(t, s.Process.Signal(syscall.SIGTERM), nil, "stop serve")
	if code := s.wait(); code != 0 && code != 128+int(syscall.SIGTERM) {
		t.Errorf("serve ended with %v, want exit code 0 or 143; stderr:\n%s", s.ProcessState, &s.said)
	}
}

func (s *served) kill() {
	s.stopped = true
	s.process.kill()
}

func (s *served) credentials() []string {
	return []string{"TABLESTORE_ACCESS_KEY_ID=" + s.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET=" + s.AccessKeySecret}
}

// differs describes a difference, or returns "". It compares first, because a description takes ten times as long.
func differs(want, got any, options ...cmp.Option) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, options...)
}

var must = conformance.Must

// place is a folder in which commands run, with their environment in addition to this process's.
type place struct {
	t   testing.TB
	dir string
	env []string
}

func newPlace(t testing.TB, env ...string) *place { return &place{t, t.TempDir(), env} }

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) write(name, text string) string {
	p.t.Helper()
	path := p.path(name)
	must(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(p.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (p *place) read(name string) string {
	p.t.Helper()
	text := conformance.Try(os.ReadFile(p.path(name))).Must(p.t)
	return string(text)
}

func (p *place) glob(pattern string) []string {
	p.t.Helper()
	found := conformance.Try(filepath.Glob(p.path(pattern))).Must(p.t)
	return found
}

func (p *place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	return cmd
}

// ends runs a command, which must end with this exit code and print these texts, and returns all its output.
func (p *place) ends(code int, args []string, texts ...string) string {
	p.t.Helper()
	r := begin(p.t, p.command(args...))
	got, said := r.wait(), r.said.String()
	for _, want := range texts {
		conformance.Contains(p.t, said, want, "tsimport %q does not say", args)
	}
	conformance.True(p.t, got == code, "tsimport %q: exit code %d, want %d:\n%s", args, got, code, said)
	return said
}

// run is like ends, for a command without which the test cannot continue.
func (p *place) run(code int, args ...string) string {
	p.t.Helper()
	r := begin(p.t, p.command(args...))
	got := r.wait()
	conformance.MustTrue(p.t, got == code, "tsimport %q: exit code %d, want %d:\n%s", args, got, code, &r.said)
	return r.said.String()
}

func (p *place) output(args ...string) string {
	p.t.Helper()
	cmd := p.command(args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	r := begin(p.t, cmd)
	conformance.MustEqual(p.t, r.wait(), 0, "tsimport %q: %v:\n%s", args, r.ProcessState, &r.said)
	return out.String()
}

func (p *place) start(args ...string) *process {
	p.t.Helper()
	return begin(p.t, p.command(args...))
}

type process struct {
	*exec.Cmd
	t      testing.TB
	said   transcript // stdout and stderr, unless the command has other outputs
	ended  chan struct{}
	killer *time.Timer
}

type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// begin starts a command. It is killed at the end of the test, or if it takes too long.
func begin(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	r := &process{Cmd: cmd, t: t, ended: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &r.said
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &r.said
	}
	must(t, cmd.Start())
	r.killer = time.AfterFunc(longest, func() { cmd.Process.Kill() })
	go func() {
		cmd.Wait() // the exit code shows its error
		r.killer.Stop()
		close(r.ended)
	}()
	t.Cleanup(r.kill)
	return r
}

func (r *process) until(come func() bool) bool {
	for !come() {
		select {
		case <-r.ended:
			return come()
		case <-time.After(3 * time.Millisecond):
		}
	}
	return true
}

func (r *process) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

func (r *process) must(come func() bool) {
	r.t.Helper()
	if !r.until(come) {
		r.t.Fatalf("%q ended with %v:\n%s", r.Args[1:], r.ProcessState, &r.said)
	}
}

func there(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
}

// says waits for the n-th match of the pattern in the output, and returns the groups of the last match.
func (r *process) says(pattern string, n int) (groups []string) {
	r.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	r.must(func() bool {
		if found := re.FindAllStringSubmatch(r.said.String(), n); len(found) == n {
			groups = found[n-1]
		}
		return groups != nil
	})
	return groups
}

func (r *process) signal(s os.Signal) {
	r.t.Helper()
	must(r.t, r.Process.Signal(s))
}

func (r *process) wait() (code int) {
	<-r.ended
	return r.ProcessState.ExitCode()
}

func (r *process) kill() {
	r.Process.Kill() // the process may have ended
	<-r.ended
}

func (s *served) env() []string {
	return append(s.credentials(), "TABLESTORE_ENDPOINT="+s.URL, "TABLESTORE_INSTANCE="+s.Instance)
}

// pod returns another machine whose commands find the server: another working folder and home.
func (s *served) pod(t testing.TB, more ...string) *place {
	p := newPlace(t, slices.Concat(more, s.env())...)
	p.env = append(p.env, "HOME="+p.dir, "XDG_CACHE_HOME="+p.dir)
	return p
}

func (s *served) client() *tablestore.TableStoreClient {
	return newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)
}

func fileOf(header string, n int, line func(i int) string) string {
	var b strings.Builder
	b.WriteString(header + "\n")
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}
