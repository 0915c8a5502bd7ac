package pipeline

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path/filepath"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

// nothingNew completes a load without new inputs. It returns err, the failure to plan, unless bad inputs are left.
func (a *attempt) nothingNew(ctx context.Context, err error) error {
	nothing := new(plan.NothingNew)
	if !errors.As(err, &nothing) {
		return err
	}
	if a.cfg.Resume.Once() {
		a.bad = allBad(a.cfg, append(a.bad, a.cfg.Resume.Known.Bad()...))
		if !a.cfg.DryRun {
			if noteErr := a.cfg.Resume.Known.NothingNew(ctx, a.bad); noteErr != nil {
				return noteErr
			}
		}
	}
	if len(a.bad) > 0 {
		r := &ledger.ReportBad{BadInputs: a.bad, OfInputs: len(a.bad)}
		return &OnlyBadError{NothingNew: nothing, Bad: a.bad, code: r.BadCode(exitcode.OK)}
	}
	return err
}

func (a *attempt) beginKnown(ctx context.Context) error {
	if !a.cfg.Resume.Once() || a.cfg.DryRun || a.planned.Empty {
		return nil
	}
	if of, ok := a.cfg.Resume.Known.(plan.Units); ok {
		of.KeepUnits(a.planned.Units())
	}
	return a.cfg.Resume.Known.Begin(ctx, a.from.IDs.Known()[a.cfg.Target.Table], a.folder.Path)
}

// openBlocks opens the journal of facts about the inputs, and passes on the facts that earlier attempts have noted.
func (a *attempt) openBlocks() (*rundir.Journal, error) {
	if !a.cfg.Resume.Once() || !a.cfg.keeps() {
		return nil, nil
	}
	j, err := rundir.OpenJournal(filepath.Join(a.folder.Path, rundir.BlocksFile), a.from.Counter(ledger.BlockBytes))
	if err != nil {
		return nil, err
	}
	if a.cfg.Resume.AcceptChanged {
		return j, nil // an input may have different blocks now
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
