//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
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

// TestADumpOfADatabaseIsLoadedByItsTable: that of PostgreSQL, as it is and cut short. What its rows hold is shown in reader/pgdump and
// reader/mysqldump.
func TestADumpOfADatabaseIsLoadedByItsTable(t *testing.T) {
	const dump = "../reader/pgdump/testdata/shop.sql"
	lines, shown, p := loadAndExport(t, dump, 3, "--source-table", "public.orders", "--columns", "id,customer,amount,paid,at,raw,w,iv")
	same(t, lines, []string{
		`{"id":1,"amount":"10.50","at":"2024-02-29T07:04:56.789Z","customer":"Ann\t\"x\", \\ é\nline","iv":"P1Y-2DT3H4M5.5S","paid":true,"raw":{"base64":"AP9c"},"w":0.1}`,
		`{"id":3,"amount":"0.00","at":"0044-03-15 00:00:00+00 BC","customer":"\\.","iv":"PT0S","w":1e+300}`,
	})
	for _, want := range []string{
		"table public.orders, 3 rows; skipped: 5 other tables with 7 rows", "the new table's primary key is that of the source: --pk id:integer",
		"rejected 1 with OutOfRange", "shop.sql:225, column w",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in %s", want, shown)
		}
	}
	if got := p.retried(`"NaN"`, "1.5"); len(got) != 3 || !strings.Contains(got[1], `"w":1.5`) {
		t.Errorf("%q", got)
	}
	content, err := os.ReadFile(dump)
	must(t, err)
	cut := p.write("cut.sql", string(content)[:strings.Index(string(content), "c4\t4")+3])
	if lines, shown, _ = loadAndExport(t, cut, 2, "--source-table", "customers", "--pk", "b:integer"); len(lines) != 3 || !strings.Contains(shown, "the dump ends within the rows of public.customers") {
		t.Errorf("%q, %s", lines, shown)
	}
	packed := writeGzip(t, p.path("shop.sql.gz"), string(content))
	for _, command := range []string{"inspect", "advise", "check --unique"} {
		p.ends(0, append(strings.Fields(command), packed, "--source-table", "customers"))
	}
	p.ends(2, []string{"inspect", packed}, "4 tables with rows: other.orders, public.customers, public.orders, public.parted_1; say which with --source-table")
}
