package input

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss/credentials"
	"github.com/aliyun/alibabacloud-oss-go-sdk-v2/oss/signer"

	"example.com/tsimport/internal/objectstore"
	"example.com/tsimport/internal/objectstore/storetest"
)

// store is a bucket of OSS or of S3 whose objects hold "in " and their key.
type store struct {
	*storetest.Server
	at string // the address of the bucket, with a slash
	o  Options
}

func (s *store) names(keys ...string) []string {
	var all []string
	for _, key := range keys {
		all = append(all, s.at+key)
	}
	return all
}

// fill puts objects, pages of two. A key that ends in / is an empty object.
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

// inEveryStore runs a test on OSS and on S3.
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

// ossSite stands in front of a store as OSS does: it finds the bucket in the host, and verifies the clock and the signature of every request.
type ossSite struct {
	store
	region, id, secret, token string
	skew                      time.Duration // how much its clock is ahead
	link, target              string        // the key of a link and what it leads to
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

// virtual is a client that reaches the server under every host name.
func (s *ossSite) virtual() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.server.Listener.Addr().String())
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
		storetest.Refuse(w, r, http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated\ndoes not match.")
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

// signed signs a request as its sender should have, by V4 where there is a region, and compares.
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
