package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"example.com/tsimport/internal/objectstore"
)

// defaultHTTPClient keeps more idle connections than net/http's two per server, because many readers read splits.
var defaultHTTPClient = &http.Client{Transport: manyConnections()}

const maxRedirects = 10

// followSafely follows redirects without Referer, and never from https to http or from public to private networks.
func followSafely(c *http.Client) *http.Client {
	if c.CheckRedirect != nil {
		return c
	}
	safe := *c
	safe.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		req.Header.Del("Referer")
		switch {
		case len(via) >= maxRedirects:
			return fmt.Errorf("it was redirected %d times", len(via))
		case req.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https":
			return unusable{errors.New("the server redirects from https to http, where anyone on the way can read and change " +
				"it; use the http address if that is intended")}
		case internal(req.URL.Hostname()) && !internal(via[0].URL.Hostname()):
			return unusable{errors.New("a public server redirects into this network; use that address if intended")}
		}
		return nil
	}
	return &safe
}

func manyConnections() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	return t
}

// address adds the object at an http or https address. It returns the name under which the address is shown.
func (e *expander) address(ctx context.Context, arg string) (name string, err error) {
	scheme, rest, _ := strings.Cut(arg, "://")
	before, fragment, _ := strings.Cut(rest, "#")
	cut := strings.Contains(fragment, "@") && !strings.ContainsAny(before, "/?@") // the # may be part of a password
	if !cut {
		rest = before
	}
	arg = strings.ToLower(scheme) + "://" + rest
	name = redact(arg)
	u, err := url.Parse(arg)
	if err != nil || u.Host == "" || cut {
		// The error of url.Parse may quote a password.
		return name, fmt.Errorf("open input %s: invalid address; %%-escape characters other than letters and digits", name)
	}
	u.Host = strings.ToLower(u.Host)
	r := &remote{name: name, retry: e.options.Retry}
	get := &httpObject{client: followSafely(e.options.HTTPClient), address: u}
	var unmarked bool
	if err := e.options.Retry.attempt(ctx, func(ctx context.Context) (err error) {
		r.version, r.ranges, unmarked, err = get.probe(ctx)
		return err
	}); err != nil {
		return name, fmt.Errorf("open input %s: %w", name, err)
	}
	if unmarked {
		e.unread("%s: without a size or an end mark, a broken connection may look like the end; download it first", name)
	}
	if r.ranges && r.version.size > 0 && r.version.String() == "" {
		// Without a version, ranges could be from different contents. A resumed run compares the contents.
		r.ranges = false
		e.warn("%s: the server sends no ETag or modification time: it is read in one go, so a lost connection ends the "+
			"load; download it first if it is large", name)
	}
	get.match = r.version.matchable()
	r.fetcher = get
	dir, file := path.Split(u.Path)
	columns, err := e.columns(name, dir, file)
	if err != nil {
		return name, err
	}
	modified, _ := http.ParseTime(r.version.modified)
	e.add(Item{Name: name, Size: r.version.size, Version: r.version.String(), Modified: modified, Columns: columns,
		src: r}, u.String())
	return name, nil
}

// httpObject reads an object at an http or https address. It follows redirects.
type httpObject struct {
	client  *http.Client
	address *url.URL
	match   string // ETag that the object must have; "" for any
}

// probe finds an object's version, and whether ranges work, by a GET of its first byte: servers often forbid HEAD.
func (h *httpObject) probe(ctx context.Context) (v version, ranges, unmarked bool, err error) {
	rep, err := h.fetch(ctx, 0, 1, true)
	if status, ok := errors.AsType[*statusError](err); ok && status.code == http.StatusRequestedRangeNotSatisfiable {
		// An empty object has no first byte to request.
		rep, err = h.fetch(ctx, 0, -1, false)
	}
	if err != nil {
		return v, false, false, err
	}
	defer rep.body.Close()
	v = rep.version
	if rep.partial && rep.off == 0 && v.size >= 0 {
		_, err = io.Copy(io.Discard, io.LimitReader(rep.body, 2)) // reading to the end lets the connection be reused
		return v, true, false, err
	}
	return v, v.size == 0, rep.unmarked, nil
}

func (h *httpObject) fetch(ctx context.Context, off, n int64, ranges bool) (*reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.address.String(), nil)
	if err != nil {
		return nil, unusable{bare(err)}
	}
	// Without this header, the transport asks for gzip and unpacks it; sizes and ranges would then be of the packed bytes.
	req.Header.Set("Accept-Encoding", "identity")
	if ranges {
		req.Header.Set("Range", objectstore.RangeOf(off, n))
	}
	if h.match != "" {
		req.Header.Set("If-Match", h.match)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, scrub(bare(err))
	}
	var rep *reply
	switch resp.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
		if rep, err = newReply(resp.StatusCode, resp.Header, resp.ContentLength, resp.Body, off); err == nil {
			rep.unmarked = resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
		}
	case http.StatusPreconditionFailed:
		err = fmt.Errorf("%w: its ETag is no longer %s; run again when it no longer changes", ErrChanged, h.match)
	default:
		err = &statusError{code: resp.StatusCode, retryAfter: objectstore.RetryAfter(resp.Header)}
	}
	if err != nil {
		io.CopyN(io.Discard, resp.Body, 16<<10) // reading a short text to its end lets the connection be reused
		resp.Body.Close()
		return nil, RedactError(err)
	}
	return rep, nil
}
