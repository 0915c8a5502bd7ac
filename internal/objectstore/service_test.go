package objectstore

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterIsHeededWithinBounds(t *testing.T) {
	for value, want := range map[string]time.Duration{"2": 2 * time.Second, "999999999": maxRetryAfter, "-1": 0, "": 0, "soon": 0} {
		if got := RetryAfter(http.Header{"Retry-After": {value}}); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}
