package input

import (
	"context"
	"errors"
	"fmt"

	"example.com/tsimport/internal/objectstore"
)

// service returns the object store of a scheme. It creates the store on first use.
func (e *expander) service(ctx context.Context, scheme string) (objectstore.Service, error) {
	if s := e.services[scheme]; s != nil {
		return s, nil
	}
	s, err := objectstore.Service(nil), error(nil)
	if scheme == "s3" {
		s, err = objectstore.NewS3(ctx, e.options.S3)
	} else {
		s, err = objectstore.NewOSS(e.options.OSS, e.options.HTTPClient.Transport)
	}
	if err != nil {
		return nil, err
	}
	e.services[scheme] = s
	return s, nil
}

// plainObject converts an error of an object store to one that Retry knows.
func plainObject(err error) error {
	if errors.Is(err, objectstore.ErrOther) {
		return fmt.Errorf("%w: its ETag has changed; run again when it no longer changes", ErrChanged)
	}
	if answer, ok := errors.AsType[*objectstore.Error](err); ok {
		return &statusError{code: answer.Status, text: answer.Text(), retryAfter: answer.RetryAfter}
	}
	if invalid, ok := errors.AsType[*objectstore.Invalid](err); ok {
		return unusable{invalid.Err}
	}
	return bare(err)
}

// storedObject reads an object from an object store.
type storedObject struct {
	service     objectstore.Service
	bucket, key string
	match       string
}

func (s *storedObject) fetch(ctx context.Context, off, n int64, _ bool) (*reply, error) {
	answer, err := s.service.Get(ctx, s.bucket, s.key, off, n, s.match)
	if err != nil {
		return nil, plainObject(err)
	}
	rep, err := newReply(answer.Status, answer.Header, answer.Length, answer.Body, off)
	if err != nil {
		answer.Body.Close()
		return nil, err
	}
	rep.version.modified = "" // listings use another format, and there is always an ETag
	return rep, nil
}

// object adds an object. Its columns come from its key, which is base followed by below.
func (l *lister) object(o objectstore.Object, base, below string) error {
	name := l.name(o.Key)
	columns, err := l.columns(name, base, below)
	if err != nil {
		return err
	}
	v := version{size: o.Size, etag: o.ETag}
	src := &remote{name: name, version: v, ranges: true, retry: l.options.Retry,
		fetcher: &storedObject{service: l.service, bucket: l.bucket, key: o.Key, match: v.matchable()}}
	l.add(Item{Name: name, Size: v.size, Version: v.String(), Modified: o.Modified, Columns: columns, src: src}, name)
	return nil
}

func (l *lister) name(key string) string { return objectName(l.service.Scheme(), l.bucket, key) }

func objectName(scheme, bucket, key string) string { return scheme + "://" + bucket + "/" + key }

// head returns an object's version by a request for the object itself.
func (l *lister) head(ctx context.Context, key string) (o objectstore.Object, err error) {
	err = l.options.Retry.attempt(ctx, func(ctx context.Context) error {
		o, err = l.service.Head(ctx, l.bucket, key)
		return plainObject(err)
	})
	return o, err
}
