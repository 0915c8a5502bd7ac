package writer

import (
	"maps"
	"sync"

	"example.com/tsimport/internal/tablestore/client"
)

// Size limits request bodies to the service's limit, or a gateway's lower one. It is safe for concurrent use.
type Size struct {
	mu       sync.Mutex
	limit    int // in bytes; 0 means only the service's limit
	passed   int // bytes of the largest accepted body
	cuts     int // consecutive connections that broke while a body above passed was being sent
	smallest int // bytes of the smallest of these bodies
	// alone counts a gateway's refusals of bodies with one row, by size. It has only sizes above passed.
	alone map[int]int
}

// refusalsToBelieve is the number of refusals of a size that show a limit. A single one may be unrelated to the size.
const refusalsToBelieve = 3

// A cut connection proves less than a refusal: it takes several to blame the size, and limits are at least leastCut.
const (
	cutsToBelieve = 3
	leastCut      = 64 << 10
)

// Limit returns the largest body in bytes; 0 means only the service's limit. A single row may exceed it.
func (s *Size) Limit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit
}

func (s *Size) took(bytes int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passed = max(s.passed, bytes); len(s.alone) > 0 {
		maps.DeleteFunc(s.alone, func(bytes, _ int) bool { return bytes <= s.passed })
	}
	if bytes >= s.smallest {
		s.cuts = 0
	}
}

// refusedAlone notes that a gateway refused a body with one row, and reports whether it has done so often enough.
func (s *Size) refusedAlone(bytes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes <= s.passed {
		return false
	}
	if s.alone == nil {
		s.alone = map[int]int{}
	}
	s.alone[bytes]++
	return s.alone[bytes] >= refusalsToBelieve
}

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

// lower lowers the limit to half of a refused body's size, but not below an accepted size.
func (s *Size) lower(bytes int) {
	to := bytes / 2
	if s.passed < bytes {
		to = max(to, s.passed)
	}
	if s.limit == 0 || to < s.limit {
		s.limit = max(to, 1)
	}
}
