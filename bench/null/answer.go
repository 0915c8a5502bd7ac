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
