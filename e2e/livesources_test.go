//go:build e2e

package e2e

import (
	"bufio"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var sourceRounds = flag.Int("source-rounds", 50, "rounds of make sources that kill the client, and as many that kill the server, of each database")

// liveLoad is a load of a table of a real server.
type liveLoad interface {
	command(more ...string) *exec.Cmd
	folder() string // that it runs in
	compare()       // fails if a cell differs
}

// liveSummary is what the summary of a load says of its source.
type liveSummary struct {
	State      string
	Consistent *bool
	Snapshots  []struct {
		Name   string
		Ranges []string
	}
	Attempts, Written, Rejected int
}

func summaryOf(t *testing.T, d liveLoad) (s liveSummary) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.folder(), "run", "summary.json"))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// started runs a command and, after a while, something that may end it.
func started(t *testing.T, c *exec.Cmd, after time.Duration, do func()) error {
	t.Helper()
	must(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(after):
		do()
		return <-ended
	}
}

// loseClients loads tables whose command is killed up to four times each, and compares each cell.
func loseClients(t *testing.T, make func(t *testing.T) liveLoad) {
	rnd := rand.New(rand.NewPCG(7, 7))
	hit := 0
	for range *sourceRounds {
		d := make(t)
		for tries := 0; ; tries++ {
			c := d.command("--max-rows-per-second", "40000")
			if tries > 3 {
				if out, err := d.command().CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				break
			}
			if err := started(t, c, time.Duration(100+rnd.IntN(900))*time.Millisecond, func() { _ = c.Process.Kill() }); err == nil {
				break
			}
		}
		if sum := summaryOf(t, d); sum.Attempts > 1 {
			if hit++; sum.Consistent == nil || *sum.Consistent {
				t.Errorf("an attempt that resumed claims one snapshot: %+v", sum)
			}
		}
		d.compare()
	}
	t.Logf("%d of %d loads were killed and resumed", hit, *sourceRounds)
	if hit < *sourceRounds/2 {
		t.Errorf("only %d loads were resumed", hit)
	}
}

// loseServers loads tables whose server is killed once, and starts again, and compares each cell.
func loseServers(t *testing.T, make func(t *testing.T) liveLoad, kill func()) {
	rnd := rand.New(rand.NewPCG(7, 8))
	hit := 0
	for range *sourceRounds {
		d := make(t)
		c := d.command("--max-rows-per-second", "10000") // it is read for three seconds
		if err := started(t, c, time.Duration(300+rnd.IntN(1200))*time.Millisecond, kill); err != nil {
			// It may have met the server before its first row: a command is not begun without one.
			if out, err := d.command().CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		if sum := summaryOf(t, d); len(sum.Snapshots) > 1 {
			if hit++; sum.Consistent == nil || *sum.Consistent || sum.Attempts > 1 {
				t.Errorf("a load whose snapshot was lost: %+v", sum)
			}
		}
		d.compare()
	}
	t.Logf("%d of %d loads lost their snapshot", hit, *sourceRounds)
	if hit < *sourceRounds/3 {
		t.Errorf("only %d loads lost their snapshot", hit)
	}
}

// Of a table that changes while it is loaded: how many rows it has at any moment. The sum of their n is 0 at any moment.
const movingRows = 200_000

// loadMoving loads the table moving of a server while write changes it: each row has to be as it was at some moment, and all at one.
func loadMoving(t *testing.T, dir, address string, write func(n int)) {
	c := exec.Command(binary, "load", address, "--table", "moving", "--store", "store", "--sync", "none", "--run-dir", "run", "--require-snapshot", "--max-rows-per-second", "60000")
	c.Dir = dir
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	must(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	writes := 0
	for done := false; !done; {
		select {
		case err := <-ended:
			if done = true; err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
		default:
			write(writes)
			writes++
		}
	}
	export := exec.Command(binary, "export", "--table", "moving", "--store", "store", "--format", "jsonl", "-o", "moving.jsonl")
	export.Dir = dir
	if out, err := export.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(filepath.Join(dir, "moving.jsonl"))
	must(t, err)
	defer f.Close()
	rows, total, changed := 0, 0, 0
	for lines := bufio.NewScanner(f); lines.Scan(); rows++ {
		var row struct {
			ID, N int
			Mark  string
		}
		must(t, json.Unmarshal(lines.Bytes(), &row))
		sum := md5.Sum(fmt.Appendf(nil, "%d:%d", row.ID, row.N))
		if row.Mark != hex.EncodeToString(sum[:]) {
			t.Fatalf("a row that never was: %s", lines.Bytes())
		}
		if total += row.N; row.N != 0 {
			changed++
		}
	}
	t.Logf("%d writes, %d rows, %d of them changed before the snapshot", writes, rows, changed)
	if rows != movingRows || total != 0 || writes < 20 {
		t.Errorf("%d rows with the sum %d after %d writes: they are not of one moment", rows, total, writes)
	}
}
