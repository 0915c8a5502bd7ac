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
		"give its primary key with --pk": name("orders.csv"),
		"there is no key":                name("orders.csv") + "?key=id",
		"it names no input":              "?table=t",
		"not-there.csv":                  name("not-there.csv") + "?pk=id",
		"begins with --random-seed 7":    "7",
	} {
		stdout, stderr, code := runBinary(t, "serve", "--memory", "--seed", seed)
		if code != 2 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") > 2 {
			t.Errorf("%s: exit code %d: %s%s", seed, code, stdout, stderr)
		}
	}
}
