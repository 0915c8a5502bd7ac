package commands

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/objectstore/storetest"
	"example.com/tsimport/internal/table"
	archive "example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/record"
)

// archivedAt is the timestamp of all cells in all archives, so that archives can be equal.
var archivedAt = time.Now().UnixMilli()

// writeArchive makes an archive of rows with these ids, each with one string cell.
func writeArchive(t *testing.T, dir, text string, holds archive.Selection, ids ...int64) *archive.Manifest {
	t.Helper()
	key := []table.KeyColumn{{Name: "id", Type: table.Integer}}
	w, err := archive.Exact.Open(dir, false)
	if err == nil {
		err = w.Begin(archive.Subject{Table: "t", Key: key, Holds: holds, Ranges: []string{"t"}})
	}
	must(t, err)
	p := conformance.Try(w.NewPart(0)).Must(t)
	for _, id := range ids {
		rec := &record.Record{Fields: []record.Datum{{Kind: record.Integer, Int: id}},
			Cells: []record.Cell{{Name: []byte("s"), Datum: record.Datum{Kind: record.String, Bytes: []byte(text)},
				At: archivedAt}}}
		must(t, p.Row(rec))
	}
	must(t, p.Commit(nil))
	_, err = w.Finish(archive.Manifest{Options: table.Definition{TimeToLive: -1, MaxVersions: 1}})
	conformance.MustTrue(t, err == nil, "%v", err)
	must(t, w.Close())
	return conformance.Try(archive.Read(dir)).Must(t)
}

