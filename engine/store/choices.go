package store

import (
	"sync"
	"sync/atomic"
	"time"

	"example.com/tsimport/engine/wire"
)

// Choices selects answers that the service's documentation leaves open. The zero Choices is the engine's default.
type Choices struct {
	// FirstWriteWins makes the first of two writes of a cell with the same timestamp win, not the second.
	FirstWriteWins bool `json:"first_write_wins"`
	// DeletionsHideEarlier hides writes whose timestamp is not above a deletion's. Deletions are kept in memory only.
	DeletionsHideEarlier bool `json:"deletions_hide_earlier"`
	// ExclusiveLowerEdge refuses a timestamp that is exactly as old as the table's maximum deviation.
	ExclusiveLowerEdge bool `json:"exclusive_lower_edge"`
	// IndexDelay is the time from a write until the table's indexes show it.
	IndexDelay time.Duration `json:"-"`
}

// chosen holds the settings of Choose, and the deletions needed for them.
type chosen struct {
	now       atomic.Pointer[Choices]
	mu        sync.Mutex
	deletions map[string]int64 // times in Unix milliseconds by row key, or by row key and column name
}

func (c *chosen) get() (choices Choices) {
	if p := c.now.Load(); p != nil {
		choices = *p
	}
	return choices
}

// deleted records the deletion of a column of a row or, without a name, of the row.
func (c *chosen) deleted(row, name []byte, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deletions == nil {
		c.deletions = map[string]int64{}
	}
	c.deletions[deletionKey(row, name)] = now
}

// hidden reports whether a deletion hides a cell written now.
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

// deletionKey joins a row key and a name. It ends with the name's length, because both may contain any bytes.
func deletionKey(row, name []byte) string {
	return string(row) + "\x00" + string(name) + string([]byte{byte(len(name)), byte(len(name) >> 8)})
}
