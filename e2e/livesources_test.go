//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var sourceRounds = flag.Int("source-rounds", 50, "rounds of make sources that kill the client, and as many that kill the server, of each database")

// liveLoad is a load of the table orders of a real server into a store in a folder of its own.
type liveLoad struct {
	*place
	load    []string
	compare func() // fails if a cell differs
}

func newLiveLoad(t *testing.T, address string, more ...string) *liveLoad {
	return &liveLoad{place: newPlace(t, "TSIMPORT_CHECKPOINT_EVERY=50ms"),
		load: append([]string{"load", address, "--table", "orders", "--store", "store", "--sync", "none", "--run-dir", "run"}, more...)}
}

// back opens what the target holds as lines of JSON.
func (d *liveLoad) back() *os.File {
	d.t.Helper()
	d.run(0, "export", "--table", "orders", "--store", "store", "--format", "jsonl", "-o", "back.jsonl")
	f, err := os.Open(d.path("back.jsonl"))
	must(d.t, err)
	d.t.Cleanup(func() { f.Close() })
	return f
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

func (d *liveLoad) liveSummary() (s liveSummary) {
	d.t.Helper()
	must(d.t, json.Unmarshal([]byte(d.read("run/summary.json")), &s))
	return s
}

// until runs the load and, some time after it has kept something, does what may end it. It reports whether the load ended well.
func (d *liveLoad) until(after time.Duration, do func(r *process), more ...string) bool {
	d.t.Helper()
	r := d.start(append(d.load, more...)...)
	if r.until(there(d.path("run/checkpoint.bin"))) {
		at := time.Now().Add(after)
		if r.until(func() bool { return time.Now().After(at) }); !r.over() {
			do(r)
		}
	}
	return r.wait() == 0
}

// loadWhole loads a million rows as they are.
func (d *liveLoad) loadWhole(rows int, more ...string) {
	d.t.Helper()
	d.run(0, append(append(d.load, "--require-snapshot"), more...)...)
	if sum := d.liveSummary(); sum.Consistent == nil || !*sum.Consistent || len(sum.Snapshots) != 1 || sum.Written != rows {
		d.t.Errorf("%+v", sum)
	}
	d.compare()
}

// keepsNoPassword loads from addresses with passwords, of which the last is right, and looks for them in all that is left.
func (d *liveLoad) keepsNoPassword(variable string, addresses ...string) {
	d.t.Helper()
	for i, address := range addresses {
		password, code := "wrong-planted", 2
		if i == len(addresses)-1 {
			password, code = "planted-secret", 0
		}
		d.env = []string{variable + "=" + password}
		d.load[1] = address
		if said := d.ends(code, d.load); strings.Contains(said, "planted") {
			d.t.Errorf("%s", said)
		}
	}
	d.compare()
	must(d.t, filepath.WalkDir(d.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if bytes.Contains(text, []byte("planted")) {
			d.t.Errorf("%s keeps a password", name)
		}
		return err
	}))
}

// loseClients loads tables whose command is killed up to four times each, and compares each cell.
func loseClients(t *testing.T, make func(t *testing.T) *liveLoad) {
	rnd := rand.New(rand.NewPCG(7, 7))
	hit := 0
	for range *sourceRounds {
		d := make(t)
		for tries := 0; !d.until(time.Duration(rnd.IntN(400))*time.Millisecond, (*process).kill, "--max-rows-per-second", "40000"); tries++ {
			if tries == 3 {
				d.run(0, d.load...)
				break
			}
		}
		if sum := d.liveSummary(); sum.Attempts > 1 {
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
func loseServers(t *testing.T, make func(t *testing.T) *liveLoad, kill func()) {
	rnd := rand.New(rand.NewPCG(7, 8))
	hit := 0
	for range *sourceRounds {
		d := make(t)
		// It is read for three seconds. It may meet the server before its first row: a command is not begun without one.
		if !d.until(time.Duration(rnd.IntN(1200))*time.Millisecond, func(*process) { kill() }, "--max-rows-per-second", "10000") {
			d.run(0, d.load...)
		}
		if sum := d.liveSummary(); len(sum.Snapshots) > 1 {
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
func loadMoving(t *testing.T, address string, write func(n int)) {
	p := newPlace(t)
	r := p.start("load", address, "--table", "moving", "--store", "store", "--sync", "none", "--run-dir", "run", "--require-snapshot", "--max-rows-per-second", "60000")
	writes := 0
	for ; !r.over(); writes++ {
		write(writes)
	}
	if r.wait() != 0 {
		t.Fatalf("%v\n%s", r.ProcessState, &r.said)
	}
	p.run(0, "export", "--table", "moving", "--store", "store", "--format", "jsonl", "-o", "moving.jsonl")
	f, err := os.Open(p.path("moving.jsonl"))
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
