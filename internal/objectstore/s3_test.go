package objectstore

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// withoutAWS leaves nothing of AWS in the environment but a key.
func withoutAWS(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "the-id", "AWS_SECRET_ACCESS_KEY": "the-secret", "AWS_SESSION_TOKEN": "the-token",
		"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
}

func TestBucketsOfS3HaveTheAddressesThatAWSGivesThem(t *testing.T) {
	for _, c := range []struct {
		bucket, region, endpoint, variable, want string
	}{
		{"lake", "eu-west-1", "", "", "https://lake.s3.eu-west-1.amazonaws.com/a%20b/%2B"},
		{"lake", "cn-north-1", "", "", "https://lake.s3.cn-north-1.amazonaws.com.cn/a%20b/%2B"},
		{"lake", "us-isob-east-1", "", "", "https://lake.s3.us-isob-east-1.sc2s.sgov.gov/a%20b/%2B"},
		{"lake", "us-gov-west-1", "", "AWS_USE_FIPS_ENDPOINT=true", "https://lake.s3-fips.us-gov-west-1.amazonaws.com/a%20b/%2B"},
		{"lake", "eu-west-1", "", "AWS_USE_DUALSTACK_ENDPOINT=true", "https://lake.s3.dualstack.eu-west-1.amazonaws.com/a%20b/%2B"},
		{"lake", "aws-global", "", "", "https://lake.s3.us-east-1.amazonaws.com/a%20b/%2B"},
		{"la.ke", "eu-west-1", "", "", "https://s3.eu-west-1.amazonaws.com/la.ke/a%20b/%2B"},
		{"Lake", "eu-west-1", "", "", "https://s3.eu-west-1.amazonaws.com/Lake/a%20b/%2B"},
		{"lake", "", "https://s3.eu-west-1.amazonaws.com/", "", "https://lake.s3.eu-west-1.amazonaws.com/a%20b/%2B"},
		{"lake", "", "oss-cn-hangzhou.aliyuncs.com", "", "https://lake.oss-cn-hangzhou.aliyuncs.com/a%20b/%2B"},
		{"lake", "", "http://minio:9000", "", "http://minio:9000/lake/a%20b/%2B"},
		{"lake", "", "http://minio:9000", "AWS_ENDPOINT_URL_S3=http://other", "http://minio:9000/lake/a%20b/%2B"},
		{"lake", "", "", "AWS_ENDPOINT_URL_S3=http://minio", "http://minio/lake/a%20b/%2B"},
		{"lake", "", "", "AWS_ENDPOINT_URL=http://minio", "http://minio/lake/a%20b/%2B"},
		{"lake", "", "", "AWS_PROFILE=all", "http://files/lake/a%20b/%2B"},
		{"lake", "", "", "AWS_PROFILE=own", "http://files-s3/lake/a%20b/%2B"},
		{"lake", "", "http://minio:9000", "AWS_USE_FIPS_ENDPOINT=true", "AWS_USE_FIPS_ENDPOINT asks for an endpoint of AWS"},
		{"lake", "", "", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true", "the region of the bucket is not known"},
	} {
		t.Run(c.want, func(t *testing.T) {
			withoutAWS(t)
			files := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(files, []byte("[default]\nendpoint_url = http://default\n[profile all]\nendpoint_url = http://files\n"+
				"[profile own]\nendpoint_url = http://files\nservices = s\n[services s]\ns3 =\n  endpoint_url = http://files-s3\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if name, value, ok := strings.Cut(c.variable, "="); ok {
				t.Setenv(name, value)
			}
			if c.region == "" {
				t.Setenv("AWS_CONFIG_FILE", files)
			}
			s, err := NewS3(t.Context(), S3{Region: c.region, Endpoint: c.endpoint})
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Error(err)
				}
				return
			}
			if got := s.(*s3Service).address(c.bucket, "a b/+", nil).String(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if got, want := s.(*s3Service).address(c.bucket, "", nil).String(), strings.TrimSuffix(c.want, "a%20b/%2B"); strings.TrimSuffix(got, "/") != strings.TrimSuffix(want, "/") {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// signed computes the signature of a request as AWS describes it, from what came over the wire.
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
	for _, part := range append(scope[1:], "AWS4-HMAC-SHA256\n"+r.Header.Get("X-Amz-Date")+"\n"+strings.Join(scope[1:], "/")+"\n"+fmt.Sprintf("%x", sha256.Sum256([]byte(canonical)))) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return scope[0] == "the-id" && r.Header.Get("X-Amz-Security-Token") == "the-token" && strings.Contains(given["SignedHeaders"], "host") &&
		r.Header.Get("X-Amz-Content-Sha256") == hex.EncodeToString(sum[:]) && hex.EncodeToString(key) == given["Signature"]
}

func TestRequestsToS3AreSignedAsTheyAreSentAndRefusedOnesAgainWithTheRightTime(t *testing.T) {
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
				s, err := NewS3(t.Context(), S3{Endpoint: web.URL})
				if err != nil {
					t.Fatal(err)
				}
				before := requests.Load()
				for range 2 {
					if err := request(s); err != nil {
						t.Errorf("%s of %q, %v hours: %v", name, key, int(hours), err)
					}
				}
				if n := requests.Load() - before; n > 3 {
					t.Errorf("%s of %q: %d requests", name, key, n)
				}
			}
		}
	}
}

func TestRequestsForAnObjectWithoutAKeyAreNotMade(t *testing.T) {
	withoutAWS(t)
	s, err := NewS3(t.Context(), S3{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "bucket", ""); err == nil || !strings.Contains(err.Error(), "no key") {
		t.Error(err)
	}
}
