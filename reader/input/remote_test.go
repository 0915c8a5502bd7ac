package input

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
)

// cutter passes on half of the bytes and then cuts the connection, at once or when the request ends.
type cutter struct {
	http.ResponseWriter
	over <-chan struct{}
}

func (c cutter) Write(b []byte) (int, error) {
	c.ResponseWriter.Write(b[:len(b)/2])
	c.ResponseWriter.(http.Flusher).Flush()
	if c.over != nil {
		<-c.over
	}
	panic(http.ErrAbortHandler)
}

// faults are faults of single requests: the next request may succeed.
var faults = map[string]func(s *site, w http.ResponseWriter, r *http.Request){
	"503":         func(_ *site, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
	"429":         func(_ *site, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
	"cut early":   func(_ *site, _ http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
	"cut":         func(s *site, w http.ResponseWriter, r *http.Request) { s.serve(cutter{w, nil}, r) },
	"stall":       func(_ *site, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"stall later": func(s *site, w http.ResponseWriter, r *http.Request) { s.serve(cutter{w, r.Context().Done()}, r) },
}

func TestFaultyRequestsAreRepeatedWithRanges(t *testing.T) {
	for name, fault := range faults {
		for failing := range int64(5) {
			s := newSite(t, text)
			// From the failing request on, every second request fails, so that requests after a retry may fail too.
			s.fault = func(number int64, w http.ResponseWriter, r *http.Request) bool {
				if number < failing || (number-failing)%2 == 1 {
					return false
				}
				fault(s, w, r)
				return true
			}
			retry := soon
			retry.Attempts = 10
			if strings.HasPrefix(name, "stall") {
				retry.Stall, retry.Attempts = 50*time.Millisecond, 1000 // a busy machine may look like a stall
			}
			i := expand(t, Options{Retry: retry}, s.address).Items[0]
			conformance.Equal(t, readAll(t, &i), text, "%s of request %d", name, failing)
			r := conformance.Try(i.OpenAt(t.Context())).Must(t)
			b := make([]byte, 20)
			for _, off := range []int64{0, 16} {
				n, err := r.ReadAt(b, off)
				conformance.True(t, err == nil && string(b[:n]) == text[off:off+20], "%s of %d: %q, %v", name, failing, b[:n], err)
			}
			r.Close()
		}
	}
}

func TestPersistentFailureEndsRetries(t *testing.T) {
	for _, code := range []int{http.StatusBadGateway, http.StatusTooManyRequests} {
		s := newSite(t, text)
		s.fault = func(_ int64, w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
		_, err := Expand(t.Context(), []string{s.address}, Options{Retry: soon})
		wantError(t, err, nil, s.address, fmt.Sprint(code), "4 attempts")
		conformance.Equal(t, s.requests.Load(), 4, "requests")
	}
	s := newSite(t, text)
	i := s.item(t)
	s.fault = func(int64, http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
	_, err := i.Open(t.Context())
	wantError(t, err, io.ErrUnexpectedEOF, s.address, "cut")
	conformance.Equal(t, errors.Is(err, io.EOF), false, "a cut connection looks like the end")
}

func TestRefusedRequestIsNotRepeated(t *testing.T) {
	for code, is := range map[int]error{404: fs.ErrNotExist, 410: fs.ErrNotExist, 401: fs.ErrPermission,
		403: fs.ErrPermission, 400: nil, 501: nil} {
		s := newSite(t, text)
		s.fault = func(_ int64, w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
		_, err := Expand(t.Context(), []string{s.address}, Options{Retry: soon})
		wantError(t, err, is, s.address, fmt.Sprint(code))
		conformance.Equal(t, s.requests.Load(), 1, "%d: requests", code)
	}
}

func TestObjectChangedBetweenRequestsIsAnError(t *testing.T) {
	for _, tags := range [][2]string{{`"v1"`, `"v2"`}, {`W/"v1"`, `W/"v2"`}} {
		s := newSite(t, text)
		s.etag.Store(tags[0])
		i := s.item(t)
		r := conformance.Try(i.OpenAt(t.Context())).Must(t)
		defer r.Close()
		b := make([]byte, 10)
		n, err := r.ReadAt(b, 0)
		conformance.MustTrue(t, n == 10 && err == nil, "%d bytes, %v", n, err)
		s.etag.Store(tags[1])
		n, err = r.ReadAt(b, 10)
		wantError(t, err, ErrChanged, s.address, "ETag")
		conformance.Equal(t, n, 0, "bytes of two versions")
		wantError(t, conformance.ErrorOf(i.Open(t.Context())), ErrChanged, s.address)
	}
}

func TestObjectChangedDuringStreamIsAnError(t *testing.T) {
	s := newSite(t, text)
	i := s.item(t)
	s.fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		s.serve(cutter{w, nil}, r)
		return true
	}
	r := conformance.Try(i.Open(t.Context())).Must(t)
	defer r.Close()
	s.etag.Store(`"v2"`)
	b, err := io.ReadAll(r)
	wantError(t, err, ErrChanged, s.address, "byte 18 of 36")
	conformance.Equal(t, string(b), text[:18], "contents read")
}

func TestTimeAndSizeDetectChangesWithoutETags(t *testing.T) {
	for header, change := range map[string]func(s *site, w http.ResponseWriter){
		"last modified": func(_ *site,
			w http.ResponseWriter) {
			w.Header().Set("Last-Modified", "Tue, 02 Jan 2024 00:00:00 GMT")
		},
		"bytes": func(s *site, _ http.ResponseWriter) { s.content += "!" },
	} {
		s := newSite(t, text)
		s.etag.Store("")
		s.fault = func(number int64, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
			if number > 0 {
				change(s, w)
			}
			w.Header()["Etag"] = nil
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(s.content))
			return true
		}
		i := s.item(t)
		wantError(t, conformance.ErrorOf(i.Open(t.Context())), ErrChanged, header)
	}
}

func TestUnversionedAddressIsReadOnce(t *testing.T) {
	s := newSite(t, text)
	s.fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		w.Header()["Etag"] = nil
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(s.content))
		return true
	}
	set := expand(t, Options{Retry: soon}, s.address)
	i := &set.Items[0]
	conformance.True(t, !i.Seekable() && readAll(t, i) == text, "item %+v", i)
	w := set.Warnings
	conformance.True(t, len(w) == 1 && strings.Contains(w[0], "no ETag or modification time"), "warnings %q", w)
}

func TestBrokenStreamWithoutRangesFails(t *testing.T) {
	for _, noLength := range []bool{false, true} {
		s := newSite(t, text)
		s.noRanges, s.noLength = true, noLength
		i := s.item(t)
		s.fault = func(_ int64, w http.ResponseWriter, _ *http.Request) bool {
			if !noLength {
				w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			}
			io.WriteString(w, text[:12])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		r := conformance.Try(i.Open(t.Context())).Must(t)
		b, err := io.ReadAll(r)
		r.Close()
		wantError(t, err, io.ErrUnexpectedEOF, s.address, "byte 12", "cannot continue")
		conformance.Equal(t, string(b), text[:12], "contents read")
	}
}

func TestServerDroppingRangesIsError(t *testing.T) {
	s := newSite(t, text)
	i := s.item(t)
	s.noRanges = true
	r := conformance.Try(i.OpenAt(t.Context())).Must(t)
	defer r.Close()
	b := make([]byte, len(text))
	n, err := r.ReadAt(b, 0)
	conformance.True(t, err == nil && string(b[:n]) == text, "the whole object in place of its range: %q, %v", b[:n], err)
	wantError(t, conformance.ErrorOf(r.ReadAt(b[:3], 3)), nil, "at byte 3", "stopped supporting ranges")

	s.fault = func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		r.Header.Set("Range", "bytes=1-2")
		s.noRanges = false
		s.serve(w, r)
		return true
	}
	wantError(t, conformance.ErrorOf(r.ReadAt(b[:3], 3)), nil, "sent byte 1 instead of byte 3")
}

// trickle is an endless body that sends bytes at intervals.
type trickle struct {
	pause time.Duration
	bytes int
}

func (r *trickle) Close() error { return nil }
func (r *trickle) Read(p []byte) (int, error) {
	time.Sleep(r.pause)
	return min(r.bytes, len(p)), nil
}

// fetch returns an endless object with this body.
func (r *trickle) fetch(_ context.Context, off, _ int64, _ bool) (*reply, error) {
	return &reply{body: r, off: off, version: version{size: -1}}, nil
}

func TestSlowServerEndsReading(t *testing.T) {
	for name, c := range map[string]struct {
		trickle
		slow bool
	}{
		"two bytes a second":   {trickle{time.Second / 2, 1}, true},
		"a burst now and then": {trickle{50 * time.Second, 4096}, false},
		"a line a second":      {trickle{time.Second, 60}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			src := &remote{fetcher: &c.trickle, name: name, version: version{size: -1}, retry: Retry{}.withDefaults()}
			for way, read := range map[string]func() error{
				"stream": func() error {
					r, err := src.open(t.Context())
					if err == nil {
						defer r.Close()
						_, err = io.CopyN(io.Discard, r, 10_000)
					}
					return err
				},
				"anywhere": func() error {
					r, _ := src.openAt(t.Context())
					defer r.Close()
					_, err := (&partReader{remote: src, ctx: t.Context()}).readOnce(make([]byte, 10_000), 0)
					return err
				},
			} {
				began := time.Now()
				err := read()
				conformance.True(t, errors.Is(err, errSlow) == c.slow && (c.slow || err == nil) &&
					(!c.slow || time.Since(began) <= 61*time.Second), "%s, %s: %v after %v", name, way, err, time.Since(began))
				conformance.True(t, way != "stream" || Passing(err) == c.slow, "%s: whether it passes is not told by %v", name, err)
			}
		})
	}
}

func TestStallCountsOnlyReadTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t.Context(), time.Minute)
		defer w.end()
		body := &watchedBody{body: io.NopCloser(strings.NewReader("ab")), watch: w}
		for range 2 {
			n, err := body.Read(make([]byte, 1))
			conformance.MustTrue(t, n == 1 && err == nil, "%v %v", n, err)
			time.Sleep(time.Hour) // the consumer is slow on the fake clock
		}
		conformance.MustEqual(t, w.ctx.Err(), nil, "a slow consumer is not a stall")
		w.start()
		time.Sleep(time.Minute + 1)
		conformance.Equal(t, w.explain(io.EOF), errStalled, "a stall")
	})
}

