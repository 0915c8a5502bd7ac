package keep

import (
	"context"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
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

// Invocation is how to run a load again. The summary keeps it.
type Invocation struct {
	Command   string
	Arguments []string // of that command
	Directory string   // where it was given
}

// Checkpoint says how checkpoints of a load are kept.
type Checkpoint struct {
	Every time.Duration // time between two; 0 takes a second
	// Sync makes what the service has acknowledged safe from a crash, of a service that does not do so itself. It is called
	// before a checkpoint says that it is final. May be nil.
	Sync func() error
	// Keep leaves the checkpoint of a load that has finished, for something is to be done after it: a process that is killed
	// then does not begin the load again when it is run again. Whoever has done it calls Report.RemoveCheckpoint.
	Keep bool
	// State keeps checkpoints, and all that they count on, where another machine finds them; nil keeps them in the run folder only.
	State *jobdir.Mirror
	// Lease, if not nil, is held by the one process that may send rows of a load without State.
	Lease *jobdir.Lease
	// Repeats says that every attempt sends a key's one row with the same bytes, so that a request that comes late changes nothing. The load
	// then waits for none, and Report.LateUntil says until when one may come.
	Repeats bool
	// None keeps nothing for a later attempt, for the load's rows cannot be read again: neither checkpoints nor the job.
	None bool
}

// BadInput is an input that was set aside.
type BadInput = checkpoint.BadInput

// Known knows which contents the table has taken. Its methods are called one at a time.
type Known interface {
	plan.Selection
	// Once reports whether it leaves out what is known; the rest is not called if not.
	Once() bool
	// Begin comes before the first row of an attempt is sent: what was chosen is about to be loaded into the table that was made then.
	Begin(ctx context.Context, created int64, run string) error
	// Blocks returns what was learned of the inputs since the last call, for Restore of a later attempt.
	Blocks() []byte
	Restore(blocks []byte) error
	// Loaded comes when the load has finished, before its checkpoint is removed. Bad are the inputs that were set aside.
	Loaded(ctx context.Context, bad []BadInput) error
	// NothingNew comes in place of all this when nothing was chosen, or only what is bad.
	NothingNew(ctx context.Context, bad []BadInput) error
	// Same reports whether an input is known to have the content that the run that is resumed has begun with, though not its version.
	Same(ctx context.Context, name string) (bool, error)
	// Nights is on how many nights an input was bad that has the same content.
	Nights(name string) int
	// Works reports whether the table has taken inputs by the same command.
	Works() bool
	// Copies are inputs that Select has left out because they have the content of others, and those are bad. They are no longer known.
	Copies(bad []BadInput) []BadInput
	// Bad are inputs that earlier loads have set aside and Select has left out.
	Bad() []BadInput
}

// Once reports whether inputs are loaded once for the table.
func (r *Resume) Once() bool { return r.Known != nil && r.Known.Once() }

// Nights is on how many nights an input was bad before.
func (r *Resume) Nights(name string) int {
	if !r.Once() {
		return 0
	}
	return r.Known.Nights(name)
}
