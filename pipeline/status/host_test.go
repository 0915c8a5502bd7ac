package status

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestNamesOfElsewhereAreRefused(t *testing.T) {
	h := onlyKnownHosts("Monitor.example:9000", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"localhost": 200, "127.0.0.1:9000": 200, "[::1]:9000": 200, "192.0.2.7": 200, "monitor.example:9000": 200, "x.localhost": 200,
		"evil.example": 403, "localhost.evil.example:9000": 403, "127.0.0.1.evil.example": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "/status", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", host, w.Code, want)
		}
	}
}
