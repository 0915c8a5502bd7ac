package keep

import (
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/tablestore/client"
)

// Load is what a run of a load is known by, and what resuming it depends on.
type Load struct {
	Inputs       []string
	Target       string // its name
	Place        string // of an embedded store
	Table        string
	RunDir       string          // "" until a run is found or begun, unless the user names it
	ReturnedKeys string          // file that the keys made by the service are kept in
	Nothing      bool            // is kept
	Ordered      bool            // rows of a key are written in the order of the inputs
	Rows         []progress.Fact // how they are written
	PolicyNow    time.Time       // that ages are counted from
	// Settle is how long an attempt of unknown outcome may still be applied, Request the time-out of a request.
	Settle, Request time.Duration
	Resume          Resume
	Invocation      Invocation
	Checkpoint      Checkpoint
}

// LongestLate is for how long after a process has lost its lease what it has sent may be applied.
func (l *Load) LongestLate() time.Duration { return client.LongestRequest(l.Request) + l.Settle }

// Held is the lease that a process must hold to send rows; nil if it need not hold any.
func (c *Checkpoint) Held() *jobdir.Lease {
	if c.State != nil {
		return c.State.Lease
	}
	return c.Lease
}

// MayAct reports whether the load may still write.
func (c *Checkpoint) MayAct() error {
	if l := c.Held(); l != nil {
		return l.Check()
	}
	return nil
}