func TestArchiveIsASourceOfSyncAndVerify(t *testing.T) {
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
	storetest.New(t, "bucket")
	tsimport(0, "export", "-t", "t", "-o", "s3://bucket/kept")
	holds(t, tsimport(2, "export", "-t", "t", "-o", "s3://bucket/kept"), "holds a complete archive already")
	tsimport(0, "load", "s3://bucket/kept", "-t", "again", "--create")
	tsimport(0, "verify", "s3://bucket/kept", "-t", "again", "--extra", "fail")
	holds(t, tsimport(2, "sync", "part", "-t", "t", "--delete"), "a range of keys")
	for _, wider := range []string{"2..", "..4"} { // the archive does not cover key 2
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

// TestUnacceptableCellsAreRefusedBeforeTheFirstRow checks that a refused sync writes nothing, not even acceptable rows.
func TestUnacceptableCellsAreRefusedBeforeTheFirstRow(t *testing.T) {
	conformance.NotForRaces(t)
	tsimport := commandsIn(t)
	const day = 24 * time.Hour
	now := archivedAt
	defer func() { archivedAt = now }()
	for i, tt := range []struct {
		age  time.Duration
		with []string // options of the table
		want string
	}{
		{2 * day, nil, "does not accept cells before"},
		{-2 * day, nil, "does not accept cells after"},
		{2 * day, []string{"--ttl", "864000"}, "a larger --ttl and --max-deviation"},
		{30 * day, []string{"--max-deviation", "8640000"}, ""},
	} {
		table, dir := fmt.Sprint("t", i), fmt.Sprint("archive", i)
		archivedAt = now - tt.age.Milliseconds()
		writeArchive(t, dir, "x", archive.Selection{}, 1, 2, 3)
		tsimport(0, append([]string{"table", "create", table, "--pk", "id:integer"}, tt.with...)...)
		tsimport(0, "table", "create", table+"_source", "--pk", "id:integer", "--max-deviation", "8640000")
		tsimport(0, "load", dir, "--table", table+"_source")
		for _, source := range []string{dir, "ots://tsimport/" + table + "_source"} {
			if tt.want == "" {
				tsimport(0, "sync", source, "-t", table)
				tsimport(0, "verify", source, "-t", table)
				continue
			}
			for _, more := range [][]string{nil, {"--plan"}, {"--delete"}} {
				text := tsimport(2, append([]string{"sync", source, "-t", table, "-q"}, more...)...)
				conformance.True(t, strings.Contains(text, tt.want) &&
					strings.Contains(text, "3 of the rows that are missing or different") && strings.Count(text, "\n") == 1,
					"cells that are %v old, %v: %s", tt.age, more, text)
			}
			text := tsimport(0, "export", "-t", table, "-q")
			conformance.True(t, !strings.Contains(text, "1"), "cells that are %v old: rows were written: %s", tt.age, text)
		}
	}
	tsimport(2, "sync", "archive0", "-t", "t0", "--drop-expired")
	holds(t, tsimport(2, "load", "archive0", "-t", "t0", "--null", "x"), "--null does not apply to an archive")
}

func TestKeyThatMergesArchiveRowsIsRefused(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "a,b,n\n1,1,1\n1,2,2\n2,1,3\n")
	tsimport(0, "load", "a.csv", "-t", "two", "--pk", "a", "--pk", "b")
	tsimport(0, "load", "a.csv", "-t", "one", "--pk", "a")
	tsimport(0, "table", "create", "other", "--pk", "h:string", "--pk", "a:integer")
	tsimport(0, "export", "-t", "two", "-o", "kept/")
	before := tsimport(0, "export", "-t", "one")
	for _, args := range [][]string{
		{"load", "kept", "-t", "new", "--create", "--pk", "a"}, {"load", "kept", "-t", "new", "--create", "--pk",
			"h:string=text(a)"}, {"load", "kept", "-t", "one"}, {"load", "kept", "-t", "one", "--dry-run"},
		{"sync", "kept", "-t", "one"}, {"verify", "kept", "-t", "one"}, {"verify", "ots://tsimport/two", "-t", "one",
			"--pk", "a"},
	} {
		text := tsimport(2, append(args, "-q")...)
		conformance.True(t, strings.Contains(text, "1 of the 3 rows of ") &&
			strings.Contains(text, "rows would get the same key") && strings.Count(text, "\n") == 1, "%v: %s", args, text)
	}
	for _, command := range []string{"load", "sync", "verify"} {
		holds(t, tsimport(2, command, "kept", "-t", "other", "-q"),
			"has a different primary key (h string, a integer) than the archive kept (a integer, b integer)")
	}
	for _, command := range []string{"sync", "verify"} {
		holds(t, tsimport(2, command, "ots://tsimport/two", "-t", "other", "-q"),
			"has a different primary key (h string, a integer) than ots://tsimport/two (a integer, b integer)")
	}
	tsimport(0, "export", "-t", "one", "-o", "keys/", "--columns", "") // as if from an unset variable
	holds(t, tsimport(2, "sync", "keys", "-t", "one", "-q"), "holds only some columns")
	ends(t, 2, "export -t two -o none/ --from-key 2 --to-key 1,5 -q", "no key is in that range")
	conformance.Equal(t, tsimport(0, "export", "-t", "one"), before, "the table was changed")
	text := tsimport(0, "table", "list", "-q")
	conformance.True(t, !strings.Contains(text, "new"), "a table was made: %s", text)
	tsimport(0, "load", "kept", "-t", "turned", "--create", "--pk", "b", "--pk", "a")
	tsimport(0, "verify", "kept", "-t", "turned", "--extra", "fail")
}

// TestVerifyMentionsArchiveRejectsLoadedLater corrects and loads an archive's rejects, which are then surplus rows.
func TestVerifyMentionsArchiveRejectsLoadedLater(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,a,c\n1,x,\n2,y,z\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id")
	tsimport(0, "export", "-t", "t", "-o", "kept/")
	holds(t, tsimport(3, "load", "kept", "-t", "r", "--create", "--rename", "a=c", "--run-dir", "first"),
		"rejected 1 with DuplicateCell")
	rejects := filepath.Join("first", "rejects.ndjson")
	text := conformance.Try(os.ReadFile(rejects)).Must(t)
	must(t, os.WriteFile(rejects, bytes.ReplaceAll(text, []byte(`"C":"a"`), []byte(`"C":"b"`)), 0o600))
	tsimport(0, "load", "--retry-rejects", "first", "--run-dir", "second")
	holds(t, tsimport(0, "verify", "--run", "first"),
		"1 equal, 0 missing, 0 different, 1 surplus", "rejects of the run were loaded by run")
}

func TestAgesCountFromThePresentByDefault(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "age.yaml", "period: month\nclasses:\n  - {up_to: 0, ttl: -1}\n  - {archive: ./archive}\n")
	now := time.Now().UTC()
	put(t, "a.csv", fmt.Sprintf("id,at\n1,%s\n2,%s\n", now.Format(time.DateOnly),
		now.AddDate(-2, 0, 0).Format(time.DateOnly)))
	said := tsimport(0, strings.Fields("load a.csv -t t_{month(at)} --pk id --age-policy age.yaml --run-dir run")...)
	holds(t, string(conformance.Read(t, "run", "summary.json")), `"policy_now": "`+now.Format("2006-"))
	holds(t, said, "new table t_"+now.Format("200601")+" (class 1): 1 written", "1 archived")
}

