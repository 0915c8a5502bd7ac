//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// swapped are the same services in the same folder, the first of which is the profile b.
func (p *pairOf) swapped() *pairOf {
	q := pairUp(p.t, p.b, p.a)
	q.dir = p.dir
	q.env = append(q.env, p.more...)
	return q
}

func TestPartsOfATableAreCopied(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 2000)
	all := dump(t, p.a, "t")
	count := func(of func(cells []cell) bool) (n int64) {
		for _, cells := range all {
			if of(cells) {
				n++
			}
		}
		return n
	}
	number := func(cells []cell) int64 {
		for _, c := range cells {
			if c.Name == "n" {
				return c.Value.(int64)
			}
		}
		return -1
	}
	p.run(0, "copy", "t", p.inB("w"), "--create", "--where", "n >= 1000", "--columns", "n,versions", "--rename", "n=number", "--set", "half=n / 2", "--verify")
	if got, want := p.summary().Written, count(func(cells []cell) bool { return number(cells) >= 1000 }); got != want {
		t.Errorf("--where: %d rows, want %d", got, want)
	}
	for key, cells := range dump(t, p.b, "w") {
		for _, c := range cells {
			if c.Name != "number" && c.Name != "versions" && c.Name != "half" {
				t.Fatalf("row %s has the column %s", key, c.Name)
			}
		}
	}
	p.run(0, "copy", "t", p.inB("r"), "--create", "--from-key", "key 3", "--to-key", "key 5", "--max-rcu", "500")
	want := int64(0)
	for key := range all {
		if key >= "[key 3 " && key < "[key 5 " {
			want++
		}
	}
	if got := p.summary().Written; got != want {
		t.Errorf("--from-key and --to-key: %d rows, want %d", got, want)
	}
	p.run(0, "copy", "t", p.inB("f"), "--create", "--filter", "n >= 1000", "--columns", "text")
	if got, want := p.summary().Written, count(func(cells []cell) bool { return number(cells) >= 1000 }); got != want {
		t.Errorf("--filter: %d rows, want %d", got, want)
	}
	p.run(0, "copy", "t", p.inB("n"), "--create")
	p.run(0, "copy", "t", p.inB("n"), "--when", "stored.n < new.n", "--filter", "n >= 0")
	if r := p.summary(); r.Read == 0 || r.Condition_failed != r.Read || r.Written != 0 {
		t.Errorf("--when: %+v", r)
	}
	p.same(p.a, p.b, "t", "n")
	p.fill("t", 2000, 2100)
	said := p.run(0, "copy", "t", p.inB("s"), "--create", "--since", time.Now().Add(time.Hour).Format(time.RFC3339))
	if r := p.summary(); r.Read != 0 || !strings.Contains(said, "--since 20") || !strings.Contains(said, "stay in the target") {
		t.Errorf("%+v\n%s", r, said)
	}
}

// TestACopyOfWhatIsNewLeavesTheTargetAsTheSource copies, changes the source and copies what is new.
func TestACopyOfWhatIsNewLeavesTheTargetAsTheSource(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 1000)
	p.run(0, "copy", "t", p.inB("t"), "--create")
	p.fill("t", 1000, 1300)
	said := p.run(0, "copy", "t", p.inB("t"), "--since", "2020-01-01T00:00:00Z")
	source, target := dump(t, p.a, "t"), dump(t, p.b, "t")
	for key, cells := range source {
		if len(cells) == 0 {
			delete(source, key) // a row without cells has no time
			delete(target, key)
		}
	}
	if diff := differs(source, target); diff != "" {
		t.Errorf("%.2000s", diff)
	}
	next := said[strings.LastIndex(said, "--since ")+len("--since "):]
	at, err := time.Parse(time.RFC3339Nano, strings.Fields(next)[0])
	if err != nil || time.Since(at) < 24*time.Hour || time.Since(at) > 25*time.Hour {
		t.Errorf("the next time is %s", next)
	}
}

