package server

import (
	"sync"
	"time"

	"example.com/tsimport/engine/wire"
)

// opsLimit is how often tables may be asked about or changed: in any second as many times as it says. Refused
// operations do not count.
type opsLimit struct {
	perSecond int // 0 means no limit
	mu        sync.Mutex
	last      []time.Time // the last perSecond operations, as a ring
	next      int
}

func (l *opsLimit) take(now time.Time) *wire.Error {
	if l.perSecond <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) < l.perSecond {
		l.last = append(l.last, now)
		return nil
	}
	if since := now.Sub(l.last[l.next]); since >= 0 && since < time.Second {
		return wire.Failf(wire.CodeQuotaExhausted, "Too frequent table operations.")
	}
	l.last[l.next] = now
	l.next = (l.next + 1) % l.perSecond
	return nil
}

// tableOperation is an operation under the limit of table operations, malformed or not.
func tableOperation(op operation) operation {
	return func(s *Server, body []byte) (call, *wire.Error) {
		if err := s.tableOps.take(s.o.Now()); err != nil {
			return nil, err
		}
		return op(s, body)
	}
}
