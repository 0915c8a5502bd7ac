package keep

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/writer"
)

// staleGuard keeps requests from being sent while the last checkpoint is too old: an attempt that resumes counts on it that nothing
// was sent later. A batch that was cut in time may wait before it is sent: its rows are looked for first, it is sent in halves,
// or the process stands still.
type staleGuard struct {
	writer.Sender
	last    *atomic.Pointer[time.Time] // the moment that the newest checkpoint on the disk describes; nil needs none
	keptFor time.Duration
	mayAct  func() error    // nil may always
	halted  context.Context // ends when nothing more is to be sent
}

// errNotSent says that the load stopped before a request was sent.
var errNotSent = client.NotSent(errors.New("the load stopped before it was sent"))

// Guarded returns the sender of a load without checkpoints, under a staleGuard if it has a lease.
func (c *Checkpoint) Guarded(s writer.Sender, halted context.Context) writer.Sender {
	if c.Lease == nil {
		return s
	}
	return &staleGuard{Sender: s, mayAct: c.MayAct, halted: halted}
}

// Post waits for a checkpoint if the last one is too old, and returns errNotSent if none comes.
func (g *staleGuard) Post(operation string, appendBody func(dst []byte) []byte) ([]byte, error) {
	for {
		if g.isFresh() && (g.mayAct == nil || g.mayAct() == nil) {
			return g.Sender.Post(operation, appendBody)
		}
		if ratelimit.Wait(g.halted, guardAgain) != nil {
			return nil, errNotSent
		}
	}
}

func (g *staleGuard) isFresh() bool {
	if g.last == nil {
		return true
	}
	last := g.last.Load()
	return last != nil && Elapsed(*last, time.Now()) < g.keptFor
}

// guardAgain is how often a request that waits looks for a new checkpoint.
const guardAgain = 10 * time.Millisecond
