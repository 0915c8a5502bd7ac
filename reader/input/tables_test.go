package input

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

// tablesOf are files of tables of every kind, and beside them.
var tablesOf = []string{
	"w/delta/part-0.parquet", "w/delta/dt=2024-01-01/part-1.parquet", "w/delta/_delta_log/00000000000000000000.json",
	"w/hudi/2024/01/a.parquet", "w/hudi/.hoodie/hoodie.properties",
	"w/iceberg/data/d=1/a.parquet", "w/iceberg/metadata/00000-x.metadata.json",
	"w/paimon/bucket-0/data-1.parquet", "w/paimon/snapshot/snapshot-1",
	"w/plain/a.parquet", "w/plain/metadata/readme.txt", "w/plain/snapshot/snapshot-2024.csv", "w/notes.csv", "w/delta/notes.csv",
}

func TestFilesOfATableWithALogAreRefusedByItsName(t *testing.T) {
	dir := tree(t, tablesOf...)
	must(t, os.Symlink(filepath.Join(dir, "w/delta/dt=2024-01-01"), filepath.Join(dir, "w/link")))
	s := newOSS(t, tablesOf...)
	for _, c := range []struct{ arg, kind string }{
		{"w/delta", "Delta Lake"},
		{"w/delta/", "Delta Lake"},
		{"w", "Delta Lake"}, // one level up
		{".", "Delta Lake"},
		{"w/delta/part-0.parquet", "Delta Lake"}, // as a shell makes it of a glob
		{"w/delta/*.parquet", "Delta Lake"},
		{"w/delta/*", "Delta Lake"},
		{"w/*/*.parquet", "Delta Lake"},
		{"w/delta/dt=2024-01-01", "Delta Lake"},
		{"w/delta/dt=2024-01-01/part-1.parquet", "Delta Lake"},
		{"w/delta/**/part-1.parquet", "Delta Lake"},
		{"w/link", "Delta Lake"},
		{"w/h*", "Hudi"},
		{"w/hudi/2024/01/a.parquet", "Hudi"},
		{"w/hudi/2024", "Hudi"},
		{"w/iceberg", "Iceberg"},
		{"w/iceberg/data", "Iceberg"},
		{"w/iceberg/data/d=1", "Iceberg"},
		{"w/paimon", "Paimon"},
		{"w/paimon/bucket-0", "Paimon"},
		{"w/delta/part-", "Delta Lake"}, // a prefix of keys
		{"w/ice", "Iceberg"},
	} {
		if _, err := os.Stat(c.arg); err == nil || strings.ContainsAny(c.arg, "*") {
			_, err := Expand(t.Context(), []string{c.arg}, Options{})
			wantError(t, err, nil, c.kind, "no longer part of it", "load the result")
		}
		if c.arg == "w/link" || c.arg == "." {
			continue
		}
		_, err := Expand(t.Context(), []string{s.at + c.arg}, s.o)
		wantError(t, err, nil, c.kind, s.at+"w/", "no longer part of it")
	}
	_, err := Expand(t.Context(), []string{s.at}, s.o)
	wantError(t, err, nil, "Delta Lake")
}

func TestFilesNextToATableAreRead(t *testing.T) {
	tree(t, tablesOf...)
	s := newOSS(t, tablesOf...)
	for arg, want := range map[string]string{
		"w/plain":             "w/plain/a.parquet w/plain/metadata/readme.txt w/plain/snapshot/snapshot-2024.csv",
		"w/plain/a.parquet":   "w/plain/a.parquet",
		"w/*.csv":             "w/notes.csv",
		"w/notes.csv":         "w/notes.csv",
		"w/delta/_delta_log/": "w/delta/_delta_log/00000000000000000000.json", // its log may be of interest itself
	} {
		wantNames(t, expand(t, Options{}, arg), strings.Fields(want)...)
		wantNames(t, expand(t, s.o, s.at+arg), s.names(strings.Fields(want)...)...)
	}
}

const (
	summaryText = `{"version":"2020-06-30","exportArn":"arn:aws:dynamodb:x","itemCount":3,"outputFormat":"DYNAMODB_JSON","exportType":"FULL_EXPORT"}`
	filesText   = `{"itemCount":1,"md5Checksum":"x","etag":"y","dataFileS3Key":"AWSDynamoDB/01/data/b.json.gz"}` + "\n" + `{"itemCount":2,"dataFileS3Key":"AWSDynamoDB/01/data/a.json.gz"}` + "\n"
)

