package pipeline

import "sync/atomic"

// FlushRequest makes a load send what it has read without waiting for batches to fill, as long as somebody waits for that. Any
// goroutine may call it; a nil one is never wanted.
type FlushRequest struct {
	waiting atomic.Int64
	begun   chan struct{} // one
}

// NewFlushRequest makes a FlushRequest for one load.
func NewFlushRequest() *FlushRequest { return &FlushRequest{begun: make(chan struct{}, 1)} }

// Begin makes the load send at once until End.
func (h *FlushRequest) Begin() {
	h.waiting.Add(1)
	offer(h.begun, struct{}{})
}

// End ends what Begin began.
func (h *FlushRequest) End() { h.waiting.Add(-1) }

// wanted reports whether somebody waits.
func (h *FlushRequest) wanted() bool { return h != nil && h.waiting.Load() > 0 }

// begins receives when somebody begins to wait.
func (h *FlushRequest) begins() <-chan struct{} {
	if h == nil {
		return nil
	}
	return h.begun
}
