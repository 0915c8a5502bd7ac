//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loadAndExport loads a file into a store of its own and returns the table as lines of JSON, what the load has said, and the folder, in which
// run and store are.
func loadAndExport(t *testing.T, file string, code int, flags ...string) (lines []string, shown string, p *place) {
	t.Helper()
	p = newPlace(t)
	file, err := filepath.Abs(file)
	must(t, err)
	shown = p.run(code, append([]string{"load", file, "--store", "store", "--table", "t", "--run-dir", "run", "--sync", "none"}, flags...)...)
	return p.exported(), shown, p
}

func (p *place) exported() []string {
	p.t.Helper()
	return strings.Split(strings.TrimSpace(p.output("export", "--table", "t", "--store", "store", "--format", "jsonl")), "\n")
}

// retried corrects the rejects of the run, loads them, and returns the table as lines of JSON.
func (p *place) retried(replace ...string) []string {
	p.t.Helper()
	p.write("run/rejects.ndjson", strings.NewReplacer(replace...).Replace(p.read("run/rejects.ndjson")))
	p.run(0, "load", "--retry-rejects", "run", "--run-dir", "again")
	return p.exported()
}

func writeGzip(t *testing.T, name, text string) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(text))
	must(t, errors.Join(err, w.Close(), os.WriteFile(name, packed.Bytes(), 0o644)))
	return name
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
	lines, shown, p := loadAndExport(t, part, 3, "--pk", "id")
	same(t, lines, []string{
		`{"id":"a","b":{"base64":"AAH/"},"big":"12345678901234567890123456789012345678","d":0.5,"doc":"{\"x\":[1.50,\"é\\\"\"]}","n":9223372036854775807,"ok":true,"tags":"[\"p\",\"q\"]"}`,
		`{"id":"b","d":2.0,"n":-1}`,
	})
	if !strings.Contains(shown, "--format dynamodb") {
		t.Errorf("the format that was found is not shown: %s", shown)
	}
	rejects := strings.Split(p.read("run/rejects.jsonl"), "\n")
	for i, want := range []string{`N holds \"abc\", which is not a number`, "a member beside N", `B holds \"?\", which is not base64`} {
		line := rejects[i]
		if !strings.Contains(line, want) || !strings.Contains(line, `"BadTypeTag"`) || !strings.Contains(line, `"column":"`+[]string{"n", "n", "b"}[i]+`"`) || !strings.Contains(line, `"line":`+[]string{"3", "4", "5"}[i]) {
			t.Errorf("%s, want %s", line, want)
		}
	}
	p.ends(0, []string{"inspect", part}, "dynamodb")
	p.ends(0, []string{"advise", part})
	if got := p.retried(`"abc"`, `"7"`, `,"S":"x"`, "", `"?"`, `"AQ=="`); len(got) != 5 || got[2] != `{"id":"c","n":7}` || got[4] != `{"id":"e","b":{"base64":"AQ=="}}` {
		t.Errorf("%q", got)
	}
	lines, _, _ = loadAndExport(t, p.path("run/rejects.ndjson"), 0, "--pk", "id", "--format", "dynamodb")
	same(t, lines, []string{`{"id":"c","n":7}`, `{"id":"d","n":1}`, `{"id":"e","b":{"base64":"AQ=="}}`})
}

func TestAnExportOfDynamoDBToS3IsLoadedByItsManifest(t *testing.T) {
	p := newPlace(t)
	manifest := ""
	for i, rows := range []string{`{"Item":{"id":{"N":"1"}}}` + "\n" + `{"Item":{"id":{"N":"2"}}}` + "\n", "", `{"Item":{"id":{"N":"3"}}}` + "\n"} {
		name := string(rune('a'+i)) + ".json.gz"
		writeGzip(t, p.write("01234-abc/data/"+name, ""), rows)
		manifest += fmt.Sprintf(`{"itemCount":%d,"dataFileS3Key":"AWSDynamoDB/01234-abc/data/%s"}`+"\n", strings.Count(rows, "\n"), name)
	}
	p.write("01234-abc/manifest-files.json", manifest)
	p.write("01234-abc/manifest-summary.json", `{"exportArn":"arn","itemCount":3,"outputFormat":"DYNAMODB_JSON","exportType":"FULL_EXPORT"}`)
	for _, name := range []string{"manifest-summary.json", "manifest-files.json", "."} {
		lines, _, _ := loadAndExport(t, p.path("01234-abc/"+name), 0, "--pk", "id:integer")
		same(t, lines, []string{`{"id":1}`, `{"id":2}`, `{"id":3}`})
	}
}

func TestAnExportOfMongoDBIsLoadedWithItsTypes(t *testing.T) {
	canonical := `{"_id":{"$oid":"5d505646cf6d4fe581014ab2"},"n":{"$numberLong":"9223372036854775807"},"i":{"$numberInt":"7"},"d":{"$numberDouble":"1.0"},"price":{"$numberDecimal":"10.50"},"at":{"$date":{"$numberLong":"1565546054692"}},"raw":{"$binary":{"base64":"AAH/","subType":"00"}},"u":{"$binary":{"base64":"c//SZESzSGmQ6OfR38A11A==","subType":"04"}},"doc":{"a":[{"$numberInt":"1"},{"$date":{"$numberLong":"0"}}]},"none":null}`
	relaxed := `{"_id":{"$oid":"5d505646cf6d4fe581014ab2"},"n":9223372036854775807,"i":7,"d":1.0,"price":{"$numberDecimal":"10.50"},"at":{"$date":"2019-08-11T17:54:14.692Z"},"raw":{"$binary":{"base64":"AAH/","subType":"00"}},"u":{"$uuid":"73ffd264-44b3-4869-90e8-e7d1dfc035d4"},"doc":{"a":[1,{"$date":"1970-01-01T00:00:00Z"}]},"none":null}`
	want := []string{`{"_id":"5d505646cf6d4fe581014ab2","at":"2019-08-11T17:54:14.692Z","d":1.0,"doc":"{\"a\":[1,\"1970-01-01T00:00:00Z\"]}","i":7,"n":9223372036854775807,"price":"10.50","raw":{"base64":"AAH/"},"u":"73ffd264-44b3-4869-90e8-e7d1dfc035d4"}`}
	for name, text := range map[string]string{"canonical": canonical, "relaxed": relaxed, "an array": "[" + canonical + "]", "pretty": strings.ReplaceAll(canonical, `,"`, ",\n  \"")} {
		t.Run(name, func(t *testing.T) {
			lines, _, _ := loadAndExport(t, newPlace(t).write("export.json", text), 0, "--pk", "_id")
			same(t, lines, want)
		})
	}
}

// TestRejectsOfSeveralFormatsAreNotLoadedAsOne: one --format would be wrong for some of them.
func TestRejectsOfSeveralFormatsAreNotLoadedAsOne(t *testing.T) {
	in := newPlace(t)
	in.write("a.json", `{"Item":{"id":{"S":"a"}}}`+"\n"+`{"Item":{"id":{"S":1}}}`)
	in.write("b.csv", "id\nb\nc,d\n")
	lines, _, p := loadAndExport(t, in.dir, 3, "--pk", "id")
	same(t, lines, []string{`{"id":"a"}`, `{"id":"b"}`})
	p.ends(2, []string{"load", "--retry-rejects", "run"}, "load each one separately")
}
