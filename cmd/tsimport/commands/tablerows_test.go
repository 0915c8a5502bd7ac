package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// rowsIn makes a table of rows whose keys are a number and a text, and ages from 0 to 9.
func rowsIn(t *testing.T, tsimport func(int, ...string) string) {
	t.Helper()
	text := "n,id,age\n"
	for i := range 300 {
		text += fmt.Sprintf("%d,k%03d,%d\n", i%3, i, i%10)
	}
	put(t, "p.csv", text)
	tsimport(0, "load", "p.csv", "-t", "p", "--create", "--pk", "n:integer", "--pk", "id", "-q")
}

func TestRowsOfATableAreCounted(t *testing.T) {
	tsimport := commandsIn(t)
	rowsIn(t, tsimport)
	for args, want := range map[string]string{"": "300", "--prefix 1": "100", "--from-key 1,k150": "150", "--to-key 1": "100", "--filter age<2": "60", "--where age<2": "60", "--prefix 2 --filter age==3": "10", "--filter nope==1": "0"} {
		got := tsimport(0, append([]string{"table", "count", "p", "-q"}, strings.Fields(args)...)...)
		conformance.Equal(t, strings.TrimSpace(got), want, "%s", args)
	}
	holds(t, tsimport(0, "table", "count", "p", "--json"), `"rows": 300`, `"read_units": `, "takes up to")
	holds(t, tsimport(2, "table", "count", "nope"), "no such table")
	holds(t, tsimport(2, "table", "count", "p", "--prefix", "1", "--from-key", "0"), "leave one of them out")
	holds(t, tsimport(2, "table", "count", "p", "--prefix", "x"), "the prefix x")
}

func TestRowsOfATableAreDeleted(t *testing.T) {
	tsimport := commandsIn(t)
	rowsIn(t, tsimport)
	count := func(want string) {
		t.Helper()
		conformance.Equal(t, strings.TrimSpace(tsimport(0, "table", "count", "p", "-q")), want, "rows")
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "tsimport table drop"}, {[]string{"--where", "age<2"}, "give --filter"}, {[]string{"--keys", "p.csv", "--prefix", "1"}, "leave out key ranges"},
		{[]string{"--filter", "age<2"}, "this deletes 60 rows of table p"}, {[]string{"--filter", "age<2", "--yes", "--max-delete", "59"}, "60 rows would be deleted, more than 59"},
	} {
		holds(t, tsimport(2, append([]string{"table", "delete", "p"}, c.args...)...), c.want)
	}
	count("300")
	holds(t, tsimport(0, "table", "delete", "p", "--filter", "age<2", "--yes", "--max-delete", "60"), "60 deleted")
	count("240")
	holds(t, tsimport(0, "table", "delete", "p", "--filter", "age<2", "--yes"), "there is none")
	holds(t, tsimport(0, "table", "delete", "p", "--prefix", "1", "--yes"), "80 deleted")
	put(t, "k.csv", "n,id\n0,k003\n2,k299\n")
	holds(t, tsimport(0, "table", "delete", "p", "--keys", "k.csv"), "2 would be deleted")
	count("160")
	holds(t, tsimport(0, "table", "delete", "p", "--keys", "k.csv", "--yes"), "2 deleted")
	count("158")
	left := conformance.Try(filepath.Glob("tsimport-runs/delete-*")).Must(t)
	conformance.Equal(t, len(left), 0, "files of keys")
}

// killedDeletion leaves what a deletion of rows has left that was killed when it had found them: the file of their keys.
func killedDeletion(t *testing.T, tsimport func(int, ...string) string, which []string, rows ...string) (keys string) {
	t.Helper()
	tsimport(0, "export", "-t", "p", "-o", "archive/", "-q")
	var manifest struct {
		Created int64 `json:"creation_time"`
	}
	text := conformance.Try(os.ReadFile("archive/manifest.json")).Must(t)
	must(t, json.Unmarshal(text, &manifest))
	keys = deletedKeysFile("embedded store ./tsimport-store", "p", append([]string{fmt.Sprint(manifest.Created)}, which...)...)
	tsimport(0, append([]string{"export", "-t", "p", "--typed", "--columns", "", "-o", keys, "-q"}, rows...)...)
	return keys
}

// TestRowsThatOthersHaveChangedAreNotDeleted: some rows change between a killed deletion's search and its resumption.
func TestRowsThatOthersHaveChangedAreNotDeleted(t *testing.T) {
	tsimport := commandsIn(t)
	rowsIn(t, tsimport)
	remove := []string{"table", "delete", "p", "--filter", "age < 2", "--yes"}
	keys := killedDeletion(t, tsimport, []string{"", "", "age < 2"}, "--filter", "age < 2")
	put(t, "c.csv", "n,id,age\n0,k000,5\n1,k001,\n0,k030,1\n")
	tsimport(0, "load", "c.csv", "-t", "p", "-q")
	put(t, "gone.csv", "n,id\n2,k011\n")
	tsimport(0, "load", "gone.csv", "-t", "p", "--mode", "delete", "-q")
	put(t, "new.csv", "n,id,age\n7,new,1\n")
	tsimport(0, "load", "new.csv", "-t", "p", "-q")
	said := tsimport(0, remove...)
	holds(t, said, "the deletion of 60 rows that was interrupted is resumed", "57 deleted", "1 deleted")
	conformance.Equal(t, strings.TrimSpace(tsimport(0, "table", "count", "p", "-q")), "242", "rows")
	_, err := os.Stat(keys)
	conformance.True(t, os.IsNotExist(err), "the file of keys is left: %v", err)
}

