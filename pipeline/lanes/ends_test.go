package lanes

import (
	"testing"
	"time"
)

// A row waits for others to fill its batch while the input continues, and not while somebody hurries.
func TestAHurriedLoadSendsBatchesThatAreNotFull(t *testing.T) {
	s := restlessLanes()
	h, now := NewFlushRequest(), time.Unix(1e9, 0)
	s.options.FlushRequest = h
	s.fill(now, 0, 3)
	if l, next := s.choose(now, true); l != nil || next != linger {
		t.Errorf("a part of a batch: %v in %v, want it to linger", l, next)
	}
	h.Begin()
	<-h.Begins()
	s.Change()
	if l, _ := s.choose(now, true); l == nil {
		t.Error("a part of a batch lingers, though somebody waits for it")
	}
	h.End()
	s.Change()
	if l, _ := s.choose(now, true); l != nil {
		t.Error("a part of a batch is sent at once, though nobody waits any more")
	}
}