func TestCellsThatTheTargetDoesNotTakeAreRefusedOrCounted(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.run(0, "table", "create", "old", "--pk", "id:integer", "--max-versions", "3", "--max-deviation", "100000000")
	p.run(0, "table", "create", "young", "--endpoint", p.b.URL, "--pk", "id:integer", "--max-versions", "3")
	s := p.a
	tb := s.table("old")
	now := time.Now().UnixMilli()
	var changes []tablestore.RowChange
	for i := range 300 {
		k := new(tablestore.PrimaryKey)
		k.AddPrimaryKeyColumn("id", int64(i))
		cells := []cell{c("now", i), v("both", i, now)}
		if i%3 == 0 {
			cells = append(cells, v("both", i, now-200_000_000))
		}
		if i%10 == 0 {
			cells = append(cells, v("old", i, now-300_000_000))
		}
		changes = append(changes, tb.put(k, cells...))
	}
	tb.load(t, changes...)
	said := p.run(2, "copy", "old", p.inB("young"))
	if n := len(dump(t, p.b, "young")); n != 0 || !strings.Contains(said, "has cells that the target does not take") || !strings.Contains(said, "--drop-expired") {
		t.Errorf("%d rows, %s", n, said)
	}
	p.run(0, "copy", "old", p.inB("without"), "--create", "--max-deviation", "86400", "--exclude", "both,old", "--verify")
	// Nothing that the copy leaves out makes it refuse.
	for i, part := range [][]string{{"--where", "id == 1 || id == 2 || id == 7"}, {"--filter", "now == 1 || now == 2 || now == 7"}, {"--versions", "1", "--exclude", "old"}} {
		args := append([]string{"copy", "old", p.inB(fmt.Sprint("part", i)), "--create", "--max-deviation", "86400"}, part...)
		if p.run(0, append(args, "--verify")...); i < 2 && len(dump(t, p.b, fmt.Sprint("part", i))) != 3 {
			t.Errorf("%q: not three rows", part)
		}
	}
	for _, part := range [][]string{{"--where", "id == 1 || id == 3"}, {"--filter", "now == 1 || now == 10"}, {"--versions", "2", "--exclude", "old"}} {
		said := p.run(2, append([]string{"copy", "old", p.inB("young")}, part...)...)
		if n := len(dump(t, p.b, "young")); n != 0 || !strings.Contains(said, "has cells that the target does not take") {
			t.Errorf("%q: %d rows, %s", part, n, said)
		}
	}
	p.run(0, "table", "create", "ahead", "--pk", "id:integer", "--max-versions", "3", "--max-deviation", "100000000")
	ahead := &table{service: tb.service, name: "ahead"}
	k := new(tablestore.PrimaryKey)
	k.AddPrimaryKeyColumn("id", int64(7))
	ahead.load(t, ahead.put(k, c("now", 1), v("late", 1, now+200_000_000)))
	said = p.run(2, "copy", "ahead", p.inB("young"))
	if n := len(dump(t, p.b, "young")); n != 0 || !strings.Contains(said, "the timestamp of column late of row id 7 is 55h33m") || !strings.Contains(said, "the target's maximum deviation is 24h0m0s") {
		t.Errorf("%d rows, %s", n, said)
	}
	p.run(0, "copy", "old", p.inB("young"), "--drop-expired", "--verify")
	if r := p.summary(); r.Written != 300 || r.Expired_cells != 130 || r.Rejected != 0 {
		t.Errorf("%+v", r)
	}
	p.run(0, "copy", "old", p.inB("all"), "--create")
	p.same(p.a, p.b, "old", "all")
}

