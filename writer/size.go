package writer

import (
	"sync"

	"tsimport/client"
)

// Size is how large the bodies of requests may be: what the service takes, or less where a gateway on the way refuses more.
// The workers of a load share it. It is safe for concurrent use.
type Size struct {
	mu       sync.Mutex
	limit    int // 0 is none but the service's
	passed   int // bytes of the largest body that was taken
	cuts     int // connections that broke while a larger body was being sent, one after the other
	smallest int // the smallest of these bodies
}

// Cut connections say less than a refusal: it takes several to believe that the size is at fault, and no gateway has so low
// a limit that small bodies could be.
const (
	cutsToBelieve = 3
	leastCut      = 64 << 10
)

// Limit is the most bytes that a body may have; 0 is no limit but the service's. A row alone may have more.
func (s *Size) Limit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit
}

// took notes that a body was taken.
func (s *Size) took(bytes int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed = max(s.passed, bytes)
	if bytes >= s.smallest {
		s.cuts = 0
	}
}

// failed notes that a request failed as a whole.
func (s *Size) failed(bytes int, err error) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case client.TooLarge(err):
		s.lower(bytes)
	case client.CutWhileSending(err) && bytes > max(s.passed, leastCut):
		if s.cuts == 0 || bytes < s.smallest {
			s.smallest = bytes
		}
		if s.cuts++; s.cuts >= cutsToBelieve {
			s.lower(s.smallest)
			s.cuts = 0
		}
	}
}

// lower halves, but not below what was taken.
func (s *Size) lower(bytes int) {
	to := bytes / 2
	if s.passed < bytes {
		to = max(to, s.passed)
	}
	if s.limit == 0 || to < s.limit {
		s.limit = max(to, 1)
	}
}
