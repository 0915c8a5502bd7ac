//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

// TestPartsOfATableAreCopied by each flag of copy; reader/tablescan tests that each takes the right rows.
func TestPartsOfATableAreCopied(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 260) // of which 20 have no cells
	for name, tt := range map[string]struct {
		args string
		rows int64
	}{
		"where":  {"--where n>=130 --columns n,versions --rename n=number --set half=n/2 --verify", 120},
		"range":  {"--from-key=key_3 --to-key=key_5 --max-rcu 500", 22},
		"filter": {"--filter n>=130 --columns text", 120},
		"all":    {"--verify", 260},
	} {
		args := append([]string{"copy", "t", p.inB(name), "--create"}, strings.Fields(tt.args)...)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		if p.run(0, args...); p.summary().Written != tt.rows || len(dump(t, p.b, name)) != int(tt.rows) {
			t.Errorf("%s: %+v, want %d rows", name, p.summary(), tt.rows)
		}
	}
	for _, cells := range dump(t, p.b, "where") {
		for _, c := range cells {
			conformance.MustTrue(t, c.Name == "number" || c.Name == "versions" || c.Name == "half",
				"a row has the column %s", c.Name)
		}
	}
	p.same(p.a, p.b, "t", "all")
	p.run(0, "copy", "t", p.inB("all"), "--when", "stored.n < new.n", "--filter", "n >= 0")
	r := p.summary()
	conformance.True(t, r.Read != 0 && r.Condition_failed == r.Read && r.Written == 0, "--when: %+v", r)
	next := p.summary().ResumeFrom.Time // by which what comes now is found
	p.fill("t", 260, 300)
	later := time.Now().Add(time.Hour).Format(time.RFC3339)
	p.ends(0, []string{"copy", "t", p.inB("all"), "--since", later}, "stay in the target", "--since 20", "0 read")
	p.ends(0, []string{"copy", "t", p.inB("all"), "--since", next.Format(time.RFC3339Nano)}, "to copy what is new from now on: --since 20")
	if n := len(dump(t, p.b, "all")); n != 260+37 { // a row without cells has no time
		t.Errorf("%d rows", n)
	}
}

func TestUnfaithfulCopiesAreRefused(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 300)
	for _, table := range []string{
		"numbered --pk pk1:string --pk pk2:auto", "other --pk n:integer --max-versions 4", "texts --pk pk1:string --pk pk2:string --max-versions 4",
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
		{"t new --create --where text(pk2)", "true or false"},
		{"t new --create --since yesterday", "--since"},
		{"t new --create --from-key a,b", "is not an integer"},
		{"t ots://c@x/new --create", "ots://c@x/new: no endpoint: set TABLESTORE_ENDPOINT_C"},
		{"t ots://id:secret@x/new", "want ots://INSTANCE/TABLE or ots://PROFILE@INSTANCE/TABLE"},
	} {
		said := p.ends(2, append([]string{"copy", "-q"}, strings.Fields(tt.args)...), tt.says)
		conformance.True(t, strings.Count(said, "\n") == 1 && !strings.Contains(said, "secret@"),
			"copy %s: %s", tt.args, said)
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
		"gets the global index t_by_city with the key city, pk2 and the columns n when all rows are written", "made the 2 secondary indexes of the table")
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
	p.ends(0, strings.Fields("copy t w --create --exclude n --rename-index t_by_city=w_by_city"), "of whose columns it does not have n; create it")
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
	for _, command := range []string{"load in.csv --table t_by_city" + of, "copy s t_by_city -q", "load in.csv --table t_by_city --mode delete --fresh" + of, "sync in.csv --table t_by_city" + of} {
		p.ends(1, strings.Fields(command), "the table is a secondary index")
	}
	conformance.Equal(t, differs(before, dump(t, p.a, "t_by_city")), "", "differs")
	p.run(0, "copy", "t_by_city", p.inB("flat"), "--create", "--verify") // it may be read
}

