package server

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"example.com/tsimport/engine/wire"
)

// Before it is authenticated, a client may use only a connection and its headers. Signatures cover headers, including
// the body's MD5, so they are checked before the body is read. All bodies in flight share a memory budget.

// bodyBudget limits the bytes of all bodies in memory.
type bodyBudget struct {
	free *semaphore.Weighted
	all  int64
	wait time.Duration
}

func newBodyBudget(bytes int64, wait time.Duration) *bodyBudget {
	return &bodyBudget{free: semaphore.NewWeighted(bytes), all: bytes, wait: wait}
}

// bodyShare is a request's share of a bodyBudget. Without a budget it is unlimited, for requests in process (nil) or
// through another HTTP server.
type bodyShare struct {
	of   *bodyBudget
	held int64
}

var errNoRoom = errors.New("too many request bodies are in memory")

// take reserves n more bytes. It returns errNoRoom if they do not become free within the budget's wait.
func (s *bodyShare) take(ctx context.Context, n int64) error {
	if s == nil || s.of == nil {
		return nil
	}
	n = min(n, s.of.all-s.held)
	ctx, cancel := context.WithTimeout(ctx, s.of.wait)
	defer cancel()
	if s.of.free.Acquire(ctx, n) != nil {
		return errNoRoom
	}
	s.held += n
	return nil
}

func (s *bodyShare) release() {
	if s.of != nil {
		s.of.free.Release(s.held)
	}
}

// firstMemory returns the bytes to reserve for a body before it is read, with room to inflate it.
func firstMemory(r *http.Request) int64 {
	n := min(r.ContentLength, firstBytes)
	if n < 0 {
		n = bodyLimit(r.URL.Path)
	}
	if r.Header.Get(wire.HeaderRequestCompress) != "" {
		n += wire.MaxBodyBytes
	}
	return n
}

// judge returns the refusal of a request by its headers, or nil.
func (s *Server) judge(r *http.Request, q *request) *answer {
	if err := s.strangeHost(r.Host); err != nil && !isAdmin(q.path) {
		return s.finish(q, s.identify(q.header), nil, wire.Failf(wire.CodeAuthFailed, "%s", err.Error()))
	} else if err != nil {
		return s.adminAnswer(q, nil, err)
	}
	if isAdmin(q.path) {
		if s.o.NoAdmin {
			return s.adminAnswer(q, nil, &adminError{http.StatusNotFound, "the admin API is off: tsimport serve needs --admin"})
		}
		if err := s.mayAdminister(r); err != nil {
			return s.adminAnswer(q, nil, err)
		}
		return nil
	}
	if q.tooLong || q.method != http.MethodPost {
		return nil // serve refuses it for this reason
	}
	if secret, err := s.authenticateHeaders(q.path, q.header); err != nil {
		return s.finish(q, secret, nil, err)
	}
	prove(r.Context())
	return nil
}

// strangeHost refuses unknown host names while the access key is public. Otherwise a web page whose name an attacker
// points to this machine could use the server through the browser, which sends that name (DNS rebinding).
func (s *Server) strangeHost(host string) error {
	if s.o.AccessKeySecret != DefaultAccessKeySecret || knownHost(host, s.o.Hosts) {
		return nil
	}
	return &adminError{http.StatusForbidden,
		"the Host of the request is not an IP address, localhost or the name given to --listen"}
}

// knownHost reports whether a Host header is an IP address, localhost, or one of the names.
func knownHost(host string, names []string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(names, host)
}

// mayAdminister returns an error if a client may not use the admin API. A server with its own secret requires it.
func (s *Server) mayAdminister(r *http.Request) error {
	if err := fromHere(r.Header); err != nil {
		return err
	}
	if s.o.AccessKeySecret == DefaultAccessKeySecret {
		return nil
	}
	if a, err := netip.ParseAddrPort(r.RemoteAddr); r.TLS == nil && (err != nil || !a.Addr().Unmap().IsLoopback()) {
		return &adminError{http.StatusForbidden,
			"requests carry the secret, so from other machines they must use https: give tsimport serve --tls-cert"}
	}
	id, secret, _ := r.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(id), []byte(s.o.AccessKeyID))&subtle.ConstantTimeCompare([]byte(secret),
		[]byte(s.o.AccessKeySecret)) != 1 {
		return &adminError{http.StatusUnauthorized,
			"this server has a secret: send the access key id and the secret as user and password (curl -u ID:SECRET)"}
	}
	return nil
}
