package input

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	for _, text := range []string{"{\"a\":1}\n", "[]\n"} { // only called so
		dir := exportOf(t, map[string]string{exportFiles: text, exportSummary: text})
		for _, name := range []string{exportFiles, exportSummary} {
			wantNames(t, expand(t, Options{}, filepath.Join(dir, name)), filepath.Join(dir, name))
		}
	}
}
