//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tsimport/internal/objectstore/storetest"
)

func TestAnotherMachineResumesFromTheState(t *testing.T) {
	t.Parallel()
	around := &surroundings{T: t}
	store := storetest.New(around, "states")
	s := startServe(t)
	drop := t.TempDir()
	var text strings.Builder
	text.WriteString("id,v\n")
	const rows = 20_000
	for i := range rows {
		fmt.Fprintf(&text, "%d,x%d\n", i, i)
	}
	text.WriteString("bad\n")
	must(t, os.WriteFile(filepath.Join(drop, "a.csv"), []byte(text.String()), 0o600))
	args := func(more ...string) []string {
		return append([]string{"load", drop, "--endpoint", s.URL, "--instance", s.Instance, "--table", "nights", "--pk", "id", "--create", "--only-new",
			"--state", "s3://states/all"}, more...)
	}
	first := &pod{t.TempDir(), s, around.env}
	cmd := first.command(args("--max-rows-per-second", "200")...)
	cmd.Stderr = new(strings.Builder)
	must(t, cmd.Start())
	killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
	defer killer.Stop()
	for kept := 0; kept < 2; { // checkpoints in the state
		time.Sleep(10 * time.Millisecond)
		kept = 0
		for _, r := range store.Requests() {
			if strings.HasPrefix(r, "PUT ") && strings.Contains(r, "/checkpoint.") {
				kept++
			}
		}
	}
	must(t, cmd.Process.Signal(os.Interrupt))
	cmd.Wait() // its error is the exit code
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Fatalf("exit code %d: %s", code, cmd.Stderr)
	}
	// What comes meanwhile is not of that run.
	must(t, os.WriteFile(filepath.Join(drop, "b.csv"), []byte("id,v\n-1,later\n"), 0o600))
	second := &pod{t.TempDir(), s, around.env}
	for _, step := range []struct {
		code int
		says []string
	}{
		{3, []string{"resuming run", fmt.Sprintf("%s read, %s written, 1 rejected", "20,001", "20,000")}},
		{0, []string{"1 of 2 inputs are known", "1 read, 1 written"}},
		{0, []string{"nothing new"}},
	} {
		cmd := second.command(args()...)
		out, _ := cmd.CombinedOutput() // its error is the exit code
		if code := cmd.ProcessState.ExitCode(); code != step.code {
			t.Fatalf("exit code %d, want %d: %s", code, step.code, out)
		}
		for _, want := range step.says {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s\ndoes not say %q", out, want)
			}
		}
	}
	if rejects, err := filepath.Glob(filepath.Join(second.dir, "tsimport-runs", "*", "rejects.csv")); err != nil || len(rejects) != 1 {
		t.Errorf("rejects: %q, %v", rejects, err)
	}
	list := second.command("files", "--table", "nights", "--endpoint", s.URL, "--instance", s.Instance, "--state", "s3://states/all")
	if out, err := list.CombinedOutput(); err != nil || strings.Count(string(out), ".csv") != 2 {
		t.Errorf("files: %s, %v", out, err)
	}
}

func TestAStateThatCannotKeepALoadIsRefusedBeforeTheFirstRow(t *testing.T) {
	for want, change := range map[string]func(*storetest.Server){
		"conditional puts have no effect there": func(s *storetest.Server) { s.Unconditional = true },
		"cannot be written to":                  func(s *storetest.Server) { s.ReadOnly = true },
		"is full":                               func(s *storetest.Server) { s.Full = true },
		"newer version": func(s *storetest.Server) {
			s.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/lease.") {
					s.Set(strings.TrimPrefix(r.URL.Path, "/states/"), `{"version":9}`, time.Unix(1e9, 0))
				}
				return false
			}
		},
	} {
		store := storetest.New(t, "states")
		store.Change(change)
		p := &pod{dir: t.TempDir(), s: startServe(t)}
		must(t, os.WriteFile(filepath.Join(p.dir, "a.csv"), []byte("id\n1\n"), 0o600))
		cmd := p.command("load", "a.csv", "--endpoint", p.s.URL, "--instance", p.s.Instance, "--table", "t", "--pk", "id", "--create", "--state", "s3://states/x")
		out, _ := cmd.CombinedOutput() // its error is the exit code
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), want) || strings.Contains(string(out), "finished") {
			t.Errorf("exit code %d, want 2 and %q: %s", code, want, out)
		}
	}
}

// What is damaged or newer stays so: schedulers are told not to try again. A store that does not answer may be there later.
func TestADamagedOrNewerStateIsRefusedByName(t *testing.T) {
	t.Parallel()
	p := &pod{dir: t.TempDir(), s: startServe(t)}
	must(t, os.WriteFile(filepath.Join(p.dir, "a.csv"), []byte("id\n1\n"), 0o600))
	load := func(state string, env ...string) (string, int) {
		cmd := p.command("load", "a.csv", "--endpoint", p.s.URL, "--instance", p.s.Instance, "--table", "t", "--pk", "id", "--create", "--only-new", "--state", state, "--retry-for", "1s")
		cmd.Env = append(cmd.Env, env...)
		out, _ := cmd.CombinedOutput() // its error is the exit code
		return string(out), cmd.ProcessState.ExitCode()
	}
	whole := filepath.Join(p.dir, "whole")
	if out, code := load(whole); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for object, name := range map[string]string{"known/*/lease.*1": "lease", "known/*/event.*1": "event", "loads/*/lease.*1": "lease", "loads/*/checkpoint.*2": "checkpoint"} {
		for text, want := range map[string]string{"\x00{": name + ".00000", `{"version":99}`: "was written by a newer version of tsimport; use that version"} {
			state := filepath.Join(t.TempDir(), "state")
			must(t, os.CopyFS(state, os.DirFS(whole)))
			found, err := filepath.Glob(filepath.Join(state, object))
			if err != nil || len(found) != 1 {
				t.Fatalf("%s: %q, %v", object, found, err)
			}
			must(t, os.WriteFile(found[0], []byte(text), 0o600))
			if out, code := load(state); code != 2 || !strings.Contains(out, want) || strings.Contains(out, "finished") || strings.Contains(out, "nothing new") {
				t.Errorf("%s is %q: exit code %d, want 2 and %q: %s", object, text, code, want, out)
			}
		}
	}
	out, code := load("s3://states/x", "AWS_ENDPOINT_URL=http://127.0.0.1:1", "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_REGION=x", "AWS_EC2_METADATA_DISABLED=true")
	if code != 1 || !strings.Contains(out, "s3://states/x") {
		t.Errorf("a store that does not answer: exit code %d, want 1: %s", code, out)
	}
}
