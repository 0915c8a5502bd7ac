//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestNumberedLoadsThatAreCrashedHaveEachRecordOnce does the same to loads into a table whose rows the service numbers: every
// record must be one row, the numbers of a partition key must rise in the order of the input, and the file of returned keys must
// have the one of every record.
func TestNumberedLoadsThatAreCrashedHaveEachRecordOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for seed := *crashSeed; seed < *crashSeed+uint64(*crashRounds); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			c := newCrashLoad(t, seed)
			in := c.drawStreams()
			c.rows = in.total
			c.drawEngine()
			c.serve(true)
			c.args = []string{
				"load", "--table", crashTable, "--create", "--pk", "pk1:string", "--pk", "pk2:auto", "--exclude", "pk2", "--type", "a=string", "--type", "b=integer",
				"--returned-keys", "keys.csv", "--settle", crashSettle.String(), "--memory", "16MiB", "--max-errors", "-1", "-q",
			}
			for _, s := range in.sources {
				c.args = append(c.args, s.name)
			}
			run := c.run()
			c.server.stop(t) // what is still to be applied late is applied now
			c.serve(false)
			sum := c.summary(run)
			c.checkLedger(in, run, sum)
			c.checkNumbers(in)
			t.Logf("%d records in %d files; %d attempts, %d kills of tsimport (%d early, %d late), %d of the engine; %d replayed, %d looked for, %d found, %d surplus",
				in.total, len(in.sources), c.attempts, c.loadKills, c.early, c.late, c.engineKills, sum.Replayed, sum.Searched, sum.Found, sum.SurplusDeleted)
		})
	}
}

// drawStreams draws records of which many have the same pk1, and files of them.
func (c *crashLoad) drawStreams() *crashInput {
	in := &crashInput{mode: modePut, condition: "ignore", total: 500 + c.rnd.IntN(1500), rejected: map[string]string{}}
	users := 50 + c.rnd.IntN(200)
	var all []crashRecord
	for i := range in.total {
		r := crashRecord{user: fmt.Sprintf("u%04d", c.rnd.IntN(users)), a: fmt.Sprint("a", i), b: int64(i)}
		if c.rnd.IntN(100) == 0 {
			r.user, r.bad = "", true
		}
		all = append(all, r)
	}
	in.cut(c.t, c.rnd, c.dir, all)
	for _, s := range in.sources {
		for i, r := range s.records {
			if r.bad {
				in.rejected[fmt.Sprint(s.name, " ", i+1)] = r.text
			}
		}
	}
	return in
}

func (c *crashLoad) checkNumbers(in *crashInput) {
	t := c.t
	t.Helper()
	numbers := map[int64]int64{} // by b
	for _, r := range c.table().all(t) {
		n, ok := valueOf(r, "b").(int64)
		if !ok {
			t.Fatalf("row %v", r)
		}
		if numbers[n] != 0 {
			t.Errorf("record %d is there twice, as %d and %d", n, numbers[n], r.Key[1])
		}
		numbers[n] = r.Key[1].(int64)
	}
	text, err := os.ReadFile(filepath.Join(c.dir, "keys.csv"))
	must(t, err)
	var got, want []string
	for _, r := range readCSV(t, string(text), "file,record,pk1,pk2") {
		got = append(got, strings.Join(r, ","))
	}
	last := map[string]int64{}
	for _, s := range in.sources {
		for i, r := range s.records {
			if r.bad {
				continue
			}
			n := numbers[r.b]
			if n <= last[r.user] {
				t.Errorf("record %d of %s, %s: number %d behind %d", i+1, s.name, r.user, n, last[r.user])
			}
			last[r.user] = n
			want = append(want, strings.Join([]string{s.name, strconv.Itoa(i + 1), r.user, strconv.FormatInt(n, 10)}, ","))
		}
	}
	if len(numbers) != len(want) {
		t.Errorf("%d rows, want %d", len(numbers), len(want))
	}
	slices.Sort(got)
	slices.Sort(want)
	diff(t, got, want)
}
