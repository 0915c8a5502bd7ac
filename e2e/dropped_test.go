//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestATableThatIsDroppedIsRefusedPermanently drops it while its rows are written.
func TestATableThatIsDroppedIsRefusedPermanently(t *testing.T) {
	t.Parallel()
	s := startServe(t)
	env := append(s.credentials(), "TABLESTORE_ENDPOINT="+s.URL, "TABLESTORE_INSTANCE="+s.Instance)
	cmd := exec.Command(binary, "load", "-", "--table", "t", "--create", "--pk", "id:integer", "--retry-for", "1s", "--run-dir", t.TempDir())
	cmd.Env = append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	must(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	must(t, cmd.Start())
	killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
	defer killer.Stop()
	dropped, done, ended := make(chan bool), make(chan bool), make(chan bool)
	go func() { // rows continue until the load ends
		defer close(done)
		fmt.Fprintln(in, "id,n")
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(in, "%d,1\n", i); err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(dropped)
		for {
			out, _, _ := runBinaryWith(t, env, "export", "--table", "t", "--limit", "1")
			if strings.Count(out, "\n") > 1 {
				break
			}
			select {
			case <-ended:
				t.Error("the load ended before it had written a row")
				return
			default:
			}
		}
		if _, said, code := runBinaryWith(t, env, "table", "drop", "t", "--yes"); code != 0 {
			t.Errorf("drop: %d, %s", code, said)
		}
	}()
	cmd.Wait() // its error is the exit code below
	close(ended)
	<-dropped
	in.Close()
	<-done
	if code := cmd.ProcessState.ExitCode(); code != 5 || !strings.Contains(stderr.String(), "OTSObjectNotExist") {
		t.Errorf("exit code %d, want 5\n%s", code, stderr.String())
	}
}
