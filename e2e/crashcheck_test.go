//go:build e2e

package e2e

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLoadsThatAreCrashedLeaveTheTableOfASequentialLoad draws loads from seeds, the inputs, the way they are written and how
// the engine behaves, and kills tsimport, the engine or both, again and again, at moments that are drawn too, while partitions
// split and requests are lost or applied late. Run until it is done, the table must be that of a sequential load, every record
// must be counted once and every reject kept once, and verify must find that, and each corruption that is planted then.
func TestLoadsThatAreCrashedLeaveTheTableOfASequentialLoad(t *testing.T) { crashLoads(t, false) }

// TestLoadsThatAreCrashedAndLoseTheirDiskLeaveTheTableOfASequentialLoad does the same with --state: each attempt begins in a new working
// folder, as a pod that was moved to another machine.
func TestLoadsThatAreCrashedAndLoseTheirDiskLeaveTheTableOfASequentialLoad(t *testing.T) {
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "crash-rounds" })
	if !asked {
		t.Skip("waits for leases of half a minute to end: make crash, or -crash-rounds 1")
	}
	crashLoads(t, true)
}

func crashLoads(t *testing.T, state bool) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	for seed := *crashSeed; seed < *crashSeed+uint64(*crashRounds); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			c := newCrashLoad(t, seed)
			in := drawInput(t, c.rnd, c.dir)
			c.rows = in.total
			c.drawEngine()
			c.serve(true)
			if len(in.before) > 0 {
				c.prepare(in)
			}
			c.args = append(append([]string{"load"}, in.flags()...), "--settle", crashSettle.String(), "--memory", "16MiB", "--max-errors", "-1",
				"--concurrency", fmt.Sprint(1+c.rnd.IntN(32)), "-q")
			if state {
				c.inputs = filepath.Join(t.TempDir(), "inputs")
				must(t, os.Rename(c.dir, c.inputs))
				c.args = append(c.args, "--state", filepath.Join(t.TempDir(), "state"), "--request-timeout", "2s")
			}
			run := c.run()
			c.server.stop(t) // what is still to be applied late is applied now
			c.serve(false)
			sum := c.summary(run)
			c.checkLedger(in, run, sum)
			c.checkRows(in)
			c.checkVerify(in, run)
			t.Logf("%d records in %d files, %s %s %s; %d attempts, %d kills of tsimport (%d early, %d late), %d of the engine; %d replayed, %d spilled, %d rejected",
				in.total, len(in.sources), in.mode, in.condition, in.order, c.attempts, c.loadKills, c.early, c.late, c.engineKills, sum.Replayed, sum.SpilledRows, sum.Rejected)
		})
	}
}

// prepare makes the table with the rows that are there before, by an engine that makes no trouble.
func (c *crashLoad) prepare(in *crashInput) {
	c.server.stop(c.t)
	c.serve(false)
	c.create(crashTable, in.before)
	c.server.stop(c.t)
	c.serve(true)
}

// checkLedger checks the counters over all attempts, and that every reject is kept once, unchanged from its file.
func (c *crashLoad) checkLedger(in *crashInput, run string, sum crashSummary) {
	t := c.t
	t.Helper()
	if sum.State != "finished" || sum.Read != in.total || sum.Rejected != len(in.rejected) || sum.Written+sum.Rejected+sum.Superseded != in.total || sum.Unfinished != 0 {
		t.Errorf("%+v, want %d read and %d rejected", sum, in.total, len(in.rejected))
	}
	diff(t, c.reasons(run), slices.Sorted(maps.Keys(in.rejected)))
	var want []string
	parquets := 0
	for at, text := range in.rejected {
		if strings.Contains(at, ".parquet ") {
			parquets++
			continue
		}
		want = append(want, text)
	}
	got := c.rejects(run)
	byParquet := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return slices.Contains(want, s) })
	if len(byParquet) != parquets {
		t.Errorf("%d rejects are kept that are no text of a CSV or JSON-lines file, want the %d of Parquet files", len(byParquet), parquets)
	}
	got = slices.DeleteFunc(got, func(s string) bool { return slices.Contains(byParquet, s) })
	slices.Sort(got)
	slices.Sort(want)
	if len(got)+len(want) > 0 {
		diff(t, got, want)
	}
}

// reasons returns "file record" of every line of the reasons, in order.
func (c *crashLoad) reasons(run string) (all []string) {
	text, err := os.ReadFile(filepath.Join(run, "rejects.jsonl"))
	if !os.IsNotExist(err) {
		must(c.t, err)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var reason struct {
			File   string
			Record int
		}
		if err := d.Decode(&reason); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, fmt.Sprint(reason.File, " ", reason.Record))
	}
	slices.Sort(all)
	return all
}

