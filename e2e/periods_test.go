//go:build e2e

package e2e

import (
	"encoding/json"
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
	dir     string
	rows    int64
	archive map[string]string // file to content, as it must be
	months  map[string]int64  // rows of each month
}

func newPeriods(t *testing.T, rows int64) *periods {
	p := &periods{dir: t.TempDir(), rows: rows, archive: map[string]string{}, months: map[string]int64{}}
	input := filepath.Join(p.dir, "cards.csv")
	if _, stderr, code := runBinary(t, "gen", "student-cards", "--rows", fmt.Sprint(rows), "--days", "731", "-o", input); code != 0 {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile(input)
	must(t, err)
	lines := strings.SplitAfter(string(text), "\n")
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
	must(t, os.WriteFile(filepath.Join(p.dir, "policy.yaml"), []byte("period: month\nclasses:\n  - {up_to: 1, reserved: {read: 0, write: 500}}\n"+
		"  - {up_to: 6, reserved: {read: 200, write: 100}}\n  - {up_to: 11, reserved: {read: 10, write: 10}}\n  - {archive: old}\n"), 0o600))
	return p
}

func (p *periods) args(more ...string) []string {
	return append([]string{"load", "cards.csv", "--table", "consume_{month(OrderTime)}", "--pk", "CardID", "--pk", "DeviceID", "--pk", "OrderNumber", "--create",
		"--age-policy", "policy.yaml", "--now", "2025-12-20T00:00:00Z", "-q"}, more...)
}

// check checks the ledger, the archive, and what each table is.
func (p *periods) check(t *testing.T) {
	t.Helper()
	runs, err := filepath.Glob(filepath.Join(p.dir, "tsimport-runs", "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, want one: %v", len(runs), err)
	}
	text, err := os.ReadFile(filepath.Join(runs[0], "summary.json"))
	must(t, err)
	var sum struct {
		Read, Written, Rejected, Superseded, Archived, Unfinished int64
		Tables                                                    []struct {
			Name              string
			Class             int
			Written, Archived int64
		}
	}
	must(t, json.Unmarshal(text, &sum))
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
	p.checkTables(t)
}

// checkTables checks that the tables are as the policy has them, and hold what the input says.
func (p *periods) checkTables(t *testing.T) {
	t.Helper()
	store := filepath.Join(p.dir, "tsimport-store")
	stdout, stderr, code := runBinary(t, "age", "--policy", filepath.Join(p.dir, "policy.yaml"), "--table", "consume_{month}",
		"--now", "2025-12-20T00:00:00Z", "--store", store)
	if code != 0 || strings.Count(stdout, "unchanged") != 12 {
		t.Errorf("age: exit code %d\n%s%s", code, stdout, stderr)
	}
	runs, _ := filepath.Glob(filepath.Join(p.dir, "tsimport-runs", "*"))
	stdout, stderr, code = runBinary(t, "verify", "--run", runs[0], "--extra", "fail")
	if code != 0 || !strings.Contains(stdout, "12 tables") || !strings.Contains(stdout, " 0 surplus") {
		t.Errorf("verify: exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestTwoYearsGoToTablesByMonthAndTheArchiveThoughTheLoadIsKilled(t *testing.T) {
	t.Parallel()
	for _, order := range ordersToKill() {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			p := newPeriods(t, 15_000)
			rnd := rand.New(rand.NewPCG(7, uint64(len(order))))
			kills := 0
			for final := rnd.Int64N(p.rows / 6); ; final += 1 + rnd.Int64N(p.rows/2) {
				command := p.args("--order", order, "--max-rows-per-second", "5000")
				if kills == 2 {
					command = []string{"resume"}
				}
				ended, code := killed(t, p.dir, final, command...)
				if !ended {
					kills++
					continue
				}
				if code != 0 {
					t.Fatalf("exit code %d", code)
				}
				break
			}
			if kills == 0 {
				t.Error("it was never killed")
			}
			if order == "none" {
				p.sortArchive(t)
			}
			p.check(t)
			t.Logf("killed %d times", kills)
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
