package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// aging is a server with tables of four months of which three have expired, and what there is to do about them.
type aging struct {
	server  *served
	dir     string
	args    []string
	archive []string // the tables that must be archived in the end; before is an archive of each
	before  string
}

func newAging(t *testing.T, interval string) *aging {
	a := &aging{server: startServe(t, "--quiet", "--throughput-interval", interval), dir: t.TempDir(), before: t.TempDir()}
	must(t, os.WriteFile(filepath.Join(a.dir, "policy.yaml"), []byte("period: month\nclasses:\n  - {up_to: 3, reserved: {read: 5, write: 9}, ttl: 864000}\n  - {archive: old}\n"), 0o600))
	client := newClient(a.server.URL, a.server.Instance, a.server.AccessKeyID, a.server.AccessKeySecret)
	for i, month := range []string{"202401", "202402", "202403", "202406"} {
		tb := &table{service: &service{TableStoreClient: client}, name: "c_" + month}
		meta := &tablestore.TableMeta{TableName: tb.name}
		meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_INTEGER)
		must(t, tb.service.create(meta, newOptions(-1, 1)))
		var changes []tablestore.RowChange
		for id := range 20 * (i + 1) {
			changes = append(changes, tb.put(tb.key(id), c("v", fmt.Sprintf("%s-%d", month, id)), c("b", []byte{0, byte(id)})))
		}
		_, err := tb.batch(changes...)
		must(t, err)
		if month < "202404" {
			a.archive = append(a.archive, tb.name)
			out, err := a.command("export", "--table", tb.name, "-o", filepath.Join(a.before, tb.name)+"/").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	}
	a.args = []string{"age", "--policy", filepath.Join(a.dir, "policy.yaml"), "--table", "c_{month}", "--now", "2024-07-15T00:00:00Z",
		"--apply", "--drop-expired", "--throughput-interval", "0s"}
	return a
}

func (a *aging) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "TABLESTORE_ENDPOINT="+a.server.URL, "TABLESTORE_INSTANCE="+a.server.Instance,
		"TABLESTORE_ACCESS_KEY_ID="+a.server.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET="+a.server.AccessKeySecret)
	return cmd
}

// with adds flags to arguments, in place of those that are there already.
func with(args []string, more ...string) []string {
	args = slices.Clone(args)
	for _, f := range more {
		if i := slices.Index(args, f); i >= 0 && strings.HasPrefix(f, "--") {
			args = slices.Delete(args, i, i+2)
		}
	}
	return append(args, more...)
}

// signalledAt runs the command and sends it a signal when it says a line that at is about. It returns what it has
// printed and whether it came to that.
func (a *aging) signalledAt(t *testing.T, signal os.Signal, at func(line string) bool, more ...string) (stdout string, cmd *exec.Cmd) {
	t.Helper()
	cmd = a.command(with(a.args, more...)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
	defer killer.Stop()
	said, sent := bufio.NewScanner(stderr), false
	for said.Scan() {
		if !sent && at(said.Text()) {
			sent = true
			must(t, cmd.Process.Signal(signal))
		}
	}
	cmd.Wait() // its error is the state of the process
	return out.String(), cmd
}

// TestAKilledAgeIsFinishedByTheNext kills age -9 after its first line, its second and so on, and gives the command again.
func TestAKilledAgeIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	for lines := 2; ; lines += 2 {
		a := newAging(t, "0s")
		said := 0
		_, cmd := a.signalledAt(t, os.Kill, func(string) bool { said++; return said == lines })
		killed := cmd.ProcessState.ExitCode() != 0
		var errors bytes.Buffer
		cmd = a.command(append(a.args, "--json")...)
		cmd.Stderr = &errors
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("after %d lines: %v\n%s", lines, err, errors.Bytes())
		}
		var result struct {
			Tables []struct{ Table, State string }
		}
		must(t, json.Unmarshal(out, &result))
		for _, table := range result.Tables {
			if table.State != "done" && table.State != "unchanged" {
				t.Errorf("after %d lines: table %s is %s", lines, table.Table, table.State)
			}
		}
		a.check(t, fmt.Sprintf("after %d lines", lines))
		a.server.stop(t)
		if !killed {
			return
		}
		if lines > 100 {
			t.Fatal("it says more and more")
		}
	}
}

func TestAWaitingAgeCanBeStoppedAndContinued(t *testing.T) {
	t.Parallel()
	a := newAging(t, "0s")
	waits := func(line string) bool { return strings.Contains(line, "waiting ") }
	// The creation counts as a change, so the throughput of the youngest table has to wait.
	out, cmd := a.signalledAt(t, os.Interrupt, waits, "--throughput-interval", "1h", "--json")
	var stopped struct {
		Error    string
		ExitCode int `json:"exit_code"`
		Tables   []struct{ Table, State string }
	}
	must(t, json.Unmarshal([]byte(out), &stopped))
	states := fmt.Sprint(stopped.Tables)
	if code := cmd.ProcessState.ExitCode(); code != 130 || stopped.ExitCode != 130 || !strings.Contains(stopped.Error, "interrupt") ||
		states != "[{c_202401 done} {c_202402 done} {c_202403 done} {c_202406 planned}]" {
		t.Errorf("exit code %d, %+v", code, stopped)
	}
	if out, err := a.command(a.args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	a.check(t, "after an interrupt")
}

// check compares tables and archive with what a run that nobody has killed leaves.
func (a *aging) check(t *testing.T, when string) {
	t.Helper()
	manifests, err := filepath.Glob(filepath.Join(a.dir, "old", "*", "manifest.json"))
	must(t, err)
	if len(manifests) != len(a.archive) {
		t.Errorf("%s: archives %v", when, manifests)
	}
	for _, name := range a.archive {
		out, err := a.command("verify", filepath.Join(a.dir, "old", name), "--archive", filepath.Join(a.before, name), "--extra", "fail").CombinedOutput()
		if err != nil {
			t.Errorf("%s: %s: %v\n%s", when, name, err, out)
		}
	}
	client := newClient(a.server.URL, a.server.Instance, a.server.AccessKeyID, a.server.AccessKeySecret)
	tables, err := client.ListTable()
	must(t, err)
	if fmt.Sprint(tables.TableNames) != "[c_202406]" {
		t.Errorf("%s: tables %v", when, tables.TableNames)
	}
	s := &service{TableStoreClient: client}
	if d := describe(t, s, "c_202406"); d.ReservedThroughput.Readcap != 5 || d.ReservedThroughput.Writecap != 9 || d.TableOption.TimeToAlive != 864000 {
		t.Errorf("%s: %+v, %+v", when, d.ReservedThroughput, d.TableOption)
	}
}
