//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"tsimport/internal/objectstore/storetest"
)

// A load is killed with kill -9 while the throughput of its table is raised; it is resumed, on this machine or on another one, and the
// table has what it had.
func TestWhatAKilledLoadHasRaisedIsRestored(t *testing.T) {
	t.Parallel()
	for what, state := range map[string]bool{"on this machine": false, "on another one": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := startServe(t, "--throughput-interval", "0s")
			client := newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)
			sv := &service{TableStoreClient: client}
			tb := sv.newTable(t)
			tb.reserve(t, 3, 100)
			units := func() string {
				d := describe(t, sv, tb.name).ReservedThroughput
				return fmt.Sprintf("%d/%d", d.Readcap, d.Writecap)
			}
			input := filepath.Join(t.TempDir(), "in.csv")
			var text strings.Builder
			text.WriteString("pk1,pk2,v\n")
			for i := range 5000 {
				fmt.Fprintf(&text, "a%d,%d,x\n", i, i)
			}
			must(t, os.WriteFile(input, []byte(text.String()), 0o600))
			args := []string{"load", input, "--endpoint", s.URL, "--instance", s.Instance, "--table", tb.name, "--raise-write", "5000", "--request-timeout", "1s", "--settle", "1s"}
			around := &surroundings{T: t}
			if state {
				storetest.New(around, "raised")
				args = append(args, "--state", "s3://raised/all")
			}
			first := &pod{t.TempDir(), s, around.env}
			cmd := first.command(append(args, "--max-rows-per-second", "100")...)
			cmd.Stderr = new(strings.Builder)
			must(t, cmd.Start())
			killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
			defer killer.Stop()
			for units() != "3/5000" {
				time.Sleep(10 * time.Millisecond)
			}
			must(t, cmd.Process.Signal(syscall.SIGKILL))
			cmd.Wait() // its error is that it was killed
			if got := units(); got != "3/5000" {
				t.Fatalf("%s after the kill: %s", got, cmd.Stderr)
			}
			next := first
			if state {
				next = &pod{t.TempDir(), s, around.env}
			} else {
				out, err := first.command("runs").CombinedOutput()
				if err != nil || !strings.Contains(string(out), "write throughput of table "+tb.name+" to be restored to 100 units") {
					t.Errorf("runs: %v, %s", err, out)
				}
			}
			out, err := next.command(args...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "an earlier run has raised its reserved write throughput from 100 to 5000 units") ||
				!strings.Contains(string(out), "restored from 5000 to 100 units") {
				t.Errorf("%v: %s", err, out)
			}
			if got := units(); got != "3/100" {
				t.Errorf("%s in the end", got)
			}
			if out, err := next.command("runs").CombinedOutput(); err != nil || strings.Contains(string(out), "to be restored") {
				t.Errorf("runs: %v, %s", err, out)
			}
		})
	}
}

