package storetest

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server serves the objects of one bucket. Call Change to change its fields.
type Server struct {
	Bucket   string
	PageSize int // maximum number of objects in a page of a listing
	// Unconditional makes the server ignore conditions of puts, as OSS does in buckets with versioning.
	Unconditional bool
	ReadOnly      bool
	Full          bool
	// Fault, if not nil, may respond to a request in place of the server. number counts requests from 0.
	Fault func(number int, w http.ResponseWriter, r *http.Request) (handled bool)
	// After, if not nil, is called between carrying out a request and responding to it. A panic loses the response.
	After func(number int, r *http.Request)

	mu       sync.Mutex
	objects  map[string]object
	requests []string
	server   *httptest.Server
}

type object struct {
	content  string
	modified time.Time
}

// Testing is the part of *testing.T that New needs.
type Testing interface {
	Helper()
	Setenv(key, value string)
	Cleanup(f func())
}

// New starts a server, and sets the environment so that S3 clients reach it with an access key.
func New(t Testing, bucket string) *Server {
	t.Helper()
	s := &Server{Bucket: bucket, PageSize: 1000, objects: map[string]object{}}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": s.URL(), "AWS_ENDPOINT_URL_S3": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "",
		"AWS_CA_BUNDLE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": "the-id", "AWS_SECRET_ACCESS_KEY": "the-secret", "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
	} {
		t.Setenv(name, value)
	}
	return s
}

// Change calls change, which may set fields of the server. Requests that are already running may see the old values.
func (s *Server) Change(change func(s *Server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *Server) URL() string { return s.server.URL }

// Set puts an object with a modification time.
func (s *Server) Set(key, content string, modified time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = object{content, modified}
}

func (s *Server) Remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
}

func (s *Server) Content(key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	return o.content, ok
}

// Keys returns the keys of all objects in order.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Requests returns the method, key and range of each request so far.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func ETag(content string) string { return fmt.Sprintf(`"%x"`, md5.Sum([]byte(content))) }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	number := len(s.requests)
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+key+" "+r.Header.Get("Range")))
	fault, after := s.Fault, s.After
	s.mu.Unlock()
	if fault != nil && fault(number, w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=the-id/") &&
		!strings.HasPrefix(r.Header.Get("Authorization"), "OSS"):
		Refuse(w, r, http.StatusForbidden, "InvalidAccessKeyId", "The key is not known.")
	case bucket != s.Bucket:
		Refuse(w, r, http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist.")
	case key == "":
		s.list(w, r.URL.Query())
	case r.Method == http.MethodPut:
		if s.put(w, r, key, body) {
			if after != nil {
				after(number, r)
			}
			w.Header().Set("ETag", ETag(string(body)))
		}
	case r.Method == http.MethodDelete:
		if s.ReadOnly {
			Refuse(w, r, http.StatusForbidden, "AccessDenied", "Access denied.")
			return
		}
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		s.get(w, r, key)
	}
}

// Refuse responds to a request with an error.
func Refuse(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message><RequestId>1</RequestId></Error>", code, message)
	}
}

func (s *Server) put(w http.ResponseWriter, r *http.Request, key string, body []byte) bool {
	_, there := s.objects[key]
	switch {
	case s.ReadOnly:
		Refuse(w, r, http.StatusForbidden, "AccessDenied", "Access denied.")
		return false
	case s.Full:
		Refuse(w, r, http.StatusInsufficientStorage, "XMinioStorageFull",
			"Storage backend has reached its minimum free drive threshold.")
		return false
	case there && !s.Unconditional && r.Header.Get("If-None-Match") == "*":
		Refuse(w, r, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions did not hold.")
		return false
	case there && !s.Unconditional && r.Header.Get("X-Oss-Forbid-Overwrite") == "true":
		Refuse(w, r, http.StatusConflict, "FileAlreadyExists",
			"The object you specified already exists and can not be overwritten.")
		return false
	}
	s.objects[key] = object{string(body), time.Now()}
	return true
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, key string) {
	o, ok := s.objects[key]
	if !ok {
		Refuse(w, r, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
		return
	}
	if m := r.Header.Get("If-Match"); m != "" && m != ETag(o.content) {
		Refuse(w, r, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions did not hold.")
		return
	}
	if r.Method == http.MethodGet && r.Header.Get("Accept-Encoding") != "identity" {
		Refuse(w, r, http.StatusTeapot, "Teapot", "The service would pack the body.")
		return
	}
	w.Header().Set("ETag", ETag(o.content))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", o.modified, strings.NewReader(o.content))
}

type listed struct {
	Key, ETag, Type, LastModified string
	Size                          int
}

func (s *Server) list(w http.ResponseWriter, q url.Values) {
	limit := s.PageSize
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
			answer.NextContinuationToken = base64.StdEncoding.EncodeToString([]byte(last))
			break
		}
		last = key
		o := s.objects[key]
		answer.Contents = append(answer.Contents, listed{Key: url.QueryEscape(key), ETag: ETag(o.content), Type: "Normal",
			Size:         len(o.content),
			LastModified: o.modified.UTC().Format("2006-01-02T15:04:05.000Z")})
	}
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(answer)
}
