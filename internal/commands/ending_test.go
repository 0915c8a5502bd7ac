package commands

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// TestMetricsOfHowCommandsEnded is about who is told; TestEveryEndingIsSaidAndCounted about what.
func TestMetricsOfHowCommandsEnded(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "a.csv", "id,n\n1,2\n2,3\n")
	put(t, "job.yaml", "version: 1\nloads:\n  one: {from: [a.csv], pk: [id:integer]}\n  two: {table: other, from: [b.csv], pk: [id:integer]}\n")
	var pushes atomic.Int32
	gateway := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { pushes.Add(1) }))
	defer gateway.Close()
	for _, step := range []struct {
		args   string
		code   int
		says   string
		pushes int32
	}{
		{"load a.csv --table t --pk id:integer --type n=boolean --metrics-file m.prom --push-metrics " + gateway.URL, 3, "", 1},
		{"run job.yaml --metrics-file j.prom --push-metrics " + gateway.URL, 2, "b.csv", 4},
		{"load a.csv --table t --pk id:integer --metrics-file none/m.prom", 2, "there is no folder none", 4},
		{"load a.csv --table t --pk id:integer --push-metrics gateway:9091", 2, "want the address of a Pushgateway", 4},
		{"load a.csv --table t --pk id:integer --fresh --push-metrics http://127.0.0.1:1", 0, "warning: --push-metrics", 4},
	} {
		var said bytes.Buffer
		code := Run(append([]string{"tsimport"}, strings.Fields(step.args)...), io.Discard, &said)
		if n := pushes.Load(); code != step.code || n != step.pushes || !strings.Contains(said.String(), step.says) {
			t.Errorf("%s: exit code %d, want %d; %d pushes, want %d\n%s", step.args, code, step.code, n, step.pushes, said.String())
		}
	}
	for file, all := range map[string][]string{
		"m.prom": {`rows{command="load",load="",outcome="rejected",table="t"} 2`, `outcome="read",table="t"} 2`, `outcome="written",table="t"} 0`},
		"j.prom": {`exit_code{command="run",load="job",table=""} 2`, `exit_code{command="load",load="one",table="one"} 0`,
			`rows{command="load",load="one",outcome="written",table="one"} 2`, `exit_code{command="load",load="two",table="other"} 2`},
	} {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, has := range all {
			if !strings.Contains(string(text), has) {
				t.Errorf("no %s in\n%s", has, text)
			}
		}
	}
}
