package commands

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// endings are command lines and how they end, in a folder with the files of TestEveryEnding…. The first word says whose table it is.
var endings = []struct {
	line  string
	code  int
	table string
	says  []string // in the one line that --quiet leaves
}{
	{"load good.csv --table t --pk id --fresh", 0, "t", nil},
	{"load bad.csv --table t --pk id:integer --fresh", 3, "t", []string{"3 read, 2 written, 1 rejected", "bad.csv:4", "tsimport-runs"}},
	{"load bad.csv --table t --pk id:integer --fresh --max-errors 0", 4, "t", []string{"1 rejected", "bad.csv:4", "--max-errors"}},
	{"load bad.csv --table t --pk id:integer --dry-run", 3, "t", []string{"dry run: 3 read, 2 would be written, 1 would be rejected", "bad.csv:4"}},
	{"load none-*.csv --table t --pk id", 7, "t", []string{"none-*.csv"}},
	{"load good.csv --table t --pk nothing", 2, "t", []string{"nothing"}},
	{"load cut.csv.gz --table cut --pk id", 2, "cut", []string{"cut short"}},
	{"sync good.csv --table t", 0, "t", nil},
	{"sync bad.csv --table t", 3, "t", []string{"1 rejected", "bad.csv:4", "tsimport-runs"}},
	{"sync good.csv --table nowhere", 2, "nowhere", []string{"nowhere"}},
	{"copy t t2 --fresh", 0, "t2", nil},
	{"copy nowhere t2", 2, "t2", []string{"nowhere"}},
	{"verify good.csv --table t --pk id", 0, "t", nil},
	{"verify other.csv --table t --pk id", 6, "t", nil},
	{"verify good.csv --table nowhere --pk id", 2, "nowhere", []string{"nowhere"}},
	{"export --table t -o out.csv", 0, "t", nil},
	{"export --table nowhere -o out.csv", 2, "nowhere", []string{"nowhere"}},
	{"export --table t -o folder/ --format csv", 2, "t", []string{"folder"}},
	{"run good.yaml --fresh", 0, "", nil},
	{"run bad.yaml --fresh", 3, "", []string{"one: finished: 3 read", "bad.csv:4", "job done: 2 of 2 loads done"}},
	{"run limit.yaml --fresh", 4, "", []string{"two: ", "bad.csv:4", "job failed: 1 of 2 loads done"}},
	{"run none.yaml --fresh", 7, "", []string{"two: ", "none-*.csv", "job failed: 1 of 2 loads done"}},
	{"run broken.yaml", 2, "", []string{"broken.yaml"}},
}

// TestEveryEndingIsSaidAndCounted runs each command that has metrics: with --quiet a code other than 0 says why in a line, and its metrics have
// the table that the command line names and keep when it last succeeded.
func TestEveryEndingIsSaidAndCounted(t *testing.T) {
	t.Chdir(t.TempDir())
	file := func(name, text string) {
		put(t, name, text)
	}
	file("good.csv", "id,v\n1,a\n2,b\n")
	file("other.csv", "id,v\n1,a\n2,c\n")
	file("bad.csv", "id,v\n1,a\n2,b\nx,c\n")
	var rows strings.Builder
	for i := range 9_000 { // more than is looked at before the first row
		fmt.Fprintf(&rows, "%d,%01000d\n", i, i)
	}
	packed := gzipped(t, "id,v\n"+rows.String())
	file("cut.csv.gz", packed[:len(packed)-1000])
	job := func(name, one, two string) {
		load := func(name, of string) string {
			return "  " + name + ":\n    from: " + of + "\n    pk: [id:integer]\n    mode: put\n"
		}
		file(name, "version: 1\nloads:\n"+load("one", one)+load("two", two))
	}
	job("good.yaml", "good.csv", "good.csv")
	job("bad.yaml", "bad.csv", "good.csv")
	job("none.yaml", "bad.csv", "none-*.csv")
	job("limit.yaml", "bad.csv", "bad.csv\n    max-errors: 0")
	file("broken.yaml", "version: 1\nloads: 7\n")
	for _, e := range endings {
		words := strings.Fields(e.line)
		kept := `tsimport_last_run_success_timestamp_seconds{command="` + words[0] + `",load="",table="` + e.table + `"} 7`
		if words[0] == "run" {
			kept = strings.Replace(kept, `load=""`, `load="`+strings.TrimSuffix(words[1], ".yaml")+`"`, 1)
		}
		help := "# TYPE tsimport_last_run_success_timestamp_seconds gauge\n"
		file("m.prom", help+kept+"\n")
		var out, said bytes.Buffer
		code := Run(append([]string{"tsimport"}, append(words, "--quiet", "--metrics-file", "m.prom")...), &out, &said)
		if code != e.code {
			t.Errorf("%s: exit code %d, want %d\n%s", e.line, code, e.code, said.String())
			continue
		}
		if e.code != 0 && said.Len()+out.Len() == 0 || e.code == 0 && said.Len() > 0 {
			t.Errorf("%s: exit code %d and %q", e.line, code, said.String())
		}
		for _, text := range e.says {
			if !strings.Contains(said.String(), text) {
				t.Errorf("%s: want %q in\n%s", e.line, text, said.String())
			}
		}
		if words[0] != "run" && strings.Count(said.String(), "\n") > 1 {
			t.Errorf("%s: more than a line\n%s", e.line, said.String())
		}
		metrics, err := os.ReadFile("m.prom")
		if err != nil || strings.Contains(string(metrics), kept) == (code == 0) {
			t.Errorf("%s: %v: the last success\n%s", e.line, err, metrics)
		}
		if strings.Contains(string(metrics), `table=""`) != (words[0] == "run") {
			t.Errorf("%s: the table\n%s", e.line, metrics)
		}
	}
}

func TestAnExportWarnsOfWhatNoRowHad(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "a.csv", "id,v\n1,a\n")
	var said bytes.Buffer
	if code := Run(strings.Fields("tsimport load a.csv --table t --pk id"), io.Discard, &said); code != 0 {
		t.Fatal(said.String())
	}
	for flags, want := range map[string]string{
		"--columns v,typo": "no row that was exported has the column typo", "--filter typo==1": "no row passes --filter", "--where v==\"b\"": "no row passes --where",
		"--columns v --filter v==\"a\"": "",
	} {
		said.Reset()
		code := Run(append(strings.Fields("tsimport export --table t"), strings.Fields(flags)...), io.Discard, &said)
		if code != 0 || strings.Contains(said.String(), "warning: no row") != (want != "") || !strings.Contains(said.String(), want) {
			t.Errorf("%s: exit code %d, want %q\n%s", flags, code, want, said.String())
		}
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	must(t, err)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	must(t, w.Close())
	return out.String()
}
