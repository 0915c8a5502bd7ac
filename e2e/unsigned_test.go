//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// stripping is a proxy without the access key. It answers every third request of an operation by itself, or has another store do the
// request, or changes the status, and takes the signature off each answer that it has touched.
type stripping struct {
	real, other *httputil.ReverseProxy
	how         map[string]string // by path: elsewhere, refuse, or every (elsewhere, and all of them)
	n           atomic.Int64
}

func (p *stripping) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	how := p.how[r.URL.Path]
	if n := p.n.Add(1); how == "" || how != "every" && n%3 > 0 {
		p.real.ServeHTTP(w, r)
		return
	}
	if how == "refuse" {
		p.real.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write(protowire.AppendString(protowire.AppendTag(protowire.AppendString([]byte{1<<3 | 2}, "OTSNotEnoughCapacityUnit"), 2, protowire.BytesType), "no"))
		return
	}
	p.other.ServeHTTP(w, r)
}

func TestAProxyThatTakesSignaturesOffLosesDoublesAndDropsNothing(t *testing.T) {
	t.Parallel()
	s, other := startServe(t, "--sync", "none"), startServe(t, "--sync", "none")
	to := func(s *served) *httputil.ReverseProxy {
		u, err := url.Parse(s.URL)
		must(t, err)
		return httputil.NewSingleHostReverseProxy(u)
	}
	p := &stripping{real: to(s), other: to(other)}
	p.other.ModifyResponse = func(res *http.Response) error {
		res.Header.Del("Authorization")
		return nil
	}
	web := httptest.NewServer(p)
	defer web.Close()
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("id,n\n")
	for i := range 1500 {
		fmt.Fprintf(&text, "k%d,%d\n", i, i)
	}
	must(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte(text.String()), 0o600))
	run := func(url string, env []string, args ...string) (string, int) {
		t.Helper()
		stdout, stderr, code := runBinaryWith(t, append(s.credentials(), env...), append(args, "--endpoint", url, "--instance", s.Instance)...)
		return stdout + stderr, code
	}
	load := func(url, table, folder string, args ...string) {
		t.Helper()
		if said, code := run(url, nil, append([]string{"load", filepath.Join(dir, "in.csv"), "-t", table, "--create", "--pk", "id", "--settle", "100ms", "--concurrency", "2",
			"--run-dir", filepath.Join(dir, folder)}, args...)...); code != 0 {
			t.Errorf("load into %s: exit code %d: %s", table, code, said)
		}
	}
	count := func(table string, want int) {
		t.Helper()
		if got := len(dump(t, s, table)); got != want {
			t.Errorf("%s has %d rows, want %d", table, got, want)
		}
	}
	load(other.URL, "puts", "other")

	p.how = map[string]string{"/BatchWriteRow": "elsewhere"}
	load(web.URL, "puts", "puts")
	count("puts", 1500)
	p.how = map[string]string{"/BatchWriteRow": "refuse"}
	load(web.URL, "numbered", "numbered", "--pk", "seq:auto", "--mark-column", "m", "--limit", "200")
	count("numbered", 200)

	_, err := run(other.URL, nil, "load", filepath.Join(dir, "in.csv"), "-t", "puts", "--mode", "delete", "--columns", "id", "--run-dir", filepath.Join(dir, "emptied"))
	if err != 0 {
		t.Fatal("the other store keeps its rows")
	}
	p.how = map[string]string{"/GetRange": "elsewhere"}
	if said, code := run(web.URL, nil, "export", "-t", "puts", "-o", filepath.Join(dir, "out.csv")); code != 0 {
		t.Errorf("export: exit code %d: %s", code, said)
	}
	out, readErr := os.ReadFile(filepath.Join(dir, "out.csv"))
	must(t, readErr)
	if lines := strings.Count(string(out), "\n"); lines != 1501 {
		t.Errorf("the export has %d lines", lines)
	}

	p.how = map[string]string{"/DescribeTable": "every", "/DeleteTable": "every", "/ListTable": "every"}
	for _, env := range [][]string{nil, {"TSIMPORT_UNSIGNED_ANSWERS=accept"}} {
		said, code := run(web.URL, env, "table", "drop", "puts", "--yes")
		if code == 0 || !strings.Contains(said, "has no signature") || !strings.Contains(said, "TSIMPORT_UNSIGNED_ANSWERS") {
			t.Errorf("drop, %v: exit code %d: %s", env, code, said)
		}
		said, code = run(web.URL, env, "table", "list")
		if (code == 0) != (env != nil) {
			t.Errorf("list, %v: exit code %d: %s", env, code, said)
		}
	}
	if said, code := run(web.URL, []string{"TSIMPORT_UNSIGNED_ANSWERS=yes"}, "table", "list"); code != 2 {
		t.Errorf("a wrong value of the switch: exit code %d: %s", code, said)
	}
	count("puts", 1500)
}