// TestRejectsAreReadInTheDetectedDialect has a load detect that semicolons separate fields, and loads its rejects.
func TestRejectsAreReadInTheDetectedDialect(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id;n\n1;2,5\n2;x\n3;4,5\n")
	tsimport(3, strings.Fields("load a.csv -t t --pk id --dialect auto --type n=integer --max-errors 3 --run-dir run")...)
	rejects := filepath.Join("run", "rejects.csv")
	text := conformance.Read(t, "run", "rejects.csv")
	summary := strings.Join(strings.Fields(string(conformance.Read(t, "run", "summary.json"))), " ")
	conformance.Contains(t, summary, `"rejects_flags": [ "--delimiter", ";"`, "how they are read")
	must(t, os.WriteFile(rejects, bytes.ReplaceAll(text, []byte("x"), []byte("7")), 0o600))
	tsimport(3, "load", "--retry-rejects", "run", "--max-errors", "3")
	holds(t, tsimport(0, "export", "-t", "t"), "2,7")
}

func databaseIn(t *testing.T, statements ...string) {
	t.Helper()
	db := conformance.Try(sql.Open("sqlite", "shop.db")).Must(t)
	defer db.Close()
	for _, s := range statements {
		conformance.MustEqual(t, conformance.ErrorOf(db.Exec(s)), nil, "%s", s)
	}
}

