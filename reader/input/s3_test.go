package input

import (
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tsimport/internal/objectstore"
	"tsimport/internal/objectstore/storetest"
)

const lake = "s3://lake.of-data/"

func newS3(t *testing.T, keys ...string) *storetest.Server {
	t.Helper()
	s := storetest.New(t, "lake.of-data")
	s.Change(func(s *storetest.Server) { s.PageSize = 2 })
	for _, key := range keys {
		content := "in " + key
		if strings.HasSuffix(key, "/") {
			content = ""
		}
		s.Set(key, content, time.Unix(1e9, 0))
	}
	return s
}

func lakeNames(keys ...string) []string {
	for i := range keys {
		keys[i] = lake + keys[i]
	}
	return keys
}

func TestAnS3AddressMeansAnObjectAFolderAGlobOrAPrefix(t *testing.T) {
	newS3(t, "data/", "data/1.csv", "data/2 +ü%\x01.csv", "data/_SUCCESS", "data/sub/3.json", "data-old/4.csv", "one.csv", "one.csv.bak", "dt=1/5.csv", "dt=2/6.csv")
	for arg, want := range map[string][]string{
		"one.csv":   {"one.csv"},
		"data":      {"data/1.csv", "data/2 +ü%\x01.csv", "data/sub/3.json"},
		"data/sub/": {"data/sub/3.json"},
		"data-":     {"data-old/4.csv"},
		"**/*.csv":  {"data-old/4.csv", "data/1.csv", "data/2 +ü%\x01.csv", "dt=1/5.csv", "dt=2/6.csv", "one.csv"},
		"dt=*":      {"dt=1/5.csv", "dt=2/6.csv"},
	} {
		set := expand(t, Options{Retry: soon}, lake+arg)
		if got := names(set); !slices.Equal(got, lakeNames(want...)) || len(set.Warnings) != 0 {
			t.Errorf("%s: inputs %q, want %q; warnings %q", arg, got, want, set.Warnings)
		}
		for _, i := range set.Items {
			if want := "in " + strings.TrimPrefix(i.Name, lake); readAll(t, &i) != want || i.Size != int64(len(want)) ||
				i.Version != storetest.ETag(want) || !i.Modified.Equal(time.Unix(1e9, 0)) {
				t.Errorf("%s: item %+v", arg, i)
			}
		}
	}
	set := expand(t, Options{Retry: soon, PathColumns: true}, "S3://lake.of-data/dt=*")
	if c := set.Items[1].Columns; !slices.Equal(c, []Column{{Name: "dt", Value: "2"}}) {
		t.Errorf("columns %+v", c)
	}
}

func TestObjectsOfS3AreReadByRangesThatMatchTheETag(t *testing.T) {
	s := newS3(t, "a.csv")
	s.Set("empty", "", time.Unix(1e9, 0))
	set := expand(t, Options{Retry: soon}, lake+"a.csv", lake+"empty")
	checkReaderAt(t, &set.Items[0], "in a.csv")
	checkReaderAt(t, &set.Items[1], "")
	if !slices.Contains(s.Requests(), "GET a.csv bytes=3-4") {
		t.Errorf("requests %q", s.Requests())
	}
	s.Set("a.csv", "IN A.CSV", time.Unix(1e9, 0))
	_, err := set.Items[0].Open(t.Context())
	wantError(t, err, ErrChanged, lake+"a.csv")
	s.Remove("a.csv")
	_, err = set.Items[0].Open(t.Context())
	wantError(t, err, fs.ErrNotExist, lake+"a.csv", "NoSuchKey")
}

func TestKeysWithDotsForFoldersAreNamedUnlessTheyAreAskedFor(t *testing.T) {
	newS3(t, "d/../x.csv", "d/./y.csv", "d/1.csv", "only/../z.csv")
	for _, arg := range []string{"d", "d/", "d/**", "d/*/*.csv"} {
		set, err := Expand(t.Context(), []string{lake + arg, lake + "d/1.csv"}, Options{Retry: soon})
		if arg == "d/*/*.csv" { // which matches nothing else
			wantError(t, err, nil, lake+"d/../x.csv, "+lake+"d/./y.csv")
			continue
		}
		if err != nil || !slices.Equal(names(set), lakeNames("d/1.csv")) || len(set.Unread) != 1 ||
			!strings.Contains(set.Unread[0], "(2), which other programs take for other objects: "+lake+"d/../x.csv, "+lake+"d/./y.csv") {
			t.Errorf("%s: %+v, %v", arg, set, err)
		}
	}
	_, err := Expand(t.Context(), []string{lake + "only"}, Options{Retry: soon})
	wantError(t, err, nil, lake+"only/../z.csv")
	set := expand(t, Options{Retry: soon}, lake+"d/../x.csv", lake+"only/../")
	if !slices.Equal(names(set), lakeNames("d/../x.csv", "only/../z.csv")) || len(set.Unread) != 0 {
		t.Errorf("inputs %q, unread %q", names(set), set.Unread)
	}
}

