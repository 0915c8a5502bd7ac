package intake

import (
	"context"
	"sync"
)

// byteBudget bounds the bytes of pieces and splits that are between the input and the hand-over. Pieces take room in their order
// and splits give it back when they have been handed over, so what waits for room never holds up what gives it back. Only a
// record that is longer than all pieces in progress could: its pieces wait for more of them. They are set aside, and while
// nothing else is in progress, it always fits.
type byteBudget struct {
	mu    sync.Mutex
	limit int64
	held  int64
	aside int64 // of held, pieces that wait for the end of their record
	freed chan struct{}
}

func newByteBudget(limit int64) *byteBudget {
	return &byteBudget{limit: limit, freed: make(chan struct{}, 1)}
}

// take waits until there is room for n bytes and takes it. It returns false when ctx ends first. One goroutine takes.
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

// try takes n bytes if there is room for them.
func (r *byteBudget) try(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held+n > r.limit {
		return false
	}
	r.held += n
	return true
}

// add takes n more bytes without waiting: they are there already. A negative n gives back.
func (r *byteBudget) add(n int64) { r.change(n, 0) }

// setAside says how the bytes that wait for the end of their record have changed.
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
