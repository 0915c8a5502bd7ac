package keep

import (
	"time"

	"example.com/tsimport/internal/jobdir"
)

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
