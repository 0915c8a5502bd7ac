package input

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tsimport/internal/objectstore"
)

func (s *ossSite) names(keys ...string) []string {
	var all []string
	for _, key := range keys {
		all = append(all, "oss://"+s.bucket+"/"+key)
	}
	return all
}

func TestAnOSSAddressMeansAnObjectAFolderAGlobOrAPrefix(t *testing.T) {
	s := newOSS(t, "data/", "data/1.csv", "data/2 +ü%.csv", "data/_SUCCESS", "data/sub/", "data/sub/3.json", "data-old/4.csv", "one.csv", "one.csv.bak",
		"dt=1/5.csv", "dt=2/6.csv", "dt=2/.hidden", "g[1].csv")
	for arg, want := range map[string][]string{
		"one.csv":     {"one.csv"},
		"data":        {"data/1.csv", "data/2 +ü%.csv", "data/sub/3.json"},
		"data/":       {"data/1.csv", "data/2 +ü%.csv", "data/sub/3.json"},
		"data/sub":    {"data/sub/3.json"},
		"data-":       {"data-old/4.csv"},
		"dat":         {"data-old/4.csv", "data/1.csv", "data/2 +ü%.csv", "data/sub/3.json"},
		"**/*.csv":    {"data-old/4.csv", "data/1.csv", "data/2 +ü%.csv", "dt=1/5.csv", "dt=2/6.csv", "g[1].csv", "one.csv"},
		"dt=*":        {"dt=1/5.csv", "dt=2/6.csv"},
		"data/_S*":    {"data/_SUCCESS"},
		"g[1].csv":    {"g[1].csv"},
		"g[1]":        {"g[1].csv"},
		"g[":          {"g[1].csv"},
		"dt=2/.h":     {"dt=2/.hidden"},
		"data/{1,2}*": {"data/1.csv", "data/2 +ü%.csv"},
	} {
		set := expand(t, s.options(), "oss://"+s.bucket+"/"+arg)
		if got := names(set); !slices.Equal(got, s.names(want...)) || len(set.Warnings) != 0 {
			t.Errorf("%s: inputs %q, want %q; warnings %q", arg, got, want, set.Warnings)
		}
		for _, i := range set.Items {
			if want := "in " + strings.TrimPrefix(i.Name, "oss://"+s.bucket+"/"); readAll(t, &i) != want || i.Size != int64(len(want)) || i.Version != etagOf(want) {
				t.Errorf("%s: item %+v", arg, i)
			}
		}
	}
	o := s.options()
	o.Extensions = []string{".json"}
	if got := names(expand(t, o, "OSS://"+s.bucket)); !slices.Equal(got, s.names("data/sub/3.json")) {
		t.Errorf("inputs %q", got)
	}
	set := expand(t, s.options(), "oss://"+s.bucket+"/data/1.csv", "oss://"+s.bucket+"/data")
	if len(set.Items) != 3 || len(set.Warnings) != 1 {
		t.Errorf("inputs %q, warnings %q", names(set), set.Warnings)
	}
}

func TestPartitionFoldersOfKeysBecomeColumns(t *testing.T) {
	s := newOSS(t, "t/dt=2024-01-01/h=1/x.csv")
	o := s.options()
	o.PathColumns = true
	want := []Column{{Name: "dt", Value: "2024-01-01"}, {Name: "h", Value: "1"}}
	for _, key := range []string{"", "t", "t/dt=", "t/dt=2024-01-01/", "t/dt=2024-01-01/h=1/x.csv", "t/*/*/*.csv"} {
		if c := expand(t, o, "oss://"+s.bucket+"/"+key).Items[0].Columns; !slices.Equal(c, want) {
			t.Errorf("%q: columns %+v", key, c)
		}
	}
}

