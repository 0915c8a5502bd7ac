package input

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

// tablesOf lists files in tables of every kind, and other files beside them.
var tablesOf = []string{
	"w/delta/part-0.parquet", "w/delta/dt=2024-01-01/part-1.parquet", "w/delta/_delta_log/00000000000000000000.json",
	"w/hudi/2024/01/a.parquet", "w/hudi/.hoodie/hoodie.properties", "w/iceberg/data/d=1/a.parquet",
	"w/iceberg/metadata/00000-x.metadata.json", "w/paimon/bucket-0/data-1.parquet", "w/paimon/snapshot/snapshot-1",
	"w/plain/a.parquet", "w/plain/metadata/r.md", "w/plain/snapshot/snapshot-2024.csv", "w/notes.csv", "w/delta/notes.csv",
}

func TestFilesOfTableFormatsAreRefusedByName(t *testing.T) {
	dir := tree(t, tablesOf...)
	must(t, os.Symlink(filepath.Join(dir, "w/delta/dt=2024-01-01"), filepath.Join(dir, "w/link")))
	s := newOSS(t, tablesOf...)
	for _, c := range []struct{ arg, kind string }{
		{"w/delta", "Delta Lake"},
		{"w/delta/", "Delta Lake"},
		{"w", "Delta Lake"}, // one level up
		{".", "Delta Lake"},
		{"w/delta/part-0.parquet", "Delta Lake"}, // as a shell would expand a glob
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
			wantError(t, err, nil, c.kind, "stale files", "load an export by")
		}
		if c.arg == "w/link" || c.arg == "." {
			continue
		}
		_, err := Expand(t.Context(), []string{s.at + c.arg}, s.o)
		wantError(t, err, nil, c.kind, s.at+"w/", "stale files")
	}
	wantError(t, conformance.ErrorOf(Expand(t.Context(), []string{s.at}, s.o)), nil, "Delta Lake")
}

func TestFilesBesideTableAreRead(t *testing.T) {
	tree(t, tablesOf...)
	s := newOSS(t, tablesOf...)
	for arg, want := range map[string]string{
		"w/plain":             "w/plain/a.parquet w/plain/metadata/r.md w/plain/snapshot/snapshot-2024.csv",
		"w/plain/a.parquet":   "w/plain/a.parquet",
		"w/*.csv":             "w/notes.csv",
		"w/notes.csv":         "w/notes.csv",
		"w/delta/_delta_log/": "w/delta/_delta_log/00000000000000000000.json", // a log may be wanted itself
	} {
		wantNames(t, expand(t, Options{}, arg), strings.Fields(want)...)
		wantNames(t, expand(t, s.o, s.at+arg), s.names(strings.Fields(want)...)...)
	}
}

const (
	summaryText = `{"version":"2020-06-30","exportArn":"arn:aws:dynamodb:x","exportTime":"2026-01-02T03:04:05.678Z","itemCount":3,"outputFormat":"DYNAMODB_JSON","exportType":"FULL_EXPORT"}`
	filesText   = `{"itemCount":1,"md5Checksum":"x","etag":"y","dataFileS3Key":"AWSDynamoDB/01/data/b.json.gz"}` + "\n" +
		`{"itemCount":2,"dataFileS3Key":"AWSDynamoDB/01/data/a.json.gz"}` + "\n"
)

