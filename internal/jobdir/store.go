package jobdir

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"example.com/tsimport/internal/objectstore"
	"example.com/tsimport/ratelimit"
)

// Store holds objects by name; names may contain slashes. After a put or a deletion, every process reads the new state,
// but a listing may be late in a shared folder. It is safe for concurrent use.
type Store interface {
	// PutAbsent puts an object, or returns ErrExists if the name is taken. After other errors it may have been put.
	PutAbsent(ctx context.Context, name string, body []byte) error
	// Put creates or replaces an object as a whole. After an error it may have been put, or may be put later.
	Put(ctx context.Context, name string, body []byte) error
	// PutFile is like Put for a local file of any size.
	PutFile(ctx context.Context, name, file string) error
	// Get returns an object, or fs.ErrNotExist if there is none.
	Get(ctx context.Context, name string) ([]byte, error)
	// GetRange returns n bytes of an object, beginning at an offset. A shorter object is an error.
	GetRange(ctx context.Context, name string, from, n int64) ([]byte, error)
	// List returns the names that begin with prefix, in order.
	List(ctx context.Context, prefix string) ([]string, error)
	Delete(ctx context.Context, name string) error
	String() string // the address, for messages
}

// ErrExists is returned by PutAbsent if the name is taken.
var ErrExists = errors.New("already exists")

// Options configures the access to object stores.
type Options struct {
	OSS objectstore.OSS
	S3  objectstore.S3
}

// IsAddress reports whether a place is the address of an object store rather than a folder.
func IsAddress(place string) bool {
	scheme, _, found := strings.Cut(place, "://")
	return found && (strings.EqualFold(scheme, "oss") || strings.EqualFold(scheme, "s3"))
}