func TestObjectsAreReachedInBothStylesWithBothSignatures(t *testing.T) {
	for name, change := range map[string]func(s *ossSite, o *Options){
		"path style": func(*ossSite, *Options) {},
		"virtual host": func(s *ossSite, o *Options) {
			o.OSS.Endpoint, o.HTTPClient = "http://oss.example", s.virtual()
		},
		"path style by option": func(s *ossSite, o *Options) {
			o.OSS.Endpoint, o.OSS.PathStyle, o.HTTPClient = "http://other.example", true, s.virtual()
		},
		"localhost":      func(s *ossSite, o *Options) { o.OSS.Endpoint, o.HTTPClient = "http://localhost", s.virtual() },
		"security token": func(s *ossSite, _ *Options) { s.token = "the-token" },
		"V1":             func(s *ossSite, o *Options) { s.region, o.OSS.Region = "", "" },
		"anonymous":      func(s *ossSite, o *Options) { s.id, o.OSS.Credentials = "", nil },
		"environment": func(s *ossSite, o *Options) {
			t.Setenv("OSS_ENDPOINT", o.OSS.Endpoint)
			t.Setenv("OSS_REGION", s.region)
			o.OSS.Endpoint, o.OSS.Region = "", ""
		},
		"region of the endpoint": func(s *ossSite, o *Options) {
			s.region = "cn-hangzhou"
			o.OSS = objectstore.OSS{Endpoint: "http://oss-cn-hangzhou-internal.aliyuncs.com", PathStyle: true, Credentials: o.OSS.Credentials}
			o.HTTPClient = s.virtual()
		},
		"wrong clock": func(s *ossSite, _ *Options) { s.skew = time.Hour },
	} {
		s := newOSS(t, "d/a b.csv", "d/b.csv", "d/c.csv")
		o := s.options()
		change(s, &o)
		set, err := Expand(t.Context(), []string{"oss://" + s.bucket + "/d"}, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(set.Items) != 3 || readAll(t, &set.Items[0]) != "in d/a b.csv" {
			t.Errorf("%s: %q", name, names(set))
		}
	}
}

func TestObjectsAreReadByRangesThatMatchTheETag(t *testing.T) {
	s := newOSS(t, "a.csv", "empty")
	s.objects["empty"] = ""
	set := expand(t, s.options(), "oss://"+s.bucket+"/a.csv", "oss://"+s.bucket+"/empty")
	checkReaderAt(t, &set.Items[0], "in a.csv")
	checkReaderAt(t, &set.Items[1], "")
	if !slices.Contains(s.requests, "get bytes=3-4") {
		t.Errorf("requests %q", s.requests)
	}
	s.mu.Lock()
	s.objects["a.csv"] = "IN A.CSV"
	s.mu.Unlock()
	r, err := set.Items[0].OpenAt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = r.ReadAt(make([]byte, 3), 0)
	wantError(t, err, ErrChanged, "oss://data-bucket/a.csv")
	_, err = set.Items[0].Open(t.Context())
	wantError(t, err, ErrChanged, "oss://data-bucket/a.csv")
	s.mu.Lock()
	delete(s.objects, "a.csv")
	s.mu.Unlock()
	_, err = set.Items[0].Open(t.Context())
	wantError(t, err, fs.ErrNotExist, "oss://data-bucket/a.csv", "NoSuchKey")
}

func TestAFaultOfAnyOSSRequestIsMended(t *testing.T) {
	for name, fault := range map[string]func(s *ossSite, w http.ResponseWriter, r *http.Request){
		"503": func(s *ossSite, w http.ResponseWriter, r *http.Request) {
			s.refuse(w, r, 503, "ServiceUnavailable", "Slow down.")
		},
		"cut": func(s *ossSite, w http.ResponseWriter, r *http.Request) {
			bucket, key, operation := s.resource(r)
			s.mu.Lock()
			defer s.mu.Unlock()
			if bucket == s.bucket && operation != "list" {
				s.object(cutter{w}, r, key)
			}
			panic(http.ErrAbortHandler)
		},
	} {
		for failing := range 6 {
			s := newOSS(t, "d/1.csv", "d/2.csv", "d/3.csv")
			s.fault = func(number int, w http.ResponseWriter, r *http.Request) bool {
				if number < failing || (number-failing)%2 == 1 {
					return false
				}
				fault(s, w, r)
				return true
			}
			set := expand(t, s.options(), "oss://"+s.bucket+"/d")
			if got := names(set); !slices.Equal(got, s.names("d/1.csv", "d/2.csv", "d/3.csv")) {
				t.Fatalf("%s of request %d: inputs %q", name, failing, got)
			}
			if got := readAll(t, &set.Items[1]); got != "in d/2.csv" {
				t.Errorf("%s of request %d: read %q", name, failing, got)
			}
		}
	}
}

func TestErrorsOfOSSAreOneLineAndKeepSecrets(t *testing.T) {
	s := newOSS(t, "a.csv")
	for _, c := range []struct {
		arg    string
		change func(o *Options)
		is     error
		parts  []string
	}{
		{"oss://data-bucket/no.csv", nil, fs.ErrNotExist, []string{"oss://data-bucket/no.csv"}},
		{"oss://other-bucket/a.csv", nil, fs.ErrNotExist, []string{"404 NoSuchBucket"}},
		{"oss://data-bucket/a.csv", func(o *Options) { o.OSS.Region = "cn-other" }, fs.ErrPermission, []string{"SignatureDoesNotMatch", "calculated does"}},
		{"oss://Data_Bucket/a.csv", nil, nil, []string{"not a bucket name"}},
		{"oss://", nil, nil, []string{"not a bucket name"}},
		{"oss://data-bucket/a", func(o *Options) { o.OSS.Endpoint, o.OSS.Region = "", "" }, nil, []string{"OSS_ENDPOINT"}},
		{"oss://data-bucket/a", func(o *Options) { o.OSS.Endpoint = "http://h/folder" }, nil, []string{"not a host"}},
		{"oss://data-bucket/a", func(o *Options) { o.OSS.Region = "CN TEST"; o.OSS.Endpoint = "" }, nil, []string{"Endpoint"}},
		{"oss://data-bucket/a", func(o *Options) {
			o.OSS.Credentials = func(context.Context) (string, string, string, error) { return "", "", "", errors.New("no role") }
		}, nil, []string{"no role"}},
		{"oss://data-bucket/a", func(o *Options) {
			o.OSS.Credentials = func(context.Context) (string, string, string, error) { return "", "", "", nil }
		}, nil, []string{"no credentials"}},
	} {
		o := s.options()
		if c.change != nil {
			c.change(&o)
		}
		_, err := Expand(t.Context(), []string{c.arg}, o)
		wantError(t, err, c.is, c.parts...)
		if err != nil && strings.Contains(err.Error(), s.secret) {
			t.Errorf("error shows the secret: %v", err)
		}
	}
}

func TestAnObjectIsReadWithoutTheRightToList(t *testing.T) {
	s := newOSS(t, "a.csv")
	s.denyList = true
	i := expand(t, s.options(), "oss://"+s.bucket+"/a.csv").Items[0]
	if got := readAll(t, &i); got != "in a.csv" || i.Size != 8 {
		t.Errorf("read %q of %+v", got, i)
	}
	_, err := Expand(t.Context(), []string{"oss://" + s.bucket + "/folder"}, s.options())
	wantError(t, err, fs.ErrPermission, "AccessDenied")
}

func TestALinkHasTheSizeOfItsObject(t *testing.T) {
	s := newOSS(t, "a.csv", "link")
	s.objects["link"], s.links["link"] = "", "a.csv"
	i := expand(t, s.options(), "oss://"+s.bucket+"/link").Items[0]
	if got := readAll(t, &i); got != "in a.csv" || i.Size != 8 {
		t.Errorf("read %q of %+v", got, i)
	}
}

func TestATruncatedListWithoutAMarkerIsAnError(t *testing.T) {
	s := newOSS(t)
	s.fault = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		io.WriteString(w, "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>")
		return true
	}
	_, err := Expand(t.Context(), []string{"oss://" + s.bucket}, s.options())
	wantError(t, err, nil, "not from where")
}
