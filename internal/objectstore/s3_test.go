package objectstore

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"example.com/tsimport/internal/conformance"
)

// withoutAWS clears all AWS settings in the environment except an access key.
func withoutAWS(t *testing.T) {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "the-id", "AWS_SECRET_ACCESS_KEY": "the-secret",
		"AWS_SESSION_TOKEN": "the-token", "AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
		"AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
}

func TestS3AddressesAgreeWithAWS(t *testing.T) {
	for _, c := range []struct {
		bucket, region, endpoint, variable, want string
	}{
		{"lake", "eu-west-1", "", "", "https://lake.s3.eu-west-1.amazonaws.com"},
		{"lake", "cn-north-1", "", "", "https://lake.s3.cn-north-1.amazonaws.com.cn"},
		{"lake", "us-isob-east-1", "", "", "https://lake.s3.us-isob-east-1.sc2s.sgov.gov"},
		{"lake", "us-gov-west-1", "", "AWS_USE_FIPS_ENDPOINT=true", "https://lake.s3-fips.us-gov-west-1.amazonaws.com"},
		{"lake", "eu-west-1", "", "AWS_USE_DUALSTACK_ENDPOINT=true", "https://lake.s3.dualstack.eu-west-1.amazonaws.com"},
		{"lake", "aws-global", "", "", "https://lake.s3.us-east-1.amazonaws.com"},
		{"la.ke", "eu-west-1", "", "", "https://s3.eu-west-1.amazonaws.com/la.ke"},
		{"Lake", "eu-west-1", "", "", "https://s3.eu-west-1.amazonaws.com/Lake"},
		{"lake", "", "https://s3.eu-west-1.amazonaws.com/", "", "https://lake.s3.eu-west-1.amazonaws.com"},
		{"lake", "", "oss-cn-hangzhou.aliyuncs.com", "", "https://lake.oss-cn-hangzhou.aliyuncs.com"},
		{"lake", "", "http://minio:9000", "", "http://minio:9000/lake"},
		{"lake", "", "http://minio:9000", "AWS_ENDPOINT_URL_S3=http://other", "http://minio:9000/lake"},
		{"lake", "", "", "AWS_ENDPOINT_URL_S3=http://minio", "http://minio/lake"},
		{"lake", "", "", "AWS_ENDPOINT_URL=http://minio", "http://minio/lake"},
		{"lake", "", "", "AWS_PROFILE=all", "http://files/lake"},
		{"lake", "", "", "AWS_PROFILE=own", "http://files-s3/lake"},
		{"lake", "", "http://minio:9000", "AWS_USE_FIPS_ENDPOINT=true", "AWS_USE_FIPS_ENDPOINT asks for an AWS endpoint"},
		{"lake", "", "", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true", "the bucket's region is unknown"},
	} {
		t.Run(c.want, func(t *testing.T) {
			withoutAWS(t)
			files := t.TempDir() + "/config"
			conformance.Must(t, os.WriteFile(files, []byte("[default]\nendpoint_url = http://default\n"+
				"[profile all]\nendpoint_url = http://files\n[profile own]\nendpoint_url = http://files\nservices = s\n"+
				"[services s]\ns3 =\n  endpoint_url = http://files-s3\n"), 0o600))
			if name, value, ok := strings.Cut(c.variable, "="); ok {
				t.Setenv(name, value)
			}
			if c.region == "" {
				t.Setenv("AWS_CONFIG_FILE", files)
			}
			s, err := NewS3(t.Context(), S3{Region: c.region, Endpoint: c.endpoint})
			if err != nil {
				conformance.Contains(t, err.Error(), c.want, "%v", err)
				return
			}
			conformance.Equal(t, s.(*s3Service).address(c.bucket, "a b/+", nil).String(), c.want+"/a%20b/%2B", "address")
			got := s.(*s3Service).address(c.bucket, "", nil).String()
			conformance.Equal(t, strings.TrimSuffix(got, "/"), c.want, "without a key")
		})
	}
}

// signed reports whether the signature of a request, as it was received, follows AWS's documentation.
func signed(r *http.Request, body []byte) (ok bool) {
	given := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "), ", ") {
		name, value, _ := strings.Cut(part, "=")
		given[name] = value
	}
	path, query, _ := strings.Cut(r.RequestURI, "?")
	parameters := strings.Split(query, "&")
	slices.Sort(parameters)
	canonical := r.Method + "\n" + path + "\n" + strings.Join(parameters, "&") + "\n"
	for name := range strings.SplitSeq(given["SignedHeaders"], ";") {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		canonical += name + ":" + strings.TrimSpace(value) + "\n"
	}
	sum := sha256.Sum256(body)
	canonical += "\n" + given["SignedHeaders"] + "\n" + hex.EncodeToString(sum[:])
	scope := strings.Split(given["Credential"], "/")
	key := []byte("AWS4the-secret")
	for _, part := range append(scope[1:], "AWS4-HMAC-SHA256\n"+r.Header.Get("X-Amz-Date")+"\n"+
		strings.Join(scope[1:], "/")+"\n"+fmt.Sprintf("%x", sha256.Sum256([]byte(canonical)))) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return scope[0] == "the-id" && r.Header.Get("X-Amz-Security-Token") == "the-token" &&
		strings.Contains(given["SignedHeaders"], "host") &&
		r.Header.Get("X-Amz-Content-Sha256") == hex.EncodeToString(sum[:]) && hex.EncodeToString(key) == given["Signature"]
}

