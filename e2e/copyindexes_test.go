//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestATableIsCopiedWithItsIndexes(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.indexed("t", 300)
	p.ends(0, []string{"copy", "t", p.inB("t"), "--create", "--verify"},
		"gets the global index t_by_city with the key city, pk2 and the columns n when all rows are written", "the table has the 2 secondary indexes of its source")
	p.sameIndexes(p.a, p.b, "t", "t")

	// In one instance names are taken.
	p.ends(2, []string{"copy", "t", "u", "--create"}, "--rename-index t_by_city=NAME")
	p.run(2, "table", "describe", "u")
	renamed := []string{"--rename-index", "t_by_city=u_by_city", "--rename-index", "t_by_n=u_by_n"}
	p.ends(0, append([]string{"copy", "t", "u", "--create"}, renamed...), "the table has the 2 secondary indexes of its source")
	p.sameIndexes(p.a, p.a, "t", "u")
	p.ends(0, []string{"table", "describe", "u"}, "global index u_by_city with the key city, pk2 and the columns n")

	// An archive has them, too.
	p.run(0, "export", "--table", "t", "-o", "kept/")
	p.ends(2, []string{"load", "kept", "--table", "v", "--create"}, "--rename-index t_by_city=NAME")
	for i := range renamed {
		renamed[i] = strings.ReplaceAll(renamed[i], "=u", "=v")
	}
	p.run(0, append([]string{"load", "kept", "--table", "v", "--create", "--verify"}, renamed...)...)
	p.sameIndexes(p.a, p.a, "t", "v")
	for args, says := range map[string]string{
		"--create --exclude n --rename-index t_by_city=w_by_city": "of whose columns it does not have n; create it",
	} {
		p.ends(0, append([]string{"copy", "t", "w"}, strings.Fields(args)...), says)
		p.run(0, "table", "drop", "w", "--yes")
	}
	for args, says := range map[string]string{
		"--create --max-versions 3":      "keeps one version of a cell",
		"--create --ttl 86400":           "expire only if it refuses updates",
		"--create --rename-index no=yes": "has no index of that name",
	} {
		p.ends(2, append([]string{"copy", "t", "x"}, strings.Fields(args)...), says)
	}
}

func TestAnIndexIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.indexed("t", 100)
	must(t, os.WriteFile(filepath.Join(p.dir, "in.csv"), []byte("city,pk2,pk1,n\nx,1,a,2\ny,2,b,3\n"), 0o644))
	const of = " --pk city:string --pk pk2:integer --pk pk1:string -q"
	p.run(0, strings.Fields("load in.csv --create --table s"+of)...)
	before := dump(t, p.a, "t_by_city")
	for _, command := range []string{"load in.csv --table t_by_city" + of, "copy s t_by_city -q", "load in.csv --table t_by_city --mode delete --fresh" + of, "sync in.csv --table t_by_city" + of} {
		cmd := p.command(strings.Fields(command)...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "the table is a secondary index") {
			t.Errorf("%s: %v: %s", command, err, out)
		}
	}
	if diff := differs(before, dump(t, p.a, "t_by_city")); diff != "" {
		t.Error(diff)
	}
	p.run(0, "copy", "t_by_city", p.inB("flat"), "--create", "--verify") // it may be read
}
