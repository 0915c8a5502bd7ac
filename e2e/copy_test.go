//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"
)

// TestPartsOfATableAreCopied by each flag of copy; that each takes the rows it should is shown in reader/tablescan.
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
			if c.Name != "number" && c.Name != "versions" && c.Name != "half" {
				t.Fatalf("a row has the column %s", c.Name)
			}
		}
	}
	p.same(p.a, p.b, "t", "all")
	p.run(0, "copy", "t", p.inB("all"), "--when", "stored.n < new.n", "--filter", "n >= 0")
	if r := p.summary(); r.Read == 0 || r.Condition_failed != r.Read || r.Written != 0 {
		t.Errorf("--when: %+v", r)
	}
	p.fill("t", 260, 300)
	later := time.Now().Add(time.Hour).Format(time.RFC3339)
	p.ends(0, []string{"copy", "t", p.inB("all"), "--since", later}, "stay in the target", "--since 20", "0 read")
	p.ends(0, []string{"copy", "t", p.inB("all"), "--since", "2020-01-01T00:00:00Z"}, "--since 20")
	if n := len(dump(t, p.b, "all")); n != 260+37 { // a row without cells has no time
		t.Errorf("%d rows", n)
	}
}

func TestCopiesThatWouldBeNoCopiesAreRefused(t *testing.T) {
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
		if strings.Count(said, "\n") != 1 || strings.Contains(said, "secret@") {
			t.Errorf("copy %s: %s", tt.args, said)
		}
	}
	if diff := differs(before, dump(t, p.a, "t")); diff != "" {
		t.Error(diff)
	}
	p.env = append(p.env, "TABLESTORE_ACCESS_KEY_SECRET_B=wrong")
	p.ends(5, []string{"copy", "-q", "t", p.inB("t")}, "target, instance")
	p.ends(5, []string{"copy", "-q", p.inB("t"), "t"}, "source, instance")
}