// truncated cuts an answer after some bytes of its body.
type truncated struct{ http.ResponseWriter }

func (t truncated) Write(b []byte) (int, error) {
	t.ResponseWriter.Write(b[:min(3, len(b))])
	t.ResponseWriter.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func TestAFaultOfAnyRequestToS3IsMended(t *testing.T) {
	for name, fault := range map[string]func(s *storetest.Server, w http.ResponseWriter, r *http.Request){
		"503": func(_ *storetest.Server, w http.ResponseWriter, r *http.Request) {
			storetest.Refuse(w, r, 503, "SlowDown", "Please reduce your request rate.")
		},
		"500": func(_ *storetest.Server, w http.ResponseWriter, r *http.Request) {
			storetest.Refuse(w, r, 500, "InternalError", "")
		},
		"cut": func(_ *storetest.Server, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", storetest.ETag("in d/2.csv"))
			if r.Header.Get("Range") == "bytes=0-" {
				w.Header().Set("Content-Range", "bytes 0-9/10")
				w.WriteHeader(http.StatusPartialContent)
			}
			truncated{w}.Write([]byte("in d/2.csv"))
		},
	} {
		for failing := range 4 {
			s := newS3(t, "d/1.csv", "d/2.csv", "d/3.csv")
			s.Change(func(s *storetest.Server) {
				s.Fault = func(number int, w http.ResponseWriter, r *http.Request) bool {
					if number < failing || (number-failing)%2 == 1 {
						return false
					}
					fault(s, w, r)
					return true
				}
			})
			set := expand(t, Options{Retry: soon}, lake+"d")
			if got := names(set); !slices.Equal(got, lakeNames("d/1.csv", "d/2.csv", "d/3.csv")) {
				t.Fatalf("%s of request %d: inputs %q", name, failing, got)
			}
			if got := readAll(t, &set.Items[1]); got != "in d/2.csv" {
				t.Errorf("%s of request %d: read %q", name, failing, got)
			}
		}
	}
}

func TestErrorsOfS3AreOneLineAndKeepSecrets(t *testing.T) {
	s := newS3(t, "a.csv")
	for _, c := range []struct {
		arg, variable, value string
		options              objectstore.S3
		parts                []string
	}{
		{arg: lake + "no.csv", parts: []string{lake + "no.csv", "no object has this key"}},
		{arg: "s3://other-bucket/a.csv", parts: []string{"404 NoSuchBucket"}},
		{arg: "s3:///a.csv", parts: []string{"is not a bucket name"}},
		{arg: "s3://id:geheim@lake/a.csv", parts: []string{"is not a bucket name"}},
		{arg: lake + "a.csv", variable: "AWS_ACCESS_KEY_ID", value: "another", parts: []string{"403 InvalidAccessKeyId"}},
		{arg: lake + "a.csv", variable: "AWS_ACCESS_KEY_ID", parts: []string{"no credentials for S3", "AWS_ACCESS_KEY_ID"}},
		{arg: lake + "a.csv", variable: "AWS_ENDPOINT_URL", parts: []string{"region of the bucket is not known", "AWS_REGION"}},
		{arg: lake + "a.csv", options: objectstore.S3{Endpoint: "http://id:geheim@h/"}, parts: []string{"S3 endpoint is not a host"}},
		{arg: lake + "a.csv", options: objectstore.S3{Endpoint: s.URL() + "/folder"}, parts: []string{"S3 endpoint is not a host"}},
	} {
		if c.variable != "" {
			old := map[string]string{"AWS_ACCESS_KEY_ID": "the-id", "AWS_ENDPOINT_URL": s.URL()}[c.variable]
			t.Setenv(c.variable, c.value)
			defer t.Setenv(c.variable, old)
		}
		_, err := Expand(t.Context(), []string{c.arg}, Options{Retry: soon, S3: c.options})
		wantError(t, err, nil, c.parts...)
		if err != nil && (strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "geheim")) {
			t.Errorf("%s: %q", c.arg, err)
		}
		if c.variable != "" {
			t.Setenv(c.variable, map[string]string{"AWS_ACCESS_KEY_ID": "the-id", "AWS_ENDPOINT_URL": s.URL()}[c.variable])
		}
	}
	// A flag outweighs the environment.
	t.Setenv("AWS_ENDPOINT_URL", "http://nobody.invalid")
	if got := names(expand(t, Options{Retry: soon, S3: objectstore.S3{Endpoint: s.URL()}}, lake+"a.csv")); len(got) != 1 {
		t.Errorf("inputs %q", got)
	}
}
