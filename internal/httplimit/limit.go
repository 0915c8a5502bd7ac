package httplimit

import (
	"fmt"
	"io"
	"net/http"
)

// The largest response bodies, by kind. A body that holds an object is limited by its reader.
const (
	maxRefusal = 64 << 10 // an error code and message
	maxListing = 16 << 20 // 1,000 object keys of 1,023 bytes, escaped
	maxOther   = 1 << 20
)

// Transport limits the responses of base by their kind, because the SDKs read whole error bodies and listings.
func Transport(base http.RoundTripper) http.RoundTripper { return limiting{base} }

type limiting struct{ base http.RoundTripper }

func (l limiting) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	b := &limitedBody{ReadCloser: res.Body}
	switch {
	case res.StatusCode >= http.StatusMultipleChoices:
		b.what, b.most = "a refusal", maxRefusal
	case r.Method != http.MethodGet:
		b.what, b.most = "an answer", maxOther
	case r.URL.Query().Has("list-type"):
		b.what, b.most = "a page of a listing", maxListing
	default:
		return res, nil
	}
	b.left = b.most + 1
	res.Body = b
	return res, nil
}

type limitedBody struct {
	io.ReadCloser
	what       string
	most, left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left == 0 {
		return n, fmt.Errorf("the service sent %s of more than %d KiB", b.what, b.most>>10)
	}
	return n, err
}
