package commands

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

func TestMetricsOfHowCommandsEnded(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.csv", "id,n\n1,2\n2,3\n")
	write("job.yaml", "version: 1\nloads:\n  one: {from: [a.csv], pk: [id:integer]}\n  two: {table: other, from: [b.csv], pk: [id:integer]}\n")
	var pushes atomic.Int32
	gateway := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { pushes.Add(1) }))
	defer gateway.Close()
	success := regexp.MustCompile(`success_timestamp_seconds\{.*\} (.*)\n`)
	first := ""
	for _, step := range []struct {
		args   string
		code   int
		has    []string
		pushes int32
	}{
		{"load a.csv --table t --pk id:integer --metrics-file m.prom --push-metrics " + gateway.URL, 0,
			[]string{`exit_code{command="load",load="",table="t"} 0`, `rows{command="load",load="",outcome="written",table="t"} 2`}, 1},
		{"load a.csv --table t --pk id:integer --type n=boolean --metrics-file m.prom", 3,
			[]string{`exit_code{command="load",load="",table="t"} 3`, `outcome="rejected",table="t"} 2`}, 1},
		{"verify a.csv --table t --pk id:integer --metrics-file v.prom", 0, nil, 1},
		{"run job.yaml --metrics-file j.prom --push-metrics " + gateway.URL, 2, nil, 4},
		{"load a.csv --table t --pk id:integer --metrics-file none/m.prom", 2, nil, 4},
		{"load a.csv --table t --pk id:integer --push-metrics gateway:9091", 2, nil, 4},
		{"load a.csv --table t --pk id:integer --fresh --push-metrics http://127.0.0.1:1", 0, nil, 4},
	} {
		var said bytes.Buffer
		if code := Run(append([]string{"tsimport"}, strings.Fields(step.args)...), io.Discard, &said); code != step.code {
			t.Errorf("%s: exit code %d, want %d\n%s", step.args, code, step.code, said.String())
		}
		if n := pushes.Load(); n != step.pushes {
			t.Errorf("%s: %d pushes, want %d", step.args, n, step.pushes)
		}
		text, err := os.ReadFile("m.prom")
		if err != nil {
			t.Fatal(err)
		}
		for _, has := range step.has {
			if !strings.Contains(string(text), has) {
				t.Errorf("%s: no %s in\n%s", step.args, has, text)
			}
		}
		// Only the first load has succeeded.
		at := success.FindStringSubmatch(string(text))
		if at == nil {
			t.Fatalf("%s: no success in\n%s", step.args, text)
		}
		if first == "" {
			first = at[1]
		} else if at[1] != first {
			t.Errorf("%s: success at %s, want %s", step.args, at[1], first)
		}
		if strings.Contains(step.args, "127.0.0.1:1") && !strings.Contains(said.String(), "warning: --push-metrics") {
			t.Errorf("that nobody was told is not said:\n%s", said.String())
		}
	}
	text, err := os.ReadFile("j.prom")
	if err != nil {
		t.Fatal(err)
	}
	for _, has := range []string{`exit_code{command="run",load="job",table=""} 2`, `exit_code{command="load",load="one",table="one"} 0`, `exit_code{command="load",load="two",table="other"} 2`} {
		if !strings.Contains(string(text), has) {
			t.Errorf("no %s in\n%s", has, text)
		}
	}
}
