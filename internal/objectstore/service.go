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

// Service is a store of objects. Its methods may be called by many at once.
type Service interface {
	Scheme() string // of addresses: "oss" or "s3"
	// List returns the objects whose keys begin with prefix, in the order of their bytes, from where token says; "" is the
	// beginning. max bounds them, 0 is what the service gives at most.
	List(ctx context.Context, bucket, prefix, token string, max int) (Page, error)
	Head(ctx context.Context, bucket, key string) (Object, error)
	// Get returns n bytes from off, with n < 0 all from off, as the service gives them. Unless match is "", the object must have
	// this ETag; ErrOther is returned otherwise.
	Get(ctx context.Context, bucket, key string, off, n int64, match string) (*Answer, error)
	// Put replaces an object whole. With absent it makes one only if there is none, and returns ErrExists otherwise. After any
	// error but ErrExists and an *Error below 500 the object may have been put.
	Put(ctx context.Context, bucket, key string, body io.ReadSeeker, absent bool) error
	// Delete removes an object; that there is none is not an error.
	Delete(ctx context.Context, bucket, key string) error
}

// Object is what a service says of an object.
type Object struct {
	Key      string
	Size     int64
	ETag     string
	Modified time.Time
	Link     bool // Size and ETag are the link's; Head tells those of the object that it leads to
}

// CheckBucket returns what is wrong with the name of a bucket of a scheme, "" if nothing is.
func CheckBucket(scheme, name string) string {
	rule := ossBucket
	if scheme == "s3" {
		rule = s3Bucket
		if strings.HasSuffix(name, "--x-s3") || strings.HasSuffix(name, "--op-s3") { // listed in no order, or asked through sessions
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

// Answer is a part of an object on its way. The caller closes Body.
type Answer struct {
	Status int
	Header http.Header
	Length int64 // of the body, -1 unknown
	Body   io.ReadCloser
}

// ErrExists is what Put returns when it was to make an object that is there already.
var ErrExists = errors.New("the object exists already")

// ErrOther is what Get returns when the object does not have the ETag that it must have.
var ErrOther = errors.New("the object has another ETag")

// Error is the answer of a service that does not do what it was asked for.
type Error struct {
	Status     int // of HTTP
	Code       string
	Message    string        // one line, "" if it is long
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

// Invalid is an error that another attempt would give again: no request was made.
type Invalid struct{ Err error }

func (i *Invalid) Error() string { return i.Err.Error() }
func (i *Invalid) Unwrap() error { return i.Err }

// oneLine returns a service's message if it is short enough to be read.
func oneLine(message string) string {
	message = strings.TrimRight(strings.Join(strings.Fields(message), " "), ".")
	if len(message) >= 200 {
		return ""
	}
	return message
}

// maxRetryAfter bounds what a service may ask for.
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

// endpointHost returns the host of an endpoint, with or without a scheme; "" for none.
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
		// The endpoint is not shown: what stands before an @ is a secret.
		return "", fmt.Errorf("the %s endpoint is not a host; write it like %s, without a user and without the bucket's folder", service, example)
	}
	return u.Hostname(), nil
}

func ptrOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// sameServer keeps a client from following a redirect to another host, which breaks the signature; the error names the right
// endpoint.
func sameServer(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     httplimit.Transport(transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Bounds of a listing: it is kept in memory, and a server that is broken or hostile lists without end.
const (
	maxPages    = 10_000
	maxEmpty    = 1_000 // pages without an object, one after the other
	maxKeyBytes = 256 << 20
)

// EachPage gives each page of a listing, which list asks for from a token on, until its end.
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
				return fmt.Errorf("page %d of the listing repeats the page before it (after %d objects): the service lists without end", pages, keys)
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
			return fmt.Errorf("the listing does not end: %d pages with %d objects so far, the last %d pages without any; name a prefix with fewer objects", pages, keys, empty)
		}
		token = page.Token
	}
}
