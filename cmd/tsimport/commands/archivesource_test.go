package commands

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/record"
)

// archivedAt is the time of all cells: archives that are made one after the other are to be equal.
var archivedAt = time.Now().UnixMilli()

// writeArchive makes an archive of rows with the numbers, whose one cell is a text.
func writeArchive(t *testing.T, dir, text string, holds archive.Selection, ids ...int64) *archive.Manifest {
	t.Helper()
	key := []table.KeyColumn{{Name: "id", Type: table.Integer}}
	w, err := archive.Open(dir, false)
	if err == nil {
		err = w.Begin(archive.Subject{Table: "t", Key: archive.Columns(key), Holds: holds, Ranges: []string{"t"}})
	}
	must(t, err)
	p, err := w.NewPart(0)
	must(t, err)
	for _, id := range ids {
		rec := &record.Record{Fields: []record.Datum{{Kind: record.Integer, Int: id}}, Cells: []record.Cell{{Name: []byte("s"), Datum: record.Datum{Kind: record.String, Bytes: []byte(text)}, At: archivedAt}}}
		must(t, p.Row(rec))
	}
	must(t, p.Commit(nil))
	if _, err := w.Finish(archive.Manifest{Options: archive.Options{TimeToLive: -1, MaxVersions: 1}}); err != nil {
		t.Fatal(err)
	}
	must(t, w.Close())
	m, err := archive.Read(dir)
	must(t, err)
	return m
}

func TestAnArchiveIsASourceOfSyncAndVerify(t *testing.T) {
	tsimport := commandsIn(t)
	whole := writeArchive(t, "whole", "x", archive.Selection{}, 1, 2, 3)
	writeArchive(t, "same", "x", archive.Selection{}, 1, 2, 3)
	writeArchive(t, "fewer", "x", archive.Selection{}, 1, 3)
	writeArchive(t, "other", "y", archive.Selection{}, 1, 2, 3)
	writeArchive(t, "part", "x", archive.Selection{From: "3"}, 3)
	put(t, "a.csv", "id,s\n3,z\n4,z\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id")
	tsimport(6, "verify", "whole", "-t", "t")
	tsimport(0, "sync", "whole", "-t", "t", "--delete", "--max-delete", "1")
	tsimport(0, "verify", "whole", "-t", "t", "--extra", "fail")
	holds(t, tsimport(2, "sync", "part", "-t", "t", "--delete"), "a range of keys")
	for _, wider := range []string{"2..", "..4"} { // the archive says nothing about key 2
		holds(t, tsimport(2, "sync", "part", "-t", "t", "--delete", "--range", wider), "within it")
	}
	holds(t, tsimport(2, "sync", "part", "-t", "t", "--delete", "--range", "3..", "--pk", "id=id+1"), "another key")
	tsimport(0, "sync", "part", "-t", "t", "--delete", "--range", "3..")
	tsimport(0, "verify", "whole", "-t", "t", "--extra", "fail")
	tsimport(0, "verify", "part", "-t", "t")
	for _, against := range [][]string{{"-t", "t"}, {"--archive", "whole"}} {
		holds(t, tsimport(2, append([]string{"verify", "part", "--extra", "fail"}, against...)...),
			"only some of its table's rows")
	}
	holds(t, tsimport(2, "sync", "a.csv", "-", "-t", "t", "--delete"), "a stream among several inputs")
	writeArchive(t, "narrow", "x", archive.Selection{Columns: []string{"s"}}, 1, 2, 3)
	holds(t, tsimport(2, "sync", "narrow", "-t", "t"), "--mode update")
	tsimport(0, "sync", "narrow", "-t", "t", "--mode", "update", "--delete")
	holds(t, tsimport(2, "sync", "whole", "-t", "t", "--pk", "id=id-id"), "would be lost")
	for _, refused := range [][]string{{"--range", ""}, {"--range", "", "--delete"}, {"--condition", "exist"}} {
		tsimport(2, append([]string{"sync", "whole", "-t", "t"}, refused...)...)
	}
	tsimport(0, "verify", "whole", "-t", "t", "--extra", "fail")

	tsimport(0, "verify", "whole", "--archive", "same", "--extra", "fail")
	holds(t, tsimport(6, "verify", "whole", "--archive", "fewer"), "1 missing")
	holds(t, tsimport(6, "verify", "fewer", "--archive", "whole", "--extra", "fail"), "1 surplus")
	holds(t, tsimport(6, "verify", "whole", "--archive", "other"), "3 different", "columns s")
	holds(t, tsimport(2, "verify", "whole", "--archive", filepath.Join(".", "whole")), "same archive")
	tsimport(2, "verify", "whole", "--archive", "none")
	tsimport(2, "verify", "whole", "--archive", "same", "-t", "t")

	must(t, os.Truncate(whole.Path(&whole.Parts[0]), whole.Parts[0].Bytes-1))
	holds(t, tsimport(3, "sync", "whole", "-t", "t", "--delete"), "nothing was deleted")
	tsimport(2, "verify", "whole", "-t", "t")
	tsimport(2, "verify", "same", "--archive", "whole")
	tsimport(0, "verify", "same", "-t", "t", "--extra", "fail")
}

