package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// Transport returns a transport for single requests on the senders' links. Two pools could block each other.
func (c *Connection) Transport() http.RoundTripper {
	if c.pool == nil {
		return c.base
	}
	return (*sharedLinks)(c)
}

// sharedLinks is a Connection used as a transport of POST requests.
type sharedLinks Connection

// RoundTrip sends a request on a link of the pool. The response's body is in memory.
func (c *sharedLinks) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := c.bytesOf(r)
	if err != nil {
		return nil, &notSent{err}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(c.run, func() { cancel(context.Cause(c.run)) })()
	l, res, err := (*Connection)(c).exchange(ctx, request)
	if err != nil {
		return nil, err
	}
	body, err := readAll(nil, res.Body, res.ContentLength, mostOf(r.URL.Path, res.StatusCode))
	c.pool.put(l, l.endsWith(c.run) && err == nil && !res.Close) // so that the end of this request does not end the next
	if err != nil {
		return nil, fmt.Errorf("read response: %w", err)
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

func (c *sharedLinks) bytesOf(r *http.Request) (request []byte, err error) {
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	header := r.Header.Clone()
	for _, name := range []string{"Host", "Content-Length", "Transfer-Encoding", "Trailer"} {
		header.Del(name)
	}
	if request, err = appendHead(nil, r.URL.Path, c.route.host, header, len(body)); err != nil {
		return nil, err
	}
	return append(request, body...), nil
}
