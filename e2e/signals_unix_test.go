//go:build unix

package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

// TestPipeWithoutWriterDoesNotDelayStop reads from a pipe whose opening would block forever.
func TestPipeWithoutWriterDoesNotDelayStop(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if err := syscall.Mkfifo(p.path("pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	r := p.start("load", "pipe", "--table", "t", "--pk", "id", "--store", "store")
	r.says("target: embedded", 1)
	r.signal(os.Interrupt)
	conformance.Equal(t, r.wait(), 130, "exit code:\n%s", &r.said)
}

func TestLoadKilledBeforeRunFolderIsResumed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if err := syscall.Mkfifo(p.path("pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	r := p.start("load", "pipe", "--table", "t", "--pk", "id", "--store", "store")
	r.must(func() bool { return len(p.glob("tsimport-runs/.locks/begun-*/run.json")) > 0 })
	r.kill()
	again := p.start("resume")
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(p.path("pipe"), []byte("id\n1\n"), 0o600) }()
	conformance.MustEqual(t, again.wait(), 0, "exit code:\n%s", &again.said)
	must(t, <-written)
	conformance.Equal(t, p.output("export", "--store", "store", "--table", "t", "-q"), "id\n1\n", "the table")
	left := p.glob("tsimport-runs/.locks/begun-*")
	conformance.True(t, len(left) == 0, "%q is left behind", left)
}

// shell runs a shell command line in which T is the binary.
func shell(t *testing.T, dir, line string) (out string, code int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "T="+binary)
	text, err := cmd.CombinedOutput()
	conformance.MustTrue(t, err == nil || cmd.ProcessState != nil, "%v", err)
	return string(text), cmd.ProcessState.ExitCode()
}

// TestPipeWithoutReaderDoesNotDelayStop writes to a pipe whose opening would block forever.
func TestPipeWithoutReaderDoesNotDelayStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	out, code := shell(t, dir, `printf 'id\n1\n' > in.csv; "$T" load in.csv --table t --pk id --metrics-file pipe`)
	conformance.True(t, code == 0 && strings.Contains(out, "no process reads the pipe"), "metrics: code %d\n%s", code, out)
	out, code = shell(t, dir, `"$T" export --table t -o pipe --timeout 500ms`)
	conformance.True(t, code == 1 && strings.Contains(out, "no process reads the pipe"), "export: code %d\n%s", code, out)
}

var sigtermLimit = flag.Duration("sigterm-limit", time.Minute, "how long a checkpoint may take after SIGTERM; make "+
	"crash asks for five seconds, on a machine that does nothing else")

// A scheduler kills a pod a few seconds after SIGTERM. By then, a checkpoint must exist even if the service is silent.
func TestSIGTERMLeavesCheckpoint(t *testing.T) {
	for what, silent := range map[string]bool{"a service that answers": false, "a service that answers nothing": true} {
		t.Run(what, func(t *testing.T) {
			s := startServe(t)
			p := newPlace(t, s.env()...)
			p.write("in.csv", fileOf("id,v", 5000, func(i int) string { return fmt.Sprintf("%d,x%d", i, i) }))
			args := strings.Fields("load in.csv --table t --pk id --create --request-timeout 5s --settle 1s")
			r := p.start(append(args, "--max-rows-per-second", "1000")...)
			r.must(func() bool { return finalRows(p.dir) > 0 })
			runs := p.glob("tsimport-runs/2*")
			if silent {
				must(t, s.Process.Signal(syscall.SIGSTOP))
				defer s.Process.Signal(syscall.SIGCONT)
			}
			asked := time.Now()
			r.signal(syscall.SIGTERM)
			// Wait for a checkpoint after the signal or for the end, because the last checkpoint may have been complete.
			kept := r.until(func() bool {
				info, err := os.Stat(filepath.Join(runs[0], "checkpoint.bin"))
				return err == nil && info.ModTime().After(asked)
			})
			took := time.Since(asked)
			if silent {
				r.kill() // the scheduler kills the pod
				must(t, s.Process.Signal(syscall.SIGCONT))
			}
			code := r.wait()
			conformance.True(t, took <= *sigtermLimit, "the checkpoint was there after %v", took)
			conformance.True(t, silent && kept || code == 143, "exit code %d, want 143:\n%s", code, &r.said)
			p.ends(0, args, "resuming run", "5,000 read, 5,000 written, 0 rejected")
		})
	}
}

func TestSIGUSR1ShowsLoadState(t *testing.T) {
	t.Parallel()
	w := watch(t, "--max-rows-per-second", "500", "-q")
	w.signal(syscall.SIGUSR1)
	w.says(`^tsimport: the load has not started writing yet$`, 1)
	w.feed()
	w.running()
	code, body := w.get("metrics")
	conformance.True(t, code == http.StatusOK &&
		regexp.MustCompile(`(?m)^tsimport_rows_written_total [1-9]`).MatchString(body), "metrics: answer %d %s", code, body)
	const header = `^tsimport: table t after \S+: [\d,]+ rows read, [1-9][\d,]* written, [1-9][\d,]* queued, .*; 1 part`
	const lane = `^  partition 0 from the first key: \w+.*, [1-9][\d,]* queued`
	for n := range 3 {
		w.signal(syscall.SIGUSR1)
		w.says(header, n+1)
		w.says(lane, n+1)
	}
	w.signal(syscall.SIGTERM)
	w.end(143)
}

func TestRepeatedSignalsDoNotEndLoad(t *testing.T) {
	t.Parallel()
	w := watch(t)
	<-w.feed()
	w.in.Close()
	stop, stopped := make(chan bool), make(chan bool)
	go func() { // until the process ends, at any moment of its work
		defer close(stopped)
		often := time.NewTicker(time.Millisecond)
		defer often.Stop()
		for {
			select {
			case <-stop:
				return
			case <-often.C:
				_ = w.Process.Signal(syscall.SIGUSR1)
			}
		}
	}()
	w.end(0)
	close(stop)
	<-stopped
	s := w.place.summary("run")
	conformance.True(t, s.Written == fedRows && s.State == "finished", "%+v", s)
}
