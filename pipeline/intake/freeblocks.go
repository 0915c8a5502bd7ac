package intake

import (
	"sync"

	"example.com/tsimport/internal/table"
)

// freeBlocks are blocks whose rows are all final, to make rows in: the memory that was used last is still in the processor's caches,
// and need not be made zero.
type freeBlocks struct {
	mu   sync.Mutex
	free []*table.Block
}

// mostFree bounds them. A load whose rows come as fast as they are written needs next to none.
const mostFree = 4

// Free takes a block that was handed over, of which nobody has a row any more.
func (f *Flow) Free(b *table.Block) {
	f.free.mu.Lock()
	defer f.free.mu.Unlock()
	if len(f.free.free) < mostFree {
		f.free.free = append(f.free.free, b)
	}
}

// take returns an empty block: one that is used again, or one for so many bytes and rows.
func (f *freeBlocks) take(bytes, rows int) *table.Block {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.free); n > 0 {
		b := f.free[n-1]
		f.free = f.free[:n-1]
		*b = table.Block{Data: b.Data[:0], Rows: b.Rows[:0]}
		return b
	}
	return &table.Block{Data: make([]byte, 0, bytes), Rows: make([]table.Row, 0, rows)}
}
