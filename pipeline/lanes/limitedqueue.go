package lanes

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
)

// limitedQueue is a lane's queue, of which no more rows leave than the lane may send until the next checkpoint.
type limitedQueue struct {
	lane         *lane
	checkpointer *keep.Checkpointer // nil if nothing is kept
	report       *ledger.ReportAttempts
}

func (g limitedQueue) Front() (table.Ref, bool) {
	if g.lane.allowance.left <= 0 {
		return table.Ref{}, false
	}
	return g.lane.queue.Front()
}

func (g limitedQueue) Advance() {
	if g.checkpointer == nil {
		g.lane.queue.Advance()
		return
	}
	if g.checkpointer.Resumes() {
		if r, ok := g.lane.queue.Front(); ok && g.checkpointer.Leaves(r) {
			g.report.Replayed++
		}
	}
	g.lane.queue.Advance()
	if g.lane.allowance.spend() {
		g.checkpointer.Waits()
	}
}
