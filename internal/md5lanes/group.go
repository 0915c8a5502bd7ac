package md5lanes

import (
	"crypto/md5"
	"runtime"
	"slices"
	"sync"
)

// Lanes is how many texts are hashed together at most.
const Lanes = 16

// Size is the length of a sum.
const Size = md5.Size

// least is the shortest text that is worth waiting for others: handing it over costs about as much as hashing so many bytes.
const least = 4 << 10

// Group brings together those who want a sum at about the same time: one of them hashes for all who wait, and whoever comes meanwhile waits for
// the next. Its zero value is ready.
type Group struct {
	mu      sync.Mutex
	waiting []*Hasher // whose texts nobody hashes yet
	busy    bool      // one of them gathers texts or hashes them
}

// Hasher makes the sums of one goroutine, which shares the work with others of its group.
type Hasher struct {
	group *Group
	text  []byte
	sum   [Size]byte
	next  chan bool // that the sum is made, or that it is this one's turn to hash
}

// Hasher makes a hasher. It is not safe for concurrent use; those of a group are.
func (g *Group) Hasher() *Hasher { return &Hasher{group: g, next: make(chan bool, 1)} }

// Sum returns the MD5 of the text. It may hash texts of others on the way, or wait for one of them who hashes this one.
func (h *Hasher) Sum(text []byte) [Size]byte {
	if width == 0 || len(text) < least {
		return md5.Sum(text)
	}
	h.share(text)
	h.text = nil
	return h.sum
}

// share has the sum made and returns how many texts this goroutine has hashed.
func (h *Hasher) share(text []byte) int {
	h.text = text
	var mine [Lanes]*Hasher
	n := h.group.join(h, &mine)
	if n == 0 {
		return 0
	}
	sumAll(mine[:n])
	for _, other := range mine[:n] {
		if other != h {
			other.next <- true // buffered: never blocks
		}
	}
	h.group.leave()
	return n
}

// join waits until it is the turn of h and returns those whose texts it is to hash, its own among them; none if another one has hashed it.
func (g *Group) join(h *Hasher, mine *[Lanes]*Hasher) int {
	g.mu.Lock()
	g.waiting = append(g.waiting, h)
	wait := g.busy
	g.busy = true
	g.mu.Unlock()
	if wait {
		if made := <-h.next; made {
			return 0
		}
	} else {
		// Whoever else has a request to send gets to the same place before this goroutine continues. A wait of a given time would be too long on an
		// idle machine and too short on a busy one.
		runtime.Gosched()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := copy(mine[:], g.waiting) // h is the first
	g.waiting = slices.Delete(g.waiting, 0, n)
	return n
}

// leave lets the next one hash.
func (g *Group) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy = len(g.waiting) > 0; g.busy {
		g.waiting[0].next <- false // buffered: never blocks
	}
}
