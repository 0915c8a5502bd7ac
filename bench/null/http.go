package null

import (
	"bytes"
	"errors"
	"net"
	"strconv"
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
