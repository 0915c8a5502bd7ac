package input

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

// site is a server with one object under any path.
type site struct {
	content            string
	etag               atomic.Value // string
	noRanges, noLength bool
	fault              func(number int64, w http.ResponseWriter, r *http.Request) (handled bool)

	requests atomic.Int64
	address  string
}

func newSite(t *testing.T, content string) *site {
	t.Helper()
	s := &site{content: content}
	s.etag.Store(`"v1"`)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.address = server.URL + "/data.csv"
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number := s.requests.Add(1) - 1
	if r.Header.Get("Accept-Encoding") != "identity" {
		http.Error(w, "the client would unpack", http.StatusTeapot)
		return
	}
	if s.fault != nil && s.fault(number, w, r) {
		return
	}
	s.serve(w, r)
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", s.etag.Load().(string))
	if s.noRanges {
		if !s.noLength {
			w.Header().Set("Content-Length", fmt.Sprint(len(s.content)))
		}
		io.WriteString(w, s.content[:len(s.content)/2])
		w.(http.Flusher).Flush()
		io.WriteString(w, s.content[len(s.content)/2:])
		return
	}
	http.ServeContent(w, r, "", time.Unix(1e9, 0), strings.NewReader(s.content))
}

func (s *site) item(t *testing.T) Item {
	t.Helper()
	return expand(t, Options{Retry: soon}, s.address).Items[0]
}

const text = "0123456789abcdefghijklmnopqrstuvwxyz"

func TestAddressWithRangesIsReadAtAnyOffset(t *testing.T) {
	s := newSite(t, text)
	i := s.item(t)
	conformance.True(t, i.Seekable() && i.Size == int64(len(text)) && i.Version == `"v1"` && i.Name == s.address, "%+v", i)
	checkReaderAt(t, &i, text)
	wantText(t, &i, text)
}

func TestAddressWithoutRangesIsAStream(t *testing.T) {
	for _, noLength := range []bool{false, true} {
		s := newSite(t, text)
		s.noRanges, s.noLength = true, noLength
		i := s.item(t)
		conformance.True(t, !i.Seekable() && (i.Size == -1) == noLength, "item %+v", i)
		wantText(t, &i, text)
	}
}

func TestAnEmptyObjectIsEmpty(t *testing.T) {
	refuse := func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "" {
			w.Header().Set("Content-Range", "bytes */0")
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		}
		return r.Header.Get("Range") != ""
	}
	for _, fault := range []func(int64, http.ResponseWriter, *http.Request) bool{nil, refuse} {
		s := newSite(t, "")
		s.fault = fault
		i := s.item(t)
		conformance.True(t, i.Size == 0 && i.Seekable() && readAll(t, &i) == "", "item %+v", i)
		checkReaderAt(t, &i, "")
	}
}

func TestRedirectsAreFollowedAndSecretsStayHidden(t *testing.T) {
	s := newSite(t, text)
	target := s.address
	redirect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "user" || password != "geheim" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(w, r, target+"?Signature=geheim", http.StatusFound)
	}))
	defer redirect.Close()
	address := strings.Replace(redirect.URL, "//", "//user:geheim@", 1) + "/dt=1/x.csv?Signature=geheim"
	i := expand(t, Options{Retry: soon, PathColumns: true}, address).Items[0]
	wantText(t, &i, text)
	conformance.Equal(t, i.Name, strings.Replace(redirect.URL, "//", "//xxxxx@", 1)+"/dt=1/x.csv?Signature=xxxxx", "name")
	conformance.True(t, len(i.Columns) == 1 && i.Columns[0] == (Column{Name: "dt", Value: "1"}), "columns %+v", i.Columns)

	// Nothing listens at the address of a closed server.
	closed := httptest.NewServer(s)
	closed.Close()
	target = closed.URL
	wantError(t, conformance.ErrorOf(i.Open(t.Context())), nil, i.Name)
	for _, bad := range []string{"http://user:ge/heim@h:x/?Signature=heim", "http:///heim", "https://user:heim@\x7f/"} {
		_, err := Expand(t.Context(), []string{bad}, Options{Retry: soon})
		wantError(t, err, nil, "invalid address")
		conformance.True(t, bad == "http:///heim" || !strings.Contains(err.Error(), "heim"), "error shows a secret: %v", err)
	}
}

func TestManifestMayBeAnAddress(t *testing.T) {
	data := newSite(t, text)
	wantNames(t, expand(t, Options{Retry: soon}, "@"+newSite(t, data.address+"\n").address), data.address)
}

