package commands

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"example.com/tsimport/internal/conformance"
)

// databaseIn makes a file of SQLite in the working folder.
func databaseIn(t *testing.T, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "shop.db")
	must(t, err)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// TestAKeyThatWouldMergeRowsOfADatabaseIsRefusedByEveryCommandThatLoads: before the first row, with the columns to add. Two texts that a
// collation equates are two keys here.
func TestAKeyThatWouldMergeRowsOfADatabaseIsRefusedByEveryCommandThatLoads(t *testing.T) {
	tsimport := commandsIn(t)
	databaseIn(t,
		"CREATE TABLE geo (region TEXT, city TEXT, n, PRIMARY KEY (region, city))", "INSERT INTO geo VALUES ('a', 'x', 1), ('b', 'x', 2), ('b', 'X', 3)",
		"CREATE TABLE also (region TEXT, city TEXT COLLATE NOCASE, UNIQUE (city), PRIMARY KEY (region, city))", "INSERT INTO also VALUES ('a', 'x'), ('b', 'y')",
		"CREATE TABLE partly (region TEXT, city TEXT, PRIMARY KEY (region, city))", "CREATE UNIQUE INDEX some ON partly (city) WHERE region > 'a'",
		"CREATE UNIQUE INDEX computed ON partly (lower(city))", "INSERT INTO partly VALUES ('a', 'x'), ('b', 'y')",
		"CREATE TABLE typeless (a, b, PRIMARY KEY (a, b))", "INSERT INTO typeless VALUES (1, 1), ('1', 1)")
	const geo = "sqlite:shop.db?table=geo"
	put(t, "job.yaml", "version: 1\nloads:\n  geo:\n    from: \""+geo+"\"\n    table: job\n    pk: [city]\n")
	tsimport(0, "table", "create", "cities", "--pk", "city:string")
	for _, args := range [][]string{
		{"load", geo, "-t", "t", "--pk", "city"}, {"load", geo, "-t", "t", "--pk", "city", "--dry-run"}, {"load", geo, "-t", "t", "--pk", "city", "--verify"},
		{"load", geo, "-t", "cities"}, {"load", geo, "-t", "t", "--pk", "k=region+city"},
		{"run", "job.yaml"}, {"run", "job.yaml", "--plan"}, {"load", "sqlite:shop.db?table=partly", "-t", "t", "--pk", "city"},
	} {
		text := tsimport(2, append(args, "-q")...)
		if !strings.Contains(text, "may become one row: their own key is region, city") || !strings.Contains(text, "--pk region") ||
			strings.Contains(text, "into another table") != slices.Contains(args, "cities") {
			t.Errorf("%v: %s", args, text)
		}
	}
	holds(t, tsimport(2, "load", "sqlite:shop.db?table=typeless", "-t", "t", "--pk", "a", "--pk", "b", "-q"),
		"holds values of the types")
	if text := tsimport(0, "table", "list"); strings.Contains(text, "t ") {
		t.Errorf("a table was made: %s", text)
	}
	for _, command := range []string{"sync", "verify"} { // which look at all rows
		holds(t, tsimport(2, command, geo, "-t", "cities", "-q"), "1 of the 3 rows of "+geo+" would be lost")
	}
	for i, keys := range [][]string{{"city", "region"}, {"k=md5(city,2)+city", "region"}, {"k=splice(auto, region, city)"}, {"k=sha256(city, 32)", "region"}} {
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

// TestAKeyThatMayMergeRowsOfADumpBringsAWarning: of several dumps the later one is a later night, so that rows of one key need not be a mistake.
func TestAKeyThatMayMergeRowsOfADumpBringsAWarning(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "geo.sql", "-- MySQL dump 10.13\n\n/*!40101 SET NAMES utf8mb4 */;\nCREATE TABLE `geo` (\n  `region` int NOT NULL,\n  `city` varchar(9) NOT NULL,\n  PRIMARY KEY (`region`,`city`)\n);\nINSERT INTO `geo` VALUES (1,'x'),(2,'x');\n-- Dump completed\n")
	holds(t, tsimport(0, "load", "geo.sql", "-t", "t", "--pk", "city"),
		"warning: rows of geo.sql that differ only in region may become one row")
	if text := tsimport(0, "load", "geo.sql", "-t", "u"); strings.Contains(text, "may become one row") {
		t.Error(text)
	}
}
