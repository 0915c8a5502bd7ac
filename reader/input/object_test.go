package input

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss/credentials"
	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss/signer"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/objectstore"
	"example.com/tsimport/internal/objectstore/storetest"
)

func TestAddressIsObjectFolderGlobOrPrefix(t *testing.T) {
	inEveryStore(t, func(t *testing.T, s *store) {
		for arg, want := range map[string][]string{
			"one.csv":   {"one.csv"},
			"data":      {"data/1.csv", "data/2 +ü%\x01.csv", "data/sub/3.json"},
			"data/":     {"data/1.csv", "data/2 +ü%\x01.csv", "data/sub/3.json"},
			"data/sub":  {"data/sub/3.json"},
			"data/sub/": {"data/sub/3.json"},
			"data-":     {"data-old/4.csv"},
			"dat":       {"data-old/4.csv", "data/1.csv", "data/2 +ü%\x01.csv", "data/sub/3.json"},
			"**/*.csv": {"data-old/4.csv", "data/1.csv", "data/2 +ü%\x01.csv", "dt=1/5.csv", "dt=2/6.csv", "g[1].csv",
				"one.csv"},
			"dt=*":        {"dt=1/5.csv", "dt=2/6.csv"},
			"data/_S*":    {"data/_SUCCESS"},
			"g[1].csv":    {"g[1].csv"},
			"g[1]":        {"g[1].csv"},
			"g[":          {"g[1].csv"},
			"dt=2/.h":     {"dt=2/.hidden"},
			"data/{1,2}*": {"data/1.csv", "data/2 +ü%\x01.csv"},
		} {
			set := expand(t, s.o, s.at+arg)
			conformance.Same(t, names(set), s.names(want...), "%s: inputs", arg)
			conformance.Equal(t, len(set.Warnings), 0, "%s: warnings %q", arg, set.Warnings)
			for _, i := range set.Items {
				want := "in " + strings.TrimPrefix(i.Name, s.at)
				conformance.True(t, readAll(t, &i) == want && i.Size == int64(len(want)) && i.Version == storetest.ETag(want) &&
					i.Modified.Equal(time.Unix(1e9, 0)), "%s: item %+v", arg, i)
			}
		}
		o := s.o
		o.Extensions = []string{".json"}
		scheme, bucket, _ := strings.Cut(strings.TrimSuffix(s.at, "/"), "://")
		wantNames(t, expand(t, o, strings.ToUpper(scheme)+"://"+bucket), s.names("data/sub/3.json")...)
		set := expand(t, s.o, s.at+"data/1.csv", s.at+"data")
		conformance.Equal(t, len(set.Items), 3, "items")
		conformance.Equal(t, len(set.Warnings), 1, "warnings")
	}, "data/", "data/1.csv", "data/2 +ü%\x01.csv", "data/_SUCCESS", "data/sub/", "data/sub/3.json", "data-old/4.csv",
		"one.csv", "one.csv.bak", "dt=1/5.csv", "dt=2/6.csv", "dt=2/.hidden", "g[1].csv")
}

func TestPartitionFoldersInKeysBecomeColumns(t *testing.T) {
	inEveryStore(t, func(t *testing.T, s *store) {
		s.o.PathColumns = true
		want := []Column{{Name: "dt", Value: "2024-01-01"}, {Name: "h", Value: "1"}}
		for _, key := range []string{"", "t", "t/dt=", "t/dt=2024-01-01/", "t/dt=2024-01-01/h=1/x.csv", "t/*/*/*.csv"} {
			conformance.Same(t, expand(t, s.o, s.at+key).Items[0].Columns, want, "%q: columns", key)
		}
	}, "t/dt=2024-01-01/h=1/x.csv")
}

func TestObjectsAreReadWithAllAddressStylesAndSignatures(t *testing.T) {
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
			o.OSS.Endpoint, o.OSS.Region = "http://oss-cn-hangzhou-internal.aliyuncs.com", ""
			o.OSS.PathStyle, o.HTTPClient = true, s.virtual()
		},
		"wrong clock": func(s *ossSite, _ *Options) { s.skew = time.Hour },
	} {
		s := newOSS(t, "d/a b.csv", "d/b.csv", "d/c.csv")
		o := s.o
		change(s, &o)
		set := expand(t, o, s.at+"d")
		conformance.True(t, len(set.Items) == 3 && readAll(t, &set.Items[0]) == "in d/a b.csv", "%s: %q", name, names(set))
	}
}

