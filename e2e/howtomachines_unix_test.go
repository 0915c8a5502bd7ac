//go:build e2e && unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/objectstore/storetest"
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
	p := newPlace(t)
	s := startServe(t, "--partitions", "4")
	around := &surroundings{T: t}
	lake := storetest.New(around, "lake")
	const files, records = 3, 2000
	for f := range files {
		lake.Set(fmt.Sprintf("orders/%d.csv", f), fileOf("id,item", records, func(i int) string { return fmt.Sprintf("%d-%d,item %d", i, f, i) }), time.Now())
	}
	p.env = slices.Concat(around.env, s.env(), []string{"OSS_ENDPOINT=" + lake.URL(), "OSS_REGION=cn-test"})
	var lines strings.Builder
	for _, variable := range p.env {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&lines, "export %s='%s'\n", name, value)
	}
	environment := p.write("environment", lines.String())
	must(t, os.Chmod(p.write("ssh", sshDouble), 0o700))
	p.env = append(p.env, "MACHINES="+p.dir, "PATH="+p.dir+":"+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	text, err := os.ReadFile("../docs/how-to/many-machines.md")
	must(t, err)
	ran := 0
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(continuation.ReplaceAllString(block[1], " ")) {
			if strings.HasPrefix(line, "ossutil ") { // another program
				continue
			}
			ran++
			r := p.bash(strings.ReplaceAll(line, "/etc/tsimport/environment", environment))
			if r.wait() != 0 {
				t.Fatalf("%s%v\n%s", line, r.ProcessState, &r.said)
			}
			if strings.HasPrefix(line, "tsimport resume ") && !strings.Contains(r.said.String(), "finished: 6,000 read, 6,000 written, 0 rejected, 0 superseded") {
				t.Errorf("%s prints\n%s", line, &r.said)
			}
			if strings.Contains(line, "ssh") {
				workersEnd(t, p.dir, 4)
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