// TestAnArchiveIsWrittenToAStoreOfObjects and read back, while the store refuses requests and loses answers.
// reader/archivefile tests that damage is named.
func TestAnArchiveIsWrittenToAStoreOfObjects(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 1500)
	objects := p.bucket(t, "bucket")
	unreliable(objects, 4)
	const kept = "s3://bucket/backup/kept"
	p.ends(2, []string{"export", "--table", "t", "--format", "jsonl", "-o", kept}, "oss:// and s3:// addresses name folders")
	p.run(0, "export", "--table", "t", "-o", kept, "--concurrency", "3")
	keys := objects.Keys()
	for _, key := range keys {
		if !strings.HasPrefix(key, "backup/kept/archive-0") && key != "backup/kept/manifest.json" && !strings.HasPrefix(key, "backup/kept/.tsimport-archive/lease.") {
			t.Errorf("%s is left", key)
		}
	}
	p.ends(2, []string{"export", "--table", "t", "-o", kept}, "holds a complete archive already")
	q := p.swapped()
	q.run(0, "load", kept, "--table", "t", "--create", "--verify")
	p.same(p.a, p.b, "t", "t")
	p.run(0, "sync", kept+"/", "--table", "t", "--plan")
	p.run(0, "export", "--table", "t", "-o", "local/")
	p.run(0, "verify", "local", "--archive", kept, "--extra", "fail")
	p.ends(2, []string{"verify", kept, "--archive", kept + "/manifest.json"}, "are the same archive")
	p.ends(2, []string{"check", kept}, "is an archive of a table")
}

// TestATableIsMovedWhileItSplitsAndIsWritten moves a table while some rows change, come and go: each of these is whole,
// and all others are unchanged.
func TestATableIsMovedWhileItSplitsAndIsWritten(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"copy", "archive"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pairUp(t, startServe(t, "--sync", "none", "--splits", "100ms:0ms:24", "--moves", "600:0ms"), startServe(t, "--sync", "none"))
			p.fill("t", 0, 2000)
			want := dump(t, p.a, "t")
			// The pages are refused and cut, so that the scan takes a while and resumes inside its ranges.
			troubled(t, p.a, 1, 0.3, "GetRange", "refuse:OTSServerBusy", "refuse:OTSPartitionUnavailable", "drop-after", "truncate-body")
			args := []string{"copy", "t", p.inB("t"), "--create"}
			if name == "archive" {
				args = []string{"export", "--table", "t", "-o", "kept/"}
			}
			tb, r := p.a.table("t"), p.start(args...)
			for n := 0; !r.over(); n++ {
				var changes []tablestore.RowChange
				for i := range 20 {
					key := tb.key(fmt.Sprint("key ", (n*7+i*50)%1000), -1-n%40)
					if changes = append(changes, tb.put(key, c("a", n), c("b", n))); i%4 == 0 {
						changes[i] = tb.delete(key)
					}
				}
				tb.load(t, changes...)
			}
			conformance.MustEqual(t, r.wait(), 0, "exit code\n%s", &r.said)
			if name == "archive" {
				p.run(0, "load", "kept", "--table", "t", "--create", "--endpoint", p.b.URL)
			}
			got, written := dump(t, p.b, "t"), 0
			if s := p.summary(); s.Read != s.Written || s.Superseded != 0 || s.Read != int64(len(got)) {
				t.Errorf("rows came more than once: %+v", s)
			}
			for key, cells := range got {
				if _, there := want[key]; there || !strings.Contains(key, " -") {
					continue
				}
				if written++; len(cells) != 2 || cells[0].Value != cells[1].Value {
					t.Errorf("row %s is %v", key, cells)
				}
				delete(got, key)
			}
			if diff := differs(want, got); diff != "" || written == 0 {
				t.Errorf("%d rows that were written meanwhile; of the others: %.2000s", written, diff)
			}
		})
	}
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
				m := p.move(t, fmt.Sprint(name, seed), seed, func() func(string) trouble { return drawTroubles(seed, 12, without...) })
				m.more = []string{"--request-timeout", troubledTimeout.String(), "--settle", troubledSettle.String(), "--batch-bytes", "2KiB"}
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
