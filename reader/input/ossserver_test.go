package input

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tsimport/internal/objectstore"
)

// ossSite speaks the part of the OSS API that reading needs: ListObjectsV2, GetObject with Range and If-Match, HeadObject.
// It recomputes the signature of every request.
type ossSite struct {
	bucket, region    string
	id, secret, token string
	pageSize          int
	denyList          bool
	skew              time.Duration // how much its clock is ahead
	fault             func(number int, w http.ResponseWriter, r *http.Request) (handled bool)

	mu       sync.Mutex
	objects  map[string]string // key to content
	links    map[string]string // key to key
	requests []string          // operations
	server   *httptest.Server
}

func newOSS(t *testing.T, keys ...string) *ossSite {
	t.Helper()
	s := &ossSite{bucket: "data-bucket", region: "cn-test", id: "the-id", secret: "the-secret", pageSize: 2, objects: map[string]string{}, links: map[string]string{}}
	for _, key := range keys {
		s.objects[key] = "in " + key
		if strings.HasSuffix(key, "/") {
			s.objects[key] = ""
		}
	}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	t.Setenv("OSS_ENDPOINT", "")
	t.Setenv("OSS_REGION", "")
	return s
}

func (s *ossSite) options() Options {
	return Options{Retry: soon, OSS: objectstore.OSS{Endpoint: s.server.URL, Region: s.region,
		Credentials: func(context.Context) (string, string, string, error) { return s.id, s.secret, s.token, nil }}}
}

// virtual is a client that reaches the server under every host name.
func (s *ossSite) virtual() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.server.Listener.Addr().String())
	}}}
}

func etagOf(content string) string { return fmt.Sprintf(`"%X"`, sha1.Sum([]byte(content))) }

func (s *ossSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bucket, key, operation := s.resource(r)
	s.mu.Lock()
	number := len(s.requests)
	s.requests = append(s.requests, operation)
	fault := s.fault
	s.mu.Unlock()
	if fault != nil && fault(number, w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	date, _ := http.ParseTime(r.Header.Get("Date"))
	ahead := time.Now().Add(s.skew)
	w.Header().Set("Date", ahead.UTC().Format(http.TimeFormat))
	switch {
	case !s.signed(r, bucket, key):
		s.refuse(w, r, http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated\ndoes not match.")
	case s.id != "" && ahead.Sub(date).Abs() > 15*time.Minute:
		s.refuse(w, r, http.StatusForbidden, "RequestTimeTooSkewed", "The clock is wrong.")
	case bucket != s.bucket:
		s.refuse(w, r, http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist.")
	case operation == "list" && s.denyList:
		s.refuse(w, r, http.StatusForbidden, "AccessDenied", "You have no right to list.")
	case operation == "list":
		s.list(w, r.URL.Query())
	default:
		s.object(w, r, key)
	}
}

// resource finds the bucket in the host or in the path.
func (s *ossSite) resource(r *http.Request) (bucket, key, operation string) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	if host, ok := strings.CutSuffix(r.Host, ".oss.example"); ok {
		bucket, key = host, path
	} else {
		bucket, key, _ = strings.Cut(path, "/")
	}
	if key == "" {
		return bucket, "", "list"
	}
	return bucket, key, strings.ToLower(r.Method) + " " + r.Header.Get("Range")
}

func (s *ossSite) refuse(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	body := fmt.Sprintf("<Error><Code>%s</Code><Message>%s</Message><RequestId>1</RequestId></Error>", code, message)
	if r.Method == http.MethodHead {
		w.Header().Set("x-oss-err", base64.StdEncoding.EncodeToString([]byte(body)))
		body = ""
	}
	w.WriteHeader(status)
	io.WriteString(w, body)
}

type listed struct {
	Key, ETag, Type, LastModified string
	Size                          int
}

func (s *ossSite) list(w http.ResponseWriter, q url.Values) {
	limit := s.pageSize
	if n, _ := strconv.Atoi(q.Get("max-keys")); n > 0 {
		limit = min(limit, n)
	}
	after, _ := base64.StdEncoding.DecodeString(q.Get("continuation-token"))
	answer := struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		EncodingType          string
		IsTruncated           bool
		NextContinuationToken string   `xml:",omitempty"`
		Contents              []listed `xml:"Contents"`
	}{EncodingType: "url"}
	last := ""
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(key, q.Get("prefix")) || key <= string(after) {
			continue
		}
		if len(answer.Contents) == limit {
			answer.IsTruncated = true
			answer.NextContinuationToken = url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(last)))
			break
		}
		last = key
		o := listed{Key: url.QueryEscape(key), ETag: etagOf(s.objects[key]), Type: "Normal", Size: len(s.objects[key]), LastModified: "2024-01-01T00:00:00.000Z"}
		if s.links[key] != "" {
			o.Type = "Symlink"
		}
		answer.Contents = append(answer.Contents, o)
	}
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(answer)
}

