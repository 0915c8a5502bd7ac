//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// periods is a load of two years of student cards into tables by month, of which the first year goes to the archive.
type periods struct {
	*place
	rows    int64
	archive map[string]string // file to content, as it must be
	months  map[string]int64  // rows of each month
}

func newPeriods(t *testing.T, rows int64) *periods {
	p := &periods{place: newPlace(t, "TSIMPORT_CHECKPOINT_EVERY=20ms"), rows: rows, archive: map[string]string{}, months: map[string]int64{}}
	p.run(0, "gen", "student-cards", "--rows", fmt.Sprint(rows), "--days", "731", "-o", "cards.csv")
	lines := strings.SplitAfter(p.read("cards.csv"), "\n")
	files := map[string]*strings.Builder{}
	for _, line := range lines[1:] {
		if line == "" {
			continue
		}
		at := strings.Split(line, ",")[5]
		month := at[:4] + at[5:7]
		p.months[month]++
		if month < "202501" {
			if files[month] == nil {
				files[month] = new(strings.Builder)
				files[month].WriteString(lines[0])
			}
			files[month].WriteString(line)
		}
	}
	for month, b := range files {
		p.archive["consume_"+month+".csv"] = b.String()
	}
	p.write("policy.yaml", "period: month\nclasses:\n  - {up_to: 1, reserved: {read: 0, write: 500}}\n"+
		"  - {up_to: 6, reserved: {read: 200, write: 100}}\n  - {up_to: 11, reserved: {read: 10, write: 10}}\n  - {archive: old}\n")
	return p
}

func (p *periods) args(more ...string) []string {
	return append([]string{"load", "cards.csv", "--table", "consume_{month(OrderTime)}", "--pk", "CardID", "--pk", "DeviceID", "--pk", "OrderNumber", "--create",
		"--age-policy", "policy.yaml", "--now", "2025-12-20T00:00:00Z", "-q"}, more...)
}

// check checks the ledger, the archive, and what each table is.
func (p *periods) check(t *testing.T) {
	t.Helper()
	var sum struct {
		Read, Written, Rejected, Superseded, Archived, Unfinished int64
		Tables                                                    []struct {
			Name              string
			Class             int
			Written, Archived int64
		}
	}
	p.summary(&sum)
	if sum.Read != p.rows || sum.Written+sum.Archived != p.rows || sum.Unfinished != 0 || len(sum.Tables) != 24 {
		t.Fatalf("%+v", sum)
	}
	for i, of := range sum.Tables {
		if n := p.months[of.Name[len("consume_"):]]; of.Written+of.Archived != n || (of.Archived > 0) != (i < 12) {
			t.Errorf("%+v, want %d rows", of, n)
		}
	}
	entries, err := os.ReadDir(filepath.Join(p.dir, "old"))
	must(t, err)
	if len(entries) != len(p.archive) {
		t.Errorf("%d files in the archive, want %d", len(entries), len(p.archive))
	}
	for name, want := range p.archive {
		if got, err := os.ReadFile(filepath.Join(p.dir, "old", name)); err != nil || string(got) != want {
			t.Errorf("%s has %d bytes, want %d: %v", name, len(got), len(want), err)
		}
	}
	p.checkTables()
}

// checkTables checks that the tables are as the policy has them, and hold what the input says.
func (p *periods) checkTables() {
	p.t.Helper()
	if said := p.run(0, "age", "--policy", "policy.yaml", "--table", "consume_{month}", "--now", "2025-12-20T00:00:00Z"); strings.Count(said, "unchanged") != 12 {
		p.t.Errorf("age: %s", said)
	}
	runs := p.glob("tsimport-runs/*")
	if len(runs) != 1 {
		p.t.Fatalf("%d runs, want one", len(runs))
	}
	p.ends(0, []string{"verify", "--run", runs[0], "--extra", "fail"}, "12 tables", " 0 surplus")
}

func TestTwoYearsGoToTablesByMonthAndTheArchiveThoughTheLoadIsKilled(t *testing.T) {
	t.Parallel()
	for _, order := range ordersToKill() {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			p := newPeriods(t, 8000)
			if code := p.killAgainAndAgain(rand.New(rand.NewPCG(7, uint64(len(order)))), p.rows/6, p.rows/2, p.args("--order", order, "--max-rows-per-second", "4000")...); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			if order == "none" {
				p.sortArchive(t)
			}
			p.check(t)
		})
	}
}

// sortArchive puts the rows of the archive into the order of the input, which a load in no order does not keep.
func (p *periods) sortArchive(t *testing.T) {
	t.Helper()
	for name := range p.archive {
		path := filepath.Join(p.dir, "old", name)
		text, err := os.ReadFile(path)
		must(t, err)
		header, rows, _ := strings.Cut(string(text), "\n")
		lines := strings.SplitAfter(rows, "\n")
		slices.SortStableFunc(lines[:len(lines)-1], func(a, b string) int {
			return strings.Compare(strings.Split(a, ",")[5], strings.Split(b, ",")[5]) // OrderTime, of which none comes twice
		})
		must(t, os.WriteFile(path, []byte(header+"\n"+strings.Join(lines, "")), 0o600))
	}
}
