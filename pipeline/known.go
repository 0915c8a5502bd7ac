package pipeline

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path/filepath"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

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

// once reports whether inputs are loaded once for the table.
func (r *Resume) once() bool { return r.Known != nil && r.Known.Once() }

// nothingNew completes a load that has nothing to do.
func (a *attempt) nothingNew(ctx context.Context, err error) error {
	nothing := new(plan.NothingNew)
	if !errors.As(err, &nothing) {
		return err
	}
	if a.cfg.Resume.once() {
		a.bad = allBad(a.cfg, append(a.bad, a.cfg.Resume.Known.Bad()...))
		if !a.cfg.DryRun {
			if noteErr := a.cfg.Resume.Known.NothingNew(ctx, a.bad); noteErr != nil {
				return noteErr
			}
		}
	}
	if len(a.bad) > 0 {
		r := &Report{ReportBad: ReportBad{BadInputs: a.bad, inputs: len(a.bad)}}
		return &OnlyBadError{NothingNew: nothing, Bad: a.bad, code: r.badCode(exitcode.OK)}
	}
	return err
}

// beginKnown notes what is about to be loaded. The table is there.
func (a *attempt) beginKnown(ctx context.Context) error {
	if !a.cfg.Resume.once() || a.cfg.DryRun || a.planned.Empty {
		return nil
	}
	if of, ok := a.cfg.Resume.Known.(plan.Units); ok {
		of.KeepUnits(a.planned.Units())
	}
	return a.cfg.Resume.Known.Begin(ctx, a.from.ids.known()[a.cfg.Target.Table], a.folder.Path)
}

// blockBytes is the counter of a checkpoint for how long the journal of blocks is.
const blockBytes = "block_bytes"

// openBlocks opens the journal of what is learned of the inputs, and tells what earlier attempts have learned.
func (a *attempt) openBlocks() (*rundir.Journal, error) {
	if !a.cfg.Resume.once() || !a.cfg.keeps() {
		return nil, nil
	}
	j, err := rundir.OpenJournal(filepath.Join(a.folder.Path, rundir.BlocksFile), a.from.counter(blockBytes))
	if err != nil {
		return nil, err
	}
	if a.cfg.Resume.AcceptChanged {
		return j, nil // an input may have other blocks now
	}
	err = j.Read(func(r *bufio.Reader) error {
		blocks, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return a.cfg.Resume.Known.Restore(blocks)
	})
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}
