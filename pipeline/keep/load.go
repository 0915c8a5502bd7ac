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

// Load identifies a load and holds everything that resuming it depends on.
type Load struct {
	Inputs       []string
	Target       string // name of the target
	Place        string // path of an embedded store
	Table        string
	RunDir       string          // "" until a run is found or begun, unless the user names one
	ReturnedKeys string          // file for the keys completed by the service
	Nothing      bool            // nothing is kept
	Ordered      bool            // rows of a key are written in the order of the inputs
	Rows         []progress.Fact // how rows are written
	PolicyNow    time.Time       // the time from which ages are counted
	// Settle is the time for which an attempt of unknown outcome may still be applied, Request the time-out of a request.
	Settle, Request time.Duration
	Resume          Resume
	Invocation      Invocation
	Checkpoint      Checkpoint
}

// LongestLate returns how long a process's requests may still be applied after it has lost its lease.
func (l *Load) LongestLate() time.Duration { return client.LongestRequest(l.Request) + l.Settle }

// Held returns the lease that a process must hold to send rows, or nil.
func (c *Checkpoint) Held() *jobdir.Lease {
	if c.State != nil {
		return c.State.Lease
	}
	return c.Lease
}

// MayAct returns an error once the process must not write any more.
func (c *Checkpoint) MayAct() error {
	if l := c.Held(); l != nil {
		return l.Check()
	}
	return nil
}

// Invocation is the command that runs the load. It is kept in the summary.
type Invocation struct {
	Command   string
	Arguments []string // arguments of the command
	Directory string   // working folder of the command
}

// Checkpoint configures how checkpoints of a load are kept.
type Checkpoint struct {
	Every time.Duration // interval; 0 means one to five seconds, depending on the cost of one
	// Sync, if not nil, syncs acknowledged rows before a checkpoint calls them final, as the service does not sync them.
	Sync func() error
	// Keep keeps the checkpoint of a finished load that has follow-up work. If the process is killed during that work,
	// running it again does not start the load again. After the work, the caller calls Report.RemoveCheckpoint.
	Keep bool
	// State stores checkpoints and their files for other machines; if it is nil, they are only in the run folder.
	State *jobdir.Mirror
	// Lease is for a load without State. If not nil, only the process that holds it may send rows.
	Lease *jobdir.Lease
	// Repeats means that each key has one row, for which every attempt sends the same bytes, so that late requests change
	// nothing. The load then does not wait for them, and Report.LateUntil says until when they may be applied.
	Repeats bool
	// None means that neither checkpoints nor the job are kept, for example because the rows cannot be read again.
	None bool
}

// BadInput is an input that was set aside.
type BadInput = checkpoint.BadInput

// Known knows which contents were loaded into the table. Its methods are not called concurrently.
type Known interface {
	plan.Selection
	// Once reports whether known inputs are left out. If not, no other method except Select is called.
	Once() bool
	// Begin is called before an attempt's first row. created is the creation time of the table to be loaded into.
	Begin(ctx context.Context, created int64, run string) error
	// Blocks returns facts learned about the inputs since the last call. A later attempt passes them to Restore.
	Blocks() []byte
	Restore(blocks []byte) error
	// Loaded is called when the load is done, before its checkpoint is removed. bad has the inputs that were set aside.
	Loaded(ctx context.Context, bad []BadInput) error
	// NothingNew is called instead of Begin and Loaded if no inputs were chosen, or only bad ones.
	NothingNew(ctx context.Context, bad []BadInput) error
	// Same reports whether an input of a new version is known to have the content with which the resumed run began.
	Same(ctx context.Context, name string) (bool, error)
	// Nights returns the number of nightly loads in which an input with the same content was bad.
	Nights(name string) int
	// Works reports whether the same command has loaded inputs into the table before.
	Works() bool
	// Copies returns the inputs that Select left out as copies of inputs that are now bad, and forgets them.
	Copies(bad []BadInput) []BadInput
	// Bad returns the inputs that Select left out because earlier loads had set them aside.
	Bad() []BadInput
}

// Once reports whether inputs are loaded only once into the table.
func (r *Resume) Once() bool { return r.Known != nil && r.Known.Once() }

// Nights returns the number of earlier nightly loads in which an input was bad.
func (r *Resume) Nights(name string) int {
	if !r.Once() {
		return 0
	}
	return r.Known.Nights(name)
}