// TestCellsThatTheTableDoesNotTakeAreRefusedBeforeTheFirstRow: a sync writes nothing, not the rows that could be written either.
func TestCellsThatTheTableDoesNotTakeAreRefusedBeforeTheFirstRow(t *testing.T) {
	tsimport := commandsIn(t)
	const day = 24 * time.Hour
	now := archivedAt
	defer func() { archivedAt = now }()
	for i, tt := range []struct {
		age  time.Duration
		with []string // options of the table
		want string
	}{
		{2 * day, nil, "does not take cells of before"},
		{-2 * day, nil, "does not take cells of after"},
		{2 * day, []string{"--ttl", "864000"}, "a larger --ttl and --max-deviation"},
		{30 * day, []string{"--max-deviation", "8640000"}, ""},
	} {
		table, dir := fmt.Sprint("t", i), fmt.Sprint("archive", i)
		archivedAt = now - tt.age.Milliseconds()
		writeArchive(t, dir, "x", archive.Selection{}, 1, 2, 3)
		tsimport(0, append([]string{"table", "create", table, "--pk", "id:integer"}, tt.with...)...)
		tsimport(0, append([]string{"table", "create", table + "_source", "--pk", "id:integer"}, "--max-deviation", "8640000")...)
		tsimport(0, "load", dir, "--table", table+"_source")
		for _, source := range []string{dir, "ots://tsimport/" + table + "_source"} {
			if tt.want == "" {
				tsimport(0, "sync", source, "-t", table)
				tsimport(0, "verify", source, "-t", table)
				continue
			}
			for _, more := range [][]string{nil, {"--plan"}, {"--delete"}} {
				text := tsimport(2, append([]string{"sync", source, "-t", table, "-q"}, more...)...)
				if !strings.Contains(text, tt.want) || !strings.Contains(text, "3 of the rows that are missing or different") || strings.Count(text, "\n") != 1 {
					t.Errorf("cells that are %v old, %v: %s", tt.age, more, text)
				}
			}
			if text := tsimport(0, "export", "-t", table, "-q"); strings.Contains(text, "1") {
				t.Errorf("cells that are %v old: rows were written: %s", tt.age, text)
			}
		}
	}
	tsimport(2, "sync", "archive0", "-t", "t0", "--drop-expired")
}

// TestKeysThatMakeSeveralRowsOfAnArchiveOne: nothing is loaded, and no comparison says that all rows are there.
func TestKeysThatMakeSeveralRowsOfAnArchiveOne(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "a,b,n\n1,1,1\n1,2,2\n2,1,3\n")
	tsimport(0, "load", "a.csv", "-t", "two", "--pk", "a", "--pk", "b")
	tsimport(0, "load", "a.csv", "-t", "one", "--pk", "a")
	tsimport(0, "table", "create", "other", "--pk", "h:string", "--pk", "a:integer")
	tsimport(0, "export", "-t", "two", "-o", "kept/")
	before := tsimport(0, "export", "-t", "one")
	for _, args := range [][]string{
		{"load", "kept", "-t", "new", "--create", "--pk", "a"}, {"load", "kept", "-t", "new", "--create", "--pk", "h:string=text(a)"}, {"load", "kept", "-t", "one"}, {"load", "kept", "-t", "one", "--dry-run"},
		{"sync", "kept", "-t", "one"}, {"verify", "kept", "-t", "one"}, {"verify", "ots://tsimport/two", "-t", "one", "--pk", "a"},
	} {
		if text := tsimport(2, append(args, "-q")...); !strings.Contains(text, "1 of the 3 rows of ") || !strings.Contains(text, "several rows would get one key") || strings.Count(text, "\n") != 1 {
			t.Errorf("%v: %s", args, text)
		}
	}
	for _, command := range []string{"load", "sync", "verify"} {
		holds(t, tsimport(2, command, "kept", "-t", "other", "-q"),
			"has another primary key (h string, a integer) than the archive kept (a integer, b integer)")
	}
	for _, command := range []string{"sync", "verify"} {
		holds(t, tsimport(2, command, "ots://tsimport/two", "-t", "other", "-q"),
			"has another primary key (h string, a integer) than ots://tsimport/two (a integer, b integer)")
	}
	tsimport(0, "export", "-t", "one", "-o", "keys/", "--columns", "") // as of a variable that is not set
	holds(t, tsimport(2, "sync", "keys", "-t", "one", "-q"), "holds only some columns")
	holds(t, tsimport(2, "export", "-t", "two", "-o", "none/", "--from-key", "2", "--to-key", "1,5", "-q"),
		"no key is in that range")
	conformance.Equal(t, tsimport(0, "export", "-t", "one"), before, "the table was changed")
	if text := tsimport(0, "table", "list", "-q"); strings.Contains(text, "new") {
		t.Errorf("a table was made: %s", text)
	}
	tsimport(0, "load", "kept", "-t", "turned", "--create", "--pk", "b", "--pk", "a")
	tsimport(0, "verify", "kept", "-t", "turned", "--extra", "fail")
}

// TestRejectsOfAnArchiveThatWereLoadedLaterAreSaid: a comparison with the archive does not have their rows.
func TestRejectsOfAnArchiveThatWereLoadedLaterAreSaid(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,a,c\n1,x,\n2,y,z\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id")
	tsimport(0, "export", "-t", "t", "-o", "kept/")
	holds(t, tsimport(3, "load", "kept", "-t", "r", "--create", "--rename", "a=c", "--run-dir", "first"),
		"rejected 1 with DuplicateCell")
	rejects := filepath.Join("first", "rejects.ndjson")
	text, err := os.ReadFile(rejects)
	must(t, err)
	must(t, os.WriteFile(rejects, bytes.ReplaceAll(text, []byte(`"C":"a"`), []byte(`"C":"b"`)), 0o600))
	tsimport(0, "load", "--retry-rejects", "first", "--run-dir", "second")
	holds(t, tsimport(0, "verify", "--run", "first"),
		"1 equal, 0 missing, 0 different, 1 surplus", "rejects of the run were loaded by run")
}
