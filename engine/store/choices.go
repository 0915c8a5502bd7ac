package store

import (
	"sync"
	"sync/atomic"
	"time"

	"example.com/tsimport/engine/wire"
)

// Choices are answers that the service's documentation leaves open. The zero Choices is how this engine answers by itself;
// each field is the other answer, so that a client can be tried with both.
type Choices struct {
	// FirstWriteWins: of two writes of a cell with one timestamp the first stays, not the later.
	FirstWriteWins bool `json:"first_write_wins"`
	// DeletionsHideEarlier: what is written after a column or row was deleted, with a timestamp not above the time of the
	// deletion, stays hidden. Deletions are remembered in memory only.
	DeletionsHideEarlier bool `json:"deletions_hide_earlier"`
	// ExclusiveLowerEdge: a timestamp as old as the table's maximum deviation is refused, not taken.
	ExclusiveLowerEdge bool `json:"exclusive_lower_edge"`
	// IndexDelay is how much later than its table an index shows a write.
	IndexDelay time.Duration `json:"-"`
}

// chosen is what Choose has set, and the deletions that count by it.
type chosen struct {
	now       atomic.Pointer[Choices]
	mu        sync.Mutex
	deletions map[string]int64 // by row key, or that and the column's name: Unix milliseconds
}

func (c *chosen) get() (choices Choices) {
	if p := c.now.Load(); p != nil {
		choices = *p
	}
	return choices
}

// deleted notes a deletion of a column of a row; without a name, of the row.
func (c *chosen) deleted(row, name []byte, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deletions == nil {
		c.deletions = map[string]int64{}
	}
	c.deletions[deletionKey(row, name)] = now
}

// hidden reports whether a deletion hides a cell that is written now.
func (c *chosen) hidden(row []byte, cell *wire.Cell) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range [][]byte{nil, cell.Name} {
		if at, any := c.deletions[deletionKey(row, name)]; any && cell.Timestamp <= at {
			return true
		}
	}
	return false
}

// deletionKey separates the two by their lengths: keys are of any bytes.
func deletionKey(row, name []byte) string {
	return string(row) + "\x00" + string(name) + string([]byte{byte(len(name)), byte(len(name) >> 8)})
}