// Open returns the store at a place: oss://bucket/prefix, s3://bucket/prefix, or a folder, which the first put creates.
func Open(ctx context.Context, place string, o Options) (Store, error) {
	if !IsAddress(place) {
		if strings.Contains(place, "://") {
			return nil, fmt.Errorf("%s: want a folder, oss://bucket/prefix or s3://bucket/prefix", place)
		}
		return view{Store: folder{place}, patient: true}, nil
	}
	scheme, rest, _ := strings.Cut(place, "://")
	scheme = strings.ToLower(scheme)
	bucket, prefix, _ := strings.Cut(rest, "/")
	if why := objectstore.CheckBucket(scheme, bucket); why != "" {
		return nil, fmt.Errorf("%s://…: the part before the first / %s; write %s://bucket/prefix; keys come from the "+
			"environment", scheme, why, scheme)
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	var service objectstore.Service
	var err error
	if scheme == "s3" {
		service, err = objectstore.NewS3(ctx, o.S3)
	} else {
		service, err = objectstore.NewOSS(o.OSS, http.DefaultTransport)
	}
	if err != nil {
		return nil, fmt.Errorf("%s://%s/%s: %w", scheme, bucket, prefix, err)
	}
	return view{Store: objects{service, bucket, prefix}, patient: true}, nil
}

// maxObject is the size of the largest object that Get reads.
const maxObject = 256 << 20

type objects struct {
	service        objectstore.Service
	bucket, prefix string
}

func (o objects) String() string { return o.service.Scheme() + "://" + o.bucket + "/" + o.prefix }

func (o objects) PutAbsent(ctx context.Context, name string, body []byte) error {
	err := o.service.Put(ctx, o.bucket, o.prefix+name, bytes.NewReader(body), true)
	if errors.Is(err, objectstore.ErrExists) {
		return ErrExists
	}
	return err
}

func (o objects) Put(ctx context.Context, name string, body []byte) error {
	return o.service.Put(ctx, o.bucket, o.prefix+name, bytes.NewReader(body), false)
}

func (o objects) PutFile(ctx context.Context, name, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return o.service.Put(ctx, o.bucket, o.prefix+name, f, false)
}

func (o objects) Get(ctx context.Context, name string) ([]byte, error) {
	return o.get(ctx, name, 0, -1)
}

func (o objects) GetRange(ctx context.Context, name string, from, n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	body, err := o.get(ctx, name, from, n)
	if err == nil && int64(len(body)) != n {
		err = fmt.Errorf("%s: %d bytes at byte %d were requested, but %d were sent", name, n, from, len(body))
	}
	return body, err
}

func (o objects) get(ctx context.Context, name string, from, n int64) ([]byte, error) {
	answer, err := o.service.Get(ctx, o.bucket, o.prefix+name, from, n, "")
	if refused, ok := errors.AsType[*objectstore.Error](err); ok {
		switch refused.Status {
		case http.StatusNotFound:
			return nil, fs.ErrNotExist
		case http.StatusRequestedRangeNotSatisfiable:
			return nil, nil // an empty object has no range
		}
	}
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	most := n
	if n < 0 {
		most = maxObject
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = fmt.Errorf("%s: the service sent more than %d bytes", name, most)
	}
	if err == nil && answer.Length >= 0 && int64(len(body)) != answer.Length {
		err = io.ErrUnexpectedEOF
	}
	return body, err
}

func (o objects) List(ctx context.Context, prefix string) (names []string, err error) {
	list := func(token string) (objectstore.Page, error) {
		return o.service.List(ctx, o.bucket, o.prefix+prefix, token, 0)
	}
	err = objectstore.EachPage(list, func(objects []objectstore.Object) error {
		for _, object := range objects {
			names = append(names, strings.TrimPrefix(object.Key, o.prefix))
		}
		return nil
	})
	return names, err
}

func (o objects) Delete(ctx context.Context, name string) error {
	return o.service.Delete(ctx, o.bucket, o.prefix+name)
}

// view is the part of a store whose object names begin with a prefix.
type view struct {
	Store
	prefix  string
	patient bool // retries calls after temporary errors
}

// Below returns the part of a store whose object names begin with folder/.
func Below(s Store, folder string) Store {
	v, ok := s.(view)
	if !ok {
		v = view{Store: s}
	}
	v.prefix += folder + "/"
	return v
}

// once returns the same store without retries.
func once(s Store) Store {
	if v, ok := s.(view); ok {
		v.patient = false
		return v
	}
	return s
}

func (v view) String() string {
	if v.prefix == "" {
		return v.Store.String()
	}
	return strings.TrimSuffix(v.Store.String(), "/") + "/" + strings.TrimSuffix(v.prefix, "/")
}

// Limits of the attempts at one operation. The wait between two attempts starts at 100 ms and doubles each time.
const (
	attempts    = 5
	firstPause  = 100 * time.Millisecond
	longestCall = 20 * time.Second // time limit of one attempt
	slowest     = 128 << 10        // bytes per second; the time limit of an attempt allows for this rate
)

// passing reports whether an error is temporary, so that another attempt may succeed.
func passing(err error) bool {
	if err == nil || errors.Is(err, ErrExists) || errors.Is(err, fs.ErrNotExist) ||
		errors.As(err, new(*objectstore.Invalid)) || errors.As(err, new(*fs.PathError)) {
		return false
	}
	refused, isAnswer := errors.AsType[*objectstore.Error](err)
	// S3's status 409 means that another conditional put was in progress. A full disk is not a temporary error.
	return !isAnswer || refused.Status >= 500 && refused.Status != http.StatusNotImplemented &&
		refused.Status != http.StatusInsufficientStorage ||
		refused.Status == http.StatusTooManyRequests || refused.Status == http.StatusRequestTimeout ||
		refused.Code == "ConditionalRequestConflict"
}

// FaultError is a temporary error of a store that outlasted all attempts.
type FaultError struct{ Cause error }

func (e *FaultError) Error() string { return e.Cause.Error() }
func (e *FaultError) Unwrap() error { return e.Cause }

// attempt calls f, which transfers size bytes, at most attempts times: until it succeeds, fails for good or ctx ends.
func (v view) attempt(ctx context.Context, size int, f func(ctx context.Context) error) error {
	if !v.patient {
		return f(ctx)
	}
	pause := firstPause
	for n := 1; ; n++ {
		one, cancel := context.WithTimeout(ctx, longestCall+time.Duration(size/slowest)*time.Second)
		err := f(one)
		cancel()
		if !passing(err) || ctx.Err() != nil {
			return err
		}
		if n == attempts {
			return &FaultError{err}
		}
		if ratelimit.Wait(ctx, pause) != nil {
			return err
		}
		pause *= 2
	}
}

// PutAbsent recognizes the object of an attempt without a response by its content, so contents must differ by process.
func (v view) PutAbsent(ctx context.Context, name string, body []byte) error {
	lost := false
	return v.attempt(ctx, 2*len(body), func(ctx context.Context) error {
		err := v.Store.PutAbsent(ctx, v.prefix+name, body)
		if errors.Is(err, ErrExists) && lost {
			there, getErr := v.Store.Get(ctx, v.prefix+name)
			if getErr != nil {
				return getErr
			}
			if bytes.Equal(there, body) {
				return nil
			}
		}
		lost = lost || passing(err)
		return err
	})
}

func (v view) Put(ctx context.Context, name string, body []byte) error {
	return v.attempt(ctx, len(body), func(ctx context.Context) error { return v.Store.Put(ctx, v.prefix+name, body) })
}

func (v view) PutFile(ctx context.Context, name, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	return v.attempt(ctx, int(info.Size()),
		func(ctx context.Context) error { return v.Store.PutFile(ctx, v.prefix+name, file) })
}

func (v view) Get(ctx context.Context, name string) (body []byte, err error) {
	err = v.attempt(ctx, 0, func(ctx context.Context) error {
		body, err = v.Store.Get(ctx, v.prefix+name)
		return err
	})
	return body, err
}

func (v view) GetRange(ctx context.Context, name string, from, n int64) (body []byte, err error) {
	err = v.attempt(ctx, int(n), func(ctx context.Context) error {
		body, err = v.Store.GetRange(ctx, v.prefix+name, from, n)
		return err
	})
	return body, err
}

func (v view) List(ctx context.Context, prefix string) (names []string, err error) {
	err = v.attempt(ctx, 0, func(ctx context.Context) error {
		names, err = v.Store.List(ctx, v.prefix+prefix)
		return err
	})
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], v.prefix)
	}
	return names, err
}

func (v view) Delete(ctx context.Context, name string) error {
	return v.attempt(ctx, 0, func(ctx context.Context) error { return v.Store.Delete(ctx, v.prefix+name) })
}

// Nonce returns random text that distinguishes an object of this process from all others.
func Nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
