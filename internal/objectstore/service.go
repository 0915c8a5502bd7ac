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
	Scheme() string // scheme of addresses: "oss" or "s3"
	// List returns a page of objects with the prefix, in byte order, beginning at token. A max of 0 is the default size.
	List(ctx context.Context, bucket, prefix, token string, max int) (Page, error)
	Head(ctx context.Context, bucket, key string) (Object, error)
	// Get returns n bytes from off, or all if n < 0. If match is not "" and not the object's ETag, it returns ErrOther.
	Get(ctx context.Context, bucket, key string, off, n int64, match string) (*Answer, error)
	// Put creates or replaces an object. If absent is set and the object exists, it returns ErrExists. After any error
	// other than ErrExists, an *Invalid and an *Error with a status below 500, the object may have been put.
	Put(ctx context.Context, bucket, key string, body io.ReadSeeker, absent bool) error
	// Delete deletes an object. A missing object is not an error.
	Delete(ctx context.Context, bucket, key string) error
}

// Object is a service's description of an object.
type Object struct {
	Key      string
	Size     int64
	ETag     string
	Modified time.Time
	Link     bool // a symbolic link; in a listing, Size and ETag are the link's own, but Head returns the target's
}

// CheckBucket says what is wrong with a bucket name. It returns "" for a valid one.
func CheckBucket(scheme, name string) string {
	rule := ossBucket
	if scheme == "s3" {
		rule = s3Bucket
		if strings.HasSuffix(name, "--x-s3") || strings.HasSuffix(name, "--op-s3") { // unordered listings, or sessions
			return "is a directory or Outposts bucket; copy its objects to a general purpose bucket"
		}
	}
	if len(name) > 63 || !rule.MatchString(name) {
		return "is not a bucket name"
	}
	return ""
}

// Page is a part of a listing. If More is set, the next page begins at Token.
type Page struct {
	Objects []Object
	More    bool
	Token   string
}

// Answer is a response with an object or a part of one. The caller must close Body.
type Answer struct {
	Status int
	Header http.Header
	Length int64 // length of the body; -1 if unknown
	Body   io.ReadCloser
}

// ErrExists is returned by Put if absent is set and the object exists.
var ErrExists = errors.New("the object already exists")

// ErrOther is returned by Get if the object's ETag is not match.
var ErrOther = errors.New("the object has another ETag")

// Error is an error response of a service.
type Error struct {
	Status     int // HTTP status code
	Code       string
	Message    string        // one line; "" if the service's message is too long
	RetryAfter time.Duration // the wait requested by the service, or 0
}

// Text returns the code and the message.
func (e *Error) Text() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + " (" + e.Message + ")"
}

func (e *Error) Error() string {
	return fmt.Sprintf("the service answers %d %s", e.Status, cmp.Or(e.Text(), http.StatusText(e.Status)))
}

// Invalid is an error that a retry would repeat: a request that cannot be sent, or a listing that cannot be decoded.
type Invalid struct{ Err error }

func (i *Invalid) Error() string { return i.Err.Error() }
func (i *Invalid) Unwrap() error { return i.Err }

// oneLine returns a service's message as one line, or "" if it is too long.
func oneLine(message string) string {
	message = strings.TrimRight(strings.Join(strings.Fields(message), " "), ".")
	if len(message) >= 200 {
		return ""
	}
	return message
}

// maxRetryAfter limits the wait that a service may request.
const maxRetryAfter = 30 * time.Second

// RetryAfter returns the wait in the Retry-After header, limited to maxRetryAfter. It returns 0 for a date.
func RetryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(min(seconds, 3600))*time.Second, maxRetryAfter)
}

// RangeOf returns the Range header for n bytes from off, or for all from off if n < 0.
func RangeOf(off, n int64) string {
	if n < 0 {
		return fmt.Sprintf("bytes=%d-", off)
	}
	return fmt.Sprintf("bytes=%d-%d", off, off+n-1)
}

// endpointHost returns the host of an endpoint, which may lack a scheme. It returns "" for an empty endpoint.
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
		// The endpoint is not shown, because a part before an @ is secret.
		return "", fmt.Errorf("the %s endpoint is not a host; write %s, without a user or a bucket folder", service, example)
	}
	return u.Hostname(), nil
}

func ptrOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// sameServer returns a client that does not follow redirects, because a signature is valid for one host only.
func sameServer(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     httplimit.Transport(transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Limits of a listing, which is kept in memory: a broken or hostile server might never end it.
const (
	maxPages    = 10_000
	maxEmpty    = 1_000 // consecutive pages without an object
	maxKeyBytes = 256 << 20
)

// EachPage calls each with every page of a listing. list returns the page that begins at a token.
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
				return fmt.Errorf("page %d of the listing repeats the previous one (%d objects), so it would not end", pages, keys)
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
			return errors.New("the service says that its listing continues, but returns no new continuation token; try again")
		case pages >= maxPages || empty >= maxEmpty || bytes > maxKeyBytes:
			return fmt.Errorf("the listing does not end: %d pages with %d objects so far, the last %d pages without any; name "+
				"a prefix with fewer objects", pages, keys, empty)
		}
		token = page.Token
	}
}