// Who is interrupted does not wait for two minutes: the command says what is left, and resume does that alone.
func TestWhatAnInterruptedLoadCannotRestoreIsSaidAndResumed(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s := startServe(t, "--store", store)
	sv := &service{TableStoreClient: newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)}
	tb := sv.newTable(t)
	p := &pod{dir: t.TempDir(), s: s}
	input := filepath.Join(p.dir, "in.csv")
	must(t, os.WriteFile(input, []byte("pk1,pk2,v\na,1,x\n"), 0o600))
	cmd := p.command("load", input, "--endpoint", s.URL, "--instance", s.Instance, "--table", tb.name, "--raise-write", "50")
	said := &notice{pattern: regexp.MustCompile(`(waiting [0-9ms]+ until the throughput)`), seen: make(chan bool)}
	cmd.Stderr = said
	must(t, cmd.Start())
	killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
	defer killer.Stop()
	<-said.seen // for two minutes, until it may be restored
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	cmd.Wait() // its error is the exit code
	run := filepath.Join("tsimport-runs", "*")
	text := said.all.String()
	for _, want := range []string{"its reserved write throughput is still 50 units, and was 0 before: change table " + tb.name, "OTSTooFrequentReservedThroughputAdjustment",
		"or: " + binary + " resume tsimport-runs", "to restore the throughput of table " + tb.name + ": " + binary + " table update " + tb.name + " --reserved-write 0 --endpoint " + s.URL + " --instance " + s.Instance} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q: %s", want, text)
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d: %s", code, text)
	}
	found, err := filepath.Glob(filepath.Join(p.dir, run, "raised-write.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	out, err := p.command("runs", "--json").CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"raised_write"`) || !strings.Contains(string(out), `"state": "finished"`) {
		t.Errorf("%v: %s", err, out)
	}
	// Two minutes later, as far as the service is concerned.
	s.stop(t)
	p.s = startServe(t, "--store", store, "--listen", strings.TrimPrefix(s.URL, "http://"), "--throughput-interval", "0s")
	for _, step := range []struct {
		code int
		want string
	}{{0, "reserved write throughput restored from 50 to 0 units"}, {2, "no run below tsimport-runs is unfinished"}} {
		cmd := p.command("resume")
		out, _ := cmd.CombinedOutput() // its error is the exit code
		if code := cmd.ProcessState.ExitCode(); code != step.code || !strings.Contains(string(out), step.want) {
			t.Errorf("exit code %d, want %d: %s", code, step.code, out)
		}
	}
	sv.TableStoreClient = newClient(p.s.URL, p.s.Instance, p.s.AccessKeyID, p.s.AccessKeySecret)
	if d := describe(t, sv, tb.name).ReservedThroughput; d.Writecap != 0 {
		t.Errorf("%d write units", d.Writecap)
	}
}

// Two loads of a job into one table run one after the other: with a state, too, the second one gets the lease of the raise at once.
func TestLoadsOfAJobWithAStateRaiseOneTable(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--throughput-interval", "0s")
	sv := &service{TableStoreClient: newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)}
	tb := sv.newTable(t)
	tb.reserve(t, 3, 100)
	p := &pod{dir: t.TempDir(), s: s}
	var text strings.Builder
	text.WriteString("pk1,pk2,v\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "a%d,%d,x\n", i, i)
	}
	must(t, os.WriteFile(filepath.Join(p.dir, "a.csv"), []byte(text.String()), 0o600))
	must(t, os.WriteFile(filepath.Join(p.dir, "b.csv"), []byte(strings.ReplaceAll(text.String(), "\na", "\nb")), 0o600))
	must(t, os.WriteFile(filepath.Join(p.dir, "job.yaml"), fmt.Appendf(nil, `version: 1
target: {endpoint: %[1]q, instance: %[2]s}
defaults: {state: state, raise-write: 5000, max-rows-per-second: 1000}
loads:
  a: {from: a.csv, table: %[3]s}
  b: {from: b.csv, table: %[3]s}
`, s.URL, s.Instance, tb.name), 0o600))
	out, err := p.command("run", "job.yaml", "--parallel", "2").CombinedOutput()
	if err != nil || strings.Contains(string(out), "waiting:") {
		t.Errorf("%v: %s", err, out)
	}
	restored := 0
	summaries, err := filepath.Glob(filepath.Join(p.dir, "tsimport-runs", "*", "?", "summary.json"))
	must(t, err)
	for _, name := range summaries {
		text, err := os.ReadFile(name)
		must(t, err)
		var sum struct {
			Raised *struct{ From, To int } `json:"raised_write"`
		}
		must(t, json.Unmarshal(text, &sum))
		if sum.Raised != nil && sum.Raised.From == 100 && sum.Raised.To == 5000 {
			restored++
		}
	}
	if len(summaries) != 2 || restored != 2 {
		t.Errorf("%d of %d loads have raised and restored the throughput, want 2 of 2", restored, len(summaries))
	}
	if d := describe(t, sv, tb.name).ReservedThroughput; d.Writecap != 100 {
		t.Errorf("%d write units in the end", d.Writecap)
	}
}
