package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// syncSummary is the part of a summary of a sync that the tests look at.
type syncSummary struct {
	State                                     string
	Read, Rejected, Equal, Missing, Different int64
	Puts, Written, Surplus, Deleted, Kept     int64
	Withheld                                  string
	RowsExpected                              int64 `json:"rows_expected"`
	RowsInTable                               int64 `json:"rows_in_table"`
	PutsRejected                              int64 `json:"puts_rejected"`
	PutsUnfinished                            int64 `json:"puts_unfinished"`
	DeletesRejected                           int64 `json:"deletes_rejected"`
	DeletesUnfinished                         int64 `json:"deletes_unfinished"`
	Costs                                     struct {
		WriteCU    int64 `json:"write_cu"`
		PutCU      int64 `json:"put_cu"`
		FullLoadCU int64 `json:"full_load_cu"`
	}
}

// TestSyncsThatAreCrashed kills syncs, the engine or both at random moments, and resumes them until one comes to its end. Then
// the table is what the file, the table or the archive says.
func TestSyncsThatAreCrashed(t *testing.T) {
	t.Parallel()
	sources := []string{"table"} // which are refused and cut while they are read, too
	if *crashRounds > 1 {
		sources = append(sources, "file", "archive")
	}
	for _, source := range sources {
		for round := range *crashRounds {
			seed := *crashSeed + uint64(round)
			t.Run(fmt.Sprint(source, "/", seed), func(t *testing.T) {
				t.Parallel()
				crashASync(t, source, seed)
			})
		}
	}
}

func crashASync(t *testing.T, source string, seed uint64) {
	c := newCrashLoad(t, seed)
	c.rnd = rand.New(rand.NewPCG(seed, 78))
	c.drawEngine()
	c.serve(false)
	keys := 3000
	if *crashRounds == 1 {
		keys = 800
	}
	stored, asked, want := map[crashKey]map[string]any{}, map[crashKey]map[string]any{}, map[string]bool{}
	text := "pk1,pk2,v,w\n"
	for i := range keys {
		k := crashKey{fmt.Sprintf("u%02d", c.rnd.IntN(40)), int64(i)}
		v, w := fmt.Sprint("v", c.rnd.IntN(2)), int64(c.rnd.IntN(2))
		if c.rnd.IntN(4) > 0 {
			stored[k] = map[string]any{"v": v, "w": w}
		}
		if c.rnd.IntN(4) > 0 {
			if c.rnd.IntN(2) == 0 {
				v = "new"
			}
			text += fmt.Sprintf("%s,%d,%s,%d\n", k.user, k.n, v, w)
			asked[k] = map[string]any{"v": v, "w": w}
			want[fmt.Sprint([]any{k.user, k.n}, v, w)] = true
		}
	}
	c.at = time.Now().UnixMilli() // rows of a source that are equal have equal timestamps
	c.create(crashTable, stored)
	must(t, os.WriteFile(filepath.Join(c.dir, "in.csv"), []byte(text), 0o644))
	inputs := []string{"in.csv", "--pk", "pk1", "--pk", "pk2:integer"}
	if source != "file" {
		c.create("source", asked)
		inputs = []string{"ots://" + c.server.Instance + "/source"}
	}
	if source == "archive" {
		if out, err := c.command("export", "--table", "source", "-o", "kept/", "--quiet").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		inputs = []string{"kept"}
	}
	c.server.kill(t)
	trouble := func() {
		c.serve(true)
		if source == "table" && seed%2 == 0 { // in place of faults of writes
			troubled(t, c.server, seed, 0.2, "GetRange", refusesPages...)
		}
	}
	trouble()
	how := []string{"--delete", "--max-delete", "100%"}
	deletes := seed%3 != 0
	if !deletes { // a row that was written already is not what it was compared with
		how = []string{"--if-unchanged"}
		for k, cells := range stored {
			if asked[k] == nil {
				want[fmt.Sprint([]any{k.user, k.n}, cells["v"], cells["w"])] = true
			}
		}
	}
	c.args = slices.Concat([]string{"sync", "--table", crashTable, "--settle", "300ms", "--quiet"}, how, inputs)

	strikes, compared := 2+c.rnd.IntN(6), 0
	if *crashRounds == 1 {
		strikes = 1
	}
	for attempts := 1; ; attempts++ {
		if attempts > 30 {
			t.Fatal("the sync does not end")
		}
		args := c.args
		if c.rnd.IntN(3) == 0 && finalRows(c.dir) >= 0 {
			args = []string{"resume"}
		}
		r := begin(t, c.command(args...))
		engine := false
		if strikes > 0 {
			strikes--
			if c.rnd.IntN(3) > 0 { // when the loads have begun
				r.until(func() bool {
					found, _ := filepath.Glob(filepath.Join(c.dir, "tsimport-runs", "*", "put", "summary.json"))
					return len(found) > 0
				})
			}
			at := time.Now().Add(time.Duration(c.rnd.IntN(1200)) * time.Millisecond)
			r.until(func() bool { return time.Now().After(at) })
			if engine = c.rnd.IntN(4) == 0; engine {
				c.server.kill(t)
			}
			if !engine || c.rnd.IntN(2) == 0 {
				r.kill()
			}
			if engine {
				trouble()
			}
		}
		code := r.wait()
		if runs, _ := filepath.Glob(filepath.Join(c.dir, "tsimport-runs", "*", "put")); len(runs) > 0 {
			compared++
		}
		if code == 0 {
			break
		}
		if finishedSync(c.dir) {
			break // it was killed when there was nothing left to do
		}
		if code != -1 && !engine {
			t.Fatalf("attempt %d %v: exit code %d: %s", attempts, args, code, &r.said)
		}
	}
	c.server.kill(t)
	c.serve(false)
	got := c.table().all(t)
	for _, r := range got {
		cells := map[string]any{}
		for _, cell := range r.Cells {
			cells[cell.Name] = cell.Value
		}
		if text := fmt.Sprint(r.Key, cells["v"], cells["w"]); !want[text] || len(cells) != 2 {
			t.Errorf("a row is %s with %d cells", text, len(cells))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d rows are in the table, want %d", len(got), len(want))
	}
	if source != "file" { // timestamps too
		if out, err := c.command("verify", inputs[0], "--table", crashTable, "--extra", map[bool]string{true: "fail", false: "report"}[deletes]).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	var s syncSummary
	(&place{t: t, dir: c.dir}).summary(&s)
	if s.State != "finished" || s.Equal+s.Missing+s.Different != s.RowsExpected || s.Written != s.Puts || s.Puts != s.Missing+s.Different || s.Deleted+s.Kept != s.Surplus ||
		deletes && s.Kept != 0 || !deletes && s.Deleted != 0 || s.PutsRejected+s.PutsUnfinished+s.DeletesRejected+s.DeletesUnfinished != 0 {
		t.Errorf("the ledger does not balance: %+v", s)
	}
	t.Logf("%d attempts in the loads, %d puts, %d deletes", compared, s.Written, s.Deleted)
}

// finishedSync reports whether the newest run says that it is done.
func finishedSync(dir string) bool {
	runs, err := filepath.Glob(filepath.Join(dir, "tsimport-runs", "*", "sync.json"))
	if err != nil || len(runs) == 0 {
		return false
	}
	text, err := os.ReadFile(slices.Max(runs))
	return err == nil && bytes.Contains(text, []byte(`"phase": "finished"`))
}
