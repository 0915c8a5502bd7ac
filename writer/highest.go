package writer

import (
	"container/list"
	"sync"
)

// highestNumbers holds the highest returned numbers of recently used ordering keys. It is safe for concurrent use.
type highestNumbers struct {
	mu      sync.Mutex
	highest map[string]*list.Element
	recent  *list.List // of *highestNumber, the most recently used first
	bytes   int
}

type highestNumber struct {
	key     string
	number  int64 // 0 means unknown
	missing bool  // a row that the previous process may have sent was missing
	source  int   // source of the missing row; missed is its number
	missed  int64
}

// maxHighestBytes limits the memory to about 100,000 ordering keys. Searches for other keys go down to the first row.
const (
	maxHighestBytes  = 16 << 20
	highestNumberMin = 128
)

func (n *highestNumbers) note(key []byte, number int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.entry(key)
	h.number = max(h.number, number)
}

// entry returns an ordering key's entry. It adds a missing one, and may then drop others. The caller holds mu.
func (n *highestNumbers) entry(key []byte) *highestNumber {
	if e := n.highest[string(key)]; e != nil {
		n.recent.MoveToFront(e)
		return e.Value.(*highestNumber)
	}
	h := &highestNumber{key: string(key)}
	n.highest[h.key] = n.recent.PushFront(h)
	n.bytes += len(h.key) + highestNumberMin
	for n.bytes > maxHighestBytes {
		old := n.recent.Remove(n.recent.Back()).(*highestNumber)
		delete(n.highest, old.key)
		n.bytes -= len(old.key) + highestNumberMin
	}
	return h
}

// from returns the lowest number that the key's next row can have; 0 means unknown.
func (n *highestNumbers) from(key []byte) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.highest[string(key)]; e != nil && e.Value.(*highestNumber).number > 0 {
		return e.Value.(*highestNumber).number + 1
	}
	return 0
}
