//go:build e2e

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stuck starts a load into a service that is always busy, and returns when the run folder has a checkpoint.
func stuck(t *testing.T, run string) (cmd *exec.Cmd, stderr *strings.Builder) {
	t.Helper()
	s := startServe(t, "--sync", "none", "--fault-rate", "1", "--fault-kinds", "refuse:OTSServerBusy")
	in := filepath.Join(t.TempDir(), "in.csv")
	must(t, os.WriteFile(in, []byte("id,n\na,1\nb,2\nc,x\n"), 0o600))
	cmd = exec.Command(binary, "load", in, "--table", "t", "--create", "--pk", "id", "--type", "n=integer", "--run-dir", run, "--endpoint", s.URL, "--instance", s.Instance)
	cmd.Env = append(os.Environ(), s.credentials()...)
	stderr = new(strings.Builder)
	cmd.Stderr = stderr
	must(t, cmd.Start())
	killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
	t.Cleanup(func() { killer.Stop() })
	waitForFile(t, filepath.Join(run, "checkpoint.bin"))
	return cmd, stderr
}

func TestALoadWhoseRunFolderIsDeletedSaysThatNothingIsSaved(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run")
	cmd, stderr := stuck(t, run)
	for { // a checkpoint may be written meanwhile
		if err := os.RemoveAll(run); err == nil {
			break
		}
	}
	must(t, cmd.Process.Signal(os.Interrupt))
	cmd.Wait() // its error is the exit code below
	text := stderr.String()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(text, filepath.Join(run, "summary.json")+" is missing") {
		t.Errorf("exit code %d, stderr:\n%s", code, text)
	}
	for _, said := range []string{"to resume: ", "summary: ", "report: ", "rejected rows: "} {
		if strings.Contains(text, "tsimport: "+said) {
			t.Errorf("%q is said:\n%s", said, text)
		}
	}
}

func TestOnlyItsOwnerReadsWhatALoadKeeps(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run")
	cmd, stderr := stuck(t, run)
	must(t, cmd.Process.Signal(os.Interrupt))
	cmd.Wait() // its error is the exit code below
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr)
	}
	want := map[string]bool{"checkpoint.bin": true, "run.json": true, "summary.json": true, "report.html": true, "rejects.csv": true, "rejects.jsonl": true}
	must(t, filepath.WalkDir(run, func(path string, e fs.DirEntry, err error) error {
		must(t, err)
		info, err := e.Info()
		must(t, err)
		mode := fs.FileMode(0o600)
		if info.IsDir() {
			mode = 0o700
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		delete(want, e.Name())
		return nil
	}))
	if len(want) > 0 {
		t.Errorf("the run folder lacks %v", want)
	}
}
