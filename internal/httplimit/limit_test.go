package httplimit

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

type endless struct{ status int }

func (e endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: e.status, Body: io.NopCloser(io.LimitReader(zeros{}, 64<<20))}, nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestResponseSizeLimitDependsOnKind(t *testing.T) {
	for _, tt := range []struct {
		method, url string
		status      int
		most        int64 // 0 means the whole body
	}{
		{"GET", "http://s/bucket/key", 200, 0}, {"GET", "http://s/bucket/key", 206, 0},
		{"GET", "http://s/bucket/key", 403, maxRefusal}, {"GET", "http://s/bucket/key", 307, maxRefusal},
		{"GET", "http://s/b?list-type=2&prefix", 200, maxListing}, {"GET", "http://s/b?list-type=2", 500, maxRefusal},
		{"PUT", "http://s/bucket/key", 200, maxOther}, {"DELETE", "http://s/bucket/key", 204, maxOther},
	} {
		r := conformance.Try(http.NewRequestWithContext(t.Context(), tt.method, tt.url, http.NoBody)).Must(t)
		n, err := io.Copy(io.Discard, conformance.Try(Transport(endless{tt.status}).RoundTrip(r)).Must(t).Body)
		conformance.True(t, (tt.most != 0 || n == 64<<20 && err == nil) &&
			(tt.most <= 0 || n == tt.most+1 && err != nil && strings.Contains(err.Error(), "KiB")),
			"%s %s, %d: %d bytes, %v", tt.method, tt.url, tt.status, n, err)
	}
}
