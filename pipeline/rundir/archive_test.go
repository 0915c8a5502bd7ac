package rundir

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestAnArchiveContinuesAtItsLengths(t *testing.T) {
	run, dir := t.TempDir(), filepath.Join(t.TempDir(), "old")
	headers := []Header{{Text: []byte("id,v\n")}, {Kind: ".ndjson"}}
	a, err := OpenArchive(run, headers, nil)
	must(t, err)
	add := func(table string, header int, record string) {
		t.Helper()
		must(t, a.Add(dir, table, header, []byte(record)))
	}
	add("t1", 0, "1,a\n")
	add("t1", 1, "{}\n")
	kept := maps.Clone(a.Lengths())
	add("t1", 0, "2,b") // the last record of its file
	add("t2", 0, "3,c\n")
	must(t, a.Close())
	conformance.Equal(t, read(t, filepath.Join(dir, "t1.csv")), "id,v\n1,a\n2,b\n", "contents read")
	a, err = OpenArchive(run, headers, kept)
	must(t, err)
	if _, err := os.Stat(filepath.Join(dir, "t2.csv")); !os.IsNotExist(err) {
		t.Errorf("a file that no checkpoint knows is still there: %v", err)
	}
	add("t1", 0, "2,b\n")
	add("t2", 0, "3,c\n")
	conformance.Equal(t, len(a.Paths()), 3, "paths")
	must(t, a.Close())
	for name, want := range map[string]string{"t1.csv": "id,v\n1,a\n2,b\n", "t1.jsonl": "{}\n", "t2.csv": "id,v\n3,c\n"} {
		conformance.Equal(t, read(t, filepath.Join(dir, name)), want, "%s", name)
	}
}

func TestAnotherRunMakesArchiveFilesOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	for _, record := range []string{"first\n", "second\n"} {
		a, err := OpenArchive(t.TempDir(), []Header{{}}, nil)
		must(t, err)
		must(t, a.Add(dir, "t", 0, []byte(record)))
		must(t, a.Close())
	}
	if a, b := read(t, filepath.Join(dir, "t.csv")), read(t, filepath.Join(dir, "t-2.csv")); a != "first\n" || b != "second\n" {
		t.Errorf("%q and %q", a, b)
	}
}

func TestAnArchiveThatWasCutShortMeanwhileIsAnError(t *testing.T) {
	run, dir := t.TempDir(), t.TempDir()
	a, err := OpenArchive(run, []Header{{}}, nil)
	must(t, err)
	must(t, a.Add(dir, "t", 0, []byte("record\n")))
	lengths := a.Lengths()
	must(t, a.Close())
	must(t, os.Truncate(filepath.Join(dir, "t.csv"), 3))
	if a, err := OpenArchive(run, []Header{{}}, lengths); err == nil {
		t.Errorf("it goes on with %v", a.Paths())
	}
}
