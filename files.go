package tsimport

import (
	"context"
	"errors"
	"fmt"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/tablestore/accesskey"
	"example.com/tsimport/jobs/recurring"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/transfer/restore"
)

// Summary is the result of a load of files, or of a copy. Read = Written + Rejected + Superseded + ConditionFailed +
// Archived + Unfinished. Counts cover all attempts of a resumed load.
type Summary struct {
	Read, Written, Rejected, Superseded int64
	MaybeApplied                        int64    // rejected rows that may nevertheless be in the table
	ConditionFailed                     int64    // rows not written because the stored row did not meet When
	Archived                            int64    // rows archived to files by AgePolicy
	Unfinished                          int64    // rows without an outcome, or rows that a dry run would have written
	RunDir                              string   // its summary.json has more details
	RejectsFiles                        []string // files of rejected records; the last one has the reasons
	BadInputs                           []BadInput
	NextSince                           string // Since for the copy after this one; it misses cells that writers backdate
}

// BadInput is a file that a load set aside because of its content (Request.BadInputs); the other files were loaded.
type BadInput struct{ Name, Reason string }

// ErrTooManyBad means that so many inputs are newly bad that the others may be too: 100, or more than one and more than
// a tenth of the inputs. The others were loaded.
var ErrTooManyBad = errors.New("so many inputs are bad that the request or the input location may be wrong")

func badInputs(bad []keep.BadInput) (all []BadInput) {
	for _, b := range bad {
		all = append(all, BadInput{b.Name, b.Reason})
	}
	return all
}

// ErrNothingNew means that no input is new. It is returned only if Request.FailIfNothingNew is set.
var ErrNothingNew = errors.New("no input is new")

// ErrErrorLimit means that more records were rejected than Request.MaxErrors allows.
var ErrErrorLimit = errors.New("too many rejected rows")

// Load does what tsimport load does: it loads inputs into a table. An input is a file, a folder, a glob, "-" (standard
// input), "@list", an http, https, oss or s3 address, a table of a database (postgres, mysql, sqlite), or the folder of
// an archive. Calling Load again with the same request resumes an unfinished load.
//
// When ctx ends, the load stops at once. The summary is nil if the load could not begin. Up to MaxErrors rejected
// records do not fail the load; the summary counts them. With OnlyNew, the summary is empty if no input is new.
func Load(ctx context.Context, r Request) (*Summary, error) {
	for option, given := range map[string]bool{"verify": r.Verify, "retry-rejects": r.RetryRejects != ""} {
		if given {
			return nil, usagef("--%s: only the tsimport command has this option; leave it out", option)
		}
	}
	cfg, err := options.Config(&r)
	if err != nil {
		return nil, public(err)
	}
	cfg.Read.Find.NotData = options.NotData(&r, "")
	cfg.Read.Find.Unread = func(address string) error { return open.Check(address, r.Table) }
	cfg.Read.Find.OSS.Credentials = func(context.Context) (id, secret, token string, err error) {
		provider, err := accesskey.Find(ctx, nil)
		if err != nil {
			return "", "", "", err
		}
		keys := provider.GetCredentials()
		return keys.GetAccessKeyID(), keys.GetAccessKeySecret(), keys.GetSecurityToken(), nil
	}
	from, err := restore.Open(ctx, &options.Command{Request: r}, cfg.Read.Find, nil)
	if err != nil {
		return nil, public(err)
	}
	if cfg.Target.Client, cfg.Target.Name, err = r.Target.Open(ctx); err != nil {
		return nil, public(err)
	}
	from.Config(&cfg, false)
	if err := from.Begin(ctx, &cfg, &cfg.Target.Client, false); err != nil {
		return nil, public(err)
	}
	return run(ctx, &r, cfg, func(*pipeline.Report) string { return "" })
}

// run runs a load. next computes Summary.NextSince from its report.
func run(ctx context.Context, r *Request, cfg pipeline.Config, next func(*pipeline.Report) string) (summary *Summary,
	err error) {
	cfg.Resume = keep.Resume{Look: !r.Fresh, AcceptChanged: r.AcceptChangedInput, LocksDir: options.LocksDir()}
	again, err := recurring.Open(ctx, r, &cfg, nil)
	if err != nil {
		return nil, public(err)
	}
	defer func() {
		if closeErr := again.Close(); err == nil {
			err = closeErr
		}
	}()
	report, err := pipeline.Run(ctx, cfg)
	if only := new(pipeline.OnlyBadError); errors.As(err, &only) {
		if summary = (&Summary{BadInputs: badInputs(only.Bad)}); only.Exit() == exitcode.Failed {
			return summary, &failure{ErrTooManyBad, err}
		}
		return summary, nil
	}
	if nothing := new(plan.NothingNew); errors.As(err, &nothing) {
		if r.FailIfNothingNew {
			return nil, &failure{ErrNothingNew, err}
		}
		return &Summary{}, nil
	}
	if err != nil && ctx.Err() != nil {
		err = &failure{ErrInterrupted, errors.Join(err, context.Cause(ctx))}
	}
	if report == nil {
		return nil, public(err)
	}
	s := &Summary{
		Read: report.Read, Written: report.Written, Rejected: report.Rejected, Superseded: report.Superseded,
		ConditionFailed: report.ConditionFailed, MaybeApplied: report.MaybeApplied,
		Archived: report.Archived, Unfinished: report.Unfinished, RunDir: report.RunDir, RejectsFiles: report.RejectsFiles,
		BadInputs: badInputs(report.BadInputs), NextSince: next(report),
	}
	switch {
	case err != nil:
		err = public(err)
	case report.State == pipeline.StateErrorLimit:
		err = &failure{ErrErrorLimit, fmt.Errorf("load into table %s: %d of %d records were rejected, more than MaxErrors "+
			"allows; see %s", r.Table, s.Rejected, s.Read, s.RunDir)}
	case report.State == pipeline.StateFinished && report.ExitCode == exitcode.Failed:
		err = &failure{ErrTooManyBad, fmt.Errorf("load into table %s: %s; see %s", r.Table, ledger.BadText(report.BadInputs),
			s.RunDir)}
	case report.State == pipeline.StateInterrupted:
		err = &failure{ErrInterrupted, fmt.Errorf("load into table %s: %w", r.Table, ErrInterrupted)}
	}
	return s, err
}
