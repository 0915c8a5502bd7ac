//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// loadAndExport loads a file into a store of its own and returns the table as lines of JSON and what the load has shown.
func loadAndExport(t *testing.T, file string, code int, flags ...string) (lines []string, shown, run string) {
	t.Helper()
	dir := t.TempDir()
	store, run := filepath.Join(dir, "store"), filepath.Join(dir, "run")
	args := append([]string{"load", file, "--store", store, "--table", "t", "--run-dir", run, "--sync", "none"}, flags...)
	stdout, stderr, got := runBinary(t, args...)
	if got != code {
		t.Fatalf("exit code %d, want %d: %s%s", got, code, stdout, stderr)
	}
	out := filepath.Join(dir, "out.jsonl")
	if stdout, stderr, code := runBinary(t, "export", "--table", "t", "--store", store, "--format", "jsonl", "-o", out); code != 0 {
		t.Fatalf("export: exit code %d: %s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n"), stdout + stderr, run
}

func writeGzip(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(f)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnExportOfDynamoDBIsLoadedWithItsTypes(t *testing.T) {
	part := filepath.Join(t.TempDir(), "part.json.gz")
	writeGzip(t, part, `{"Item":{"id":{"S":"a"},"n":{"N":"9223372036854775807"},"d":{"N":"0.5"},"big":{"N":"12345678901234567890123456789012345678"},"b":{"B":"AAH/"},"ok":{"BOOL":true},"none":{"NULL":true},"doc":{"M":{"x":{"L":[{"N":"1.50"},{"S":"é\""}]}}},"tags":{"SS":["p","q"]}}}
{"Item":{"id":{"S":"b"},"n":{"N":"-1"},"d":{"N":"2"}}}
{"Item":{"id":{"S":"c"},"n":{"N":"abc"}}}
{"Item":{"id":{"S":"d"},"n":{"N":"1","S":"x"}}}
{"Item":{"id":{"S":"e"},"b":{"B":"?"}}}
`)
	lines, shown, run := loadAndExport(t, part, 3, "--pk", "id")
	same(t, lines, []string{
		`{"id":"a","b":{"base64":"AAH/"},"big":"12345678901234567890123456789012345678","d":0.5,"doc":"{\"x\":[1.50,\"é\\\"\"]}","n":9223372036854775807,"ok":true,"tags":"[\"p\",\"q\"]"}`,
		`{"id":"b","d":2.0,"n":-1}`,
	})
	if !strings.Contains(shown, "--format dynamodb") {
		t.Errorf("the format that was found is not shown: %s", shown)
	}
	text, err := os.ReadFile(filepath.Join(run, "rejects.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`N holds \"abc\", which is not a number`, "a member beside N", `B holds \"?\", which is not base64`} {
		line := strings.Split(string(text), "\n")[i]
		if !strings.Contains(line, want) || !strings.Contains(line, `"BadTypeTag"`) || !strings.Contains(line, `"column":"`+[]string{"n", "n", "b"}[i]+`"`) || !strings.Contains(line, `"line":`+[]string{"3", "4", "5"}[i]) {
			t.Errorf("%s, want %s", line, want)
		}
	}
	for _, command := range [][]string{{"inspect", part}, {"advise", part}} {
		stdout, stderr, code := runBinary(t, command...)
		if code != 0 || command[0] == "inspect" && !strings.Contains(stdout, "dynamodb") {
			t.Errorf("%v: exit code %d: %s%s", command, code, stdout, stderr)
		}
	}
	if got := retried(t, run, `"abc"`, `"7"`, `,"S":"x"`, "", `"?"`, `"AQ=="`); len(got) != 5 || got[2] != `{"id":"c","n":7}` || got[4] != `{"id":"e","b":{"base64":"AQ=="}}` {
		t.Errorf("%q", got)
	}
	corrected := filepath.Join(t.TempDir(), "corrected.ndjson")
	rejects, err := os.ReadFile(filepath.Join(run, "rejects.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(corrected, rejects, 0o644); err != nil {
		t.Fatal(err)
	}
	lines, _, _ = loadAndExport(t, corrected, 0, "--pk", "id", "--format", "dynamodb")
	same(t, lines, []string{`{"id":"c","n":7}`, `{"id":"d","n":1}`, `{"id":"e","b":{"base64":"AQ=="}}`})
}

func TestAnExportOfDynamoDBToS3IsLoadedByItsManifest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "01234-abc")
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	manifest := ""
	for i, rows := range []string{`{"Item":{"id":{"N":"1"}}}` + "\n" + `{"Item":{"id":{"N":"2"}}}` + "\n", "", `{"Item":{"id":{"N":"3"}}}` + "\n"} {
		name := string(rune('a'+i)) + ".json.gz"
		writeGzip(t, filepath.Join(dir, "data", name), rows)
		manifest += `{"itemCount":` + string(rune('0'+strings.Count(rows, "\n"))) + `,"dataFileS3Key":"AWSDynamoDB/01234-abc/data/` + name + `"}` + "\n"
	}
	for name, text := range map[string]string{"manifest-files.json": manifest, "manifest-summary.json": `{"exportArn":"arn","itemCount":3,"outputFormat":"DYNAMODB_JSON","exportType":"FULL_EXPORT"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"manifest-summary.json", "manifest-files.json", "."} {
		lines, _, _ := loadAndExport(t, filepath.Join(dir, name), 0, "--pk", "id:integer")
		same(t, lines, []string{`{"id":1}`, `{"id":2}`, `{"id":3}`})
	}
}

func TestAnExportOfMongoDBIsLoadedWithItsTypes(t *testing.T) {
	canonical := `{"_id":{"$oid":"5d505646cf6d4fe581014ab2"},"n":{"$numberLong":"9223372036854775807"},"i":{"$numberInt":"7"},"d":{"$numberDouble":"1.0"},"price":{"$numberDecimal":"10.50"},"at":{"$date":{"$numberLong":"1565546054692"}},"raw":{"$binary":{"base64":"AAH/","subType":"00"}},"u":{"$binary":{"base64":"c//SZESzSGmQ6OfR38A11A==","subType":"04"}},"doc":{"a":[{"$numberInt":"1"},{"$date":{"$numberLong":"0"}}]},"none":null}`
	relaxed := `{"_id":{"$oid":"5d505646cf6d4fe581014ab2"},"n":9223372036854775807,"i":7,"d":1.0,"price":{"$numberDecimal":"10.50"},"at":{"$date":"2019-08-11T17:54:14.692Z"},"raw":{"$binary":{"base64":"AAH/","subType":"00"}},"u":{"$uuid":"73ffd264-44b3-4869-90e8-e7d1dfc035d4"},"doc":{"a":[1,{"$date":"1970-01-01T00:00:00Z"}]},"none":null}`
	want := []string{`{"_id":"5d505646cf6d4fe581014ab2","at":"2019-08-11T17:54:14.692Z","d":1.0,"doc":"{\"a\":[1,\"1970-01-01T00:00:00Z\"]}","i":7,"n":9223372036854775807,"price":"10.50","raw":{"base64":"AAH/"},"u":"73ffd264-44b3-4869-90e8-e7d1dfc035d4"}`}
	for name, text := range map[string]string{"canonical": canonical, "relaxed": relaxed, "an array": "[" + canonical + "]", "pretty": strings.ReplaceAll(canonical, `,"`, ",\n  \"")} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "export.json")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			lines, _, _ := loadAndExport(t, file, 0, "--pk", "_id")
			same(t, lines, want)
		})
	}
}

// TestRejectsOfSeveralFormatsAreNotLoadedAsOne: one --format would be wrong for some of them.
func TestRejectsOfSeveralFormatsAreNotLoadedAsOne(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.json": `{"Item":{"id":{"S":"a"}}}` + "\n" + `{"Item":{"id":{"S":1}}}`, "b.csv": "id\nb\nc,d\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines, _, run := loadAndExport(t, dir, 3, "--pk", "id")
	same(t, lines, []string{`{"id":"a"}`, `{"id":"b"}`})
	if _, stderr, code := runBinary(t, "load", "--retry-rejects", run); code != 2 || !strings.Contains(stderr, "load each one separately") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
