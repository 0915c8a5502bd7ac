//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// indexed makes a table with two indexes and rows, of which some are in both, in one or in none.
func (p *pairOf) indexed(name string, rows int) {
	p.t.Helper()
	s := p.a
	tb := s.table(name)
	meta := &tablestore.TableMeta{TableName: name}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
	meta.AddDefinedColumn("city", tablestore.DefinedColumn_STRING)
	meta.AddDefinedColumn("n", tablestore.DefinedColumn_INTEGER)
	must(p.t, tb.create(meta, newOptions(-1, 1)))
	for _, i := range []*tablestore.IndexMeta{
		{IndexName: name + "_by_city", Primarykey: []string{"city", "pk2"}, DefinedColumns: []string{"n"}, IndexType: tablestore.IT_GLOBAL_INDEX},
		{IndexName: name + "_by_n", Primarykey: []string{"n"}, IndexType: tablestore.IT_GLOBAL_INDEX},
	} {
		_, err := tb.CreateIndex(&tablestore.CreateIndexRequest{MainTableName: name, IndexMeta: i, IncludeBaseData: true})
		must(p.t, err)
	}
	var changes []tablestore.RowChange
	for i := range rows {
		var cells []cell
		if i%3 > 0 {
			cells = append(cells, c("city", fmt.Sprint("city ", i%7)))
		}
		if i%4 > 0 {
			cells = append(cells, c("n", i%11))
		}
		changes = append(changes, tb.put(tb.key(fmt.Sprint("key ", i%97), i), append(cells, c("other", float64(i)))...))
	}
	tb.load(p.t, changes...)
}

// sameIndexes compares indexes, each a table of its own, of a table and its copy.
func (p *pairOf) sameIndexes(from, to *served, source, target string) {
	p.t.Helper()
	for _, name := range []string{"_by_city", "_by_n"} {
		was, is := dump(p.t, from, source+name), dump(p.t, to, target+name)
		if diff := differs(was, is); diff != "" || len(was) == 0 {
			p.t.Errorf("%s of %s: %d rows and %d: %.1000s", name, target, len(was), len(is), diff)
		}
	}
}

func TestATableIsCopiedWithItsIndexes(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.indexed("t", 300)
	said := p.run(0, "copy", "t", p.inB("t"), "--create", "--verify")
	if !strings.Contains(said, "gets the global index t_by_city with the key city, pk2 and the columns n when all rows are written") || !strings.Contains(said, "the table has the 2 secondary indexes of its source") {
		t.Error(said)
	}
	p.sameIndexes(p.a, p.b, "t", "t")
	p.ends(0, []string{"copy", "t", p.inB("t"), "--verify"}, "table t has 2 secondary indexes")

	// In one instance names are taken.
	p.ends(2, []string{"copy", "t", "u", "--create"}, "--rename-index t_by_city=NAME")
	p.run(2, "table", "describe", "u")
	renamed := []string{"--rename-index", "t_by_city=u_by_city", "--rename-index", "t_by_n=u_by_n"}
	said = p.run(0, append([]string{"copy", "t", "u", "--create", "--indexes", "before"}, renamed...)...)
	if !strings.Contains(said, "costs 3 write units and 2 read units") {
		t.Error(said)
	}
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

	// Another key: the index is completed by that.
	p.run(0, "copy", "t", p.inB("k"), "--create", "--pk", "h:string=md5(pk1, 4)", "--pk", "pk1", "--pk", "pk2", "--rename-index", "t_by_city=k_by_city", "--rename-index", "t_by_n=k_by_n")
	q := p.swapped()
	if said := q.run(0, "table", "describe", "k", "--json"); !strings.Contains(said, "k_by_city") || len(dump(t, p.b, "k_by_n")) != len(dump(t, p.a, "t_by_n")) {
		t.Error(said)
	}
	for args, says := range map[string]string{
		"--create --indexes none":                                 "does not get the global index t_by_city",
		"--create --exclude n --rename-index t_by_city=w_by_city": "of whose columns it does not have n; create it",
	} {
		if said := p.run(0, append([]string{"copy", "t", "w"}, strings.Fields(args)...)...); !strings.Contains(said, says) {
			t.Errorf("%s: %s", args, said)
		}
		p.run(0, "table", "drop", "w", "--yes")
	}
	p.run(0, "table", "update", "t", "--allow-update=false")
	p.run(0, "copy", "t", "w", "--create", "--indexes", "none", "--verify")
	p.ends(0, []string{"table", "describe", "w"}, "updates of rows")
	p.run(0, "table", "update", "t", "--allow-update=true")
	for args, says := range map[string]string{
		"--create --max-versions 3":      "keeps one version of a cell",
		"--create --ttl 86400":           "expire only if it refuses updates",
		"--create --indexes some":        "want after, before or none",
		"--create --rename-index no=yes": "has no index of that name",
	} {
		if said := p.run(2, append([]string{"copy", "t", "x"}, strings.Fields(args)...)...); !strings.Contains(said, says) {
			t.Errorf("%s: %s", args, said)
		}
	}
}

func TestAnIndexIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.indexed("t", 100)
	must(t, os.WriteFile(filepath.Join(p.dir, "in.csv"), []byte("city,pk2,pk1,n\nx,1,a,2\ny,2,b,3\n"), 0o644))
	p.run(0, "table", "create", "s", "--pk", "city:string", "--pk", "pk2:integer", "--pk", "pk1:string")
	p.run(0, "load", "in.csv", "--table", "s", "--pk", "city", "--pk", "pk2", "--pk", "pk1")
	before := dump(t, p.a, "t_by_city")
	for _, args := range []string{
		"load in.csv --table t_by_city --pk city --pk pk2 --pk pk1", "copy s t_by_city", "load in.csv --table t_by_city --mode delete --fresh --pk city --pk pk2 --pk pk1", "load in.csv --table t_by_city --mode update --fresh --pk city --pk pk2 --pk pk1",
		"sync in.csv --table t_by_city --pk city --pk pk2 --pk pk1",
	} {
		cmd := p.command(strings.Fields(args + " -q")...)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "the table is a secondary index") {
			t.Errorf("%s: %v: %s", args, err, out)
		}
	}
	if diff := differs(before, dump(t, p.a, "t_by_city")); diff != "" {
		t.Error(diff)
	}
	p.run(0, "copy", "t_by_city", p.inB("flat"), "--create", "--verify") // it may be read
}

// TestKilledCopiesMakeTheirIndexes kills copies with SIGKILL at any moment: also after the table was made and before the first row, and between
// the indexes.
func TestKilledCopiesMakeTheirIndexes(t *testing.T) {
	t.Parallel()
	for round := range *copyRounds {
		rnd := rand.New(rand.NewPCG(uint64(round), 47))
		p := newPairOf(t)
		p.indexed("t", 200)
		troubled(t, p.b, uint64(round), 0.3, "CreateIndex", "drop-after", "drop-before", "error-after", "refuse:OTSServerBusy")
		args := []string{"copy", "t", p.inB("t"), "--create", "--settle", "200ms", "--batch-rows", "10", "--concurrency", "1"}
		if round%2 == 1 {
			args = append(args, "--indexes", "before")
		}
		sdk := p.b.client()
		indexes := func() int {
			described, err := sdk.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
			if err != nil {
				return -1
			}
			return len(described.IndexMetas)
		}
		whole := false
		for kills := 2 + rnd.IntN(3); kills > 0 && !whole; kills-- {
			come := func() bool { return indexes() >= 0 }
			switch now := indexes(); {
			case now >= 0 && rnd.IntN(2) == 0:
				come = func() bool { return indexes() > now }
			case now >= 0:
				final := finalRows(p.dir) + int64(rnd.IntN(150))
				come = func() bool { return finalRows(p.dir) > final }
			}
			whole = p.attempt(come, args...)
		}
		if !whole {
			p.run(0, args...)
		}
		troubled(t, p.b, 0, 0, "CreateIndex", "refuse")
		p.same(p.a, p.b, "t", "t")
		p.sameIndexes(p.a, p.b, "t", "t")
	}
}
