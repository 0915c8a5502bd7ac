package intake

import (
	"context"
	"sync"
)

// byteBudget limits the bytes between input and hand-over. Pieces take room in order, and splits return it at
// hand-over, so there is no deadlock. If only pieces that wait for the end of their record hold room, one more fits.
type byteBudget struct {
	mu    sync.Mutex
	limit int64
	held  int64
	aside int64 // part of held: pieces that wait for the end of their record
	freed chan struct{}
}

func newByteBudget(limit int64) *byteBudget {
	return &byteBudget{limit: limit, freed: make(chan struct{}, 1)}
}

// take waits for room for n bytes and takes it, or returns false if ctx ends first. Only one goroutine may call it.
func (r *byteBudget) take(ctx context.Context, n int64) bool {
	for {
		r.mu.Lock()
		fits := r.held+n <= r.limit || r.held <= r.aside
		if fits {
			r.held += n
		}
		r.mu.Unlock()
		if fits {
			return true
		}
		select {
		case <-r.freed:
		case <-ctx.Done():
			return false
		}
	}
}

func (r *byteBudget) try(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held+n > r.limit {
		return false
	}
	r.held += n
	return true
}

// add takes n more bytes without waiting, because they exist already. A negative n returns bytes.
func (r *byteBudget) add(n int64) { r.change(n, 0) }

// setAside adds n to the bytes of pieces that wait for the end of their record.
func (r *byteBudget) setAside(n int64) { r.change(0, n) }

func (r *byteBudget) change(held, aside int64) {
	r.mu.Lock()
	r.held += held
	r.aside += aside
	r.mu.Unlock()
	select {
	case r.freed <- struct{}{}:
	default:
	}
}