func TestCloseAndCancelEndHangingReads(t *testing.T) {
	s := newSite(t, text)
	i := s.item(t)
	arrived := make(chan struct{})
	s.fault = func(_ int64, _ http.ResponseWriter, r *http.Request) bool {
		arrived <- struct{}{}
		<-r.Context().Done()
		return true
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		end  func(r ReaderAtCloser)
		want error
	}{{func(r ReaderAtCloser) { r.Close() }, fs.ErrClosed}, {func(ReaderAtCloser) { cancel() }, context.Canceled}} {
		r := conformance.Try(i.OpenAt(ctx)).Must(t)
		go func() {
			<-arrived
			c.end(r)
		}()
		conformance.Is(t, conformance.ErrorOf(r.ReadAt(make([]byte, 1), 0)), c.want, "a read that hangs")
	}
}

// TestUnstartedStreamOfUnknownSizeIsRepeated checks that io.EOF before the response does not end the stream.
func TestUnstartedStreamOfUnknownSizeIsRepeated(t *testing.T) {
	s := newSite(t, text)
	s.noRanges, s.noLength = true, true
	i := s.item(t)
	s.fault = func(number int64, w http.ResponseWriter, _ *http.Request) bool {
		switch number {
		case 1:
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case 2, 3:
			panic(http.ErrAbortHandler)
		}
		return false
	}
	wantText(t, &i, text)
	conformance.Equal(t, s.requests.Load(), 5, "requests")
}