// exportOf writes a DynamoDB export with these files in place of its usual ones. Empty texts leave files out.
func exportOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "01")
	for name, text := range map[string]string{exportSummary: summaryText, exportFiles: filesText,
		"manifest-files.md5": "x", "_started": " ", "data/a.json.gz": "a", "data/b.json.gz": "b"} {
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

func TestDynamoDBExportIsReadByListOrFolder(t *testing.T) {
	dir := exportOf(t, nil)
	for _, name := range []string{exportSummary, exportFiles} {
		set := expand(t, Options{}, filepath.Join(dir, name))
		wantNames(t, set, filepath.Join(dir, "data/b.json.gz"), filepath.Join(dir, "data/a.json.gz"))
		want := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
		conformance.Equal(t, (name == exportSummary), set.Exported.Equal(want), "%s: exported at %v", name, set.Exported)
	}
	earlier := exportOf(t, map[string]string{exportSummary: strings.Replace(summaryText, "2026-", "2025-", 1)})
	for _, args := range [][]string{{dir, earlier}, {earlier, dir}} {
		set := expand(t, Options{}, filepath.Join(args[0], exportSummary), filepath.Join(args[1], exportSummary))
		conformance.Equal(t, set.Exported.Year(), 2025, "%v", set.Exported)
	}
	set := expand(t, Options{}, dir)
	wantNames(t, set, filepath.Join(dir, "data/a.json.gz"), filepath.Join(dir, "data/b.json.gz"))
	conformance.True(t, len(set.Warnings) == 1 && strings.Contains(set.Warnings[0], "list of an export"), "%q",
		set.Warnings)
	server := newS3(t)
	for name, text := range map[string]string{exportSummary: summaryText, exportFiles: filesText, "data/a.json.gz": "a",
		"data/b.json.gz": "b"} {
		server.Set("AWSDynamoDB/01/"+name, text, time.Unix(1e9, 0))
	}
	set = expand(t, server.o, server.at+"AWSDynamoDB/01/"+exportSummary)
	wantNames(t, set, server.names("AWSDynamoDB/01/data/b.json.gz", "AWSDynamoDB/01/data/a.json.gz")...)
	set = expand(t, server.o, server.at+"AWSDynamoDB/01/")
	wantNames(t, set, server.names("AWSDynamoDB/01/data/a.json.gz", "AWSDynamoDB/01/data/b.json.gz")...)
}

func TestIncompleteExportIsRefused(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, arg, want string }{
		"a part is missing":            {"data/a.json.gz", "", exportSummary, "a.json.gz: there is no such file"},
		"the list of parts is missing": {exportFiles, "", exportSummary, "cannot read the list of its parts"},
		"the list of parts is cut": {exportFiles, strings.SplitAfter(filesText, "\n")[0], exportSummary,
			"1 items, but manifest-summary.json says 3"},
		"the list ends within a line": {exportFiles, filesText[:len(filesText)-9], exportFiles, "line 2"},
		"a line names no part":        {exportFiles, filesText + "{}\n", exportSummary, "line 3"},
		"a summary without a count":   {exportSummary, `{"exportArn":"x"}`, exportSummary, "number of items"},
		"a part that is named twice": {exportFiles, filesText + strings.SplitAfter(filesText, "\n")[0], exportSummary,
			"it names b.json.gz, as line 1 does"},
		"an export in Ion": {exportSummary, strings.Replace(summaryText, "DYNAMODB_JSON", "ION", 1),
			exportSummary, "the export is in ION"},
		"an export of changes": {exportSummary, strings.Replace(summaryText, "FULL", "INCREMENTAL", 1),
			exportSummary, "INCREMENTAL_EXPORT"},
		"an export without parts":       {exportFiles, "\n", exportFiles, "lists no parts"},
		"a list without an end of line": {exportFiles, strings.Repeat("x", maxLineBytes+1), exportFiles, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := exportOf(t, map[string]string{tt.file: tt.text})
			_, err := Expand(t.Context(), []string{filepath.Join(dir, tt.arg)}, Options{})
			conformance.Refused(t, err, tt.want, "error")
		})
	}
	for _, text := range []string{"{\"a\":1}\n", "[]\n"} { // files that merely have the name of a list
		dir := exportOf(t, map[string]string{exportFiles: text, exportSummary: text})
		for _, name := range []string{exportFiles, exportSummary} {
			wantNames(t, expand(t, Options{}, filepath.Join(dir, name)), filepath.Join(dir, name))
		}
	}
}

// TestSecretsOfAddressesAreHidden has an address in each line.
func TestSecretsOfAddressesAreHidden(t *testing.T) {
	conformance.Golden(t, "secrets.golden", func(address string) string {
		hidden := Redact(address)
		for _, prefix := range []string{"", "@", "--endpoint=", "--flag=@"} {
			got := Redact(prefix + address)
			conformance.Equal(t, got, prefix+hidden, "%s", prefix+address)
			conformance.Equal(t, Redact(got), got, "%s", got)
		}
		return hidden
	})
	for _, arg := range []string{"a?.csv", "data//part-?.csv", "@list", "c:/a?b@c", "-", `u="https://x/?id=" + id`,
		"a@b:c", "http: Server gave HTTP response"} {
		conformance.Equal(t, Redact(arg), arg, "%s", arg)
	}
}

func TestAddressesInTextAreShownWithoutSecrets(t *testing.T) {
	cause :=
		errors.New(`get "https://u:geheim@h/a?sig=geheim": read a.csv:https://h/?geheim; then //u:geheim@h/b (oss://i:geheim@b): no such host`)
	err := RedactError(cause)
	conformance.True(t, !strings.Contains(err.Error(), "geheim") && errors.Is(err, cause), "error %v", err)
	conformance.Equal(t, err.Error(),
		`get "https://xxxxx@h/a?sig=xxxxx": read a.csv:https://h/?xxxxx; then //xxxxx@h/b (oss://xxxxx@b): no such host`,
		"error")
	plain := errors.New("read a.csv: EOF")
	conformance.True(t, RedactError(plain) == plain && RedactError(nil) == nil, "an error without a secret is changed")
}

func TestPasswordMayContainNumberSign(t *testing.T) {
	for _, arg := range []string{"http://user:geheim#pw@127.0.0.1/a.csv", "http://user:12#geheim@127.0.0.1/a.csv",
		"http://geheim#pw@127.0.0.1/a"} {
		_, err := Expand(t.Context(), []string{arg}, Options{Retry: soon})
		conformance.True(t, err != nil && strings.Contains(err.Error(), "%-escape characters") &&
			!strings.Contains(err.Error(), "geheim"), "%s: %v", arg, err)
	}
}

func TestAddressesShownAlikeGetNumbers(t *testing.T) {
	s := newSite(t, text)
	set := expand(t, Options{Retry: soon}, s.address+"?id=1", s.address+"?id=2", s.address+"?id=1", s.address+"?id=3")
	shown := s.address + "?id=xxxxx"
	wantNames(t, set, shown, shown+"#2", shown+"#3")
	conformance.True(t, len(set.Warnings) == 1 && strings.HasPrefix(set.Warnings[0], shown+" is named twice"),
		"warnings %q", set.Warnings)
}

func TestLongParameterValuesAreWithheld(t *testing.T) {
	for n, shown := range map[int]bool{40: true, 41: false} {
		value := strings.Repeat("a", n)
		conformance.Equal(t, strings.Contains(Redact("https://host/path?versionId="+value), value), shown, "%d bytes", n)
	}
}
