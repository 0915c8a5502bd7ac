//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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
	at := newPlace(t, s.credentials()...)
	at.write("in.csv", fileOf("id,n", 1500, func(i int) string { return fmt.Sprintf("k%d,%d", i, i) }))
	run := func(url string, code int, args ...string) string {
		t.Helper()
		return at.ends(code, append(args, "--endpoint", url, "--instance", s.Instance))
	}
	load := func(url, table string, args ...string) {
		t.Helper()
		run(url, 0, append([]string{"load", "in.csv", "-t", table, "--create", "--pk", "id", "--settle", "100ms", "--concurrency", "2", "--fresh"}, args...)...)
	}
	count := func(table string, want int) {
		t.Helper()
		if got := len(dump(t, s, table)); got != want {
			t.Errorf("%s has %d rows, want %d", table, got, want)
		}
	}
	load(other.URL, "puts")

	p.how = map[string]string{"/BatchWriteRow": "elsewhere"}
	load(web.URL, "puts")
	count("puts", 1500)
	p.how = map[string]string{"/BatchWriteRow": "refuse"}
	load(web.URL, "numbered", "--pk", "seq:auto", "--mark-column", "m", "--limit", "200")
	count("numbered", 200)

	run(other.URL, 0, "load", "in.csv", "-t", "puts", "--mode", "delete", "--columns", "id")
	p.how = map[string]string{"/GetRange": "elsewhere"}
	run(web.URL, 0, "export", "-t", "puts", "-o", "out.csv")
	if lines := strings.Count(at.read("out.csv"), "\n"); lines != 1501 {
		t.Errorf("the export has %d lines", lines)
	}

	p.how = map[string]string{"/DescribeTable": "every", "/DeleteTable": "every", "/ListTable": "every"}
	for value, code := range map[string]int{"": 1, "accept": 0, "yes": 2} {
		at.env = append(s.credentials(), "TSIMPORT_UNSIGNED_ANSWERS="+value)
		run(web.URL, code, "table", "list")
		if value != "yes" {
			if said := run(web.URL, 1, "table", "drop", "puts", "--yes"); !strings.Contains(said, "has no signature") || !strings.Contains(said, "TSIMPORT_UNSIGNED_ANSWERS") {
				t.Errorf("drop, %q: %s", value, said)
			}
		}
	}
	count("puts", 1500)
}
