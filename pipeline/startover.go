package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
)

// If an input of an unfinished run has since been replaced, withdrawn or damaged, a repeated load starts over, with the
// input as it is now or without it. Rows that are sent again change nothing.

// startsOver reports whether a run that cannot be resumed starts over. If rows must not be sent twice, why says so.
func (a *attempt) startsOver(why *error) bool {
	err := *why
	usage := new(plan.UsageError)
	inputs := errors.As(err, &usage) && (usage.Changed || usage.Damaged) && a.cfg.Resume.Once()
	asked := errors.As(err, &usage) && a.cfg.Resume.MayChange
	if a.from.Snapshot == nil || a.cfg.DryRun || !inputs && !asked {
		return false
	}
	advice := ""
	switch {
	case a.cfg.Write.Mode == table.Increment:
		advice = "its rows were added: restore the old content or, if only its time changed, give --accept-changed-input"
	case slices.ContainsFunc(a.from.Job.Details, func(d progress.Fact) bool { return d.Name == "--mark-column" }):
		// the service numbers its rows
		advice = "rows of it are in the table: restore the old content, or keep the new content and give --fresh " +
			"--look-first, which finds the rows that were written"
	case a.cfg.Write.Condition != table.Ignore:
		advice = "its rows were written: restore the old content, or give --fresh, which rejects those in the table"
	default:
		return true
	}
	*why = &plan.UsageError{Message: fmt.Sprintf("run %s: its input has changed since it began (%s); %s", a.cfg.RunDir,
		client.OneLine(err.Error()), advice), Input: true}
	return false
}

func (a *attempt) startOver(ctx context.Context, asked Config, why error) (*Report, error) {
	a.from.Release()
	if a.planned != nil {
		a.planned.Close()
	}
	return run(ctx, a.again(asked, why), a.hooks)
}

// again returns the configuration for starting over.
func (a *attempt) again(asked Config, why error) Config {
	asked.Resume.Look = false
	// A late request of the previous attempt would overwrite new content with old.
	asked.Resume.Hold = keep.Later(asked.Resume.Hold, keep.Later(a.from.Hold, a.from.SuspectUntil))
	asked.Resume.Notes = append(asked.Resume.Notes, fmt.Sprintf("the unfinished run %s is started over: %s", a.cfg.RunDir,
		client.OneLine(why.Error())))
	return asked
}
