//go:build e2e && unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tsimport/internal/objectstore/storetest"
)

// sshDouble runs the command of `ssh HOST COMMAND` in a folder of its own, and says there how what it started has ended.
const sshDouble = `#!/bin/bash
mkdir "$MACHINES/$1" && cd "$MACHINES/$1"
bash -c "$2"$'\nwait $!; echo $? > code.part; mv code.part code' > started.log 2>&1 &
`

// TestTheHowToOfManyMachinesRuns runs the commands of the page: inputs and job directory are in a test double of OSS, and each machine is a
// folder.
func TestTheHowToOfManyMachinesRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServe(t, "--partitions", "4")
	around := &surroundings{T: t}
	lake := storetest.New(around, "lake")
	const files, records = 3, 2000
	for f := range files {
		var text strings.Builder
		text.WriteString("id,item\n")
		for i := range records {
			fmt.Fprintf(&text, "%d-%d,item %d\n", i, f, i)
		}
		lake.Set(fmt.Sprintf("orders/%d.csv", f), text.String(), time.Now())
	}
	env := append(append(around.env, s.credentials()...), "TABLESTORE_ENDPOINT="+s.URL, "TABLESTORE_INSTANCE="+s.Instance, "OSS_ENDPOINT="+lake.URL(), "OSS_REGION=cn-test")
	environment := filepath.Join(dir, "environment")
	var lines strings.Builder
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&lines, "export %s='%s'\n", name, value)
	}
	must(t, os.WriteFile(environment, []byte(lines.String()), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte(sshDouble), 0o700))
	text, err := os.ReadFile("../docs/how-to/many-machines.md")
	must(t, err)
	ran := 0
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(continuation.ReplaceAllString(block[1], " ")) {
			if strings.HasPrefix(line, "ossutil ") { // another program
				continue
			}
			ran++
			cmd := exec.Command("bash", "-c", strings.ReplaceAll(line, "/etc/tsimport/environment", environment))
			cmd.Dir = dir
			cmd.Env = append(append(os.Environ(), env...), "MACHINES="+dir, "PATH="+dir+":"+filepath.Dir(binary)+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s%v\n%s", line, err, out)
			}
			if strings.HasPrefix(line, "tsimport resume ") && !strings.Contains(string(out), "finished: 6,000 read, 6,000 written, 0 rejected, 0 superseded") {
				t.Errorf("%s prints\n%s", line, out)
			}
			if strings.Contains(line, "ssh") {
				workersEnd(t, dir, 4)
			}
		}
	}
	if ran < 4 {
		t.Errorf("only %d commands were run", ran)
	}
	for _, name := range []string{"summary.json", "report.html"} {
		if content, found := lake.Content("jobs/orders-1/" + name); !found || content == "" {
			t.Errorf("the job directory holds no %s: %q", name, lake.Keys())
		}
	}
}

// workersEnd waits until the workers of so many machines have ended well.
func workersEnd(t *testing.T, machines string, count int) {
	t.Helper()
	deadline := time.Now().Add(processTimeout)
	for n := range count {
		machine := filepath.Join(machines, fmt.Sprintf("loader-%d", n+1))
		for {
			code, err := os.ReadFile(filepath.Join(machine, "code"))
			if err == nil {
				if string(code) != "0\n" {
					log, err := os.ReadFile(filepath.Join(machine, "work.log"))
					t.Errorf("the worker of %s ended with %s%s%v", machine, code, log, err)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the worker of %s has not ended", machine)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}