func TestServersListCannotNameLocalFiles(t *testing.T) {
	dir := tree(t, "a.csv")
	for _, line := range []string{"a.csv", dir + "/a.csv", "-", "/dev/stdin", "file:///etc", "*.csv", ".", "ftp://h/a"} {
		_, err := Expand(t.Context(), []string{"@" + newSite(t, line+"\n").address}, Options{Retry: soon})
		wantError(t, err, nil, "a list from a server names addresses only")
	}
	public := &remote{fetcher: &httpObject{address: &url.URL{Scheme: "https", Host: "data.example"}}}
	for arg, allowed := range map[string]bool{
		"https://other.example/a": true, "oss://bucket/a": true, "http://8.8.8.8/a": true, "http://127.0.0.1/a": false,
		"http://[::1]:80/a": false, "http://localhost/a": false, "HTTP://10.1.2.3/a": false,
		"http://169.254.169.254/meta": false, "http://100.100.100.200/meta": false, "http://[::ffff:192.168.0.1]/a": false,
		"http://0.0.0.0/a": false, "http://user:geheim@192.168.1.1/?pin=geheim": false, "http://2130706433/a": false,
		"http://0x7f.1/a": false, "http://127.1:80/a": false, "http://[fe80::1%25eth0]/a": false,
		"http://localhost./a": false, "http://h2/a": true,
	} {
		err := public.mayName(arg)
		conformance.True(t, (err == nil) == allowed && !strings.Contains(fmt.Sprint(err), "geheim"), "%s: %v", arg, err)
	}
}

func TestRedirectsLeakNothingAndStayEncrypted(t *testing.T) {
	plain := newSite(t, text)
	var referers []string
	redirect := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		referers = append(referers, r.Referer())
		if r.URL.Path == "/here" {
			w.Write([]byte(text))
			return
		}
		to := "/here?Signature=geheim"
		if r.URL.Path == "/down" {
			to = plain.address
		}
		http.Redirect(w, r, to, http.StatusFound)
	}))
	defer redirect.Close()
	expand(t, Options{Retry: soon, HTTPClient: redirect.Client()}, redirect.URL+"/a.csv?Signature=geheim")
	for _, r := range referers {
		conformance.Equal(t, r, "", "Referer")
	}
	_, err := Expand(t.Context(), []string{redirect.URL + "/down"}, Options{Retry: soon, HTTPClient: redirect.Client()})
	wantError(t, err, nil, "redirects from https to http")
}

// toServer sends requests for every host to one server.
type toServer struct{ host string }

func (s toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Host", r.URL.Hostname())
	r.URL.Host = s.host
	return http.DefaultTransport.RoundTrip(r)
}

func TestRedirectsTakeNoCredentialsAlongAndStayOutsideThisNetwork(t *testing.T) {
	var target string
	var arrived []http.Header
	s := newSite(t, text)
	s.fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("X-Host") == "data.example" {
			http.Redirect(w, r, target, http.StatusTemporaryRedirect)
			return true
		}
		arrived = append(arrived, r.Header)
		return false
	}
	u := conformance.Try(url.Parse(s.address)).Must(t)
	o := Options{Retry: soon, HTTPClient: &http.Client{Transport: toServer{u.Host}}}
	for _, target = range []string{"http://other.example/a", "http://sub.data.example/a"} {
		expand(t, o, "http://user:geheim@data.example/a?Signature=geheim")
	}
	conformance.Equal(t, len(arrived), 2, "requests arrived")
	for _, h := range arrived {
		all := fmt.Sprint(h)
		conformance.True(t, h.Get("Authorization") == "" && !strings.Contains(all, "geheim") &&
			!strings.Contains(all, "Referer"), "headers %v", h)
	}
	for _, target = range []string{"http://127.0.0.1/a", "http://169.254.169.254/latest", "http://localhost/a"} {
		_, err := Expand(t.Context(), []string{"http://data.example/a"}, o)
		wantError(t, err, nil, "redirects into this network")
	}
}

func TestSecretsOfFailedRedirectsStayHidden(t *testing.T) {
	s := newSite(t, text)
	s.fault = func(_ int64, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Location", "http://user:geheim@h:port/?Signature=geheim")
		w.WriteHeader(http.StatusFound)
		return true
	}
	_, err := Expand(t.Context(), []string{s.address}, Options{Retry: soon})
	wantError(t, err, nil, s.address, "Location", "xxxxx")
}

func TestServerWithoutEndMarkIsWarnedOf(t *testing.T) {
	s := newSite(t, text)
	s.fault = func(_ int64, w http.ResponseWriter, _ *http.Request) bool {
		conn, out, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return true
		}
		defer conn.Close()
		io.WriteString(out, "HTTP/1.0 200 OK\r\n\r\n"+text)
		out.Flush()
		return true
	}
	set := expand(t, Options{Retry: soon}, s.address)
	conformance.True(t, len(set.Warnings) == 1 && strings.Contains(set.Warnings[0], "size nor end"), "%q", set.Warnings)
	wantText(t, &set.Items[0], text)
}

func TestRangesOfAnObjectOfUnknownSizeAreNotUsed(t *testing.T) {
	s := newSite(t, text)
	s.fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") == "" {
			return false
		}
		w.Header().Set("Content-Range", "bytes 0-0/*")
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, text[:1])
		return true
	}
	i := s.item(t)
	conformance.True(t, !i.Seekable() && i.Size == -1 && readAll(t, &i) == text, "item %+v", i)
	s.fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Range", "lines 1-2")
		w.WriteHeader(http.StatusPartialContent)
		return true
	}
	wantError(t, conformance.ErrorOf(Expand(t.Context(), []string{s.address}, Options{Retry: soon})), nil, "lines 1-2")
}
