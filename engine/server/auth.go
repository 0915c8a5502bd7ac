package server

import (
	"crypto/hmac"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/tsimport/engine/wire"
)

const maxSkew = 15 * time.Minute

// authenticate checks a request's headers, and the body as transmitted against its MD5.
func (s *Server) authenticate(r *request) (secret string, err *wire.Error) {
	secret, err = s.authenticateHeaders(r.path, r.header)
	if err == nil && !r.sameMemory && md5Text(r.body) != r.header.Get(wire.HeaderMD5) {
		err = wire.Failf(wire.CodeAuthFailed, "Mismatch between MD5 value of request body and x-ots-contentmd5 in header.")
	}
	return secret, err
}

// authenticateHeaders checks all headers, but not the body.
func (s *Server) authenticateHeaders(path string, h http.Header) (secret string, err *wire.Error) {
	secret = s.identify(h)
	for _, name := range []string{wire.HeaderDate, wire.HeaderAPIVersion, wire.HeaderAccessKeyID, wire.HeaderInstance,
		wire.HeaderMD5} {
		if h.Get(name) == "" {
			return secret, wire.Invalid("Missing header: %s.", strings.ToLower(name))
		}
	}
	if s.o.AnyCredentials {
		signer, ok := s.signer(path, h)
		if !ok { // the client has another secret, so it could not check the answer's signature
			signer = ""
		}
		return signer, s.checkHeaders(h)
	}
	v4 := h.Get(wire.HeaderSignatureV4) != ""
	if !v4 && h.Get(wire.HeaderSignature) == "" {
		return secret, wire.Invalid("Missing header: %s.", strings.ToLower(wire.HeaderSignature))
	}
	if h.Get(wire.HeaderAccessKeyID) != s.o.AccessKeyID {
		return secret, wire.Failf(wire.CodeAuthFailed, "The AccessKeyID does not exist.")
	}
	if v4 {
		date := h.Get(wire.HeaderSignDate)
		if date == "" {
			return secret, wire.Invalid("Missing header: %s.", strings.ToLower(wire.HeaderSignDate))
		}
		if h.Get(wire.HeaderSignRegion) == "" {
			return secret, wire.Invalid("Missing header: %s.", strings.ToLower(wire.HeaderSignRegion))
		}
		if _, err := time.Parse("20060102", date); err != nil {
			return secret, wire.Invalid("Invalid date format: %s.", date)
		}
	}
	secret, ok := s.signer(path, h)
	if !ok {
		return secret, wire.Failf(wire.CodeAuthFailed, "Signature mismatch.")
	}
	return secret, s.checkHeaders(h)
}

// signer returns the key for the signatures of a request and its answer, and whether the request's signature is valid.
func (s *Server) signer(path string, h http.Header) (secret string, ok bool) {
	secret = s.o.AccessKeySecret
	want, got := "", h.Get(wire.HeaderSignatureV4)
	if got != "" {
		secret = s.verify.derive(secret, h.Get(wire.HeaderSignDate), h.Get(wire.HeaderSignRegion))
		want = wire.SignV4(secret, path, h)
	} else {
		want, got = wire.Sign(secret, path, h), h.Get(wire.HeaderSignature)
	}
	return secret, hmac.Equal([]byte(want), []byte(got))
}

func (s *Server) checkHeaders(h http.Header) *wire.Error {
	if v := h.Get(wire.HeaderAPIVersion); v != wire.APIVersion {
		return wire.Invalid("Unsupported API version: %s.", v)
	}
	if s.instanceOf(h) == nil {
		return wire.Failf(wire.CodeAuthFailed, "The instance is not found.")
	}
	switch v := h.Get(wire.HeaderPriority); v {
	case "", "0", "1", "2": // none, low, normal, high
	default:
		return wire.Invalid("Invalid request priority: %s.", v)
	}
	date := h.Get(wire.HeaderDate)
	at, ok := parseDate(date)
	if !ok {
		return wire.Invalid("Invalid date format: %s.", date)
	}
	if d := s.o.Now().Sub(at).Truncate(time.Second); d > maxSkew || d < -maxSkew {
		return wire.Failf(wire.CodeAuthFailed, "Mismatch between system time and x-ots-date: %s.", date)
	}
	return nil
}

// parseDate parses 2006-01-02T15:04:05Z. It ignores a fraction of up to nine digits, because the Go SDK sends one.
func parseDate(text string) (at time.Time, ok bool) {
	at, err := time.Parse("2006-01-02T15:04:05Z", text) // accepts a fraction of any length, even after a comma
	const longest = len("2006-01-02T15:04:05.123456789Z")
	return at.Truncate(time.Second), err == nil && len(text) <= longest && !strings.Contains(text, ",")
}

func md5Text(b []byte) string {
	sum := md5.Sum(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// keyCache caches the last key of signature V4, which changes once a day.
type keyCache struct {
	mu   sync.Mutex
	of   string
	last string
}

func (c *keyCache) derive(secret, date, region string) string {
	of := date + "\x00" + region
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of != of {
		c.of, c.last = of, wire.DeriveKeyV4(secret, date, region)
	}
	return c.last
}

// requestIDs numbers the requests of this process.
type requestIDs struct {
	prefix string
	n      atomic.Uint64
}

func (r *requestIDs) start(now time.Time) {
	us := uint64(now.UnixMicro())
	r.prefix = fmt.Sprintf("%08x-%04x-%04x-", us>>32, us>>16&0xffff, us&0xffff)
}

func (r *requestIDs) next() string {
	n := r.n.Add(1)
	return fmt.Sprintf("%s%04x-%012x", r.prefix, n>>48, n&(1<<48-1))
}

// Check returns an error if the account in the options is invalid. The error does not contain the secret.
func (o Options) Check() error {
	for _, name := range append([]string{o.Instance}, o.More...) {
		if name != "" && !validInstance(name) {
			return fmt.Errorf("instance %q: want 3 to 16 letters, digits and hyphens, a letter first and no hyphen last", name)
		}
	}
	if strings.Trim(o.AccessKeyID, keyIDBytes) != "" {
		return fmt.Errorf("access key id %q: want letters, digits and + . / _ - only, as the SDKs do", o.AccessKeyID)
	}
	for _, c := range []byte(o.AccessKeySecret) {
		if c <= ' ' || c > '~' {
			return errors.New("the access key secret must be printable ASCII without spaces")
		}
	}
	return nil
}

const keyIDBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+./_-"

func validInstance(name string) bool {
	if len(name) < 3 || len(name) > 16 || name[len(name)-1] == '-' {
		return false
	}
	for i, c := range []byte(name) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

// identify returns the secret of the request's access key, which signs the answer. It is empty if the key is unknown.
func (s *Server) identify(h http.Header) (secret string) {
	if h.Get(wire.HeaderAccessKeyID) == s.o.AccessKeyID {
		secret = s.o.AccessKeySecret
	}
	return secret
}
