package rundir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tsimport/internal/table"
)

func TestRejectsAreSortedByTheirPlaceInTheInputs(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(dir, []Header{{Text: []byte("id,n")}, {Text: []byte("x\n")}})
	must(t, err)
	j, err := OpenJournal(filepath.Join(dir, RejectIndexFile), 0)
	must(t, err)
	f.Index(j, map[string]int{"a.csv": 0, "b.csv": 1, "c.csv": 2})
	reject := func(header int, source string, record int64, raw string) {
		t.Helper()
		must(t, f.Reject(header, table.Reject{Location: table.Location{Source: source, Record: record}, Reason: table.Reason{Code: "x"}, Raw: []byte(raw)}))
	}
	reject(1, "c.csv", 2, "c2")
	reject(0, "b.csv", 9, "b9,\"two\nlines\"\n")
	reject(0, "a.csv", 30, "a30,")
	reject(1, "c.csv", 1, "c1\n")
	reject(0, "a.csv", 4, "a4,\n")
	must(t, f.Close())
	must(t, j.Close())
	if sorted, err := f.SortRejects(); !sorted || err != nil {
		t.Fatal(sorted, err)
	}
	for name, want := range map[string]string{
		"rejects.csv":   "id,n\na4,\na30,\nb9,\"two\nlines\"\n",
		"rejects-2.csv": "x\nc1\nc2\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s has %q, want %q, error %v", name, got, want, err)
		}
	}
	var at []string
	must(t, EachReason(dir, func(r *Reason) { at = append(at, fmt.Sprint(r.File, r.Record)) }))
	if got := strings.Join(at, " "); got != "a.csv4 a.csv30 b.csv9 c.csv1 c.csv2" {
		t.Errorf("reasons of %s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, RejectIndexFile)); !os.IsNotExist(err) {
		t.Errorf("the index is left: %v", err)
	}
}
