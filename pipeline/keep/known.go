package keep

import (
	"context"

	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
)

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