func TestRangesOfObjectsMatchETag(t *testing.T) {
	inEveryStore(t, func(t *testing.T, s *store) {
		s.Set("empty", "", time.Unix(1e9, 0))
		set := expand(t, s.o, s.at+"a.csv", s.at+"empty")
		checkReaderAt(t, &set.Items[0], "in a.csv")
		checkReaderAt(t, &set.Items[1], "")
		conformance.Equal(t, slices.Contains(s.Requests(), "GET a.csv bytes=3-4"), true, "requests %q", s.Requests())
		s.Set("a.csv", "IN A.CSV", time.Unix(1e9, 0))
		r := conformance.Try(set.Items[0].OpenAt(t.Context())).Must(t)
		defer r.Close()
		wantError(t, conformance.ErrorOf(r.ReadAt(make([]byte, 3), 0)), ErrChanged, s.at+"a.csv")
		wantError(t, conformance.ErrorOf(set.Items[0].Open(t.Context())), ErrChanged, s.at+"a.csv")
		s.Remove("a.csv")
		wantError(t, conformance.ErrorOf(set.Items[0].Open(t.Context())), fs.ErrNotExist, s.at+"a.csv", "NoSuchKey")
	}, "a.csv")
}

func TestKeysWithDotFoldersAreReportedUnlessNamed(t *testing.T) {
	inEveryStore(t, func(t *testing.T, s *store) {
		for _, arg := range []string{"d", "d/", "d/**", "d/*/*.csv"} {
			set, err := Expand(t.Context(), s.names(arg, "d/1.csv"), s.o)
			if arg == "d/*/*.csv" { // which then matches no other object
				wantError(t, err, nil, s.at+"d/../x.csv, "+s.at+"d/./y.csv")
				continue
			}
			conformance.True(t, err == nil && slices.Equal(names(set), s.names("d/1.csv")) && len(set.Unread) == 1 &&
				strings.Contains(set.Unread[0], "(2), which other programs take for other objects: "+s.at+"d/../x.csv, "+s.at+
					"d/./y.csv"),
				"%s: %+v, %v", arg, set, err)
		}
		wantError(t, conformance.ErrorOf(Expand(t.Context(), s.names("only"), s.o)), nil, s.at+"only/../z.csv")
		set := expand(t, s.o, s.names("d/../x.csv", "only/../")...)
		conformance.True(t, slices.Equal(names(set), s.names("d/../x.csv", "only/../z.csv")) && len(set.Unread) == 0,
			"inputs %q, unread %q", names(set), set.Unread)
	}, "d/../x.csv", "d/./y.csv", "d/1.csv", "only/../z.csv")
}

func TestFaultyStoreRequestsAreRepeated(t *testing.T) {
	refused := func(code int, text string) func(*store, http.ResponseWriter, *http.Request) {
		return func(_ *store, w http.ResponseWriter, r *http.Request) {
			storetest.Refuse(w, r, code, text, "Slow down.")
		}
	}
	inEveryStore(t, func(t *testing.T, s *store) {
		for name, fault := range map[string]func(s *store, w http.ResponseWriter, r *http.Request){
			"503": refused(503, "SlowDown"), "500": refused(500, "InternalError"),
			"cut": func(s *store, w http.ResponseWriter, r *http.Request) { s.Server.ServeHTTP(cutter{w, nil}, r) },
		} {
			for failing := range 6 {
				var number atomic.Int64
				var within atomic.Bool
				number.Store(int64(-failing))
				s.Change(func(server *storetest.Server) {
					server.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
						if within.Load() {
							return false
						}
						if n := number.Add(1); n <= 0 || n%2 == 0 {
							return false
						}
						within.Store(name == "cut") // this fault itself asks the server
						defer within.Store(false)
						fault(s, w, r)
						return true
					}
				})
				set := expand(t, s.o, s.at+"d")
				conformance.Same(t, names(set), s.names("d/1.csv", "d/2.csv", "d/3.csv"), "%s of request %d: inputs", name, failing)
				conformance.Equal(t, readAll(t, &set.Items[1]), "in d/2.csv", "%s of request %d", name, failing)
			}
		}
	}, "d/1.csv", "d/2.csv", "d/3.csv")
}

