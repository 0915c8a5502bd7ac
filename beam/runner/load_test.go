package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/cmd/tsimport/commands"
	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
)

// prismLoad is a load of files with rejects and keys that come again, and what it must make.
type prismLoad struct {
	*testing.T
	service *enginetest.Engine
	files   []string
	job     string

	read, rejected int
	keys           map[string]bool
}

func newPrismLoad(t *testing.T, records int) *prismLoad {
	l := &prismLoad{T: t, service: enginetest.Start(t), job: filepath.Join(t.TempDir(), "job"), keys: map[string]bool{}}
	for name, value := range map[string]string{
		"TABLESTORE_ENDPOINT": l.service.URL, "TABLESTORE_INSTANCE": l.service.Instance,
		"TABLESTORE_ACCESS_KEY_ID": l.service.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET": l.service.AccessKeySecret,
	} {
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	for f := range 5 {
		text := "id,n,what\n"
		for range records / 5 {
			n := l.read
			l.read++
			if n%97 == 0 {
				text += fmt.Sprintf("bad-%d\n", n)
				l.rejected++
				continue
			}
			key := fmt.Sprintf("k%05d", n*7919%(records*2/3))
			l.keys[key] = true
			text += fmt.Sprintf("%s,%d,some text\n", key, n)
		}
		name := filepath.Join(dir, fmt.Sprintf("in-%d.csv", f))
		conformance.Must(t, os.WriteFile(name, []byte(text), 0o600))
		l.files = append(l.files, name)
	}
	return l
}

// load runs the load as a user would. It returns the exit code and what it said.
func (l *prismLoad) load(more ...string) (int, string) {
	args := append([]string{"tsimport-beam", "load"}, l.files...)
	args = append(args, "--table", "t", "--create", "--pk", "id", "--max-errors", "-1", "--job-dir", l.job, "--workers", "2")
	return l.call(append(args, more...)...)
}

func (l *prismLoad) call(args ...string) (int, string) {
	var out, said bytes.Buffer
	code := commands.RunWith(Offer(), args, &out, &said)
	return code, out.String() + said.String()
}

// check compares the ledger and the table with the inputs.
func (l *prismLoad) check() {
	l.Helper()
	body, err := os.ReadFile(filepath.Join(l.job, "summary.json"))
	if err != nil {
		l.Fatal(err)
	}
	var s struct{ Read, Written, Rejected, Superseded int }
	if err := json.Unmarshal(body, &s); err != nil {
		l.Fatal(err)
	}
	if s.Read != l.read || s.Rejected != l.rejected || s.Written != len(l.keys) || s.Superseded != l.read-l.rejected-len(l.keys) {
		l.Errorf("%+v; want %d read, %d rejected, %d written", s, l.read, l.rejected, len(l.keys))
	}
	verify := append(append([]string{"tsimport", "verify"}, l.files...), "--table", "t", "--extra", "fail")
	if code, said := l.call(verify...); code != 0 {
		l.Errorf("verify: exit code %d\n%s", code, said)
	}
}

func TestALoadByPrismIsExact(t *testing.T) {
	l := newPrismLoad(t, 20_000)
	if code, said := l.load("--verify", "--runner", "prism", "--parallelism", "2"); code != 3 || !strings.Contains(said, "finished: 20,000 read") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	l.check()
	// The same command finds that it is done; and it is no longer needed to run a runner.
	if code, said := l.load("--verify", "--runner", "prism"); code != 3 || strings.Contains(said, "has taken the load") {
		t.Errorf("again: exit code %d\n%s", code, said)
	}
	// The plan has no flags that other processes do not know.
	body, err := os.ReadFile(filepath.Join(l.job, "plan.json"))
	conformance.Must(t, err)
	var p struct {
		Job struct{ Request json.RawMessage }
	}
	conformance.Must(t, json.Unmarshal(body, &p))
	if asked := string(p.Job.Request); strings.Contains(asked, "parallelism") || !strings.Contains(asked, l.files[4]) {
		t.Errorf("the plan has the request %s", asked)
	}
}

func TestATaskThatCannotBeDoneIsNamedAndTheSameCommandContinues(t *testing.T) {
	l := newPrismLoad(t, 20_000)
	if code, said := l.load(); code != 0 {
		t.Fatalf("plan: exit code %d\n%s", code, said)
	}
	damage(l)
	code, said := l.load("--runner", "prism")
	if code != 2 || !strings.Contains(said, "000000.json") || !strings.Contains(said, "damaged") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	conformance.Must(t, os.Remove(filepath.Join(l.job, "splits", "000000.json")))
	// The failure of the first attempt, which is still known, does not end the second.
	if code, said := l.load("--runner", "prism"); code != 3 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	l.check()
}

func TestAnInterruptCancelsTheJobAndTheSameCommandContinues(t *testing.T) {
	l := newPrismLoad(t, 20_000)
	slow := []string{"--runner", "prism", "--max-rows-per-second", "4000"}
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for range time.Tick(20 * time.Millisecond) { // until a shard is being written
			if found, _ := filepath.Glob(filepath.Join(l.job, "shards", "*", "reduced.json")); len(found) > 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
				return
			}
		}
	}()
	code, said := l.load(slow...)
	<-stop
	if code != 130 || !strings.Contains(said, "is CANCELLED") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	if code, said := l.load(slow...); code != 3 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	l.check()
}

func TestFlagsThatCannotBeDoneAreRefusedBeforeThePlan(t *testing.T) {
	l := newPrismLoad(t, 100)
	for text, why := range map[string]string{
		"--runner flink --environment loopback":                            "--job-endpoint",
		"--runner flink --job-endpoint h:1":                                "say where tasks run",
		"--runner flink --job-endpoint h:1 --environment docker:":          "docker:",
		"--runner flink --job-endpoint h:1 --environment podman:x":         "want process:COMMAND",
		"--runner prism --environment loopback:x":                          "loopback takes nothing more",
		"--runner prism --parallelism -1":                                  "want 0 or more",
		"--runner spark":                                                   "want flink or prism",
		"--runner flink --job-endpoint 127.0.0.1:1 --environment loopback": "reach the job server at 127.0.0.1:1",
	} {
		code, said := l.load(strings.Fields(text)...)
		if code == 0 || !strings.Contains(said, why) {
			t.Errorf("%s: exit code %d, %s; want %q", text, code, said, why)
		}
		_, err := os.Stat(filepath.Join(l.job, "plan.json"))
		conformance.Equal(t, err == nil, strings.Contains(text, "127.0.0.1"), "%s: planned", text)
		conformance.Must(t, os.RemoveAll(l.job))
	}
}