// TestWrongSchemeIsNotTemporary asks an http server with https, and the reverse. Retries would not help.
func TestWrongSchemeIsNotTemporary(t *testing.T) {
	page := http.NotFoundHandler()
	plain, secure := httptest.NewServer(page), httptest.NewTLSServer(page)
	defer plain.Close()
	defer secure.Close()
	for _, at := range []string{"https" + strings.TrimPrefix(plain.URL, "http"), "http" +
		strings.TrimPrefix(secure.URL, "https")} {
		_, err := http.Get(at + "/a.csv")
		if err == nil {
			continue // this server answers with status 400
		}
		conformance.True(t, !again(err) && !Passing(err), "%s: %v is repeated", at, err)
	}
	for text, other := range map[string]bool{`malformed HTTP response "\x15\x03\x01"`: true,
		`malformed HTTP response "SSH-2.0"`: false} {
		err := errors.New(text)
		conformance.True(t, again(err) != other, "%v: %v", err, !other)
	}
	err := (&url.Error{Err: tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}})
	conformance.True(t, !again(err), "%v is repeated", err)
}

func TestOnlyTemporaryErrorsAreRetried(t *testing.T) {
	for _, err := range []error{ErrChanged, unusable{io.EOF}, &statusError{code: 404},
		fmt.Errorf("x: %w", &statusError{code: 505})} {
		conformance.Equal(t, again(err), false, "%v is repeated", err)
	}
	nowhere := &net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true}
	for err, passing := range map[error]bool{nowhere: true, &net.OpError{Op: "dial", Err: nowhere}: true,
		ErrChanged: false, &statusError{code: 404}: false} {
		conformance.Equal(t, Passing(fmt.Errorf("read a.csv: %w", err)), passing, "%v may pass", err) // exit code 1, not 2
	}
	for _, err := range []error{io.EOF, errStalled, &url.Error{Err: io.ErrUnexpectedEOF}, &statusError{code: 500},
		&statusError{code: 408}} {
		conformance.Equal(t, again(err), true, "%v is not repeated", err)
	}
}

// site is a server that serves the same object under every path.
type site struct {
	content            string
	etag               atomic.Value // holds a string
	noRanges, noLength bool
	fault              func(number int64, w http.ResponseWriter, r *http.Request) (handled bool)

	requests atomic.Int64
	address  string
}

func newSite(t *testing.T, content string) *site {
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

func TestEmptyObjectGivesNoBytes(t *testing.T) {
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

	// No server listens at the address of a closed one.
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

func TestServerListCannotNameLocalFiles(t *testing.T) {
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

// toServer sends requests for any host to the same server.
type toServer struct{ host string }

func (s toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Host", r.URL.Hostname())
	r.URL.Host = s.host
	return http.DefaultTransport.RoundTrip(r)
}

func TestRedirectsDropCredentialsAndNeverEnterPrivateNetwork(t *testing.T) {
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

func TestMissingEndMarkGivesWarning(t *testing.T) {
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
	conformance.True(t, len(set.Warnings) == 1 && strings.Contains(set.Warnings[0], "an end mark"), "%q", set.Warnings)
	wantText(t, &set.Items[0], text)
}

func TestUnknownSizeDisablesRanges(t *testing.T) {
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
