package commands

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// commandsIn runs commands in an empty folder.
func commandsIn(t *testing.T) (tsimport func(want int, args ...string) string) {
	t.Helper()
	t.Chdir(t.TempDir())
	return func(want int, args ...string) string {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := Run(append([]string{"tsimport"}, args...), &out, &errOut); code != want {
			t.Errorf("%q: exit code %d, want %d: %s%s", args, code, want, out.String(), errOut.String())
		}
		return out.String() + errOut.String()
	}
}

// holds reports parts that a text, of a command, does not have.
func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		conformance.Contains(t, text, part, "text")
	}
}

// TestAnArchiveOfTheNewestVersionsIsNotPutOverOlderOnes: a row that is put loses all versions that the archive was not to hold.
func TestAnArchiveOfTheNewestVersionsIsNotPutOverOlderOnes(t *testing.T) {
	tsimport := commandsIn(t)
	row := func(id string, versions ...string) string {
		return `{"Wide":true,"PK":{"Values":[{"C":"id","V":` + id + `,"IsInt":true}]},"Attr":{"Values":[` + strings.Join(versions, ",") + "]}}\n"
	}
	const first, second, third = `{"C":"s","V":"a","TS":1700000000000}`, `{"C":"s","V":"b","TS":1700000001000}`, `{"C":"s","V":"c","TS":1700000002000}`
	put(t, "a.jsonl", row("1", third, second, first)+row("2", first))
	for _, name := range []string{"t", "one"} {
		tsimport(0, "table", "create", name, "--pk", "id:integer", "--max-versions", map[string]string{"t": "3", "one": "1"}[name], "--max-deviation", "999999999")
	}
	tsimport(0, "load", "a.jsonl", "-t", "t", "-q")
	tsimport(0, "export", "-t", "t", "--versions", "1", "-o", "newest/", "-q")
	tsimport(0, "export", "-t", "t", "--versions", "3", "-o", "all/", "-q")
	all := tsimport(0, "export", "-t", "t", "--format", "jsonl", "--typed", "-q")
	holds(t, tsimport(2, "sync", "newest", "-t", "t"), "only the newest version of each cell", "--mode update")
	tsimport(0, "sync", "newest", "-t", "t", "--mode", "update", "-q")
	tsimport(0, "sync", "all", "-t", "t", "--delete", "-q") // no cell has more versions than the archive and the table
	tsimport(0, "sync", "newest", "-t", "one", "-q")        // which keeps no others
	one := tsimport(0, "export", "-t", "one", "--format", "jsonl", "--typed", "-q")
	for source, want := range map[string]string{"all": "the archive all has up to 3", "ots://tsimport/t": "ots://tsimport/t has up to 3"} {
		said := tsimport(2, "sync", source, "-t", "one", "-q")
		if !strings.Contains(said, "table one keeps 1 version of a cell, and "+want) || strings.Count(said, "\n") != 1 {
			t.Error(said)
		}
	}
	conformance.Equal(t, tsimport(0, "export", "-t", "one", "--format", "jsonl", "--typed", "-q"), one, "was")
	if now := tsimport(0, "export", "-t", "t", "--format", "jsonl", "--typed", "-q"); now != all || strings.Count(all, `"TS"`) != 4 {
		t.Errorf("was %s, is %s", all, now)
	}
}

// TestRowsInThePlaceOfMarksAreNotComparedAsNone: a comparison that rejects all rows would find all of them equal.
func TestRowsInThePlaceOfMarksAreNotComparedAsNone(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "room,text\na,x\na,y\nb,z\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "room", "--pk", "id:auto", "--returned-keys", "first.csv", "-q")
	tsimport(0, "export", "-t", "t", "-o", "kept/", "-q")
	tsimport(0, "load", "kept", "-t", "again", "--create", "--exclude", "_tsimport", "--returned-keys", "keys.csv", "-q")
	for _, source := range []string{"kept", "ots://tsimport/t"} {
		holds(t, tsimport(2, "verify", source, "-t", "again", "--returned-keys", "keys.csv"), "--exclude _tsimport")
		holds(t, tsimport(0, "verify", source, "-t", "again", "--returned-keys", "keys.csv", "--exclude", "_tsimport"),
			"3 equal")
	}
}

func TestAFolderIsNotTheFileOfAnExport(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id\n1\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id", "-q")
	must(t, os.Mkdir("there", 0o700))
	for _, folder := range []string{"new/", "there", "."} {
		if said := tsimport(2, "export", "-t", "t", "--format", "csv", "-o", folder); !strings.Contains(said, "it is a folder") || strings.Count(said, "\n") != 1 {
			t.Error(said)
		}
	}
	holds(t, tsimport(0, "export", "-t", "t", "-o", "new/"), "archived 1 row with 0 cells of table t in 1 part, ")
}

func TestAComparisonWithAnArchiveSaysSo(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,s\n1,a\n2,b\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id:integer", "-q")
	tsimport(0, "export", "-t", "t", "-o", "all/", "-q")
	tsimport(0, "export", "-t", "t", "-o", "part/", "--from-key", "2", "-q")
	for archive, want := range map[string]struct {
		code int
		says string
	}{"all": {0, "the archive matches the input"}, "part": {6, "note: the archive part holds only some of its table's rows"}} {
		holds(t, tsimport(want.code, "verify", "a.csv", "--archive", archive), want.says)
	}
}

// TestARejectedRowOfATableIsNotNamedByALine: it is on none.
func TestARejectedRowOfATableIsNotNamedByALine(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,s\n1,a\nx,b\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id:string", "-q")
	holds(t, tsimport(3, "copy", "t", "u", "--pk", "id:integer"),
		`the first: t record 2, at id "1" or after it, column id: not an integer ("x")`)
}

func TestARunOfASyncIsNotComparedAsALoad(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,s\n1,a\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id", "-q")
	tsimport(0, "sync", "a.csv", "-t", "t", "--run-dir", "kept", "-q")
	for command, flag := range map[string]string{"verify": "--run", "load": "--retry-rejects"} {
		if said := tsimport(2, command, flag, "kept"); !strings.Contains(said, "that is a run of tsimport sync") || strings.Count(said, "\n") != 1 {
			t.Error(said)
		}
	}
}
