package null

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// reader reads the requests of a connection. What it returns is valid until the next call.
type reader struct {
	conn net.Conn
	buf  []byte
	from int // what is read and not used begins here
	to   int // and ends here
}

type request struct {
	path []byte
	body []byte
}

// maxRequest is more than the service takes in a request.
const maxRequest = 64 << 20

var (
	errNotHTTP  = errors.New("read request: not HTTP/1.1 with a Content-Length")
	errTooLarge = errors.New("read request: too large")
)

// next reads a request to its end.
func (r *reader) next() (request, error) {
	copy(r.buf, r.buf[r.from:r.to])
	r.from, r.to = 0, r.to-r.from
	head := -1
	for searched := 0; head < 0; {
		if r.to > 0 {
			// The end may lie across what was read before and what came now.
			at := max(searched-3, 0)
			if head = bytes.Index(r.buf[at:r.to], []byte("\r\n\r\n")); head >= 0 {
				head += at
				break
			}
			searched = r.to
		}
		if err := r.read(r.to + 1); err != nil {
			return request{}, err
		}
	}
	path, length, err := parseHead(r.buf[:head])
	if err != nil {
		return request{}, err
	}
	end := head + 4 + length
	for r.to < end {
		if err := r.read(end); err != nil {
			return request{}, err
		}
	}
	r.from = end
	// The buffer may have moved since the path was found.
	line := r.buf[len("POST "):]
	return request{path: line[:path], body: r.buf[head+4 : end]}, nil
}

// read reads once, with room for so many bytes in all.
func (r *reader) read(want int) error {
	if want > maxRequest {
		return errTooLarge
	}
	if want > len(r.buf) {
		grown := make([]byte, max(want, 2*len(r.buf)))
		copy(grown, r.buf[:r.to])
		r.buf = grown
	}
	n, err := r.conn.Read(r.buf[r.to:])
	r.to += n
	if n > 0 {
		return nil
	}
	return err
}

// parseHead returns the length of the path, which stands after "POST ", and that of the body.
func parseHead(head []byte) (path, length int, err error) {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	if !bytes.HasPrefix(line, []byte("POST /")) {
		return 0, 0, errNotHTTP
	}
	path = bytes.IndexByte(line[len("POST "):], ' ')
	if path < 0 {
		return 0, 0, errNotHTTP
	}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		const name = "content-length:"
		if len(line) < len(name) || !bytes.EqualFold(line[:len(name)], []byte(name)) {
			continue
		}
		length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(name):])))
		if err != nil || length < 0 {
			return 0, 0, errNotHTTP
		}
		return path, length, nil
	}
	return 0, 0, errNotHTTP
}

// reply is an answer without its head.
type reply struct {
	status string
	body   []byte
	md5    string // of the body, in base64
}

func newReply(status string, body []byte) reply {
	sum := md5.Sum(body)
	return reply{status, body, base64.StdEncoding.EncodeToString(sum[:])}
}

func ok(body []byte) reply { return newReply("200 OK", body) }

// appendFull appends the reply with its head to dst. It has what official SDKs check: the date, the body's MD5, a name of its own for
// the request (that for Java refuses answers without one) and, if the server has keys, a signature of version 2.
func (s *Server) appendFull(dst []byte, path string, r *reply) []byte {
	dst = fmt.Appendf(dst, "HTTP/1.1 %s\r\nContent-Length: %d\r\n", r.status, len(r.body))
	signed := fmt.Appendf(nil, "x-ots-contentmd5:%s\nx-ots-contenttype:protocol buffer\nx-ots-date:%s\nx-ots-requestid:%s-%012x\n",
		r.md5, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), s.began, s.answers.Add(1))
	for _, c := range signed {
		if c == '\n' {
			dst = append(dst, '\r')
		}
		dst = append(dst, c)
	}
	if s.o.AccessKeyID != "" {
		mac := hmac.New(sha1.New, []byte(s.o.AccessKeySecret))
		mac.Write(append(signed, path...))
		dst = fmt.Appendf(dst, "Authorization: OTS %s:%s\r\n", s.o.AccessKeyID, base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return append(append(dst, "\r\n"...), r.body...)
}
