package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// binary is the path of tsimport as TestMain has built it.
var binary string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

// noteSources looks at every source file: go test keeps the result of a test as long as the files it looked at are the
// same, and what is tested here is a binary that it does not know of.
func noteSources() error {
	return filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		_, err = os.Stat(path)
		return err
	})
}

func buildAndRun(m *testing.M) int {
	// Most tests wait for processes and clocks rather than for a processor.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if os.Getenv("TSIMPORT_SOURCES") != "" {
		longest = time.Hour
	}
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") { // many rows, or rounds
			longest = time.Hour
		}
	})
	if err := noteSources(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Two thousand processes end before they have garbage worth collecting, but would do so while they start: a quarter of that time.
	if err := os.Setenv("GOGC", "400"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	debug.SetGCPercent(400)
	dir, err := os.MkdirTemp("", "tsimport-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary, err = build(dir); err != nil {
		fmt.Fprintf(os.Stderr, "build tsimport: %v\n", err)
		return 1
	}
	return m.Run()
}

// build makes tsimport in the user's cache, where go build leaves it alone while nothing has changed: linking takes a third of the tests'
// processor. The one that is returned is a link to it in dir, which stays what it is when another process builds.
func build(dir string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = dir // without a home
	}
	tree, err := filepath.Abs("..")
	if err != nil {
		return "", err
	}
	kept := filepath.Join(cache, "tsimport-e2e", fmt.Sprintf("%x", sha256.Sum256([]byte(tree)))[:16])
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return "", err
	}
	// Without what only debuggers read: linking takes half the time.
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(kept, "tsimport"), "example.com/tsimport/cmd/tsimport")
	cmd.Env = append(os.Environ(), "GOTMPDIR="+kept) // of the same file system, so that a file is replaced at once
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	path := filepath.Join(dir, "tsimport")
	if err := os.Link(filepath.Join(kept, "tsimport"), path); err == nil {
		return path, nil
	}
	text, err := os.ReadFile(filepath.Join(kept, "tsimport")) // of another file system
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, text, 0o700)
}

// processTimeout is how long a process may take before it is killed and its test fails. It is for those that hang: on a machine that
// is slow or busy, much that takes a second elsewhere takes a minute.
const processTimeout = 5 * time.Minute

// longest is the same for commands of tests that are asked for more than by default.
var longest = processTimeout

// surroundings are an environment of the processes of one test, in place of the environment of the test's process.
type surroundings struct {
	*testing.T
	env []string
}

func (s *surroundings) Setenv(name, value string) { s.env = append(s.env, name+"="+value) }

// served is a running `tsimport serve`.
type served struct {
	URL, Instance, AccessKeyID, AccessKeySecret string

	cmd     *exec.Cmd
	stderr  bytes.Buffer // complete once the process has ended
	stopped bool
}

// startServe runs `tsimport serve` on a free port, by default on a new store, and returns when it is ready. At the end
// of the test it is stopped by SIGTERM and must exit with 0 or 143.
func startServe(t testing.TB, args ...string) *served {
	t.Helper()
	if !slices.Contains(args, "--store") && !slices.Contains(args, "--memory") {
		args = append(args, "--store", filepath.Join(t.TempDir(), "store"))
	}
	s, err := launch(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !s.stopped {
			s.stop(t)
		}
	})
	return s
}

// launch runs `tsimport serve` on a free port and returns when it is ready.
func launch(args ...string) (*served, error) {
	if !slices.Contains(args, "--listen") {
		args = append([]string{"--listen", "127.0.0.1:0"}, args...)
	}
	s := &served{cmd: exec.Command(binary, append([]string{"serve", "--admin"}, args...)...)}
	s.cmd.Stderr = &s.stderr
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	killer := time.AfterFunc(processTimeout, func() { s.cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if !killer.Stop() || err != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		return nil, fmt.Errorf("serve gave no ready line: %q, %v; stderr:\n%s", line, err, s.stderr.Bytes())
	}
	if err := s.parse(line); err != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		return nil, err
	}
	return s, nil
}

// parse reads the ready line.
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

// stop ends the server by SIGTERM and checks its exit code.
func (s *served) stop(t testing.TB) {
	t.Helper()
	if err := s.terminate(); err != nil {
		t.Error(err)
	}
}

func (s *served) terminate() error {
	s.stopped = true
	killer := time.AfterFunc(processTimeout, func() { s.cmd.Process.Kill() })
	defer killer.Stop()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop serve: %w", err)
	}
	s.cmd.Wait() // its error is the exit code below
	if code := s.cmd.ProcessState.ExitCode(); code != 0 && code != 128+int(syscall.SIGTERM) {
		return fmt.Errorf("serve ended with %v, want exit code 0 or 143; stderr:\n%s", s.cmd.ProcessState, s.stderr.Bytes())
	}
	return nil
}

// kill ends the server by SIGKILL, as a crash would.
func (s *served) kill(t testing.TB) {
	t.Helper()
	s.stopped = true
	s.cmd.Process.Kill() // it may have ended by itself
	s.cmd.Wait()
}

// credentials are the environment variables with which tsimport reaches the served store.
func (s *served) credentials() []string {
	return []string{"TABLESTORE_ACCESS_KEY_ID=" + s.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET=" + s.AccessKeySecret}
}

// differs is how what is differs from what should be, empty if it does not. Comparing for a description takes ten times as long.
func differs(want, got any, options ...cmp.Option) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, options...)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
