//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestUnfaithfulCopiesAreRefused(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 300)
	for _, table := range []string{
		"numbered --pk pk1:string --pk pk2:auto", "other --pk n:integer --max-versions 4",
		"texts --pk pk1:string --pk pk2:string --max-versions 4",
		"old --pk pk1:string --pk pk2:integer --max-versions 4 --max-deviation 1",
	} {
		p.run(0, append([]string{"table", "create"}, strings.Fields(table)...)...)
	}
	before := dump(t, p.a, "t")
	for _, tt := range []struct{ args, says string }{
		{"t t", "source and target are the same table"},
		{"t ots://" + p.a.Instance + "/t", "source and target are the same table"},
		{"none new --create", "the source, table none, does not exist"},
		{"t new", "table new does not exist"},
		{"t", "copy takes two tables"},
		{"t new --create --pk h:string=md5(pk1,1)", "would be lost"},
		{"t other", "table other has another primary key (n integer) than t (pk1 string, pk2 integer)"},
		{"t texts --pk pk1 --pk pk2", "say with --pk how it is made, with types"},
		{"t old", "has cells that the target does not take"},
		{"t new --create --from-key b --to-key a,3", "no key is in that range"},
		{"t new --create --columns a,,b", "a name is empty"},
		{"t new --create --max-versions 1", "--versions 1"},
		{"numbered new --create", "--pk pk1:string --pk pk2:integer"},
		{"t new --create --where text(pk2)", "not a condition"},
		{"t new --create --since yesterday", "--since"},
		{"t new --create --from-key a,b", "is not an integer"},
		{"t ots://c@x/new --create", "ots://c@x/new: no endpoint: set TABLESTORE_ENDPOINT_C"},
		{"t ots://id:secret@x/new", "want ots://INSTANCE/TABLE or ots://PROFILE@INSTANCE/TABLE"},
	} {
		said := p.ends(2, append([]string{"copy", "-q"}, strings.Fields(tt.args)...), tt.says)
		conformance.True(t, strings.Count(said, "\n") == 1 && !strings.Contains(said, "secret@"), "%s: %s", tt.args, said)
	}
	conformance.Equal(t, differs(before, dump(t, p.a, "t")), "", "differs")
	p.env = append(p.env, "TABLESTORE_ACCESS_KEY_SECRET_B=wrong")
	p.ends(5, []string{"copy", "-q", "t", p.inB("t")}, "target, instance")
	p.ends(5, []string{"copy", "-q", p.inB("t"), "t"}, "source, instance")
}

func TestATableIsCopiedWithItsIndexes(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.indexed("t", 300)
	p.ends(0, []string{"copy", "t", p.inB("t"), "--create", "--verify"},
		"gets the global index t_by_city with the key city, pk2 and the columns n when all rows are written",
		"made the 2 secondary indexes of the table")
	p.sameIndexes(p.a, p.b, "t", "t")

	// In one instance names are taken.
	p.ends(2, []string{"copy", "t", "u", "--create"}, "--rename-index t_by_city=NAME")
	p.run(2, "table", "describe", "u")
	renamed := []string{"--rename-index", "t_by_city=u_by_city", "--rename-index", "t_by_n=u_by_n"}
	p.ends(0, append([]string{"copy", "t", "u", "--create"}, renamed...), "made the 2 secondary indexes of the table")
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
	p.ends(0, strings.Fields("copy t w --create --exclude n --rename-index t_by_city=w_by_city"),
		"of whose columns it does not have n; create it")
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
	p.write("in.csv", "city,pk2,pk1,n\nx,1,a,2\ny,2,b,3\n")
	const of = " --pk city:string --pk pk2:integer --pk pk1:string -q"
	p.run(0, strings.Fields("load in.csv --create --table s"+of)...)
	before := dump(t, p.a, "t_by_city")
	for _, command := range []string{"load in.csv --table t_by_city" + of, "copy s t_by_city -q",
		"load in.csv --table t_by_city --mode delete --fresh" + of, "sync in.csv --table t_by_city" + of} {
		p.ends(1, strings.Fields(command), "the table is a secondary index")
	}
	conformance.Equal(t, differs(before, dump(t, p.a, "t_by_city")), "", "differs")
	p.run(0, "copy", "t_by_city", p.inB("flat"), "--create", "--verify") // it may be read
}

// TestAHostileNetworkChangesNoRow gives the commands a network that cuts, delays, changes and repeats traffic.
func TestAHostileNetworkChangesNoRow(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, movedRows)
	for _, name := range []string{"loaded", "archived", "numbered", "copied", "synced"} {
		for seed := *first; seed < *first+uint64(*rounds); seed++ {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				var without []string
				if name == "numbered" {
					without = []string{"replayed"} // which no load can see
				}
				draw := func() func(string) trouble { return drawTroubles(seed, 12, without...) }
				m := p.move(t, fmt.Sprint(name, seed), seed, draw)
				m.more = strings.Fields(fmt.Sprintf("--request-timeout %v --settle %v --batch-bytes 2KiB", troubledTimeout,
					troubledSettle))
				ways[name](m)
			})
		}
	}
}

// TestUnsignedAnswersDestroyNothing: TSIMPORT_UNSIGNED_ANSWERS is only for reading.
func TestUnsignedAnswersDestroyNothing(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--sync", "none")
	network := startProxy(t, s, func(string) trouble { return unsigned })
	p := newPlace(t, s.env()...)
	p.run(0, "table", "create", "t", "--pk", "id:string")
	for value, code := range map[string]int{"": 1, "accept": 0, "yes": 2} {
		p.env = append(s.env(), "TABLESTORE_ENDPOINT="+network.URL, "TSIMPORT_UNSIGNED_ANSWERS="+value)
		p.run(code, "table", "list")
		says := []string{"TSIMPORT_UNSIGNED_ANSWERS"}
		if value != "yes" {
			says = append(says, "has no signature")
		}
		p.ends(max(code, 1), []string{"table", "drop", "t", "--yes"}, says...)
	}
}
