package objectstore

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestListingsThatDoNotEndAreEnded(t *testing.T) {
	keys := func(page int) []Object { return []Object{{Key: fmt.Sprintf("%08d", page)}} }
	long := []Object{{Key: strings.Repeat("k", 1<<20)}}
	for name, tt := range map[string]struct {
		page func(n int) Page // from 1
		want string
		most int
	}{
		"three pages":            {func(n int) Page { return Page{keys(n), n < 3, fmt.Sprint(n)} }, "", 3},
		"an empty page":          {func(n int) Page { return Page{nil, n < 3, fmt.Sprint(n)} }, "", 3},
		"from nowhere":           {func(n int) Page { return Page{keys(n), true, ""} }, "not from where", 1},
		"from nowhere, later":    {func(n int) Page { return Page{keys(n), true, []string{"a", "", ""}[n-1]} }, "not from where", 2},
		"from the same token":    {func(n int) Page { return Page{keys(n), true, "a"} }, "not from where", 2},
		"the same page":          {func(n int) Page { return Page{keys(1), true, fmt.Sprint(n)} }, "page 2 of the listing repeats", 2},
		"always another page":    {func(n int) Page { return Page{keys(n), true, fmt.Sprint(n)} }, "10000 pages with 10000 objects", maxPages},
		"always empty":           {func(n int) Page { return Page{nil, true, fmt.Sprint(n)} }, "1000 pages with 0 objects", maxEmpty},
		"keys that fill memory":  {func(n int) Page { return Page{append(keys(n), long...), true, fmt.Sprint(n)} }, "256 pages", 256},
		"an error of the caller": {func(n int) Page { return Page{[]Object{{Key: "stop"}}, true, "a"} }, "stopped", 1},
	} {
		asked := 0
		err := EachPage(func(string) (Page, error) { asked++; return tt.page(asked), nil }, func(o []Object) error {
			if len(o) > 0 && o[0].Key == "stop" {
				return errors.New("stopped")
			}
			return nil
		})
		if asked != tt.most || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: after %d pages: %v", name, asked, err)
		}
	}
}

// A store that is hostile, or not one, may answer anything.
func TestRefusalsAndListingsOfAHostileStoreTakeNoMemory(t *testing.T) {
	// The handlers of earlier answers may still be writing when the next one is asked for.
	var sent, other, status atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other.Add(1) }))
	defer elsewhere.Close()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status.Load() == http.StatusTemporaryRedirect {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(int(status.Load()))
		for n := 0; n < 256 && r.Context().Err() == nil; n++ {
			wrote, err := w.Write([]byte("<Message>" + strings.Repeat("x", 1<<20)))
			if sent.Add(int64(wrote)); err != nil {
				return
			}
		}
	}))
	defer web.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	s3, err := NewS3(t.Context(), S3{Endpoint: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	oss, err := NewOSS(OSS{Endpoint: web.URL, Region: "cn-hangzhou"}, http.DefaultTransport)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Service{s3, oss} {
		for _, code := range []int64{200, 307, 403, 500} {
			status.Store(code)
			sent.Store(0)
			_, err := s.List(t.Context(), "bucket", "", "", 0)
			if err == nil || sent.Load() > 40<<20 || len(err.Error()) > 1000 {
				t.Errorf("%s, HTTP %d: %d bytes were taken, %v", s.Scheme(), code, sent.Load(), err)
			}
		}
	}
	if other.Load() > 0 {
		t.Errorf("%d signed requests followed a redirect", other.Load())
	}
}