func TestS3SignaturesAndClockCorrection(t *testing.T) {
	withoutAWS(t)
	var skew, requests atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		body, _ := io.ReadAll(r.Body)
		now := time.Now().Add(time.Duration(skew.Load()))
		date, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		switch {
		case err != nil || now.Sub(date).Abs() > 15*time.Minute:
			w.WriteHeader(http.StatusForbidden)
			if r.Method != http.MethodHead {
				fmt.Fprint(w, "<Error><Code>RequestTimeTooSkewed</Code></Error>")
			}
		case !signed(r, body):
			w.WriteHeader(http.StatusBadRequest)
		case r.URL.Query().Has("list-type"):
			fmt.Fprint(w, `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></ListBucketResult>`)
		}
	}))
	defer web.Close()
	for _, hours := range []time.Duration{0, 3, -30} {
		skew.Store(int64(hours * time.Hour))
		for _, key := range []string{"a", "d/../ü +%&=?#'\x01.csv", "/a//b/", "folder/"} {
			for name, request := range map[string]func(Service) error{
				"list":   func(s Service) error { _, err := s.List(t.Context(), "la.ke", key, "to+ken/=", 7); return err },
				"head":   func(s Service) error { _, err := s.Head(t.Context(), "la.ke", key); return err },
				"delete": func(s Service) error { return s.Delete(t.Context(), "la.ke", key) },
				"put":    func(s Service) error { return s.Put(t.Context(), "la.ke", key, strings.NewReader("content"), true) },
				"empty":  func(s Service) error { return s.Put(t.Context(), "la.ke", key, strings.NewReader(""), false) },
				"get": func(s Service) error {
					answer, err := s.Get(t.Context(), "la.ke", key, 3, 5, `"tag"`)
					if err == nil {
						err = answer.Body.Close()
					}
					return err
				},
			} {
				s := conformance.Try(NewS3(t.Context(), S3{Endpoint: web.URL})).Must(t)
				before := requests.Load()
				for range 2 {
					conformance.Equal(t, request(s), nil, "%s of %q, %v hours", name, key, int(hours))
				}
				n := requests.Load() - before
				conformance.True(t, n <= 3, "%s of %q: %d requests", name, key, n)
			}
		}
	}
}

// A retry would repeat an invalid request. Credentials that cannot be renewed now may be there a moment later.
func TestRequestsThatCannotBeSignedAreRefused(t *testing.T) {
	withoutAWS(t)
	s := conformance.Try(NewS3(t.Context(), S3{Endpoint: "http://127.0.0.1:1"})).Must(t).(*s3Service)
	has, fails := s.keys, aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("the issuer is busy")
	})
	for _, c := range []struct {
		keys      aws.CredentialsProvider
		key, want string
		final     bool
	}{{has, "", "no key", true}, {fails, "a", "give the pod a role: the issuer is busy", true}, {has, "a", "refused", false},
		{fails, "a", "renew the credentials for S3: the issuer is busy", false}} {
		s.keys = c.keys
		err := s.Delete(t.Context(), "lake", c.key)
		conformance.Refused(t, err, c.want, "error")
		conformance.Equal(t, errors.As(err, new(*Invalid)), c.final, "final: %v", err)
	}
}

