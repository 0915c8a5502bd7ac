//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/google/go-cmp/cmp"
)

// renumbered checks a table that the service has numbered against the one that it was archived from, by the file of old and new keys: every
// row once with all of its cells, and the numbers of a partition key in the order of the old ones.
func (p *pairOf) renumbered(from, to *served, source, target, keys string) {
	p.t.Helper()
	was, is := dump(p.t, from, source), dump(p.t, to, target)
	text, err := os.ReadFile(filepath.Join(p.dir, keys))
	must(p.t, err)
	lines := readCSV(p.t, string(text), "file,record,pk1,pk2,old_pk1,old_pk2")
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
