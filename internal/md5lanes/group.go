package md5lanes

import (
	"crypto/md5"
	"runtime"
	"sync"
)

// Lanes is how many texts are hashed together at most.
const Lanes = 16

// Size is the length of a sum.
const Size = md5.Size

// least is the shortest text that is worth waiting for others: handing it over costs about as much as hashing so many bytes.
const least = 4 << 10

// Group brings together those who want a sum at about the same time. Its zero value is ready.
type Group struct {
	mu        sync.Mutex
	waiting   []*Hasher // whose texts nobody hashes yet
	gathering bool      // the first of them will
}

// Hasher makes the sums of one goroutine, which shares the work with others of its group.
type Hasher struct {
	group *Group
	text  []byte
	sum   [Size]byte
	done  chan struct{}
	taken bool // by another one, who says when it is done
}

// Hasher makes a hasher. It is not safe for concurrent use; those of a group are.
func (g *Group) Hasher() *Hasher { return &Hasher{group: g, done: make(chan struct{}, 1)} }

// Sum returns the MD5 of the text. It may hash texts of others on the way, or wait for one of them who hashes this one.
func (h *Hasher) Sum(text []byte) [Size]byte {
	if width == 0 || len(text) < least {
		return md5.Sum(text)
	}
	h.text = text
	defer func() { h.text = nil }()
	var mine [Lanes]*Hasher
	n := h.group.join(h, &mine)
	if n == 0 {
		<-h.done
		return h.sum
	}
	sumAll(mine[:n])
	for _, other := range mine[:n] {
		if other != h {
			other.done <- struct{}{} // buffered: never blocks
		}
	}
	return h.sum
}

// join waits a moment for others and returns those whose texts h is to hash, its own among them; none if another one hashes it.
func (g *Group) join(h *Hasher, mine *[Lanes]*Hasher) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.taken = false
	g.waiting = append(g.waiting, h)
	if len(g.waiting) == Lanes {
		return g.take(h, mine)
	}
	if g.gathering {
		return 0
	}
	g.gathering = true
	g.mu.Unlock()
	// Whoever else has a request to send gets to the same place before this goroutine continues. A wait of a given time would be too long on an
	// idle machine and too short on a busy one.
	runtime.Gosched()
	g.mu.Lock()
	if h.taken {
		return 0
	}
	return g.take(h, mine)
}

// take moves those who wait to mine.
func (g *Group) take(h *Hasher, mine *[Lanes]*Hasher) int {
	n := copy(mine[:], g.waiting)
	for _, other := range mine[:n] {
		other.taken = other != h
	}
	clear(g.waiting)
	g.waiting, g.gathering = g.waiting[:0], false
	return n
}
