package pipeline

import "sync/atomic"

// Hurry makes a load send what it has read without waiting for batches to fill, as long as somebody waits for that. Any
// goroutine may call it; a nil Hurry is never wanted.
type Hurry struct {
	waiting atomic.Int64
	begun   chan struct{} // one
}

// NewHurry makes a Hurry for one load.
func NewHurry() *Hurry { return &Hurry{begun: make(chan struct{}, 1)} }

// Begin hurries the load until End.
func (h *Hurry) Begin() {
	h.waiting.Add(1)
	select {
	case h.begun <- struct{}{}:
	default:
	}
}

// End ends what Begin began.
func (h *Hurry) End() { h.waiting.Add(-1) }

// wanted reports whether somebody waits.
func (h *Hurry) wanted() bool { return h != nil && h.waiting.Load() > 0 }

// begins receives when somebody begins to wait.
func (h *Hurry) begins() <-chan struct{} {
	if h == nil {
		return nil
	}
	return h.begun
}
