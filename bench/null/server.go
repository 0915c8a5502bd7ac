package null

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"
)

type Options struct {
	// Latency delays the answer to each write.
	Latency time.Duration
	// Partitions is the number of partitions of each table, which divide the ids of shapes evenly; 0 means 1.
	Partitions int
	// TLS serves TLS with the certificate that Server.Certificate returns.
	TLS bool
	// AccessKeyID and AccessKeySecret sign the answers, as official SDKs require. Signatures of requests are not checked.
	AccessKeyID, AccessKeySecret string
	// Rows, if set, holds the rows that every GetRange reads.
	Rows *Stored
}

// Key is the primary key of every table, an integer column.
const Key = "id"

// Server is a running server. Its counters can be read while it serves.
type Server struct {
	*httptest.Server
	o Options

	began   string // makes request ids differ from other servers'
	answers atomic.Int64

	Requests    atomic.Int64 // writes
	Rows        atomic.Int64
	Connections atomic.Int64 // accepted so far
}

// Start serves on an address until Close.
func Start(address string, o Options) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, began: fmt.Sprintf("%016x", time.Now().UnixNano())}
	s.Server = &httptest.Server{Listener: l, Config: &http.Server{Handler: s,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				s.Connections.Add(1)
			}
		}}}
	if o.TLS {
		s.StartTLS()
	} else {
		s.Server.Start()
	}
	return s, nil
}

// ServeHTTP answers a request. Answers have what official SDKs check: the date, the MD5 of the body, a unique request
// id (required by the SDK for Java) and, if the server has keys, a V2 signature.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.ContentLength < 0 || r.ContentLength > maxRequest {
		http.Error(w, "want a POST with a Content-Length", http.StatusBadRequest)
		return
	}
	request := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, request); err != nil {
		return // the closed connection informs the client
	}
	status, body := s.answer(r.URL.Path, request)
	sum := md5.Sum(body)
	header, signed := w.Header(), []byte(nil)
	for _, h := range [][2]string{ // in the order of the signature
		{"x-ots-contentmd5", base64.StdEncoding.EncodeToString(sum[:])}, {"x-ots-contenttype", "protocol buffer"},
		{"x-ots-date", time.Now().UTC().Format("2006-01-02T15:04:05.000Z")},
		{"x-ots-requestid", fmt.Sprintf("%s-%012x", s.began, s.answers.Add(1))},
	} {
		header[h[0]] = []string{h[1]} // Set would capitalize the name
		signed = fmt.Appendf(signed, "%s:%s\n", h[0], h[1])
	}
	if s.o.AccessKeyID != "" {
		mac := hmac.New(sha1.New, []byte(s.o.AccessKeySecret))
		mac.Write(append(signed, r.URL.Path...))
		header.Set("Authorization", fmt.Sprintf("OTS %s:%s", s.o.AccessKeyID,
			base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	}
	header.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	w.Write(body) // a disconnected client needs no answer
}

// maxRequest is the maximum size of a request. It is above the service's.
const maxRequest = 64 << 20