func TestStoreErrorsAreOneLineWithoutSecrets(t *testing.T) {
	o, s := newOSS(t, "a.csv"), newS3(t, "a.csv")
	o.secret = "geheim"
	by := func(id string, err error) func(*Options) {
		return func(o *Options) {
			o.OSS.Credentials = func(context.Context) (string, string, string, error) { return id, "", "", err }
		}
	}
	at := func(endpoint, region string) func(*Options) {
		return func(o *Options) { o.OSS.Endpoint, o.OSS.Region, o.S3.Endpoint = endpoint, region, endpoint }
	}
	for _, c := range []struct {
		arg    string
		change func(o *Options) // or set
		set    string           // an environment variable to set, as NAME=value
		is     error
		part   string
	}{
		{arg: o.at + "no.csv", is: fs.ErrNotExist, part: o.at + "no.csv"},
		{arg: "oss://other-bucket/a.csv", is: fs.ErrNotExist, part: "404 NoSuchBucket"},
		{o.at + "a.csv", at(o.server.URL, "cn-other"), "", fs.ErrPermission, `SignatureDoesNotMatch`},
		{o.at + "a.csv", at(o.server.URL, "cn-other"), "", fs.ErrPermission, `calculated does`},
		{arg: "oss://Data_Bucket/a.csv", part: "not a bucket name"},
		{arg: "oss://", part: "not a bucket name"},
		{o.at + "a", at("", ""), "", nil, "OSS_ENDPOINT"},
		{o.at + "a", at("http://h/folder", "cn-test"), "", nil, "not a host"},
		{o.at + "a", at("", "CN TEST"), "", nil, "Endpoint"},
		{o.at + "a", by("", errors.New("no role")), "", nil, "no role"},
		{o.at + "a", by("", nil), "", nil, "no credentials"},

		{arg: s.at + "no.csv", is: fs.ErrNotExist, part: s.at + "no.csv: no object has this key"},
		{arg: "s3://other-bucket/a.csv", is: fs.ErrNotExist, part: "404 NoSuchBucket"},
		{arg: "s3:///a.csv", part: "is not a bucket name"},
		{arg: "s3://id:geheim@lake/a.csv", part: "is not a bucket name"},
		{arg: s.at + "a.csv", set: "AWS_ACCESS_KEY_ID=another", part: "403 InvalidAccessKeyId"},
		{arg: s.at + "a.csv", set: "AWS_ACCESS_KEY_ID=", part: "no credentials for S3; set AWS_ACCESS_KEY_ID"},
		{arg: s.at + "a.csv", set: "AWS_ENDPOINT_URL=", part: "bucket's region is unknown"},
		{arg: s.at + "a.csv", set: "AWS_ENDPOINT_URL=", part: "AWS_REGION"},
		{s.at + "a.csv", at("http://id:geheim@h/", ""), "", nil, "S3 endpoint is not a host"},
		{s.at + "a.csv", at(s.URL()+"/folder", ""), "", nil, "S3 endpoint is not a host"},
	} {
		t.Run(c.arg, func(t *testing.T) {
			options := o.o
			if c.change != nil {
				c.change(&options)
			}
			if name, value, ok := strings.Cut(c.set, "="); ok {
				t.Setenv(name, value)
			}
			wantError(t, conformance.ErrorOf(Expand(t.Context(), []string{c.arg}, options)), c.is, c.part)
		})
	}
	// A flag must override the environment, whose endpoint does not exist.
	t.Setenv("AWS_ENDPOINT_URL", "http://nobody.invalid")
	at(s.URL(), "")(&s.o)
	wantNames(t, expand(t, s.o, s.at+"a.csv"), s.at+"a.csv")
}

func TestObjectIsReadWithoutListPermission(t *testing.T) {
	inEveryStore(t, func(t *testing.T, s *store) {
		s.Change(func(s *storetest.Server) {
			s.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
				list := r.URL.Query().Has("list-type")
				if list {
					storetest.Refuse(w, r, http.StatusForbidden, "AccessDenied", "You have no right to list.")
				}
				return list
			}
		})
		i := expand(t, s.o, s.at+"a.csv").Items[0]
		got := readAll(t, &i)
		conformance.True(t, got == "in a.csv" && i.Size == 8, "read %q of %+v", got, i)
		wantError(t, conformance.ErrorOf(Expand(t.Context(), s.names("folder"), s.o)), fs.ErrPermission, "AccessDenied")
	}, "a.csv")
}

// listedAs makes the store answer every list request with text.
func (s *store) listedAs(text string) {
	s.Change(func(s *storetest.Server) {
		s.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
			list := r.URL.Query().Has("list-type")
			if list {
				io.WriteString(w, "<ListBucketResult>"+text+"</ListBucketResult>")
			}
			return list
		}
	})
}

func TestTruncatedListWithoutMarkerIsAnError(t *testing.T) {
	inEveryStore(t, func(t *testing.T, s *store) {
		s.listedAs("<IsTruncated>true</IsTruncated>")
		wantError(t, conformance.ErrorOf(Expand(t.Context(), []string{s.at}, s.o)), nil, "no new continuation token")
	})
}

