package pipeline

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path/filepath"

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
	// Loaded comes when the load has finished, before its checkpoint is removed.
	Loaded(ctx context.Context) error
	// NothingNew comes in place of all this when nothing was chosen.
	NothingNew(ctx context.Context) error
}

// once reports whether inputs are loaded once for the table.
func (c *Config) once() bool { return c.Resume.Known != nil && c.Resume.Known.Once() }

// nothingNew completes a load that has nothing to do.
func (a *attempt) nothingNew(ctx context.Context, err error) error {
	if a.cfg.once() && !a.cfg.DryRun && errors.As(err, new(*plan.NothingNew)) {
		if noteErr := a.cfg.Resume.Known.NothingNew(ctx); noteErr != nil {
			return noteErr
		}
	}
	return err
}

// beginKnown notes what is about to be loaded. The table is there.
func (a *attempt) beginKnown(ctx context.Context) error {
	if !a.cfg.once() || a.cfg.DryRun || a.planned.Empty {
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
	if !a.cfg.once() || !a.cfg.keeps() {
		return nil, nil
	}
	j, err := rundir.OpenJournal(filepath.Join(a.folder.Path, rundir.BlocksFile), a.from.counter(blockBytes))
	if err != nil {
		return nil, err
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
