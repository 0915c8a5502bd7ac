package objectstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"example.com/tsimport/internal/httplimit"
)

// Service is an object store. It is safe for concurrent use.
type Service interface {
	Scheme() string // of addresses: "oss" or "s3"
	// List returns the objects whose keys begin with prefix, in byte order, from token on or "". max may be 0.
	List(ctx context.Context, bucket, prefix, token string, max int) (Page, error)
	Head(ctx context.Context, bucket, key string) (Object, error)
	// Get returns n bytes from off, with n < 0 all. Unless match is "", an object with another ETag is ErrOther.
	Get(ctx context.Context, bucket, key string, off, n int64, match string) (*Answer, error)
	// Put replaces a whole object. With absent it only creates one, and returns ErrExists if the object exists. After any
	// error but ErrExists and an *Error below 500 the object may have been put.
	Put(ctx context.Context, bucket, key string, body io.ReadSeeker, absent bool) error
	// Delete removes an object; a missing one is not an error.
	Delete(ctx context.Context, bucket, key string) error
}

// Object is a service's description of an object.
type Object struct {
	Key      string
	Size     int64
	ETag     string
	Modified time.Time
	Link     bool // Size and ETag are the link's; Head has the target's
}

// CheckBucket returns the fault of a bucket name, "" if there is none.
func CheckBucket(scheme, name string) string {
	rule := ossBucket
	if scheme == "s3" {
		rule = s3Bucket
		if strings.HasSuffix(name, "--x-s3") || strings.HasSuffix(name, "--op-s3") { // unordered, or by sessions
			return "is a directory bucket or one of Outposts; copy its objects to a general purpose bucket"
		}
	}
	if len(name) > 63 || !rule.MatchString(name) {
		return "is not a bucket name"
	}
	return ""
}

// Page is a part of a listing. With More it continues at Token.
type Page struct {
	Objects []Object
	More    bool
	Token   string
}

// Answer is a part of an object being received. The caller closes Body.
type Answer struct {
	Status int
	Header http.Header
	Length int64 // of the body, -1 unknown
	Body   io.ReadCloser
}

// ErrExists is Put's error if the object must be absent but exists.
var ErrExists = errors.New("the object exists already")

// ErrOther is Get's error if the object has another ETag.
var ErrOther = errors.New("the object has another ETag")

// Error is a service's refusal.
type Error struct {
	Status     int // of HTTP
	Code       string
	Message    string        // one line, "" for a long one
	RetryAfter time.Duration // that the service asks for, 0 if it does not
}

// Text is the code and the message.
func (e *Error) Text() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + " (" + e.Message + ")"
}

func (e *Error) Error() string {
	text := e.Text()
	text = cmp.Or(text, http.StatusText(e.Status))
	return fmt.Sprintf("the service answers %d %s", e.Status, text)
}

// Invalid is an error without a request: another attempt would give it again.
type Invalid struct{ Err error }

func (i *Invalid) Error() string { return i.Err.Error() }
func (i *Invalid) Unwrap() error { return i.Err }

// oneLine returns a service's message if it is short enough to read.
func oneLine(message string) string {
	message = strings.TrimRight(strings.Join(strings.Fields(message), " "), ".")
	if len(message) >= 200 {
		return ""
	}
	return message
}

// maxRetryAfter limits a service's requested wait.
const maxRetryAfter = 30 * time.Second

// RetryAfter reads the header in seconds; a date is left to the caller's backoff.
func RetryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(min(seconds, 3600))*time.Second, maxRetryAfter)
}

// RangeOf is the Range header for n bytes from off, with n < 0 all from off.
func RangeOf(off, n int64) string {
	if n < 0 {
		return fmt.Sprintf("bytes=%d-", off)
	}
	return fmt.Sprintf("bytes=%d-%d", off, off+n-1)
}

// endpointHost returns an endpoint's host, with or without a scheme; "" for none.
func endpointHost(service, endpoint, example string) (string, error) {
	if endpoint == "" {
		return "", nil
	}
	address := endpoint
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		// The endpoint is not shown: the part before an @ is secret.
		return "", fmt.Errorf("the %s endpoint is not a host; write %s, without user and bucket folder", service, example)
	}
	return u.Hostname(), nil
}

func ptrOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// sameServer keeps a client from redirects to another host, which break the signature; the error names that endpoint.
func sameServer(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     httplimit.Transport(transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Limits of a listing: it is kept in memory, and a broken or hostile server lists without end.
const (
	maxPages    = 10_000
	maxEmpty    = 1_000 // consecutive pages without an object
	maxKeyBytes = 256 << 20
)

// EachPage calls each with every page of a listing; list returns the page from a token on.
func EachPage(list func(token string) (Page, error), each func([]Object) error) error {
	var token, last string
	var keys, bytes, empty int
	for pages := 1; ; pages++ {
		page, err := list(token)
		if err != nil {
			return err
		}
		keys += len(page.Objects)
		for _, o := range page.Objects {
			bytes += len(o.Key)
		}
		if empty++; len(page.Objects) > 0 {
			first := page.Objects[0].Key
			if pages > 1 && first == last {
				return fmt.Errorf("page %d of the listing repeats the one before (%d objects): it would never end", pages, keys)
			}
			empty, last = 0, first
		}
		if err := each(page.Objects); err != nil {
			return err
		}
		switch {
		case !page.More:
			return nil
		case page.Token == "" || page.Token == token:
			return errors.New("the service says that its list continues, but not from where; try again")
		case pages >= maxPages || empty >= maxEmpty || bytes > maxKeyBytes:
			return fmt.Errorf("the listing does not end: %d pages with %d objects so far, the last %d pages without any; name "+
				"a prefix with fewer objects", pages, keys, empty)
		}
		token = page.Token
	}
}
