//go:build unix

package e2e

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var sigtermLimit = flag.Duration("sigterm-limit", time.Minute, "how long a checkpoint may take after SIGTERM; make crash asks for five seconds, on a machine that does nothing else")

// A scheduler that ends a pod kills it some seconds after SIGTERM: by then a checkpoint has to be there from which the next one resumes,
// also if the service answers nothing any more.
func TestSIGTERMLeavesACheckpoint(t *testing.T) {
	for what, silent := range map[string]bool{"a service that answers": false, "a service that answers nothing": true} {
		t.Run(what, func(t *testing.T) {
			s := startServe(t)
			p := &pod{dir: t.TempDir(), s: s}
			var text strings.Builder
			text.WriteString("id,v\n")
			const rows = 20_000
			for i := range rows {
				fmt.Fprintf(&text, "%d,x%d\n", i, i)
			}
			input := filepath.Join(p.dir, "in.csv")
			must(t, os.WriteFile(input, []byte(text.String()), 0o600))
			args := []string{"load", input, "--endpoint", s.URL, "--instance", s.Instance, "--table", "t", "--pk", "id", "--create", "--request-timeout", "5s", "--settle", "1s"}
			cmd := p.command(append(args, "--max-rows-per-second", "2000")...)
			cmd.Stderr = io.Discard
			must(t, cmd.Start())
			killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
			defer killer.Stop()
			for finalRows(p.dir) < 1 {
				time.Sleep(10 * time.Millisecond)
			}
			runs, err := filepath.Glob(filepath.Join(p.dir, "tsimport-runs", "2*"))
			if err != nil || len(runs) != 1 {
				t.Fatal(runs, err)
			}
			if silent {
				must(t, s.cmd.Process.Signal(syscall.SIGSTOP))
				defer s.cmd.Process.Signal(syscall.SIGCONT)
			}
			asked := time.Now()
			must(t, cmd.Process.Signal(syscall.SIGTERM))
			ended := make(chan struct{})
			go func() {
				cmd.Wait() // its error is the exit code
				close(ended)
			}()
			kept, over := false, false
			for !kept && !over { // a checkpoint of after the signal, or the end: the last one may have had everything
				select {
				case <-ended:
					over = true
				case <-time.After(10 * time.Millisecond):
				}
				info, err := os.Stat(filepath.Join(runs[0], "checkpoint.bin"))
				kept = err == nil && info.ModTime().After(asked)
			}
			took := time.Since(asked)
			if silent {
				if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) { // the pod is gone
					t.Fatal(err)
				}
				<-ended
				must(t, s.cmd.Process.Signal(syscall.SIGCONT))
			}
			<-ended
			if took > *sigtermLimit {
				t.Errorf("the checkpoint was there after %v", took)
			}
			if code := cmd.ProcessState.ExitCode(); (!silent || over) && code != 143 {
				t.Errorf("exit code %d, want 143", code)
			}
			next := p.command(args...)
			out, err := next.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "resuming run") || !strings.Contains(string(out), "20,000 read, 20,000 written, 0 rejected") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
