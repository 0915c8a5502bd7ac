package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A scheduler that ends a pod kills it some seconds after SIGTERM: by then a checkpoint has to be there from which the next one resumes,
// also if the service answers nothing any more.
func TestSIGTERMLeavesACheckpointWithinFiveSeconds(t *testing.T) {
	for what, silent := range map[string]bool{"a service that answers": false, "a service that answers nothing": true} {
		t.Run(what, func(t *testing.T) {
			s := startServe(t)
			p := &pod{t.TempDir(), s}
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
			killer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
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
			}
			asked := time.Now()
			must(t, cmd.Process.Signal(syscall.SIGTERM))
			ended := make(chan struct{})
			go func() {
				cmd.Wait() // its error is the exit code
				close(ended)
			}()
			var kept time.Time
			for kept.IsZero() { // a checkpoint of after the signal
				if info, err := os.Stat(filepath.Join(runs[0], "checkpoint.bin")); err == nil && info.ModTime().After(asked) {
					kept = info.ModTime()
					break
				}
				select {
				case <-ended:
				default:
					time.Sleep(10 * time.Millisecond)
					continue
				}
				break
			}
			if silent {
				must(t, cmd.Process.Kill()) // the pod is gone
				<-ended
				must(t, s.cmd.Process.Signal(syscall.SIGCONT))
			}
			<-ended
			if took := kept.Sub(asked); kept.IsZero() || took > 5*time.Second {
				t.Errorf("the checkpoint was there after %v", took)
			}
			if code := cmd.ProcessState.ExitCode(); !silent && code != 143 {
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