// TestKeyThatMergesDatabaseRowsIsRefusedByEveryLoad expects the columns to add. Texts equal by collation are two keys.
func TestKeyThatMergesDatabaseRowsIsRefusedByEveryLoad(t *testing.T) {
	tsimport := commandsIn(t)
	databaseIn(t, "CREATE TABLE geo (region TEXT, city TEXT, n, PRIMARY KEY (region, city))",
		"INSERT INTO geo VALUES ('a', 'x', 1), ('b', 'x', 2), ('b', 'X', 3)",
		"CREATE TABLE also (region TEXT, city TEXT COLLATE NOCASE, UNIQUE (city), PRIMARY KEY (region, city))",
		"INSERT INTO also VALUES ('a', 'x'), ('b', 'y')",
		"CREATE TABLE partly (region TEXT, city TEXT, PRIMARY KEY (region, city))",
		"CREATE UNIQUE INDEX some ON partly (city) WHERE region > 'a'",
		"CREATE UNIQUE INDEX computed ON partly (lower(city))", "INSERT INTO partly VALUES ('a', 'x'), ('b', 'y')",
		"CREATE TABLE typeless (a, b, PRIMARY KEY (a, b))", "INSERT INTO typeless VALUES (1, 1), ('1', 1)")
	const geo = "sqlite:shop.db?table=geo"
	put(t, "job.yaml", "version: 1\nloads:\n  geo:\n    from: \""+geo+"\"\n    table: job\n    pk: [city]\n")
	tsimport(0, "table", "create", "cities", "--pk", "city:string")
	for _, args := range [][]string{
		{"load", geo, "-t", "t", "--pk", "city"}, {"load", geo, "-t", "t", "--pk", "city", "--dry-run"},
		{"load", geo, "-t", "t", "--pk", "city", "--verify"}, {"load", geo, "-t", "cities"},
		{"load", geo, "-t", "t", "--pk", "k=region+city"}, {"run", "job.yaml"}, {"run", "job.yaml", "--plan"},
		{"load", "sqlite:shop.db?table=partly", "-t", "t", "--pk", "city"},
	} {
		text := tsimport(2, append(args, "-q")...)
		conformance.True(t, strings.Contains(text, "may become one row: their own key is region, city") &&
			strings.Contains(text, "--pk region") &&
			strings.Contains(text, "into another table") == slices.Contains(args, "cities"), "%v: %s", args, text)
	}
	holds(t, tsimport(2, "load", "sqlite:shop.db?table=typeless", "-t", "t", "--pk", "a", "--pk", "b", "-q"),
		"holds values of the types")
	text := tsimport(0, "table", "list")
	conformance.True(t, !strings.Contains(text, "t "), "a table was made: %s", text)
	for _, command := range []string{"sync", "verify"} { // both examine all rows
		holds(t, tsimport(2, command, geo, "-t", "cities", "-q"), "1 of the 3 rows of "+geo+" would be lost")
	}
	for i, keys := range [][]string{{"city", "region"}, {"k=md5(city,2)+city", "region"}, {"k=splice(auto, region, city)"},
		{"k=sha256(city, 32)", "region"}} {
		name := fmt.Sprint("whole", i)
		args := []string{"load", geo, "-t", name, "--verify", "-q"}
		for _, k := range keys {
			args = append(args, "--pk", k)
		}
		tsimport(0, args...)
		conformance.Equal(t, strings.Count(tsimport(0, "export", "-t", name, "-q", "--format", "jsonl"), "\n"), 3, "%v", keys)
	}
	tsimport(0, "load", "sqlite:shop.db?table=also", "-t", "also", "--pk", "city", "--verify", "-q")
}

// A repeated key is not an error, because the dump of a later night may repeat keys on purpose.
func TestKeyThatMayMergeDumpRowsCausesAWarning(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "geo.sql", "-- MySQL dump 10.13\n\n/*!40101 SET NAMES utf8mb4 */;\nCREATE TABLE `geo` (\n  `region` int NOT "+
		"NULL,\n  `city` varchar(9) NOT NULL,\n  PRIMARY KEY (`region`,`city`)\n);\nINSERT INTO `geo` VALUES "+
		"(1,'x'),(2,'x');\n-- Dump completed\n")
	holds(t, tsimport(0, "load", "geo.sql", "-t", "t", "--pk", "city"),
		"warning: rows of geo.sql that differ only in region may become one row")
	text := tsimport(0, "load", "geo.sql", "-t", "u")
	conformance.True(t, !strings.Contains(text, "may become one row"), "%v", text)
}

func commandsIn(t *testing.T) (tsimport func(want int, args ...string) string) {
	t.Helper()
	t.Chdir(t.TempDir())
	return func(want int, args ...string) string {
		t.Helper()
		stdout, stderr := command(t, want, args...)
		return stdout + stderr
	}
}

// holds checks that the output of a command contains all parts.
func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		conformance.Contains(t, text, part, "text")
	}
}