// exportOf writes an export of DynamoDB; a part without text is left out.
func exportOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "01")
	for name, text := range map[string]string{exportSummary: summaryText, exportFiles: filesText, "manifest-files.md5": "x", "_started": " ", "data/a.json.gz": "a", "data/b.json.gz": "b"} {
		if other, ok := files[name]; ok {
			text = other
		}
		if text == "" {
			continue
		}
		name = filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(text), 0o644))
	}
	return dir
}

func TestAnExportOfDynamoDBIsNamedByItsListsOrItsFolder(t *testing.T) {
	dir := exportOf(t, nil)
	for _, name := range []string{exportSummary, exportFiles} {
		set := expand(t, Options{}, filepath.Join(dir, name))
		wantNames(t, set, filepath.Join(dir, "data/b.json.gz"), filepath.Join(dir, "data/a.json.gz"))
	}
	set := expand(t, Options{}, dir)
	wantNames(t, set, filepath.Join(dir, "data/a.json.gz"), filepath.Join(dir, "data/b.json.gz"))
	if len(set.Warnings) != 1 || !strings.Contains(set.Warnings[0], "list of an export") {
		t.Errorf("warnings %q", set.Warnings)
	}
	server := newS3(t)
	for name, text := range map[string]string{exportSummary: summaryText, exportFiles: filesText, "data/a.json.gz": "a", "data/b.json.gz": "b"} {
		server.Set("AWSDynamoDB/01/"+name, text, time.Unix(1e9, 0))
	}
	set = expand(t, server.o, server.at+"AWSDynamoDB/01/"+exportSummary)
	wantNames(t, set, server.names("AWSDynamoDB/01/data/b.json.gz", "AWSDynamoDB/01/data/a.json.gz")...)
	set = expand(t, server.o, server.at+"AWSDynamoDB/01/")
	wantNames(t, set, server.names("AWSDynamoDB/01/data/a.json.gz", "AWSDynamoDB/01/data/b.json.gz")...)
}

func TestAnExportThatIsNotWholeIsRefused(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, arg, want string }{
		"a part is missing":             {"data/a.json.gz", "", exportSummary, "a.json.gz: there is no such file"},
		"the list of parts is missing":  {exportFiles, "", exportSummary, "list of its parts is missing"},
		"the list of parts is cut":      {exportFiles, strings.SplitAfter(filesText, "\n")[0], exportSummary, "1 items, and manifest-summary.json says 3"},
		"the list ends within a line":   {exportFiles, filesText[:len(filesText)-9], exportFiles, "line 2"},
		"a line names no part":          {exportFiles, filesText + "{}\n", exportSummary, "line 3"},
		"a summary without a count":     {exportSummary, `{"exportArn":"x"}`, exportSummary, "how many items"},
		"a part that is named twice":    {exportFiles, filesText + strings.SplitAfter(filesText, "\n")[0], exportSummary, "it names b.json.gz, as line 1 does"},
		"an export in Ion":              {exportSummary, strings.Replace(summaryText, "DYNAMODB_JSON", "ION", 1), exportSummary, "the export is in ION"},
		"an export of changes":          {exportSummary, strings.Replace(summaryText, "FULL", "INCREMENTAL", 1), exportSummary, "INCREMENTAL_EXPORT"},
		"an export without parts":       {exportFiles, "\n", exportFiles, "names no part"},
		"a list without an end of line": {exportFiles, strings.Repeat("x", maxLineBytes+1), exportFiles, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := exportOf(t, map[string]string{tt.file: tt.text})
			_, err := Expand(context.Background(), []string{filepath.Join(dir, tt.arg)}, Options{})
			conformance.Refused(t, err, tt.want, "error")
		})
	}
	for _, text := range []string{"{\"a\":1}\n", "[]\n"} { // only called so
		dir := exportOf(t, map[string]string{exportFiles: text, exportSummary: text})
		for _, name := range []string{exportFiles, exportSummary} {
			wantNames(t, expand(t, Options{}, filepath.Join(dir, name)), filepath.Join(dir, name))
		}
	}
}