// store is a bucket on OSS or S3. The content of each object is "in " and its key.
type store struct {
	*storetest.Server
	at string // address of the bucket, ending in a slash
	o  Options
}

func (s *store) names(keys ...string) []string {
	var all []string
	for _, key := range keys {
		all = append(all, s.at+key)
	}
	return all
}

// fill creates objects and sets a page size of two for listings. A key that ends in / is an empty object.
func (s *store) fill(keys ...string) {
	s.Change(func(s *storetest.Server) { s.PageSize = 2 })
	for _, key := range keys {
		content := "in " + key
		if strings.HasSuffix(key, "/") {
			content = ""
		}
		s.Set(key, content, time.Unix(1e9, 0))
	}
}

// inEveryStore runs a test with OSS and with S3.
func inEveryStore(t *testing.T, test func(t *testing.T, s *store), keys ...string) {
	t.Run("OSS", func(t *testing.T) { test(t, &newOSS(t, keys...).store) })
	t.Run("S3", func(t *testing.T) { test(t, newS3(t, keys...)) })
}

func newS3(t *testing.T, keys ...string) *store {
	t.Helper()
	s := &store{storetest.New(t, "lake.of-data"), "s3://lake.of-data/", Options{Retry: soon}}
	s.fill(keys...)
	return s
}

// ossSite acts as OSS in front of a store: it takes the bucket from the host and checks the time and signature.
type ossSite struct {
	store
	region, id, secret, token string
	skew                      time.Duration // how far its clock is ahead of the client's
	link, target              string        // the key of a symbolic link and its target
	server                    *httptest.Server
}

func newOSS(t *testing.T, keys ...string) *ossSite {
	t.Helper()
	s := &ossSite{region: "cn-test", id: "the-id", secret: "the-secret"}
	s.Server, s.at = storetest.New(t, "data-bucket"), "oss://data-bucket/"
	s.fill(keys...)
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	t.Setenv("OSS_ENDPOINT", "")
	t.Setenv("OSS_REGION", "")
	s.o = Options{Retry: soon, OSS: objectstore.OSS{Endpoint: s.server.URL, Region: s.region,
		Credentials: func(context.Context) (string, string, string, error) { return s.id, s.secret, s.token, nil }}}
	return s
}

// virtual returns a client that connects to the server for every host name.
func (s *ossSite) virtual() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, n, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, n, s.server.Listener.Addr().String())
	}}}
}

func (s *ossSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if bucket, ok := strings.CutSuffix(r.Host, ".oss.example"); ok {
		r.URL.Path = "/" + bucket + r.URL.Path
	}
	date, _ := http.ParseTime(r.Header.Get("Date"))
	ahead := time.Now().Add(s.skew)
	w.Header().Set("Date", ahead.UTC().Format(http.TimeFormat))
	switch {
	case !s.signed(r, date):
		storetest.Refuse(w, r, http.StatusForbidden, "SignatureDoesNotMatch", "The signature we calculated\ndoes not match.")
	case s.id != "" && ahead.Sub(date).Abs() > 15*time.Minute:
		storetest.Refuse(w, r, http.StatusForbidden, "RequestTimeTooSkewed", "The clock is wrong.")
	case r.Header.Get("Range") != "" && r.Header.Get("x-oss-range-behavior") != "standard":
		storetest.Refuse(w, r, http.StatusTeapot, "Teapot", "OSS would ignore a range beyond the end.")
	default:
		if s.link != "" {
			r.URL.Path = strings.Replace(r.URL.Path, s.link, s.target, 1)
		}
		r.Header.Set("Authorization", "OSS")
		s.Server.ServeHTTP(w, r)
	}
}

// signed signs a request as its sender should have, with V4 if a region is set, and compares the signatures.
func (s *ossSite) signed(r *http.Request, at time.Time) bool {
	if s.id == "" || r.Header.Get("x-oss-security-token") != s.token {
		return s.id == "" && r.Header.Get("Authorization") == ""
	}
	bucket, key, _ := strings.Cut(r.URL.Path[1:], "/")
	product, again := "oss", r.Clone(r.Context())
	c := &signer.SigningContext{Product: &product, Region: &s.region, Bucket: &bucket, Request: again, Time: at,
		Credentials: &credentials.Credentials{AccessKeyID: s.id, AccessKeySecret: s.secret, SecurityToken: s.token}}
	if key != "" {
		c.Key = &key
	}
	by := signer.Signer(&signer.SignerV4{})
	if s.region == "" {
		by = &signer.SignerV1{}
	}
	return by.Sign(r.Context(), c) == nil && again.Header.Get("Authorization") == r.Header.Get("Authorization")
}