// rejects returns the texts of the rejected records that are kept.
func (c *crashLoad) rejects(run string) (all []string) {
	names, err := filepath.Glob(filepath.Join(run, "rejects*"))
	must(c.t, err)
	for _, name := range names {
		if strings.Contains(filepath.Base(name), ".later-") {
			continue // moved aside: it came after the last checkpoint, and its records have been read again
		}
		text, err := os.ReadFile(name)
		must(c.t, err)
		switch filepath.Ext(name) {
		case ".ndjson":
			all = slices.AppendSeq(all, strings.Lines(string(text)))
		case ".csv":
			r := csv.NewReader(bytes.NewReader(text))
			r.FieldsPerRecord = -1
			for from := int64(0); ; from = r.InputOffset() {
				if _, err := r.Read(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					c.t.Fatal(err)
				}
				if from > 0 { // after the header
					all = append(all, string(text[from:r.InputOffset()]))
				}
			}
		}
	}
	return all
}

// checkRows compares the table with what a sequential load leaves.
func (c *crashLoad) checkRows(in *crashInput) {
	c.t.Helper()
	got := map[crashKey]map[string]any{}
	for _, r := range c.table().all(c.t) {
		cells := map[string]any{}
		for _, x := range r.Cells {
			cells[x.Name] = x.Value
		}
		got[crashKey{r.Key[0].(string), r.Key[1].(int64)}] = cells
	}
	if d := differs(in.want, got); d != "" {
		c.t.Errorf("%d rows, want %d; (-want +got):\n%.3000s", len(got), len(in.want), d)
	}
}

// verify compares the table with what the run was given.
func (c *crashLoad) verify(run string) (code int, found comparedKeys) {
	c.t.Helper()
	var out, errOut bytes.Buffer
	cmd := c.command("verify", "--run", run, "--json", "--examples", "1000")
	cmd.Stdout, cmd.Stderr = &out, &errOut
	_ = cmd.Run() // its exit code says it
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		c.t.Fatalf("verify: %v: %s%s", err, out.Bytes(), errOut.Bytes())
	}
	return cmd.ProcessState.ExitCode(), found
}

// comparedKeys is what verify says of string and integer keys.
type comparedKeys struct {
	OK                               bool
	Equal, Missing, Different, Extra int
	Examples                         []struct {
		Kind string
		Key  struct {
			PK1 string
			PK2 int64
		}
		Columns []string
	}
}

// names returns what was found that is not in base.
func (k *comparedKeys) names(base []string) (all []string) {
	for _, e := range k.Examples {
		name := fmt.Sprint(e.Kind, " ", crashKey{e.Key.PK1, e.Key.PK2})
		if !slices.Contains(base, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// checkVerify compares the table by tsimport verify, plants corruptions and compares again: it must find each and no other.
func (c *crashLoad) checkVerify(in *crashInput, run string) {
	t := c.t
	t.Helper()
	code, found := c.verify(run)
	surplus := 0
	for k := range in.want {
		if !in.named[k] {
			surplus++
		}
	}
	if code != 0 || !found.OK || found.Missing+found.Different != 0 || found.Extra != surplus {
		t.Fatalf("verify: exit code %d, %+v; want %d surplus rows and no other difference", code, found, surplus)
	}
	base := found.names(nil)
	want := c.plant(in)
	code, found = c.verify(run)
	if code != 6 || found.OK {
		t.Errorf("verify of a table with %d corruptions: exit code %d", len(want), code)
	}
	diff(t, found.names(base), want)
}

// plant changes a cell of some rows, removes some and adds some, and returns what is to be found.
func (c *crashLoad) plant(in *crashInput) (want []string) {
	tb := c.table()
	keys := slices.SortedFunc(maps.Keys(in.named), func(a, b crashKey) int { return strings.Compare(a.String(), b.String()) })
	c.rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for i, k := range keys[:min(len(keys), 6)] {
		key := tb.key(k.user, k.n)
		switch {
		case in.mode == modeDelete:
			must(c.t, tb.do(tb.put(key, cell{Name: "a", Value: "back"})))
			want = append(want, fmt.Sprint("different ", k))
		case i%2 == 0:
			must(c.t, tb.do(tb.update(key, set("b", int64(-7)))))
			want = append(want, fmt.Sprint("different ", k))
		default:
			must(c.t, tb.do(tb.delete(key)))
			want = append(want, fmt.Sprint("missing ", k))
		}
	}
	for i := range 3 {
		k := crashKey{fmt.Sprintf("u%04dx", c.rnd.IntN(900)), int64(i)}
		must(c.t, tb.do(tb.put(tb.key(k.user, k.n), cell{Name: "b", Value: int64(1)})))
		want = append(want, fmt.Sprint("extra ", k))
	}
	slices.Sort(want)
	return want
}
