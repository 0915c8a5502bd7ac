//go:build unix

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
			p := newPlace(t, s.env()...)
			p.write("in.csv", fileOf("id,v", 5000, func(i int) string { return fmt.Sprintf("%d,x%d", i, i) }))
			args := []string{"load", "in.csv", "--table", "t", "--pk", "id", "--create", "--request-timeout", "5s", "--settle", "1s"}
			r := p.start(append(args, "--max-rows-per-second", "1000")...)
			r.must(func() bool { return finalRows(p.dir) > 0 })
			runs := p.glob("tsimport-runs/2*")
			if silent {
				must(t, s.cmd.Process.Signal(syscall.SIGSTOP))
				defer s.cmd.Process.Signal(syscall.SIGCONT)
			}
			asked := time.Now()
			r.signal(syscall.SIGTERM)
			// A checkpoint of after the signal, or the end: the last one may have had everything.
			kept := r.until(func() bool {
				info, err := os.Stat(filepath.Join(runs[0], "checkpoint.bin"))
				return err == nil && info.ModTime().After(asked)
			})
			took := time.Since(asked)
			if silent {
				r.kill() // the pod is gone
				must(t, s.cmd.Process.Signal(syscall.SIGCONT))
			}
			code := r.wait()
			if took > *sigtermLimit {
				t.Errorf("the checkpoint was there after %v", took)
			}
			if (!silent || !kept) && code != 143 {
				t.Errorf("exit code %d, want 143:\n%s", code, &r.said)
			}
			p.ends(0, args, "resuming run", "5,000 read, 5,000 written, 0 rejected")
		})
	}
}
