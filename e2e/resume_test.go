//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// killed runs tsimport, with checkpoints in quick succession, and kills it once the checkpoint has more than final rows. It reports whether it
// ended before, and how.
func (p *place) killed(final int64, args ...string) (ended bool, code int) {
	p.t.Helper()
	r := p.start(args...)
	r.until(func() bool { return finalRows(p.dir) > final })
	r.kill()
	if code := r.wait(); code >= 0 {
		return true, code
	}
	var s summary
	runs := p.glob("tsimport-runs/*/summary.json")
	if len(runs) == 0 {
		return false, -1
	}
	text, err := os.ReadFile(slices.Max(runs))
	return err == nil && json.Unmarshal(text, &s) == nil && s.State == "finished", s.ExitCode // though its process was killed right then
}

// killAgainAndAgain gives the command, and resume once, until it ends by itself, and returns its exit code.
func (p *place) killAgainAndAgain(rnd *rand.Rand, first, step int64, args ...string) (code int) {
	p.t.Helper()
	kills := 0
	for final := rnd.Int64N(first); ; final += 1 + rnd.Int64N(step) {
		given := args
		if kills == 2 {
			given = []string{"resume"}
		}
		ended, code := p.killed(final, given...)
		if ended {
			p.t.Logf("killed %d times", kills)
			if kills == 0 {
				p.t.Error("it was never killed")
			}
			return code
		}
		kills++
	}
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
			p := newPlace(t, "TSIMPORT_CHECKPOINT_EVERY=20ms")
			text, want := text, want
			if order == "none" { // for keys that do not come again
				text, want, _ = records(rows, rows)
			}
			p.write("in.csv", text)
			// No machine is so fast that it is done before it is killed.
			if code := p.killAgainAndAgain(rand.New(rand.NewPCG(1, uint64(len(order)))), rows/4, rows/4, "load", "in.csv", "--table", "t", "--pk", "id", "--order", order,
				"--max-errors", "-1", "--max-rows-per-second", "10000", "-q"); code != 3 {
				t.Fatalf("exit code %d, want 3", code)
			}
			p.checkLoaded(rows, rejected, want)
		})
	}
}

// checkLoaded checks the ledger of the one run in a folder and the rows of the embedded store there.
func (p *place) checkLoaded(rows, rejected int, want []string) {
	p.t.Helper()
	var sum struct {
		State                               string
		Read, Written, Rejected, Superseded int
		Attempts, Unfinished                int
	}
	if p.summary(&sum); sum.State != "finished" || sum.Read != rows || sum.Rejected != rejected || sum.Written+sum.Rejected+sum.Superseded != rows || sum.Attempts < 2 {
		p.t.Errorf("%+v, want %d read and %d rejected", sum, rows, rejected)
	}
	kept := p.glob("tsimport-runs/*/rejects.csv")
	if len(kept) != 1 {
		p.t.Fatalf("%d runs keep rejects, want one", len(kept))
	}
	text, err := os.ReadFile(kept[0])
	if n := strings.Count(string(text), "\n") - 1; err != nil || n != rejected {
		p.t.Errorf("%d rejected rows are kept, want %d: %v", n, rejected, err)
	}
	if got := csvRecords(p.t, []byte(p.output("export", "--table", "t"))); !slices.Equal(got, want) {
		p.t.Errorf("%d rows, want the %d of a sequential load", len(got), len(want))
	}
}
