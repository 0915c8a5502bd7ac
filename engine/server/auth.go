package server

import (
	"cmp"
	"crypto/hmac"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/tsimport/engine/wire"
)

const maxSkew = 15 * time.Minute

// authenticate checks the headers of a request against its body as transmitted.
func (s *Server) authenticate(r *request) (identity, *wire.Error) {
	id, err := s.authenticateHeaders(r.path, r.header)
	if err == nil && !r.sameMemory && md5Text(r.body) != r.header.Get(wire.HeaderMD5) {
		err = wire.Failf(wire.CodeAuthFailed, "Mismatch between MD5 value of request body and x-ots-contentmd5 in header.")
	}
	return id, err
}

// authenticateHeaders checks all but the body.
func (s *Server) authenticateHeaders(path string, h http.Header) (identity, *wire.Error) {
	id := s.identify(h)
	for _, name := range []string{wire.HeaderDate, wire.HeaderAPIVersion, wire.HeaderAccessKeyID, wire.HeaderInstance, wire.HeaderMD5} {
		if h.Get(name) == "" {
			return id, wire.Invalid("Missing header: %s.", strings.ToLower(name))
		}
	}
	if s.o.AnyCredentials {
		return s.knows(id, path, h), s.checkHeaders(h)
	}
	v4 := h.Get(wire.HeaderSignatureV4) != ""
	if !v4 && h.Get(wire.HeaderSignature) == "" {
		return id, wire.Invalid("Missing header: %s.", strings.ToLower(wire.HeaderSignature))
	}
	if h.Get(wire.HeaderAccessKeyID) != s.o.AccessKeyID {
		return id, wire.Failf(wire.CodeAuthFailed, "The AccessKeyID does not exist.")
	}
	var want, got string
	if v4 {
		date, region := h.Get(wire.HeaderSignDate), h.Get(wire.HeaderSignRegion)
		if date == "" {
			return id, wire.Invalid("Missing header: %s.", strings.ToLower(wire.HeaderSignDate))
		}
		if region == "" {
			return id, wire.Invalid("Missing header: %s.", strings.ToLower(wire.HeaderSignRegion))
		}
		if _, err := time.Parse("20060102", date); err != nil {
			return id, wire.Invalid("Invalid date format: %s.", date)
		}
		id.secret = s.verify.derive(s.o.AccessKeySecret, date, region)
		want, got = wire.SignV4(id.secret, path, h), h.Get(wire.HeaderSignatureV4)
	} else {
		want, got = wire.Sign(id.secret, path, h), h.Get(wire.HeaderSignature)
	}
	if !hmac.Equal([]byte(want), []byte(got)) {
		return id, wire.Failf(wire.CodeAuthFailed, "Signature mismatch.")
	}
	return id, s.checkHeaders(h)
}

// knows returns the identity of who signed with this server's secret; of others it is empty, for nobody could check an answer that is
// signed with a secret of which the server knows nothing.
func (s *Server) knows(id identity, path string, h http.Header) identity {
	want, got := wire.Sign(s.o.AccessKeySecret, path, h), h.Get(wire.HeaderSignature)
	if date, region := h.Get(wire.HeaderSignDate), h.Get(wire.HeaderSignRegion); h.Get(wire.HeaderSignatureV4) != "" {
		id.secret = s.verify.derive(s.o.AccessKeySecret, date, region)
		want, got = wire.SignV4(id.secret, path, h), h.Get(wire.HeaderSignatureV4)
	}
	if !hmac.Equal([]byte(want), []byte(got)) {
		return identity{}
	}
	id.secret = cmp.Or(id.secret, s.o.AccessKeySecret)
	return id
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

// parseDate reads 2006-01-02T15:04:05Z with one to nine digits of a fraction or none. Only seconds count: Go's SDK
// writes month, day and hour where the fraction belongs.
func parseDate(text string) (at time.Time, ok bool) {
	const seconds = len("2006-01-02T15:04:05")
	if len(text) <= seconds || text[len(text)-1] != 'Z' {
		return at, false
	}
	if fraction := text[seconds : len(text)-1]; fraction != "" {
		digits := strings.Trim(fraction[1:], "0123456789") == ""
		if fraction[0] != '.' || len(fraction) < 2 || len(fraction) > 10 || !digits {
			return at, false
		}
	}
	at, err := time.Parse("2006-01-02T15:04:05", text[:seconds])
	return at, err == nil
}

func md5Text(b []byte) string {
	sum := md5.Sum(b)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// keyCache keeps the last key of signature V4: it changes once a day.
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