// TestAnInterruptedDeletionOfAPrefixIsResumed: the rows are searched again with the same prefix.
func TestAnInterruptedDeletionOfAPrefixIsResumed(t *testing.T) {
	tsimport := commandsIn(t)
	rowsIn(t, tsimport)
	killedDeletion(t, tsimport, []string{"1", "2", ""}, "--prefix", "1")
	put(t, "new.csv", "n,id,age\n1,new,1\n")
	tsimport(0, "load", "new.csv", "-t", "p", "-q")
	holds(t, tsimport(0, "table", "delete", "p", "--prefix", "1", "--yes"), "the deletion of 100 rows that was interrupted is resumed", "100 deleted", "1 deleted")
	conformance.Equal(t, strings.TrimSpace(tsimport(0, "table", "count", "p", "-q")), "200", "rows")
}

// TestRowsOfKeysAreExportedAndCounted has unsorted, repeated and missing keys, in several requests.
func TestRowsOfKeysAreExportedAndCounted(t *testing.T) {
	tsimport := commandsIn(t)
	var rows, keys, want strings.Builder
	rows.WriteString("dev,n,v\n")
	keys.WriteString("n,dev\n")
	for i := range 3000 {
		fmt.Fprintf(&rows, "d%02d,%d,v%d\n", i%10, i, i)
	}
	for i := 2999; i >= 0; i -= 3 {
		fmt.Fprintf(&keys, "%d,d%02d\n%d,d%02d\n", i, i%10, i+100000, i%10)
	}
	for d := range 10 {
		for i := range 3000 {
			if i%10 == d && i%3 == 2 {
				fmt.Fprintf(&want, "d%02d,%d,v%d\n", d, i, i)
			}
		}
	}
	keys.WriteString("2999,d09\n")
	put(t, "rows.csv", rows.String())
	put(t, "keys.csv", keys.String())
	tsimport(0, "load", "rows.csv", "-t", "t", "--create", "--pk", "dev:string", "--pk", "n:integer", "-q")

	holds(t, tsimport(0, "export", "-t", "t", "--keys", "keys.csv", "-o", "out.csv", "--max-rcu", "100000"), "exported 1,000 rows", "no rows for 1,000 keys")
	got := conformance.Try(os.ReadFile("out.csv")).Must(t)
	conformance.Equal(t, string(got), "dev,n,v\n"+want.String(), "rows of the keys")
	holds(t, tsimport(0, "export", "-t", "t", "--keys", "keys.csv", "--where", "n < 10", "--format", "jsonl", "-o", "few.jsonl"), "exported 3 rows")
	holds(t, tsimport(0, "export", "-t", "t", "--keys", "keys.csv", "--limit", "7", "-o", "seven.csv"), "exported 7 rows")
	conformance.Equal(t, strings.TrimSpace(tsimport(0, "table", "count", "t", "--keys", "keys.csv", "-q")), "1000", "rows counted")
	conformance.Equal(t, strings.TrimSpace(tsimport(0, "table", "count", "t", "--prefix", "d07", "-q")), "300", "rows counted")
	tsimport(0, "export", "-t", "t", "--prefix", "d07,7", "-o", "one.csv")
	one := conformance.Try(os.ReadFile("one.csv")).Must(t)
	conformance.Equal(t, string(one), "dev,n,v\nd07,7,v7\n", "the row of a whole key")

	put(t, "bad.csv", "dev,n\nd01,x\n")
	holds(t, tsimport(2, "export", "-t", "t", "--keys", "bad.csv"), "bad.csv, record 1, column n")
	put(t, "short.csv", "dev\nd01\n")
	holds(t, tsimport(2, "export", "-t", "t", "--keys", "short.csv"), "no column \"n\"")
	holds(t, tsimport(2, "export", "-t", "t", "--keys", "keys.csv", "--prefix", "d01"), "leave out key ranges")
	holds(t, tsimport(2, "export", "-t", "t", "--keys", "keys.csv", "--filter", "n > 1"), "give --where")
	holds(t, tsimport(2, "export", "-t", "t", "--keys", "keys.csv", "-o", "folder/"), "--keys")
	holds(t, tsimport(2, "export", "-t", "t", "--prefix", "d01", "--to-key", "d02"), "leave one of them out")
}
