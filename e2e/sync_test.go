//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tsimport/bench"
)

// TestASyncOfInputsThatAreNotWholeDeletesNothing: a bad record, a truncated file, a part that is missing, one that is empty.
func TestASyncOfInputsThatAreNotWholeDeletesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var lines []string
	for i := range 2000 {
		lines = append(lines, fmt.Sprintf("%d,%d\n", i, i))
	}
	file := func(name, text string) string {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		return filepath.Join(dir, name)
	}
	all := "id,n\n" + strings.Join(lines, "")
	half := "id,n\n" + strings.Join(lines[:1999], "") // one row is surplus, which may be deleted
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write([]byte(half))
	must(t, err)
	must(t, z.Close())
	store := filepath.Join(dir, "store")
	if _, stderr, code := runBinary(t, "load", file("all.csv", all), "--store", store, "-t", "t", "--pk", "id", "--run-dir", filepath.Join(dir, "load")); code != 0 {
		t.Fatal(stderr)
	}
	good := file("half.csv", half)
	rows := func() int {
		t.Helper()
		stdout, stderr, code := runBinary(t, "export", "--store", store, "-t", "t")
		if code != 0 {
			t.Fatal(stderr)
		}
		return strings.Count(stdout, "\n") - 1
	}
	for name, inputs := range map[string][]string{
		"one bad record":   {file("bad.csv", strings.Replace(half, "\n7,7\n", "\n7,7,7\n", 1))},
		"a truncated file": {file("cut.csv.gz", zipped.String()[:zipped.Len()-20])},
		"a missing part":   {good, filepath.Join(dir, "part-2.csv")},
		"an empty part":    {good, file("empty.csv", "id,n\n")},
	} {
		run := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		args := append([]string{"sync", "--store", store, "-t", "t", "--delete", "--run-dir", run, "--json", "--quiet"}, inputs...)
		stdout, stderr, code := runBinary(t, args...)
		if code != 3 || !strings.Contains(stderr, "nothing was deleted") || rows() != 2000 {
			t.Errorf("%s: exit code %d, %d rows are left: %s%s", name, code, rows(), stdout, stderr)
		}
		if n := strings.Count(strings.TrimSpace(stderr), "\n"); strings.Contains(name, "part-2") && n > 2 {
			t.Errorf("%s: %d lines: %s", name, n, stderr)
		}
	}
	stdout, stderr, code := runBinary(t, "sync", good, "--store", store, "-t", "t", "--delete", "--run-dir", filepath.Join(dir, "good"), "--json")
	if s := parseSync(t, stdout); code != 0 || s.Deleted != 1 || s.Written != 0 || rows() != 1999 {
		t.Errorf("the whole file: exit code %d, %+v: %s", code, s, stderr)
	}
}

// TestASyncCostsWhatHasChanged: the units that are charged are those of the changed rows.
func TestASyncCostsWhatHasChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text bytes.Buffer
	must(t, bench.StudentCards{Rows: 20_000}.WriteCSV(t.Context(), &text))
	input := filepath.Join(dir, "cards.csv")
	must(t, os.WriteFile(input, text.Bytes(), 0o644))
	at := []string{"--store", filepath.Join(dir, "store"), "-t", "cards", "--pk", "CardID", "--pk", "DeviceID", "--pk", "OrderNumber"}
	if _, stderr, code := runBinary(t, append([]string{"load", input, "--run-dir", filepath.Join(dir, "load")}, at...)...); code != 0 {
		t.Fatal(stderr)
	}
	lines := strings.SplitAfter(text.String(), "\n")
	for i := 500; i < len(lines)-1; i += 1000 {
		id, rest, _ := strings.Cut(lines[i], ",")
		lines[i] = id + ",another " + rest // the seller
	}
	must(t, os.WriteFile(input, []byte(strings.Join(lines, "")), 0o644))
	stdout, stderr, code := runBinary(t, append([]string{"sync", input, "--run-dir", filepath.Join(dir, "sync"), "--json"}, at...)...)
	s := parseSync(t, stdout)
	if code != 0 || s.Different != 20 || s.Written != 20 || s.Costs.WriteCU != 20 || s.Costs.PutCU != 20 || s.Costs.FullLoadCU != 20_000 {
		t.Errorf("exit code %d, %+v: %s", code, s, stderr)
	}
	if _, stderr, code := runBinary(t, append([]string{"verify", input, "--extra", "fail"}, at...)...); code != 0 {
		t.Errorf("verify: exit code %d: %s", code, stderr)
	}
}

// TestATableIsSyncedWithATable: values, types and timestamps, and a key that is computed.
func TestATableIsSyncedWithATable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := func(file string) string { return filepath.Join(dir, file) }
	runs := 0
	run := func(wantCode int, args ...string) (stdout, stderr string) {
		t.Helper()
		runs++
		if args[0] != "verify" {
			args = append(args, "--run-dir", name(fmt.Sprint("run", runs)))
		}
		stdout, stderr, code := runBinary(t, append(args, "--store", name("store"))...)
		if code != wantCode {
			t.Fatalf("%v: exit code %d, want %d: %s%s", args, code, wantCode, stdout, stderr)
		}
		return stdout, stderr
	}
	must(t, os.WriteFile(name("a.csv"), []byte("id,s,n\n1,x,1\n2,y,2\n3,z,3\n"), 0o644))
	must(t, os.WriteFile(name("b.csv"), []byte("id,s,n\n1,x,1\n4,q,4\n"), 0o644))
	run(0, "load", name("a.csv"), "-t", "source", "--pk", "id")
	run(0, "load", name("b.csv"), "-t", "target", "--pk", "id")
	const source = "ots://tsimport/source"
	run(6, "verify", source, "-t", "target")
	stdout, _ := run(0, "sync", source, "-t", "target", "--delete", "--max-delete", "2", "--json")
	if s := parseSync(t, stdout); s.Missing != 2 || s.Different != 1 || s.Surplus != 1 || s.Written != 3 || s.Deleted != 1 { // timestamps differ
		t.Errorf("%+v", s)
	}
	run(0, "verify", source, "-t", "target", "--extra", "fail")
	stdout, _ = run(0, "sync", source, "-t", "target", "--delete", "--json")
	if s := parseSync(t, stdout); s.Equal != 3 || s.Written+s.Deleted != 0 {
		t.Errorf("again: %+v", s)
	}

	must(t, os.WriteFile(name("c.csv"), []byte("k,s,n\n1-x,x,1\n"), 0o644))
	run(0, "load", name("c.csv"), "-t", "keyed", "--pk", "k:string")
	run(0, "sync", source, "-t", "keyed", "--pk", "k:string=text(id)", "--delete", "--max-delete", "100%")
	run(0, "verify", source, "-t", "keyed", "--pk", "k:string=text(id)", "--extra", "fail")
	if _, stderr := run(2, "sync", source, "-t", "keyed", "--pk", "k:string=text(bucket(id,2))"); !strings.Contains(stderr, "several rows would get one key") {
		t.Errorf("rows that become one: %s", stderr)
	}
	for want, args := range map[string][]string{
		"the same table":   {"sync", source, "-t", "source", "--delete"},
		"does not exist":   {"sync", "ots://tsimport/none", "-t", "target"},
		"other source":     {"sync", source, name("a.csv"), "-t", "target"},
		"no endpoint":      {"sync", "ots://elsewhere/source", "-t", "target"},
		"only id tell its": {"sync", source, "-t", "keyed", "--pk", "k:string=s"},
	} {
		if _, stderr := run(2, args...); !strings.Contains(stderr, want) {
			t.Errorf("%v: %s", args, stderr)
		}
	}
}
