package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// place is a folder in which commands run, and what their environment has beside that of this process.
type place struct {
	t   testing.TB
	dir string
	env []string
}

func newPlace(t testing.TB, env ...string) *place { return &place{t, t.TempDir(), env} }

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

// write makes a file and returns its path.
func (p *place) write(name, text string) string {
	p.t.Helper()
	path := p.path(name)
	must(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(p.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (p *place) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(p.path(name))
	must(p.t, err)
	return string(text)
}

// glob returns the paths that match, in order.
func (p *place) glob(pattern string) []string {
	p.t.Helper()
	found, err := filepath.Glob(p.path(pattern))
	must(p.t, err)
	return found
}

// summary reads the summary of the newest run into what is given.
func (p *place) summary(into any) {
	p.t.Helper()
	runs := p.glob("tsimport-runs/2*/summary.json")
	if len(runs) == 0 {
		p.t.Fatal("there is no run")
	}
	text, err := os.ReadFile(slices.Max(runs))
	must(p.t, err)
	must(p.t, json.Unmarshal(text, into))
}

func (p *place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	return cmd
}

// ends runs a command, whose exit code and texts are to be these, and returns all that it says.
func (p *place) ends(code int, args []string, texts ...string) string {
	p.t.Helper()
	r := begin(p.t, p.command(args...))
	got, said := r.wait(), r.said.String()
	for _, want := range texts {
		if !strings.Contains(said, want) {
			p.t.Errorf("tsimport %q does not say %q:\n%s", args, want, said)
		}
	}
	if got != code {
		p.t.Errorf("tsimport %q: exit code %d, want %d:\n%s", args, got, code, said)
	}
	return said
}

// run runs a command that must end with the exit code, and returns all that it says.
func (p *place) run(code int, args ...string) string {
	p.t.Helper()
	r := begin(p.t, p.command(args...))
	if got := r.wait(); got != code {
		p.t.Fatalf("tsimport %q: exit code %d, want %d:\n%s", args, got, code, &r.said)
	}
	return r.said.String()
}

// output runs a command that must end well, and returns what it prints.
func (p *place) output(args ...string) string {
	p.t.Helper()
	cmd := p.command(args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if r := begin(p.t, cmd); r.wait() != 0 {
		p.t.Fatalf("tsimport %q: %v:\n%s", args, r.ProcessState, &r.said)
	}
	return out.String()
}

func (p *place) start(args ...string) *process {
	p.t.Helper()
	return begin(p.t, p.command(args...))
}

// process is a command that runs.
type process struct {
	*exec.Cmd
	t     testing.TB
	said  transcript // on both outputs, unless the command has others
	ended chan struct{}
}

// transcript is what a process has said so far.
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

// begin starts a command. It is killed at the end of the test, and when it takes longer than any does.
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
	killer := time.AfterFunc(longest, func() { cmd.Process.Kill() })
	go func() {
		cmd.Wait() // its error is the exit code
		killer.Stop()
		close(r.ended)
	}()
	t.Cleanup(r.kill)
	return r
}

// until waits for what is to come, and reports whether it came before the process ended.
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

// over reports whether the process has ended.
func (r *process) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// must is until for what has to come.
func (r *process) must(come func() bool) {
	r.t.Helper()
	if !r.until(come) {
		r.t.Fatalf("%q ended with %v:\n%s", r.Args[1:], r.ProcessState, &r.said)
	}
}

// there reports whether there is a file or folder of the name.
func there(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
}

// says waits until the process has said what matches the pattern n times, and returns the groups of the last match.
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
	r.Process.Kill() // it may have ended
	<-r.ended
}

// env is the environment in which commands find the server.
func (s *served) env() []string {
	return append(s.credentials(), "TABLESTORE_ENDPOINT="+s.URL, "TABLESTORE_INSTANCE="+s.Instance)
}

// pod is a machine of its own on which commands find the server: another working folder and another home.
func (s *served) pod(t testing.TB, more ...string) *place {
	p := newPlace(t, slices.Concat(more, s.env())...)
	p.env = append(p.env, "HOME="+p.dir, "XDG_CACHE_HOME="+p.dir)
	return p
}

func (s *served) client() *tablestore.TableStoreClient {
	return newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)
}

func (s *served) service() *service { return &service{TableStoreClient: s.client()} }

func (s *served) table(name string) *table { return &table{service: s.service(), name: name} }

// fileOf is a text of a header and so many lines.
func fileOf(header string, n int, line func(i int) string) string {
	var b strings.Builder
	b.WriteString(header + "\n")
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}