func (s *ossSite) object(w http.ResponseWriter, r *http.Request, key string) {
	if s.links[key] != "" {
		key = s.links[key]
	}
	content, ok := s.objects[key]
	if !ok {
		s.refuse(w, r, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
		return
	}
	tag := etagOf(content)
	if m := r.Header.Get("If-Match"); m != "" && m != tag {
		s.refuse(w, r, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions did not hold.")
		return
	}
	if r.Header.Get("Accept-Encoding") != "identity" || r.Header.Get("Range") != "" && r.Header.Get("x-oss-range-behavior") != "standard" {
		s.refuse(w, r, http.StatusTeapot, "Teapot", "OSS would pack the body or ignore the range.")
		return
	}
	w.Header().Set("ETag", tag)
	http.ServeContent(w, r, "", time.Unix(1e9, 0), strings.NewReader(content))
}

// signed recomputes the signature of a request, V4 where there is a region and V1 else.
func (s *ossSite) signed(r *http.Request, bucket, key string) bool {
	if s.id == "" {
		return r.Header.Get("Authorization") == ""
	}
	if r.Header.Get("x-oss-security-token") != s.token {
		return false
	}
	if s.region == "" {
		return r.Header.Get("Authorization") == "OSS "+s.id+":"+s.v1(r, bucket, key)
	}
	date := r.Header.Get("x-oss-date")
	if len(date) != len("20060102T150405Z") {
		return false
	}
	scope := date[:8] + "/" + s.region + "/oss/aliyun_v4_request"
	want := "OSS4-HMAC-SHA256 Credential=" + s.id + "/" + scope + ",Signature=" + s.v4(r, bucket, key, date, scope)
	return r.Header.Get("Authorization") == want
}

func ossHeaders(r *http.Request, more ...string) string {
	var lines []string
	for name := range r.Header {
		if low := strings.ToLower(name); strings.HasPrefix(low, "x-oss-") || slices.Contains(more, low) {
			lines = append(lines, low+":"+strings.TrimSpace(r.Header.Get(name))+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func mac(h func() hash.Hash, key []byte, text string) []byte {
	m := hmac.New(h, key)
	io.WriteString(m, text)
	return m.Sum(nil)
}

func (s *ossSite) v4(r *http.Request, bucket, key, date, scope string) string {
	path := "/" + bucket + "/" + key
	escaped := strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(path), "+", "%20"), "%2F", "/")
	query := strings.Split(strings.ReplaceAll(r.URL.RawQuery, "+", "%20"), "&")
	slices.Sort(query)
	request := strings.Join([]string{r.Method, escaped, strings.Join(query, "&"), ossHeaders(r, "content-type", "content-md5"), "", "UNSIGNED-PAYLOAD"}, "\n")
	sum := sha256.Sum256([]byte(request))
	k := []byte("aliyun_v4" + s.secret)
	for _, part := range strings.Split(scope, "/") {
		k = mac(sha256.New, k, part)
	}
	return hex.EncodeToString(mac(sha256.New, k, "OSS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hex.EncodeToString(sum[:])))
}

func (s *ossSite) v1(r *http.Request, bucket, key string) string {
	resource := "/" + bucket + "/" + key
	if token := r.URL.Query().Get("continuation-token"); token != "" {
		resource += "?continuation-token=" + token
	}
	text := strings.Join([]string{r.Method, r.Header.Get("Content-Md5"), r.Header.Get("Content-Type"), r.Header.Get("Date"), ossHeaders(r) + resource}, "\n")
	return base64.StdEncoding.EncodeToString(mac(sha1.New, []byte(s.secret), text))
}