// Putting a row would delete the older versions, which the archive lacks.
func TestNewestVersionsArchiveDoesNotOverwriteOlderVersions(t *testing.T) {
	tsimport := commandsIn(t)
	row := func(id string, versions ...string) string {
		return `{"Wide":true,"PK":{"Values":[{"C":"id","V":` + id + `,"IsInt":true}]},"Attr":{"Values":[` +
			strings.Join(versions, ",") + "]}}\n"
	}
	const first, second, third = `{"C":"s","V":"a","TS":1700000000000}`, `{"C":"s","V":"b","TS":1700000001000}`,
		`{"C":"s","V":"c","TS":1700000002000}`
	put(t, "a.jsonl", row("1", third, second, first)+row("2", first))
	for _, name := range []string{"t", "one"} {
		tsimport(0, "table", "create", name, "--pk", "id:integer", "--max-versions",
			map[string]string{"t": "3", "one": "1"}[name], "--max-deviation", "999999999")
	}
	tsimport(0, "load", "a.jsonl", "-t", "t", "-q")
	tsimport(0, "export", "-t", "t", "--versions", "1", "-o", "newest/", "-q")
	tsimport(0, "export", "-t", "t", "--versions", "3", "-o", "all/", "-q")
	all := tsimport(0, "export", "-t", "t", "--format", "jsonl", "--typed", "-q")
	holds(t, tsimport(2, "sync", "newest", "-t", "t"), "only the newest version of each cell", "--mode update")
	tsimport(0, "sync", "newest", "-t", "t", "--mode", "update", "-q")
	tsimport(0, "sync", "all", "-t", "t", "--delete", "-q") // the archive and the table have all versions
	tsimport(0, "sync", "newest", "-t", "one", "-q")        // the table keeps one version
	one := tsimport(0, "export", "-t", "one", "--format", "jsonl", "--typed", "-q")
	for source, want := range map[string]string{"all": "the archive all has up to 3",
		"ots://tsimport/t": "ots://tsimport/t has up to 3"} {
		said := tsimport(2, "sync", source, "-t", "one", "-q")
		conformance.True(t, strings.Contains(said, "table one keeps 1 version of a cell, but "+want) &&
			strings.Count(said, "\n") == 1, "%v", said)
	}
	conformance.Equal(t, tsimport(0, "export", "-t", "one", "--format", "jsonl", "--typed", "-q"), one, "was")
	now := tsimport(0, "export", "-t", "t", "--format", "jsonl", "--typed", "-q")
	conformance.True(t, now == all && strings.Count(all, `"TS"`) == 4, "was %s, is %s", all, now)
}

// If the comparison rejected the rows instead, it would find no difference.
func TestColumnsNamedLikeMarksAreCompared(t *testing.T) {
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

func TestExportFileCannotBeAFolder(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id\n1\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id", "-q")
	must(t, os.Mkdir("there", 0o700))
	for _, folder := range []string{"new/", "there", "."} {
		said := tsimport(2, "export", "-t", "t", "--format", "jsonl", "-o", folder)
		conformance.True(t, strings.Contains(said, "not a folder") && strings.Count(said, "\n") == 1, "%v", said)
	}
	holds(t, tsimport(0, "export", "-t", "t", "-o", "new/"), "archived 1 row with 0 cells of table t in 1 part, ")
}

func TestComparisonNamesTheArchive(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,s\n1,a\n2,b\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id:integer", "-q")
	tsimport(0, "export", "-t", "t", "-o", "all/", "-q")
	tsimport(0, "export", "-t", "t", "-o", "part/", "--from-key", "2", "-q")
	for archive, want := range map[string]struct {
		code int
		says string
	}{"all": {0, "the archive matches the input"}, "part": {6,
		"note: the archive part holds only some of its table's rows"}} {
		holds(t, tsimport(want.code, "verify", "a.csv", "--archive", archive), want.says)
	}
}

func TestRejectedTableRowHasNoLineNumber(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,s\n1,a\nx,b\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id:string", "-q")
	holds(t, tsimport(3, "copy", "t", "u", "--pk", "id:integer"),
		`the first: t record 2, at id "1" or after it, column id: not an integer ("x")`)
}

func TestSyncRunIsNotComparedAsALoad(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,s\n1,a\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id", "-q")
	tsimport(0, "sync", "a.csv", "-t", "t", "--run-dir", "kept", "-q")
	for command, flag := range map[string]string{"verify": "--run", "load": "--retry-rejects"} {
		said := tsimport(2, command, flag, "kept")
		conformance.True(t, strings.Contains(said, "that is a run of tsimport sync") && strings.Count(said, "\n") == 1,
			"%v", said)
	}
}
