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

// Load identifies a load, with everything that resuming it depends on.
type Load struct {
	Inputs       []string
	Target       string // name of the target
	Place        string // of an embedded store
	Table        string
	RunDir       string          // "" until a run is found or begun, unless named by the user
	ReturnedKeys string          // file for the keys made by the service
	Nothing      bool            // is kept
	Ordered      bool            // rows of a key are written in the order of the inputs
	Rows         []progress.Fact // how rows are written
	PolicyNow    time.Time       // the time from which ages are counted
	// Settle is how long an attempt of unknown outcome may still be applied; Request is the time-out of a request.
	Settle, Request time.Duration
	Resume          Resume
	Invocation      Invocation
	Checkpoint      Checkpoint
}

// LongestLate is how long after a process has lost its lease its requests may still be applied.
func (l *Load) LongestLate() time.Duration { return client.LongestRequest(l.Request) + l.Settle }

// Held returns the lease that a process must hold to send rows; nil if none.
func (c *Checkpoint) Held() *jobdir.Lease {
	if c.State != nil {
		return c.State.Lease
	}
	return c.Lease
}

// MayAct returns an error once the process may no longer write.
func (c *Checkpoint) MayAct() error {
	if l := c.Held(); l != nil {
		return l.Check()
	}
	return nil
}

// Invocation is how to run a load again; the summary keeps it.
type Invocation struct {
	Command   string
	Arguments []string // of that command
	Directory string   // folder of the command
}

// Checkpoint configures how checkpoints of a load are kept.
type Checkpoint struct {
	Every time.Duration // interval; 0 means a second
	// Sync syncs acknowledged rows before a checkpoint calls them final, if the service does not sync them. May be nil.
	Sync func() error
	// Keep keeps the checkpoint of a finished load that has follow-up work: if its process is killed then, running it
	// again does not start the load again. After the work the caller calls Report.RemoveCheckpoint.
	Keep bool
	// State stores checkpoints and their files where another machine can find them; nil means only in the run folder.
	State *jobdir.Mirror
	// Lease, if not nil, is held by the only process that may send rows of a load without State.
	Lease *jobdir.Lease
	// Repeats means that every attempt sends the same bytes for a key's only row, so that a late request changes nothing.
	// The load then does not wait for late requests, and Report.LateUntil says until when one may arrive.
	Repeats bool
	// None keeps neither checkpoints nor the job, because the load's rows cannot be read again.
	None bool
}

// BadInput is an input that was set aside.
type BadInput = checkpoint.BadInput

// Known knows which contents were loaded into the table. Its methods are called one at a time.
type Known interface {
	plan.Selection
	// Once reports whether known inputs are left out; if not, nothing else is called.
	Once() bool
	// Begin is called before an attempt's first row: the chosen inputs go to the table with that creation time.
	Begin(ctx context.Context, created int64, run string) error
	// Blocks returns facts learned about the inputs since the last call, for Restore by a later attempt.
	Blocks() []byte
	Restore(blocks []byte) error
	// Loaded is called when the load is done, before its checkpoint is removed. bad are the inputs that were set aside.
	Loaded(ctx context.Context, bad []BadInput) error
	// NothingNew is called instead of these when nothing was chosen, or only bad inputs.
	NothingNew(ctx context.Context, bad []BadInput) error
	// Same reports whether an input is known to have the content that the resumed run began with, though not its version.
	Same(ctx context.Context, name string) (bool, error)
	// Nights returns in how many nightly loads an input with the same content was bad.
	Nights(name string) int
	// Works reports whether the same command has loaded inputs into the table before.
	Works() bool
	// Copies returns inputs that Select left out as copies of bad ones. They are no longer known.
	Copies(bad []BadInput) []BadInput
	// Bad returns inputs that earlier loads have set aside and Select has left out.
	Bad() []BadInput
}

// Once reports whether inputs are loaded only once into the table.
func (r *Resume) Once() bool { return r.Known != nil && r.Known.Once() }

// Nights returns in how many earlier nightly loads an input was bad.
func (r *Resume) Nights(name string) int {
	if !r.Once() {
		return 0
	}
	return r.Known.Nights(name)
}