func TestCopiesThatWouldBeNoCopiesAreRefused(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 1200)
	p.run(0, "table", "create", "numbered", "--pk", "pk1:string", "--pk", "pk2:auto")
	p.run(0, "table", "create", "other", "--pk", "n:integer", "--max-versions", "4")
	p.run(0, "table", "create", "texts", "--pk", "pk1:string", "--pk", "pk2:string", "--max-versions", "4")
	p.run(0, "table", "create", "texts3", "--pk", "h:string", "--pk", "pk1:string", "--pk", "pk2:string", "--max-versions", "4")
	before := dump(t, p.a, "t")
	for _, tt := range []struct {
		args string
		says string
	}{
		{"t t", "source and target are the same table"},
		{"t ots://" + p.a.Instance + "/t", "source and target are the same table"},
		{"none new --create", "the source, table none, does not exist"},
		{"t new", "table new does not exist"},
		{"t", "copy takes two tables"},
		{"t new --create --pk pk1", "of the 1200 rows of t would be lost: several rows would get one key, as with pk1="},
		{"t new --create --pk h:string=md5(pk1,1)", "would be lost"},
		{"t other", "table other has another primary key (n integer) than t (pk1 string, pk2 integer)"},
		{"t texts", "table texts has another primary key (pk1 string, pk2 string) than t (pk1 string, pk2 integer)"},
		{"t texts --pk pk1 --pk pk2", "say with --pk how it is made, with types"},
		{"t texts3 --pk h=md5(pk1,4) --pk pk1 --pk pk2", "table texts3 has another primary key"},
		{"t new --create --from-key b --to-key a,3", "no key is in that range"},
		{"t new --create --since=", "--since \"\": want a time"},
		{"t new --create --columns a,,b", "a name is empty"},
		{"t new --create --max-versions 1", "--versions 1"},
		{"t numbered", "auto-increment key column pk2"},
		{"numbered new --create", "--pk pk1:string --pk pk2:integer"},
		{"t new --create --where pk2+", "--where"},
		{"t new --create --where text(pk2)", "true or false"},
		{"t new --create --since yesterday", "--since"},
		{"t new --create --from-key a,b", "is not an integer"},
		{"t ots://c@x/new --create", "ots://c@x/new: no endpoint: set TABLESTORE_ENDPOINT_C"},
		{"t ots://id:secret@x/new", "want ots://INSTANCE/TABLE or ots://PROFILE@INSTANCE/TABLE"},
		{"t new --create --max-rcu -1", "--max-rcu"},
	} {
		said := p.run(2, append([]string{"copy", "-q"}, strings.Fields(tt.args)...)...)
		if strings.Count(said, "\n") != 1 || !strings.Contains(said, tt.says) || strings.Contains(said, "secret@") {
			t.Errorf("copy %s: %s", tt.args, said)
		}
	}
	if diff := differs(before, dump(t, p.a, "t")); diff != "" {
		t.Error(diff)
	}
	for _, command := range []string{"sync", "verify"} {
		if out := p.run(2, command, "-q", p.inB("t")); !strings.Contains(out, "no table: give --table") {
			t.Errorf("%s without a table: %s", command, out)
		}
	}
	p.env = append(p.env, "TABLESTORE_ACCESS_KEY_SECRET_B=wrong")
	for said, args := range map[string][]string{"target, instance": {"t", p.inB("t")}, "source, instance": {p.inB("t"), "t"}} {
		if out := p.run(5, append([]string{"copy", "-q"}, args...)...); !strings.Contains(out, said) {
			t.Errorf("copy %q: %s", args, out)
		}
	}
}

// TestReadingThatIsRefusedIsSaid stops commands that a service does not let read.
func TestReadingThatIsRefusedIsSaid(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 100)
	p.run(0, "export", "--table", "t", "-o", "kept/")
	troubled(t, p.a, 1, 1, "GetRange", "refuse:OTSNotEnoughCapacityUnit")
	for name, c := range map[string]struct{ args, says string }{
		"export": {"export --table t -o t.csv", "no rows are kept yet; give the same command again"},
		"copy":   {"copy t " + p.inB("t") + " --create", "tsimport resume tsimport-runs/"},
		"sync":   {"sync kept --table t", "nothing was written now; give the same command again"},
		"verify": {"verify kept --table t", "while reading was tried again after OTSNotEnoughCapacityUnit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := p.start(strings.Fields(c.args)...)
			if r.until(func() bool {
				return strings.Contains(r.said.String(), "waiting: reading is refused: OTSNotEnoughCapacityUnit")
			}) {
				r.signal(os.Interrupt)
			}
			if code, said := r.wait(), r.said.String(); code != 130 || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d: %s", code, said)
			}
		})
	}
}

func TestACopyDoesNotResumeWithAnotherTable(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, 400)
	troubled(t, p.b, 1, 1, "BatchWriteRow", "refuse:OTSServerBusy")
	r := p.start("copy", "-q", "t", p.inB("t"), "--create", "--run-dir", "run")
	r.must(there(p.path("run/checkpoint.bin")))
	r.kill()
	p.run(0, "table", "drop", "t", "--yes")
	p.fill("t", 0, 10)
	p.ends(2, []string{"resume", "run"}, "table t was dropped and created again since the run began")
}
