//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

func TestServeBeginsWithSeeds(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("orders.csv", "id,seq,v\na,1,x\nb,2,y\n")
	p.run(0, strings.Fields("load orders.csv -t orders --create --pk id --pk seq:integer --store store")...)
	p.run(0, strings.Fields("export -t orders --format archive -o kept --store store")...)
	s := startServe(t, "--memory", "--seed", p.path("orders.csv")+"?pk=id&pk=seq:integer", "--seed", p.path("kept")+"?table=archived", "--seed", p.path("orders.csv")+"?table=orders")
	for _, table := range []string{"orders", "archived"} {
		if got := dump(t, s, table); len(got) != 2 {
			t.Errorf("%s: %v", table, got)
		}
	}
	for want, seed := range map[string]string{
		"the table needs a primary key: --seed 'orders.csv?table=orders&pk=COLUMN'": "orders.csv",
		"there is no key":             "orders.csv?key=id",
		"it names no input":           "?table=t",
		"not-there.csv":               "not-there.csv?pk=id",
		"begins with --random-seed 7": "7",
	} {
		if said := p.ends(2, []string{"serve", "--memory", "--seed", seed}, want); strings.Count(said, "\n") > 2 {
			t.Errorf("%s: %s", seed, said)
		}
	}
}

// A seed that was interrupted, or fails, leaves no part of a table for a later start to take for whole.
func TestASeedIsLoadedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("bad.csv", "id,seq\na,1\nb,two\n")
	const how = "?table=t&pk=id&pk=seq:integer"
	bad := p.start("serve", "--store", "store", "--seed", "bad.csv"+how)
	if code := bad.wait(); code == 0 || !strings.Contains(bad.said.String(), "record 2 (line 3) cannot be loaded: ") {
		t.Fatalf("a seed with a bad record: exit code %d: %s", code, &bad.said)
	}
	good := func(text string, rows int) {
		t.Helper()
		s := startServe(t, "--store", p.path("store"), "--seed", p.write("good.csv", text)+how)
		if got := dump(t, s, "t"); len(got) != rows {
			t.Errorf("%d rows, want %d", len(got), rows)
		}
		s.stop(t)
	}
	good("id,seq\na,1\nb,2\n", 2)
	p.write("store/SEEDING", "t\n") // as a kill leaves it
	p.ends(2, []string{"serve", "--store", "store"}, "the load of table t was interrupted")
	good("id,seq\na,1\nb,2\nc,3\n", 3)
	if there(p.path("store/SEEDING"))() {
		t.Error("the mark is still there")
	}
}
