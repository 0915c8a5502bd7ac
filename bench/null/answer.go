package null

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"time"
)

// reply is an answer without its head.
type reply struct {
	status string
	body   []byte
}

func ok(body []byte) reply { return reply{"200 OK", body} }

// full returns the reply with its head. It has what official SDKs check: the date, the body's MD5 and, if the server has keys, a
// signature of version 2. It names no request, for it is given for many.
func (s *Server) full(path string, r reply, now time.Time) []byte {
	sum := md5.Sum(r.body)
	signed := fmt.Sprintf("x-ots-contentmd5:%s\nx-ots-contenttype:protocol buffer\nx-ots-date:%s\n",
		base64.StdEncoding.EncodeToString(sum[:]), now.UTC().Format("2006-01-02T15:04:05.000Z"))
	head := fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Length: %d\r\n", r.status, len(r.body))
	for _, c := range []byte(signed) {
		if c == '\n' {
			head = append(head, '\r')
		}
		head = append(head, c)
	}
	if s.o.AccessKeyID != "" {
		mac := hmac.New(sha1.New, []byte(s.o.AccessKeySecret))
		mac.Write([]byte(signed + path))
		head = fmt.Appendf(head, "Authorization: OTS %s:%s\r\n", s.o.AccessKeyID, base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return append(append(head, "\r\n"...), r.body...)
}
