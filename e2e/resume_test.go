//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// killed runs tsimport in a folder, with checkpoints in quick succession, and kills it once the checkpoint has more than
// final rows. It reports whether it ended before, and how.
func killed(t *testing.T, dir string, final int64, args ...string) (ended bool, code int) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TSIMPORT_CHECKPOINT_EVERY=20ms")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-done:
			return true, cmd.ProcessState.ExitCode()
		case <-look.C:
		}
		if final >= 0 && finalRows(dir) > final {
			if err := cmd.Process.Signal(syscall.SIGKILL); err == nil {
				<-done
				return finishedRun(dir)
			}
			final = -1 // it has ended meanwhile
		}
	}
}

// finishedRun tells whether the newest run in a folder has finished, and how, though its process was killed right then.
func finishedRun(dir string) (finished bool, code int) {
	runs, err := filepath.Glob(filepath.Join(dir, "tsimport-runs", "*", "summary.json"))
	if err != nil || len(runs) == 0 {
		return false, -1
	}
	var s summary
	text, err := os.ReadFile(slices.Max(runs))
	if err != nil || json.Unmarshal(text, &s) != nil || s.State != "finished" {
		return false, -1
	}
	return true, s.ExitCode
}

// records makes a CSV file with repeated keys and rejects, and what a sequential load leaves of it.
func records(n, keys int) (text string, want []string, rejected int) {
	var b strings.Builder
	b.WriteString("id,n,v\n")
	rows := map[string]string{}
	for i := range n {
		id := fmt.Sprintf("key%d", (i*7919)%keys)
		if i%1000 == 7 {
			fmt.Fprintf(&b, "%s,%d\n", id, i)
			rejected++
			continue
		}
		fmt.Fprintf(&b, "%s,%d,%s\n", id, i, strings.Repeat("x", i%50))
		rows[id] = fmt.Sprintf("id=%s|n=%d|v=%s", id, i, strings.Repeat("x", i%50))
		if i%50 == 0 {
			rows[id] = fmt.Sprintf("id=%s|n=%d", id, i)
		}
	}
	for _, row := range rows {
		want = append(want, row)
	}
	slices.Sort(want)
	return b.String(), want, rejected
}

// ordersToKill are the orders of the loads that a test kills: in its default run the one that has more to remember.
func ordersToKill() []string {
	if *crashRounds > 1 {
		return []string{"last-wins", "none"}
	}
	return []string{"last-wins"}
}

func TestALoadThatIsKilledAgainAndAgainGetsDone(t *testing.T) {
	t.Parallel()
	const rows = 16_000
	text, want, rejected := records(rows, 4_000)
	for _, order := range ordersToKill() {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text, want := text, want
			if order == "none" { // for keys that do not come again
				text, want, _ = records(rows, rows)
			}
			if err := os.WriteFile(filepath.Join(dir, "in.csv"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			rnd := rand.New(rand.NewPCG(1, uint64(len(order))))
			// No machine is so fast that it is done before it is killed.
			args := []string{"load", "in.csv", "--table", "t", "--pk", "id", "--order", order, "--max-errors", "-1", "--max-rows-per-second", "10000", "-q"}
			kills := 0
			for final := rnd.Int64N(rows / 4); ; final += 1 + rnd.Int64N(rows/4) {
				command := args
				if kills == 2 {
					command = []string{"resume"}
				}
				ended, code := killed(t, dir, final, command...)
				if !ended {
					kills++
					continue
				}
				if code != 3 {
					t.Fatalf("exit code %d, want 3", code)
				}
				break
			}
			if kills == 0 {
				t.Error("it was never killed")
			}
			checkLoaded(t, dir, rows, rejected, want)
			t.Logf("killed %d times", kills)
		})
	}
}

// checkLoaded checks the ledger of the one run in a folder and the rows of the embedded store there.
func checkLoaded(t *testing.T, dir string, rows, rejected int, want []string) {
	t.Helper()
	runs, err := filepath.Glob(filepath.Join(dir, "tsimport-runs", "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, want one: %v", len(runs), err)
	}
	text, err := os.ReadFile(filepath.Join(runs[0], "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sum struct {
		State                               string
		Read, Written, Rejected, Superseded int
		Attempts, Unfinished                int
	}
	if err := json.Unmarshal(text, &sum); err != nil {
		t.Fatal(err)
	}
	if sum.State != "finished" || sum.Read != rows || sum.Rejected != rejected || sum.Written+sum.Rejected+sum.Superseded != rows || sum.Attempts < 2 {
		t.Errorf("%+v, want %d read and %d rejected", sum, rows, rejected)
	}
	kept, err := os.ReadFile(filepath.Join(runs[0], "rejects.csv"))
	if n := strings.Count(string(kept), "\n") - 1; err != nil || n != rejected {
		t.Errorf("%d rejected rows are kept, want %d: %v", n, rejected, err)
	}
	stdout, stderr, code := runBinary(t, "export", "--table", "t", "--store", filepath.Join(dir, "tsimport-store"))
	if code != 0 {
		t.Fatalf("export: exit code %d, %s", code, stderr)
	}
	if got := csvRecords(t, []byte(stdout)); !slices.Equal(got, want) {
		t.Errorf("%d rows, want the %d of a sequential load", len(got), len(want))
	}
}
