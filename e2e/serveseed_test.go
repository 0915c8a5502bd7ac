//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServeBeginsWithSeeds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := func(file string) string { return filepath.Join(dir, file) }
	must(t, os.WriteFile(name("orders.csv"), []byte("id,seq,v\na,1,x\nb,2,y\n"), 0o644))
	quiet := []string{"--quiet", "--store", name("store")}
	for _, args := range [][]string{
		{"load", name("orders.csv"), "-t", "orders", "--create", "--pk", "id", "--pk", "seq:integer", "--run-dir", name("run")},
		{"export", "-t", "orders", "--format", "archive", "-o", name("kept")},
	} {
		if stdout, stderr, code := runBinary(t, append(args, quiet...)...); code != 0 {
			t.Fatalf("%q: %s%s", args, stdout, stderr)
		}
	}
	s, err := launch("--memory", "--seed", name("orders.csv")+"?pk=id&pk=seq:integer", "--seed", name("kept")+"?table=archived", "--seed", name("orders.csv")+"?table=orders")
	must(t, err)
	defer s.stop(t)
	for _, table := range []string{"orders", "archived"} {
		if got := dump(t, s, table); len(got) != 2 {
			t.Errorf("%s: %v", table, got)
		}
	}
	for want, seed := range map[string]string{
		"the table needs a primary key: --seed '" + name("orders.csv") + "?table=orders&pk=COLUMN'": name("orders.csv"),
		"there is no key":             name("orders.csv") + "?key=id",
		"it names no input":           "?table=t",
		"not-there.csv":               name("not-there.csv") + "?pk=id",
		"begins with --random-seed 7": "7",
	} {
		stdout, stderr, code := runBinary(t, "serve", "--memory", "--seed", seed)
		if code != 2 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") > 2 {
			t.Errorf("%s: exit code %d: %s%s", seed, code, stdout, stderr)
		}
	}
}

// A seed that was interrupted, or fails, leaves no part of a table for a later start to take for whole.
func TestASeedIsLoadedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := func(file string) string { return filepath.Join(dir, file) }
	must(t, os.WriteFile(name("bad.csv"), []byte("id,seq\na,1\nb,two\n"), 0o644))
	must(t, os.WriteFile(name("good.csv"), []byte("id,seq\na,1\nb,2\n"), 0o644))
	bad, good := name("bad.csv")+"?table=t&pk=id&pk=seq:integer", name("good.csv")+"?table=t&pk=id&pk=seq:integer"
	stdout, stderr, code := runBinary(t, "serve", "--store", name("store"), "--seed", bad)
	if code == 0 {
		t.Fatalf("a seed with a bad record is taken: %s%s", stdout, stderr)
	}
	if !strings.Contains(stderr, "record 2 (line 3) cannot be loaded: ") {
		t.Errorf("it is not said which record: %s", stderr)
	}
	s, err := launch("--store", name("store"), "--seed", good)
	must(t, err)
	if got := dump(t, s, "t"); len(got) != 2 {
		t.Errorf("after a seed that failed: %v", got)
	}
	s.stop(t)

	must(t, os.WriteFile(name("store/SEEDING"), []byte("t\n"), 0o600)) // as a kill leaves it
	must(t, os.WriteFile(name("good.csv"), []byte("id,seq\na,1\nb,2\nc,3\n"), 0o644))
	_, stderr, code = runBinary(t, "serve", "--store", name("store"))
	if code != 2 || !strings.Contains(stderr, "the load of table t was interrupted") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	s, err = launch("--store", name("store"), "--seed", good)
	must(t, err)
	defer s.stop(t)
	if got := dump(t, s, "t"); len(got) != 3 {
		t.Errorf("after a seed that was interrupted: %v", got)
	}
	if _, err := os.Stat(name("store/SEEDING")); err == nil {
		t.Error("the mark is still there")
	}
}
