//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// renumbered checks a table that the service has numbered against the one that it was archived from, by the file of old and new keys: every
// row once with all of its cells, and the numbers of a partition key in the order of the old ones.
func (p *pairOf) renumbered(t *testing.T, from, to *served, source, target, keys string) {
	p.t.Helper()
	p.renumberedFrom(t, dump(p.t, from, source), to, target, keys)
}

func (p *pairOf) renumberedFrom(t *testing.T, was map[string][]cell, to *served, target, keys string) {
	p.t.Helper()
	is := dump(p.t, to, target)
	text, err := os.ReadFile(filepath.Join(p.dir, keys))
	must(p.t, err)
	lines := readCSV(t, string(text), "file,record,pk1,pk2,old_pk1,old_pk2")
	if len(lines) != len(was) || len(is) != len(was) {
		p.t.Errorf("%d keys and %d rows, want %d", len(lines), len(is), len(was))
	}
	type numbers struct{ old, new int64 }
	streams, seen := map[string][]numbers{}, map[string]bool{}
	for _, l := range lines {
		was, is := was[fmt.Sprintf("[%s %s]", l[4], l[5])], is[fmt.Sprintf("[%s %s]", l[2], l[3])]
		is = slices.DeleteFunc(slices.Clone(is), func(c cell) bool { return c.Name == "_tsimport" })
		if diff := differs(was, is, cmp.Transformer("length", func(c []cell) string { return fmt.Sprint(c) })); l[2] != l[4] || diff != "" {
			p.t.Fatalf("row %v: %s", l, diff)
		}
		n, err := strconv.ParseInt(l[3], 10, 64)
		must(p.t, err)
		o, err := strconv.ParseInt(l[5], 10, 64)
		must(p.t, err)
		streams[l[2]] = append(streams[l[2]], numbers{o, n})
		for _, key := range []string{"old " + l[4] + l[5], "new " + l[2] + l[3]} {
			if seen[key] {
				p.t.Errorf("the %s is there twice", key)
			}
			seen[key] = true
		}
	}
	for stream, all := range streams {
		slices.SortFunc(all, func(a, b numbers) int { return int(min(max(a.old-b.old, -1), 1)) })
		if !slices.IsSortedFunc(all, func(a, b numbers) int { return int(min(max(a.new-b.new, -1), 1)) }) {
			p.t.Errorf("%s is not in the order of the archive: %v", stream, all)
		}
	}
}

// TestAnArchiveIsLoadedIntoANumberedTable kills loads with SIGKILL, while the service refuses rows and loses answers.
func TestAnArchiveIsLoadedIntoANumberedTable(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 1500)
	p.run(0, "export", "--table", "t", "-o", "kept/")
	q := p.swapped()
	load := []string{"load", "kept", "--table", "r", "--create", "--pk", "pk1:string", "--pk", "pk2:auto", "--settle", "100ms"}
	q.ends(2, load, "give --returned-keys FILE, which keeps the old key of each row")
	q.ends(2, append(load, "--returned-keys", "keys.csv", "--order", "none"), "--order none")
	load = append(load, "--returned-keys", "keys.csv")
	rnd := rand.New(rand.NewPCG(7, 17))
	troubled(t, p.b, 1, 0.1, "BatchWriteRow", "refuse-rows", "drop-after", "drop-before", "error-after", "apply-late", "truncate-body")
	whole := false
	for round := 0; round < 6 && !whole; round++ {
		until, at := time.Now().Add(10*time.Second), p.size("keys.csv")+int64(rnd.IntN(8000))
		whole = q.attempt(func() bool { return p.size("keys.csv") > at || time.Now().After(until) }, load...) || len(q.glob("tsimport-runs/2*/summary.json")) > 0 && q.summary().State == "finished"
	}
	if !whole {
		q.run(0, load...)
	}
	p.renumbered(t, p.a, p.b, "t", "r", "keys.csv")
	troubled(t, p.b, 1, 0, "BatchWriteRow", "refuse-rows")
	verify := []string{"verify", "kept", "--table", "r", "--returned-keys", "keys.csv", "--extra", "fail"}
	q.ends(0, verify, "1,500 equal")

	// The file is edited, or gone: rows without a key are not equal, and no load writes over it.
	text, err := os.ReadFile(filepath.Join(p.dir, "keys.csv"))
	must(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	edit := func(lines ...string) {
		must(t, os.WriteFile(filepath.Join(p.dir, "keys.csv"), []byte(strings.Join(lines, "")), 0o600))
	}
	edit(slices.Delete(slices.Clone(lines), 5, 6)...)
	q.ends(6, verify, "1 without a returned key")
	edit(strings.Replace(lines[0], "old_pk2", "pk3", 1))
	q.ends(2, verify, "its header is")
	edit(lines...)
	q.ends(2, append(load, "--fresh"), "keys.csv exists")

	// A table made again as it was, from an archive of the numbered one. Its marks are cells like any.
	q.run(0, "export", "--table", "r", "-o", "numbered/")
	out := q.run(0, "load", "numbered", "--table", "again", "--create", "--returned-keys", "again.csv", "--mark-column", "marks", "--verify")
	if !strings.Contains(out, "1,500 equal") {
		t.Error(out)
	}
	q.ends(0, []string{"table", "describe", "again"}, "auto-increment")
	q.ends(2, []string{"load", "numbered", "--table", "clash", "--create", "--returned-keys", "clash.csv"}, "--mark-column")
	q.run(0, "export", "--table", "r", "-o", "twin/")
	q.run(0, "verify", "numbered", "--archive", "twin", "--extra", "fail")
}