func TestBucketNameLengthIsChecked(t *testing.T) {
	for _, scheme := range []string{"oss", "s3"} {
		for n, right := range map[int]bool{0: false, 2: false, 3: true, 63: true, 64: false} {
			conformance.Equal(t, CheckBucket(scheme, strings.Repeat("a", n)) == "", right, "%s: %d bytes", scheme, n)
		}
	}
	for _, name := range []string{"lake--use1-az4--x-s3", "lake--op-s3"} {
		conformance.Contains(t, CheckBucket("s3", name), "general purpose bucket", "%s", name)
	}
}

func TestRetryAfterIsLimited(t *testing.T) {
	for value, want := range map[string]time.Duration{"2": 2 * time.Second, "999": maxRetryAfter, "-1": 0, "": 0, "x": 0} {
		conformance.Equal(t, RetryAfter(http.Header{"Retry-After": {value}}), want, "%q", value)
	}
}

func TestEndlessListingsAreStopped(t *testing.T) {
	keys := func(page int) []Object { return []Object{{Key: fmt.Sprintf("%08d", page)}} }
	long := []Object{{Key: strings.Repeat("k", 1<<20)}}
	for name, tt := range map[string]struct {
		page func(n int) Page // n counts from 1
		want string
		most int
	}{
		"three pages":    {func(n int) Page { return Page{keys(n), n < 3, fmt.Sprint(n)} }, "", 3},
		"an empty page":  {func(n int) Page { return Page{nil, n < 3, fmt.Sprint(n)} }, "", 3},
		"from nowhere":   {func(n int) Page { return Page{keys(n), true, ""} }, "no new continuation token", 1},
		"nowhere, later": {func(n int) Page { return Page{keys(n), true, []string{"a", "", ""}[n-1]} }, "no new continuation token", 2},
		"the same token": {func(n int) Page { return Page{keys(n), true, "a"} }, "no new continuation token", 2},
		"the same page":  {func(n int) Page { return Page{keys(1), true, fmt.Sprint(n)} }, "2 of the listing repeats", 2},
		"endless pages": {func(n int) Page { return Page{keys(n), true, fmt.Sprint(n)} }, "10000 pages with 10000 objects",
			maxPages},
		"always empty":   {func(n int) Page { return Page{nil, true, fmt.Sprint(n)} }, "1000 pages with 0 objects", maxEmpty},
		"long keys":      {func(n int) Page { return Page{append(keys(n), long...), true, fmt.Sprint(n)} }, "256 pages", 256},
		"caller's error": {func(n int) Page { return Page{[]Object{{Key: "stop"}}, true, "a"} }, "stopped", 1},
	} {
		asked := 0
		err := EachPage(func(string) (Page, error) { asked++; return tt.page(asked), nil }, func(o []Object) error {
			if len(o) > 0 && o[0].Key == "stop" {
				return errors.New("stopped")
			}
			return nil
		})
		conformance.True(t, asked == tt.most && (err == nil) == (tt.want == "") &&
			(err == nil || strings.Contains(err.Error(), tt.want)), "%s: after %d pages: %v", name, asked, err)
	}
}

// A hostile server, or one that is not an object store, may send any response.
func TestHostileStoreCannotFillMemory(t *testing.T) {
	// The handlers of earlier requests may still be writing when the next request arrives.
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
	s3 := conformance.Try(NewS3(t.Context(), S3{Endpoint: web.URL})).Must(t)
	oss := conformance.Try(NewOSS(OSS{Endpoint: web.URL, Region: "cn-hangzhou"}, http.DefaultTransport)).Must(t)
	for _, s := range []Service{s3, oss} {
		for _, code := range []int64{200, 307, 403, 500} {
			status.Store(code)
			sent.Store(0)
			_, err := s.List(t.Context(), "bucket", "", "", 0)
			conformance.True(t, err != nil && sent.Load() <= 40<<20 && len(err.Error()) <= 1000,
				"%s, HTTP %d: %d bytes were taken, %v", s.Scheme(), code, sent.Load(), err)
		}
	}
	conformance.True(t, other.Load() <= 0, "%d signed requests followed a redirect", other.Load())
}
